"""What every kind of source must keep (kinds.py registers them): a kind is done when it passes.

Sources are asked by themselves where that is enough: of every kind, in every run. Else a job's whole life is played in one
process, on a Kafka in memory (in_process.py): of kinds that represent the others, which take turns. The last test takes real
processes and a real broker.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import pytest

from eosingest.host import failpoints
from eosingest.host.failpoints import NAMES
from eosingest.protocol.offsets.record import OffsetRecord
from tests.sources.conftest import made_subject
from tests.support.builders import Place, as_recorded, place
from tests.support.held_runs import run_killed_at
from tests.support.ledger import PROCESSES
from tests.support.sources.by_registry import ByRegistry
from tests.support.sources.in_process import MAX_RECORDS, TOPIC, Life
from tests.support.sources.jobs import assert_sent_once, job_over
from tests.support.sources.kinds import (
    BY_PARTS,
    BY_SCHEMA,
    CHANGING,
    GROWING,
    KINDS,
    MENDED,
    OF_EACH_LISTING,
    PLAIN,
    UNSEEN,
    paired,
)
from tests.support.sources.subject import by_topic

ALL = paired(KINDS)
IN_TIME = paired(KINDS, always=OF_EACH_LISTING)
LISTED = paired(KINDS, always=PLAIN)
# For what a kind says of items that change: those of others never do.
CHANGED = paired(CHANGING, always=OF_EACH_LISTING)
CHANGED_AS_LISTED = paired(CHANGING, always=PLAIN)
UNTOLD = paired(UNSEEN, always=OF_EACH_LISTING)
UNTOLD_AS_LISTED = paired(UNSEEN, always=PLAIN)
# For what rests on transactions that end in the middle of a job; test_in_one_transaction.py has what takes its place.
IN_PARTS = paired(BY_PARTS)
CHANGED_IN_PARTS = paired([kind for kind in CHANGING if kind in BY_PARTS], always=OF_EACH_LISTING)
UNTOLD_IN_PARTS = paired([kind for kind in UNSEEN if kind in BY_PARTS], always=OF_EACH_LISTING)
GROWN = paired(GROWING)

# ---- the source by itself ------------------------------------------------------------------------------------------


@LISTED
def test_listed_twice_it_is_the_same(life: Life) -> None:
    """Breaks when an order, an identity, a cut or a version depends on the look."""
    assert life.listing() == life.listing()
    assert life.splits() == life.splits()
    assert life.versions() == life.versions()
    assert list(life.splits()) == life.subject.items()


@LISTED
def test_splits_leave_no_gap_and_overlap_nowhere(life: Life) -> None:
    splits = life.splits()
    assert all(life.subject.is_covered(found) for found in splits.values())
    every = [split.id for found in splits.values() for split in found]
    assert len(set(every)) == len(every)


@LISTED
def test_a_split_is_found_again_by_what_is_kept_of_it(life: Life) -> None:
    """Breaks when offset records cannot say any more which item they are of, or that all of it is done."""
    kind, versions = life.source.splits, life.versions()
    for item, splits in life.splits().items():
        kept = [(split.id, split.bounds) for split in splits]
        assert [kind.split(*split) for split in kept] == splits
        assert {kind.item(split) for split, _ in kept} == {item}
        assert kind.covers(kept, versions[item])
        assert not any(kind.covers(kept[:at] + kept[at + 1 :], versions[item]) for at in range(len(kept)))


@CHANGED_AS_LISTED
def test_a_look_later_names_what_changed_and_what_vanished(life: Life) -> None:
    first, second = life.subject.items()
    before = life.listing()
    assert life.changed_since(before) == []
    life.subject.edit(life.subject.rows()[0], unseen=False)
    assert life.changed_since(before) == [first]
    life.subject.remove(second)
    assert life.changed_since(before) == [first, second]


@UNTOLD_AS_LISTED
def test_a_version_tells_content_where_a_listing_does_not(life: Life) -> None:
    """Breaks when another content of the same length and time has the version of the one that was sent."""
    first, second = life.subject.items()
    before, listed = life.versions(), life.listing()
    life.subject.edit(life.subject.rows()[0], unseen=True)
    assert life.listing().items == listed.items, "the edit is to be unseen"
    assert life.versions()[first] != before[first]
    assert life.versions()[second] == before[second]


@CHANGED_AS_LISTED
def test_an_item_is_unchanged_while_its_content_is(life: Life) -> None:
    versions, splits = life.versions(), life.splits()
    recorded = [as_recorded(split, versions[name]) for name, cut in splits.items() for split in cut]

    def unchanged() -> list[bool]:
        found = life.source.plan(None, recorded)
        return [item.name not in found.changed for item in found.items]

    assert unchanged() == [True, True]
    life.subject.touch(life.subject.items()[0])
    assert unchanged() == [True, True]
    life.subject.edit(life.subject.rows()[0], unseen=False)
    assert unchanged() == [False, True]


# ---- reading -------------------------------------------------------------------------------------------------------


@pytest.mark.slow_cases("*every position")
@pytest.mark.parametrize("most", [2, 1_000], ids=["two positions", "every position"])
@IN_PARTS
def test_each_split_gives_its_rows_and_resumes_at_each_position(life: Life, most: int) -> None:
    """The rows of all splits are all rows, each once; after each of a split's rows exactly its others follow, twice alike.

    The positions are those that a run writes whose transactions have one record: so many of each split, the first among them.
    """
    rows_of = {place(split): life.subject.rows_of(split) for found in life.splits().values() for split in found}
    assert list(chain.from_iterable(rows_of.values())) == life.subject.rows()
    life.bound(1)
    assert life.run().exit_code == 0
    assert Counter(life.records()) == Counter(life.subject.rows())
    reading, state = life.reading(), life.state()

    whole = reading.sent([])
    assert Counter(whole) == Counter(life.subject.rows())
    assert life.reading().sent([]) == whole, "read anew it is the same, in the same order"
    assert reading.sent(state.offsets.values()) == [], "all of it is done"
    for split, rows in rows_of.items():
        others = [found for found in state.offsets.values() if place(found) != split]
        assert reading.sent(others) == by_topic(life.subject, rows), f"{split} from its beginning"
    positions: dict[Place, list[OffsetRecord]] = defaultdict(list)
    for found in life.history():
        if not found.done:
            positions[place(found)].append(found)
    assert {split: found[-1].rows for split, found in positions.items()} == {
        split: len(rows) for split, rows in rows_of.items() if rows
    }
    # The first position of every split at once, then the second; a split that has no more is done.
    done = {place(found): found for found in state.offsets.values()}
    tried = [found[:: -(-len(found) // most)] for found in positions.values()]
    for at in zip_longest(*tried):
        behind = {place(found): found for found in at if found is not None}
        sent = reading.sent((done | behind).values())
        for split, found in behind.items():
            rest = rows_of[split][found.rows :]
            mine = [row for row in sent if row in rows_of[split]]
            assert mine == by_topic(life.subject, rest), f"{split} behind row {found.rows}"
        assert len(sent) == sum(len(rows_of[split]) - found.rows for split, found in behind.items())


# ---- a job's life --------------------------------------------------------------------------------------------------


@pytest.mark.in_turns("what is added is sent alone: the same promise, and more")
@ALL
def test_what_is_sent_is_sent(life: Life) -> None:
    """A rerun sends nothing and asks nobody for rows; the audit agrees with all of it."""
    subject = life.subject
    assert life.run().rows_sent == len(subject.rows())
    written = life.kafka.written()

    again = life.run()
    assert (again.exit_code, again.rows_sent, again.launched) == (0, 0, False)
    subject.touch(subject.items()[0])
    touched = life.run()
    assert (touched.exit_code, touched.rows_sent, touched.launched) == (0, 0, False), "its content is what it was"
    assert life.kafka.written() == written
    assert_exact(life)
    assert life.audit() == []


@GROWN
def test_what_is_added_is_sent_alone(life: Life) -> None:
    subject = life.subject
    assert life.run().exit_code == 0
    before = len(subject.rows())
    subject.grow()
    assert life.run().rows_sent == len(subject.rows()) - before > 0
    assert_exact(life)
    assert life.audit() == []


@UNTOLD
def test_a_change_of_what_was_sent_is_noticed(life: Life) -> None:
    """Seen by a listing it ends the next run; unseen, in an item that is done, no run asks: the audit tells."""
    subject = life.subject
    assert life.run().exit_code == 0
    written = life.kafka.written()
    subject.edit(subject.rows()[0], unseen=True)
    first = subject.items()[0]
    assert (life.run().rows_sent, life.kafka.written()) == (0, written)
    assert [name for name in life.audit() if name.startswith(first)], "the audit tells which item"

    subject.edit(subject.rows()[-1], unseen=False)
    ended = life.run()
    assert (ended.exit_code, ended.codes) == (12, ["source-changed"])
    assert subject.items()[1] in ended.errors[0].message
    assert life.kafka.written() == written


@CHANGED_IN_PARTS
def test_a_change_between_runs_is_noticed_where_a_split_is_half_sent(life: Life) -> None:
    half = half_sent(life)
    before = life.records()
    (split,) = [split for found in life.splits().values() for split in found if place(split) == place(half)]
    life.subject.edit(life.subject.rows_of(split)[0], unseen=False)
    ended = life.run()
    assert (ended.exit_code, ended.codes, life.records()) == (12, ["source-changed"], before)
    assert place(half)[0] in ended.errors[0].message


@CHANGED_IN_PARTS
def test_a_correction_after_what_was_sent_is_accepted(life: Life) -> None:
    """Breaks when a file that was corrected after a bad row can never be sent to its end."""
    half, sent = half_sent(life), {*life.records(), *life.letters()}
    splits = next(found for found in life.splits().values() if place(half) in map(place, found))
    unsent = [row for split in splits for row in life.subject.rows_of(split) if row not in sent]
    life.subject.edit(unsent[-1], unseen=False)
    ended = life.run()
    if not life.source.splits.may_be_corrected:
        assert (ended.exit_code, ended.codes) == (12, ["source-changed"])
        return
    assert ended.exit_code == 0, ended
    assert_exact(life)
    assert life.audit() == []


@UNTOLD_IN_PARTS
def test_a_change_that_no_listing_tells_is_noticed_where_a_split_is_half_sent(life: Life) -> None:
    """Breaks when a run goes on behind rows that are no longer those that were sent."""
    half = half_sent(life)
    (split,) = [split for found in life.splits().values() for split in found if place(split) == place(half)]
    first, second = life.subject.rows_of(split)[:2]
    life.subject.edit(first, unseen=True)
    ended = life.run()
    assert (ended.exit_code, ended.codes) == (12, ["prefix-changed"])
    assert place(half)[0] in ended.errors[0].message
    assert life.state().offsets[half.split].rows == half.rows, "nothing more of it was sent"
    assert not [value for value, times in Counter(life.records()).items() if times > 1]

    before = life.records()
    life.subject.edit(second, unseen=False)
    seen = life.run()
    assert (seen.exit_code, seen.codes, life.records()) == (12, ["source-changed"], before)


@IN_TIME
def test_what_comes_while_a_run_takes_the_job_over_is_sent(life: Life) -> None:
    """The source is listed behind the read-back, and looked at before the claim for what can be refused at once."""
    grown: list[str] = []

    def grow(name: str) -> None:
        if name == "driver-after-fence" and not grown:
            life.subject.grow()
            grown.append(name)

    failpoints.handle_with(grow)
    try:
        assert life.run().exit_code == 0
    finally:
        failpoints.handle_with(None)
    assert grown
    assert_exact(life)
    state = life.state()
    for item in life.subject.items():
        life.subject.remove(item)
    ended = life.run()
    assert ended.exit_code == 2, "there is nothing there any more"
    assert life.state() == state, "and nobody was fenced"


@CHANGED
def test_what_changes_between_listing_and_comparison_is_noticed(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is sent of a listing that is not true any more."""
    passed: list[str] = []
    look = life.source._listed  # type: ignore[attr-defined]

    def look_and_meddle(*asked: Any) -> Any:
        listing = look(*asked)
        if "driver-after-fence" in passed:  # what is before is the check
            life.subject.touch(life.subject.items()[0])
        return listing

    monkeypatch.setattr(life.source, "_listed", look_and_meddle)
    failpoints.handle_with(passed.append)
    try:
        ended = life.run()
    finally:
        failpoints.handle_with(None)
    assert (ended.exit_code, ended.codes, life.records()) == (12, [life.subject.noticed_behind_listing], [])


@CHANGED_IN_PARTS
def test_what_vanished_is_noticed_where_it_is_half_sent(life: Life) -> None:
    item = place(half_sent(life))[0]
    life.subject.remove(item)
    before = life.records()
    ended = life.run()
    assert (ended.exit_code, ended.codes) == (12, ["source-vanished"])
    assert item in ended.errors[0].message
    assert life.records() == before


@CHANGED
def test_what_vanished_after_it_was_sent_stays_sent(life: Life) -> None:
    assert life.run().exit_code == 0
    before = life.records()
    life.subject.remove(life.subject.items()[0])
    ended = life.run()
    assert (ended.exit_code, ended.rows_sent) == (0, 0)
    assert life.records() == before


@paired(BY_SCHEMA, always=["json.to.avro", "postgres.to.json-schema"])
def test_a_row_that_does_not_fit_ends_its_split(life: Life) -> None:
    """Breaks when such a row is sent, or is not named, or rows behind it are sent. A rerun says the same."""
    subject = life.subject
    assert isinstance(subject, ByRegistry)
    split = next(split for found in life.splits().values() for split in found if len(subject.rows_of(split)) > 2)
    before, subject.unfit, *_ = rows = subject.rows_of(split)
    life.bound(MAX_RECORDS)
    others = Counter(subject.rows()) - Counter(rows)
    for _ in range(2):
        ended = life.run()
        assert (ended.exit_code, ended.codes) == (7, ["does-not-fit"])
        assert ", row 2: the row does not fit: " in ended.errors[0].message
        assert subject.why_unfit in ended.errors[0].message
        assert Counter(life.records()) == others + Counter([before])


@paired(MENDED)
def test_what_was_a_dead_letter_stays_one(life: Life) -> None:
    """The topic takes such rows by now: those that were not met yet are sent. Breaks when a row is judged anew."""
    half = half_sent(life)
    before = life.letters()
    assert half.dead.count and len(before) < sum(map(life.subject.is_dead, life.subject.rows()))
    life.kafka.cluster.topic(TOPIC).config = {}
    assert life.run().exit_code == 0
    assert life.letters() == before
    assert Counter(life.records()) == Counter(life.subject.rows())
    assert life.audit() == []


# ---- killed --------------------------------------------------------------------------------------------------------


@IN_PARTS
def test_killed_in_a_transaction_and_run_again(life: Life) -> None:
    """And what is half sent was touched in the meantime, which changes nothing."""
    life.run_killed_at("task-before-commit", 3)
    assert 0 < len(life.records()) < len(life.subject.rows())
    for item in life.subject.items():
        life.subject.touch(item)
    assert life.run().exit_code == 0
    assert_exact(life)
    assert life.audit() == []


@pytest.mark.slow
@pytest.mark.in_turns("one fail point of one kind each")
@IN_PARTS
@pytest.mark.parametrize("point", NAMES)
def test_killed_at_every_point_and_run_again(life: Life, point: str) -> None:
    """At the point's first hit, and a run later once more, at a later one where it is passed again and again."""
    life.run_killed_at(point)
    if point.startswith("task-"):
        life.run_killed_at(point, 1 if point.endswith(("init", "check", "end")) else 3)
    else:
        life.run_killed_at("driver-after-claim")
    assert life.run().exit_code == 0
    assert_exact(life)
    written = life.kafka.written()
    assert (life.run().rows_sent, life.kafka.written()) == (0, written)


@pytest.mark.slow
@pytest.mark.in_turns("one kind of source each")
@pytest.mark.parametrize("kind", BY_PARTS)
def test_with_real_processes(
    kind: str, servers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """The same on a real broker: killed by SIGKILL, run again, run once more, and verified against the source."""
    subject = made_subject(kind, tmp_path, request)
    if subject.kind is not None:
        monkeypatch.setenv("PYTHONPATH", PROCESSES)
    job = job_over(subject, tmp_path, servers, f"conformance-{kind}")
    run_killed_at(job, "task-before-commit@2")
    job.run_until_complete()
    assert_sent_once(job, subject)


# ---- what the tests share ------------------------------------------------------------------------------------------


def half_sent(life: Life) -> OffsetRecord:
    """Kill a run in mid-transaction, and return the offset record of a split that is committed in part."""
    life.run_killed_at("task-before-commit", 2)
    (half,) = [found for found in life.state().offsets.values() if not found.done]
    assert half.rows < len(life.subject.rows())
    return half


def assert_exact(life: Life) -> None:
    """Every row is in the topic once, or a dead letter; those of each split are in their order. Offset records say the same."""
    values, letters, offsets = life.records(), life.letters(), life.state().offsets.values()
    assert Counter(values) == Counter(life.subject.rows())
    assert Counter(letters) == Counter(filter(life.subject.is_dead, life.subject.rows()))
    assert sum(found.dead.count for found in offsets) == len(letters)
    assert sum(found.rows for found in offsets) == sum(found.records for found in offsets) + len(letters) == len(values)
    at = {value: number for number, value in enumerate(values)}
    for found in life.splits().values():
        for split in found:
            places = [at[row] for row in by_topic(life.subject, life.subject.rows_of(split))]
            assert places == sorted(places), f"{place(split)} is out of order"
