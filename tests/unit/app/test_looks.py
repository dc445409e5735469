"""`plan` and `status` over a Kafka in memory: they say what a run would do, and what is committed, and write nothing."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eosingest.app import assemble, inspect
from eosingest.app.settings import driver_settings, source_of
from eosingest.errors import EosingestError
from eosingest.kafka.config import ClientSettings
from eosingest.protocol.offsets import record, topic
from eosingest.protocol.offsets.dead_letters import DeadLetterPin, DeadLetters
from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.report.model import PlanReport, StatusReport
from eosingest.report.progress import Progress
from eosingest.spec import Spec, load
from tests.support.builders import as_recorded, control_record, pinned
from tests.support.memory_job import MemoryKafka

OFFSETS = "eosingest-offsets"
SPEC = """\
name = "j"
{head}
[source]
format = "json"
path = "data/*.jsonl"
schema = "n BIGINT"
{source}
[sink]
bootstrap_servers = "memory:1"
topic = "t"
"""


class Told:
    """An observer that keeps notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def progress(self, progress: Progress) -> None:
        """Nothing is sent."""


class World(MemoryKafka):
    """A job whose run has ended, in a Kafka in memory."""

    client = ClientSettings("memory:1")

    def __init__(self, folder: Path) -> None:
        super().__init__(OFFSETS)
        self.folder = folder
        (folder / "data").mkdir()
        self.cluster.create_topic(OFFSETS, 5, {"cleanup.policy": "compact"})
        self.cluster.create_topic("t", 3, {})

    def spec(self, head: str = "", source: str = "") -> Spec:
        (self.folder / "j.toml").write_text(SPEC.format(head=head, source=source))
        return load(self.folder / "j.toml")

    def write(self, name: str, rows: int) -> Path:
        file = self.folder / "data" / f"{name}.jsonl"
        file.write_text("".join(f'{{"n": {n}}}\n' for n in range(rows)))
        return file

    def sent(self, spec: Spec, *, done: bool, state: str = record.FAILED, **control: Any) -> None:
        """Leave the records of a run that sent rows of each file there is."""
        source = source_of(spec)
        found = source.plan()
        offsets = [
            replace(as_recorded(split, found.versions[item.name], done=done), rows=5, records=5)
            for item in found.items
            for split in source.splits.cut(item, spec.source.split_size)
        ]
        settings = driver_settings(spec, "memory:1")
        pins = pinned(topic="t", topic_id=self.cluster.topic("t").topic_id, cluster_id="memory", root=settings.root)
        pins = replace(pins, offsets_topic_id=self.cluster.topic(OFFSETS).topic_id)
        open_ = state != record.COMPLETE
        more = {"digest": settings.digest, "split_size": spec.source.split_size, "pin_open": open_, **control}
        self._commit(control_record(1, state, pinned=pins, **more), offsets)

    def _commit(self, control: record.ControlRecord, offsets: list[OffsetRecord]) -> None:
        producer = self.control_producer("eosingest.j.control")
        producer.init_transactions()
        producer.begin()
        at = topic.partition_of("j", 5)
        for key in (record.control_key("j"), record.settled_key("j")):
            producer.produce_to_partition(OFFSETS, at, key, control.encode())
        for each in offsets:
            producer.produce_to_partition(OFFSETS, at, each.key("j"), each.encode())
        producer.commit()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(tmp_path)

    @contextlib.contextmanager
    def connected(*_: object, **__: object) -> Iterator[World]:
        yield made

    monkeypatch.setenv("EOSINGEST_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(assemble, "connected", connected)
    return made


def planned(spec: Spec) -> PlanReport:
    return inspect.plan(spec, Told())


def codes(report: PlanReport) -> list[str]:
    return [error.code for error in report.errors]


# ---- plan: files that changed after a part of them was sent -----------------------------------------------------------


def test_a_file_that_a_run_may_accept_is_no_error(world: World) -> None:
    """Breaks when plan ends with exit 12 for a file that run proves, and sends the rest of."""
    spec = world.spec()
    world.write("a", 10)
    world.sent(spec, done=False)
    world.write("a", 12)
    report = planned(spec)
    assert codes(report) == []
    assert [(item["state"], item["splits_pending"]) for item in report.items] == [("half done", 1)]
    (note,) = report.notes
    assert note.startswith(
        "data/a.jsonl: changed after a part of it was sent; run checks whether that part is unchanged"
    )


@pytest.mark.parametrize(
    ("done", "state", "source"), [(True, record.FAILED, ""), (True, record.COMPLETE, ""), (False, record.FAILED, "x")]
)
def test_a_file_that_a_run_refuses_is_an_error(world: World, done: bool, state: str, source: str) -> None:
    """One that was sent whole; one that is cut otherwise now."""
    spec = world.spec()
    file = world.write("a", 10)
    world.sent(spec, done=done, state=state)
    world.write("a", 12)
    if source:
        file.write_bytes(b"")
    assert codes(planned(spec)) == ["source-changed"]


def test_a_changed_file_that_is_sent_again_is_no_error(world: World) -> None:
    spec = world.spec(source='on_change = "reingest"')
    world.write("a", 10)
    world.sent(spec, done=False)
    world.write("a", 12)
    report = planned(spec)
    assert codes(report) == []
    assert [item["state"] for item in report.items] == ["changed"]
    assert not any("run checks" in note for note in report.notes)


# ---- plan: the dead-letter topic --------------------------------------------------------------------------------------

DEAD = 'on_error = {{ topic = "{}", max = 3 }}'


def written(world: World, name: str, count: int, **more: Any) -> DeadLetterPin:
    """Return the pin of a topic with so many dead letters."""
    topic_id = world.cluster.topic(name).topic_id if name in world.cluster.topics else "gone"
    return DeadLetterPin(name, topic_id, (0,), retired=DeadLetters(count), **more)


@pytest.mark.parametrize(
    ("names", "config", "pin", "code"),
    [
        ("no", {}, None, "topic-missing"),
        ("dead", {"cleanup.policy": "compact"}, None, "dead-letter-topic-policy"),
        ("dead", {}, "other", "pinned"),
        ("dead", {}, "gone", "topic-recreated"),
    ],
)
def test_a_dead_letter_topic_that_a_run_refuses(
    world: World, names: str, config: dict[str, str], pin: str | None, code: str
) -> None:
    """Breaks when plan shows work, and the run of it ends before it sends anything."""
    world.cluster.create_topic("dead", 1, config)
    world.cluster.create_topic("other", 1, {})
    spec = world.spec(DEAD.format(names))
    world.write("a", 10)
    letters = None if pin is None else written(world, pin, 1)
    letters = replace(letters, topic="dead") if letters is not None and pin == "gone" else letters
    world.sent(spec, done=False, dead_letters=letters)
    assert codes(planned(spec)) == [code]
    assert "no" not in world.cluster.topics, "plan creates no topic"


def test_the_dead_letter_topic_of_a_first_run(world: World) -> None:
    world.write("a", 10)
    assert codes(planned(world.spec(DEAD.format("no")))) == ["topic-missing"]
    create = 'on_error = { topic = "no", max = 3, create = { partitions = 1 } }'
    assert codes(planned(world.spec(create))) == []
    assert "no" not in world.cluster.topics, "plan creates no topic"


@pytest.mark.parametrize(("count", "before", "left"), [(2, 0, 1), (3, 0, 0), (9, 6, 0), (9, 9, 3), (7, 0, 0)])
def test_a_limit_of_dead_letters_that_is_reached(world: World, count: int, before: int, left: int) -> None:
    world.cluster.create_topic("dead", 1, {})
    spec = world.spec(DEAD.format("dead"))
    world.write("a", 10)
    world.sent(spec, done=False, dead_letters=written(world, "dead", count, before=before))
    report = planned(spec)
    assert codes(report) == []
    notes = [note for note in report.notes if note.startswith("on_error.max: ")]
    assert len(notes) == (left == 0), notes
    assert all("the next row that cannot be sent ends its split, and the run with exit 7" in note for note in notes)


# ---- status: the source is not needed ---------------------------------------------------------------------------------


def looked(spec: Spec) -> tuple[StatusReport, list[str]]:
    told = Told()
    return inspect.status(spec, told), told.notes


def test_status_says_which_files_no_longer_exist(world: World) -> None:
    spec = world.spec()
    file = world.write("a", 10)
    world.write("b", 10)
    world.sent(spec, done=True, state=record.COMPLETE)
    file.unlink()
    report, notes = looked(spec)
    assert (report.items, report.items_done) == (2, 2)
    assert notes == ["data/a.jsonl was sent whole and no longer exists; the records stay in the topic"]


def test_status_on_another_host(world: World) -> None:
    spec = world.spec()
    file = world.write("a", 10)
    world.write("b", 10)
    world.sent(spec, done=True, state=record.COMPLETE, host="h2")
    file.unlink()
    _, notes = looked(spec)
    assert notes == [
        "data/a.jsonl was sent whole, and does not exist on this host (the last run was on h2);"
        " the records stay in the topic"
    ]


def test_status_after_all_files_were_archived(world: World) -> None:
    """Breaks when the host that sent the files does not say that they are gone, because it finds none."""
    spec = world.spec()
    file = world.write("a", 10)
    world.sent(spec, done=True, state=record.COMPLETE)
    file.unlink()
    file.parent.rmdir()
    assert looked(spec)[1] == ["data/a.jsonl was sent whole and no longer exists; the records stay in the topic"]


@pytest.mark.parametrize("folder", [True, False])
def test_status_where_the_files_are_not(world: World, folder: bool) -> None:
    """Breaks when a status on another host says that files no longer exist which were never there."""
    spec = world.spec()
    file = world.write("a", 10)
    world.sent(spec, done=True, state=record.COMPLETE, host="h2")
    file.unlink()
    if not folder:
        file.parent.rmdir()
    report, notes = looked(spec)
    assert (report.state, report.items, report.items_done, report.records_total) == ("complete", 1, 1, 5)
    (note,) = notes
    assert note.startswith(
        "the source cannot be listed here, so it is not known which files still exist: 'data/*.jsonl'"
    )


def test_status_where_the_store_does_not_answer(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when what Kafka has is not shown because S3 is down, or a package is missing."""
    spec = world.spec()
    world.write("a", 10)
    world.sent(spec, done=True, state=record.COMPLETE)
    failing: Callable[..., Any] = _raising(EosingestError("s3://b: the store does not answer"))
    monkeypatch.setattr(type(source_of(spec)), "missing", failing)
    report, notes = looked(spec)
    assert report.items_done == 1
    assert notes == [
        "the source cannot be listed here, so it is not known which files still exist: s3://b: the store does not answer"
    ]


def _raising(error: Exception) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


def test_status_does_not_list_a_source_of_which_nothing_is_sent_whole(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = world.spec()
    world.write("a", 10)
    world.sent(spec, done=False)
    for name in ("missing", "check", "plan"):
        monkeypatch.setattr(type(source_of(spec)), name, _raising(AssertionError("the source was listed")))
    report, notes = looked(spec)
    assert (report.items, report.items_done, notes) == (1, 0, [])
    json.dumps(report.to_json())
