"""From a listing and offset records to a plan: done, half done, new, changed, vanished, and what is read for that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from eosingest.errors import ChangedError, FatalError
from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.protocol.plan import Plan, half_done_items, make_plan
from eosingest.protocol.source import Item, Version
from eosingest.sources.base import compared
from eosingest.sources.files.cuts import FileSplit
from eosingest.sources.files.listing.fingerprint import Fingerprint
from eosingest.sources.files.listing.source_file import WORDING, SourceFile, left_out
from tests.support.builders import (
    Place,
    by_split,
    fingerprint,
    listing,
    moved,
    offset_record,
    passed_over,
    place,
    places,
)
from tests.support.made_up_files import EvenSplits, MadeUpFiles

SIZE = 100


@pytest.fixture
def source() -> MadeUpFiles:
    return MadeUpFiles()


def committed(
    file: str, start: int, length: int, read: Fingerprint, *, done: bool = True, position: int = 10
) -> OffsetRecord:
    return offset_record(file, start, length, rows=position, done=done, checksum=99, read=read, sequence=4)


def plan_of(source: MadeUpFiles, *records: OffsetRecord, split_size: int = SIZE) -> Plan:
    offsets = by_split(records)
    assert len(offsets) == len(records)
    return make_plan(source, offsets, split_size, source.plan(None, offsets.values()))


def pending(plan: Plan) -> list[Place]:
    return places(plan.pending)


def states(plan: Plan) -> dict[str, tuple[bool, bool]]:
    return {entry.item.name: (entry.done, entry.half_done) for entry in plan.items}


def test_nothing_at_all(source: MadeUpFiles) -> None:
    plan = plan_of(source)
    assert plan == Plan(SIZE, (), WORDING, left_out=left_out((), (), 0))
    assert (plan.pending, plan.half_done, plan.size_to_read, plan.size_to_send) == ((), False, 0, 0)
    plan.refuse_changes("error")


def test_new_files_are_pending_as_a_whole(source: MadeUpFiles) -> None:
    now = source.put("b", 250)
    source.put("a", 100)
    plan = plan_of(source)
    assert pending(plan) == [("a", 0), ("b", 0), ("b", 100), ("b", 200)]
    assert states(plan) == {"a": (False, False), "b": (False, False)}
    assert all(planned.committed is None for planned in plan.pending)
    assert all(planned.version == now.to_json() for planned in plan.pending if place(planned)[0] == "b")
    assert [entry.splits for entry in plan.items] == [1, 3]
    assert (plan.size_to_read, plan.size_to_send, plan.half_done) == (350, 350, False)


def test_done_file(source: MadeUpFiles) -> None:
    now = source.put("a", 250)
    plan = plan_of(source, *(committed("a", start, min(100, 250 - start), now) for start in (0, 100, 200)))
    assert states(plan) == {"a": (True, False)}
    assert (plan.pending, plan.pending_items, plan.size_to_read, plan.size_to_send) == ((), (), 0, 0)
    assert plan.items[0].started
    assert plan.items[0].splits == 3
    assert plan.committed_records == 30


def test_half_done_file_resumes_where_it_was(source: MadeUpFiles) -> None:
    now = source.put("a", 250)
    half = committed("a", 100, 100, now, done=False, position=7)
    plan = plan_of(source, committed("a", 0, 100, now), half)
    assert pending(plan) == [("a", 100), ("a", 200)]
    assert [planned.committed for planned in plan.pending] == [half, None]
    assert places(plan.items[0].skipped) == [("a", 0)]
    assert states(plan) == {"a": (False, True)}
    assert plan.half_done
    assert (plan.size_to_read, plan.size_to_send) == (250, 150), "finished splits are read again to get past them"


def test_position_zero_in_every_split_is_still_half_done(source: MadeUpFiles) -> None:
    now = source.put("a", 50)
    plan = plan_of(source, committed("a", 0, 50, now, done=False, position=0))
    assert states(plan) == {"a": (False, True)}


@pytest.mark.parametrize("split_size", [1, 30, 100, 124, 125, 250, 10_000])
def test_a_done_file_is_done_whatever_todays_split_size(source: MadeUpFiles, split_size: int) -> None:
    now = source.put("a", 250)
    records = [committed("a", start, min(125, 250 - start), now) for start in (0, 125)]
    plan = plan_of(source, *records, split_size=split_size)
    assert plan.pending == ()
    assert plan.items[0].done
    assert source.read.total() == 0


@pytest.mark.parametrize("gap", [(0, 100), (100, 100), (200, 50)])
def test_a_gap_in_the_coverage_is_pending(source: MadeUpFiles, gap: tuple[int, int]) -> None:
    now = source.put("a", 250)
    records = [committed("a", start, min(100, 250 - start), now) for start in (0, 100, 200) if start != gap[0]]
    plan = plan_of(source, *records)
    assert pending(plan) == [("a", gap[0])]
    assert plan.size_to_send == gap[1]
    assert plan.half_done


@pytest.mark.parametrize("split_size", [50, 99, 101, 200, 10_000])
def test_a_half_done_file_is_never_cut_anew(source: MadeUpFiles, split_size: int) -> None:
    now = source.put("a", 250)
    with pytest.raises(ChangedError) as caught:
        plan_of(source, committed("a", 0, 100, now), split_size=split_size)
    assert caught.value.code == "split-size-changed"
    assert "a" in caught.value.message
    assert "100 bytes" in caught.value.message
    assert "split_size" in caught.value.hint


def test_another_cut_is_refused_also_where_the_lengths_agree_by_chance(source: MadeUpFiles) -> None:
    now = source.put("a", 300)
    with pytest.raises(ChangedError):
        plan_of(source, committed("a", 150, 100, now))


def test_an_untouched_file_takes_todays_split_size(source: MadeUpFiles) -> None:
    done = source.put("a", 100)
    source.put("b", 100)
    plan = plan_of(source, committed("a", 0, 100, done), split_size=60)
    assert pending(plan) == [("b", 0), ("b", 60)]


# ---- changes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize(
    ("length", "mtime_ms", "content"),
    [(250, 2, "y"), (251, 1, "x"), (249, 2, "y"), (50, 1, "x")],
    ids=["content", "longer", "shorter", "much shorter"],
)
def test_changed_file(source: MadeUpFiles, done: bool, length: int, mtime_ms: int, content: str) -> None:
    was = fingerprint(250)
    records = [
        committed("a", 0, 100, was),
        committed("a", 100, 100, was),
        committed("a", 200, 50, was, done=done),
    ]
    now = source.put("a", length, mtime_ms=mtime_ms, content=content)
    plan = plan_of(source, *records)
    assert plan.changed == ("a",)
    assert places(sorted(plan.stale)) == [("a", 0), ("a", 100), ("a", 200)]
    assert pending(plan) == [("a", start) for start in range(0, length, 100)], "the whole file is to be read anew"
    assert all(planned.committed is None and planned.version == now.to_json() for planned in plan.pending)
    assert not plan.half_done, "what is to be read anew is not half done"


def test_changes_are_refused_or_taken_as_the_spec_says(source: MadeUpFiles) -> None:
    records = [committed(name, 0, 100, fingerprint(100)) for name in ("a", "b", "c")]
    source.put("a", 100, mtime_ms=2, content="y")
    source.put("b", 100, mtime_ms=2, content="y")
    source.put("c", 100)
    plan = plan_of(source, *records)
    plan.refuse_changes("reingest")
    with pytest.raises(ChangedError) as caught:
        plan.refuse_changes("error")
    assert caught.value.code == "source-changed"
    assert caught.value.message.startswith("a, b: ")
    assert "reingest" in caught.value.hint


def test_many_changed_files_are_named_up_to_a_point(source: MadeUpFiles) -> None:
    records = [committed(f"f{n:02}", 0, 100, fingerprint(100)) for n in range(25)]
    for record in records:
        source.put(place(record)[0], 100, mtime_ms=2, content="y")
    with pytest.raises(ChangedError) as caught:
        plan_of(source, *records).refuse_changes("error")
    assert "f19" in caught.value.message
    assert "f20" not in caught.value.message
    assert "5 more files" in caught.value.message


def test_some_stale_records_make_the_whole_file_stale(source: MadeUpFiles) -> None:
    now = source.put("a", 200, mtime_ms=2, content="y")
    old = committed("a", 0, 100, fingerprint(200))
    plan = plan_of(source, old, committed("a", 100, 100, now))
    assert places(sorted(plan.stale)) == [("a", 0), ("a", 100)]
    assert pending(plan) == [("a", 0), ("a", 100)]


def test_a_touched_file_of_the_same_content_is_unchanged(source: MadeUpFiles) -> None:
    was = fingerprint(250)
    source.put("a", 250, mtime_ms=2)
    plan = plan_of(source, committed("a", 0, 100, was), committed("a", 100, 100, was, done=False))
    assert (plan.changed, plan.stale) == ((), ())
    assert pending(plan) == [("a", 100), ("a", 200)]
    now = fingerprint(250, mtime_ms=2).to_json()
    assert all(planned.version == now for planned in plan.pending), "what the file is now"


def test_vanished_files(source: MadeUpFiles) -> None:
    done, half = fingerprint(100), fingerprint(200)
    plan = plan_of(source, committed("done", 0, 100, done), committed("half", 0, 100, half))
    assert plan.vanished == ("half",)
    assert plan.half_done
    for on_change in ("error", "reingest"):
        with pytest.raises(ChangedError) as caught:
            plan.refuse_changes(on_change)
        assert caught.value.code == "source-vanished"
        assert caught.value.message.startswith("half:")


def test_a_file_that_is_too_young_has_not_vanished(source: MadeUpFiles) -> None:
    was = source.put("half", 200)
    source.too_young = ("half",)
    plan = plan_of(source, committed("half", 0, 100, was))
    assert (plan.vanished, passed_over(plan, "too young"), plan.pending, plan.items) == ((), ("half",), (), ())
    plan.refuse_changes("error")


@pytest.mark.parametrize("how", ["twice", "and left out", "cut short"])
def test_a_kind_that_gives_recorded_splits_no_fate_or_two_is_refused(
    source: MadeUpFiles, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Breaks when splits of an item are planned twice, or rows of a half-sent one are in no split."""
    now = source.put("a", 250)
    records = by_split([committed("a", 0, 100, now), committed("a", 100, 100, now, done=False)])
    (a,) = source.plan().items
    listed = listing(a, a) if how == "twice" else listing(a, too_young=["a"] if how == "and left out" else [])
    assert make_plan(source, records, SIZE, source.plan()).half_done
    if how == "cut short":
        monkeypatch.setattr(source, "splits", CutShort())
    with pytest.raises(FatalError, match=r"^a: recorded splits are not planned once each") as raised:
        make_plan(source, records, SIZE, listed)
    assert raised.value.code == "plan-inconsistent"


class CutShort(EvenSplits):
    """Splits without the last one."""

    def cut(self, item: Item, split_size: int) -> tuple[FileSplit, ...]:
        return super().cut(item, split_size)[:-1]


def test_empty_files_have_nothing_to_send(source: MadeUpFiles) -> None:
    source.put("a", 0)
    source.hidden = 3
    plan = plan_of(source)
    assert (plan.empty, plan.pending, plan.items, passed_over(plan, "hidden")) == (("a",), (), (), 3)
    plan.refuse_changes("error")


def test_a_file_that_shrank_to_nothing_changed(source: MadeUpFiles) -> None:
    source.put("a", 0, mtime_ms=2)
    plan = plan_of(source, committed("a", 0, 100, fingerprint(100)))
    assert (plan.changed, places(plan.stale), plan.vanished) == (("a",), [("a", 0)], ())
    with pytest.raises(ChangedError, match="a: changed"):
        plan.refuse_changes("error")


# ---- what is read ------------------------------------------------------------------------------------------------


def test_done_and_half_done_items_are_not_read_while_length_and_time_agree(source: MadeUpFiles) -> None:
    done, half = source.put("done", 100), source.put("half", 200)
    plan = plan_of(source, committed("done", 0, 100, done), committed("half", 0, 100, half))
    assert pending(plan) == [("half", 100)]
    assert plan.pending[0].version == half.to_json()
    assert source.read.total() == 0


def test_a_new_file_is_read_once_however_many_splits_it_has(source: MadeUpFiles) -> None:
    source.put("a", 1000)
    assert len(plan_of(source).pending) == 10
    assert source.read == {"a": 1}


@pytest.mark.parametrize("content", ["x", "y"])
def test_a_touched_file_is_read_once(source: MadeUpFiles, content: str) -> None:
    was = fingerprint(1000)
    source.put("a", 1000, mtime_ms=2, content=content)
    plan_of(source, *(committed("a", start, 100, was) for start in range(0, 900, 100)))
    assert source.read == {"a": 1}


def test_a_file_touched_again_after_an_unchanged_resume_is_not_read(source: MadeUpFiles) -> None:
    first, second = fingerprint(300), fingerprint(300, mtime_ms=2)
    source.put("a", 300, mtime_ms=2)
    plan = plan_of(source, committed("a", 0, 100, first), committed("a", 100, 100, second))
    assert pending(plan) == [("a", 200)]
    assert source.read.total() == 0


# ---- half done, from the records alone ---------------------------------------------------------------------------


def test_half_done_items_by_the_records_alone() -> None:
    now = fingerprint(200)
    whole = [committed("whole", 0, 100, now), committed("whole", 100, 100, now)]
    records = [
        *whole,
        committed("gap", 100, 100, now),
        moved(whole[0], "open", done=False),
        moved(whole[0], "open", 100),
    ]
    assert half_done_items(MadeUpFiles.splits, by_split(records)) == ["gap", "open"]
    assert half_done_items(MadeUpFiles.splits, {}) == []


def test_the_digest_of_a_list(source: MadeUpFiles) -> None:
    """Breaks when the schema of a half done job is inferred again over the same files, or not over others."""
    source.put("a", 100)
    source.put("b", 250, mtime_ms=2)
    before = plan_of(source).list_digest
    assert plan_of(source).list_digest == before
    source.put("b", 250, mtime_ms=3)
    assert plan_of(source).list_digest != before


def test_a_source_prefetches_what_it_compares_and_reads() -> None:
    """Breaks when it prefetches other items, in another order, or continues to do so after an error."""
    source, told, ended = MadeUpFiles(), list[tuple[str, list[Version]]](), 0

    @contextmanager
    def ahead(items: Iterable[tuple[SourceFile, Sequence[Version]]]) -> Iterator[None]:
        nonlocal ended
        told.extend((item.name, list(recorded)) for item, recorded in items)
        try:
            yield
        finally:
            ended += 1

    def find(read: Callable[[SourceFile, Sequence[Version]], Version]) -> None:
        compared(source.find(), source.splits, records, lambda file, was: read(file, was) in was, read, ahead)

    source.put("a", 100)
    was = source.put("b", 200).to_json()
    records = [committed("b", 0, 100, source.files["b"]), committed("b", 100, 100, source.files["b"])]
    find(lambda file, known: next(iter(known), {}))
    assert (told, ended) == ([("a", []), ("b", [was])], 1)
    with pytest.raises(ZeroDivisionError):
        find(lambda file, known: {"n": 1 // 0})
    assert ended == 2


def test_the_version_is_read_of_what_is_left_to_send() -> None:
    """Breaks when a covered item is read for its version, or a changed one gets a version that was recorded."""
    source, read = MadeUpFiles(), list[tuple[str, list[Version]]]()

    def version(file: SourceFile, known: Sequence[Version]) -> Version:
        read.append((file.name, list(known)))
        return {"now": file.name}

    old = {name: source.put(name, 100) for name in ("changed", "done", "half", "new")}
    records = [committed("changed", 0, 100, old["changed"]), committed("done", 0, 100, old["done"])]
    records.append(committed("half", 0, 50, old["half"]))
    listing = compared(source.find(), source.splits, records, lambda file, was: file.name != "changed", version)
    assert read == [("changed", []), ("half", [old["half"].to_json()]), ("new", [])]
    assert (listing.changed, listing.versions["done"]) == (("changed",), old["done"].to_json())
