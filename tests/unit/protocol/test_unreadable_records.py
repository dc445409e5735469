"""A record of the job that this eosingest cannot read: refused by every verb, and by a run whose tasks send already."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from eosingest.app import assemble
from eosingest.cli import main as cli
from eosingest.errors import FatalError
from eosingest.kafka.config import ClientSettings
from eosingest.kafka.ports import LogRecord, Records
from eosingest.protocol.offsets import record, scope_piece, topic
from eosingest.protocol.offsets.gap import GapRecord
from eosingest.protocol.offsets.state import JobState, TaskState
from eosingest.protocol.offsets.wire import VERSION
from eosingest.protocol.task_contract import TaskSettings
from eosingest.protocol.verdict import JobResult
from tests.support import table_job as table_jobs
from tests.support.builders import control_record, offset_record
from tests.support.frozen_table import Tables
from tests.support.memory_job import MemoryKafka
from tests.support.simulated_source import template
from tests.support.table_job import TableJob, table_job

OFFSETS, AT = "progress", topic.partition_of("job", topic.PARTITIONS)
RECORDS = {
    "control": (record.control_key("job"), control_record()),
    "settled": (record.settled_key("job"), control_record()),
    "run": (record.run_key("job", 1), record.RunRecord(1, "now", ended=False)),
    "claim": (record.claim_key("job", 3), record.Claim(1, "now", 5)),
    "offset": (offset_record().key("job"), offset_record()),
    "scope": (scope_piece.key("job", 0), scope_piece.ScopePiece("{}")),
    "gap": (b'["job",{"gap":"g"}]', GapRecord("g", "t", 1, 1, "now")),
    "unknown": (b'["job",{"later":1}]', record.Claim(1, "now", 5)),
}
CONTROL_KEYS = (record.control_key, record.settled_key)
VERBS = (["run"], ["run", "--from-scratch"], ["plan"], ["status"], ["verify"])


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> MemoryKafka:
    """A cluster that a spec in the working directory names, and that holds no record of its job."""
    found: Any = MemoryKafka(OFFSETS)
    found.client = ClientSettings("memory:9092", {})
    found.cluster.create_topic(OFFSETS, topic.PARTITIONS, {"cleanup.policy": "compact"})
    found.cluster.create_topic("t", 1, {})

    @contextlib.contextmanager
    def connected(*_: object, **__: object) -> Iterator[MemoryKafka]:
        yield found

    monkeypatch.setattr(assemble, "connected", connected)
    monkeypatch.setenv("EOSINGEST_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.jsonl").write_text('{"n": 1}\n')
    sink = f'[sink]\nbootstrap_servers = "memory:9092"\ntopic = "t"\noffsets_topic = "{OFFSETS}"\n'
    (tmp_path / "job.toml").write_text(f'name = "job"\n[source]\nformat = "json"\npath = "a.jsonl"\n{sink}')
    return found


def write(kafka: MemoryKafka, *entries: tuple[bytes, bytes]) -> None:
    TableJob(kafka, SimpleNamespace(), SimpleNamespace(job="job", offsets_topic=OFFSETS)).write(*entries)  # type: ignore[arg-type]


@pytest.mark.parametrize("version", [VERSION - 1, VERSION + 1])
@pytest.mark.parametrize("kind", RECORDS)
def test_every_verb_refuses_a_record_of_another_version(
    kafka: MemoryKafka, kind: str, version: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Breaks when a verb skips it: rows that a newer release sent would be sent again, or a verdict be half of one."""
    key, written = RECORDS[kind]
    write(kafka, (key, written.encode().replace(b'"v":1', b'"v":%d' % version)))
    for verb, *options in VERBS:
        found = cli.exit_code_of([verb, "job.toml", *options, "--output", "json"])
        (error,) = json.loads(capsys.readouterr().out)["errors"]
        assert (found, error["code"]) == (7, "newer-format"), verb
        assert f"{OFFSETS}-{AT}, offset 0, key {key.decode()}: " in error["message"]
        assert f"format version is {version}" in error["message"]
    assert kafka.committed("t") == []


def test_records_of_strangers_are_in_nobodys_way(kafka: MemoryKafka, capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when a record that is not ours ends a verb: with binary keys, Kafka Connect's keys, or without a key."""
    write(
        kafka, *((key, b"\xff") for key in (b"", b"\xff", b"no JSON", b'["connector",{"a":1,"b":2}]', b'["jobs",{}]'))
    )
    for verb, code in (("plan", 0), ("status", 10), ("verify", 10)):
        assert cli.exit_code_of([verb, "job.toml", "--output", "json"]) == code, capsys.readouterr().out


@pytest.mark.parametrize("split", ['{"topic":"t","partition":0,"start":0}', '{"table":"1","after":null}'])
def test_records_of_another_kind_of_source(kafka: MemoryKafka, split: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Breaks when a verb takes a split of a topic or a table for one of a file (exit 1)."""
    offset = replace(offset_record(), split=split)
    control = control_record(state=record.COMPLETE)
    control = replace(control, pinned=replace(control.pinned, format="kafka"))
    write(kafka, (offset.key("job"), offset.encode()), *((key("job"), control.encode()) for key in CONTROL_KEYS))
    for verb in ("plan", "status"):
        found = cli.exit_code_of([verb, "job.toml", "--output", "json"])
        (error,) = json.loads(capsys.readouterr().out)["errors"]
        assert (found, error["code"]) == (12, "pinned"), verb
        assert "source.format: was 'kafka'" in error["message"]


# ---- folding -------------------------------------------------------------------------------------------------------


def refused(key: bytes, value: bytes, state: JobState) -> FatalError:
    with pytest.raises(FatalError) as caught:
        state.fold([LogRecord(77, key, value)], "offsets-2")
    assert (caught.value.exit_code, caught.value.code, len(caught.value.message) < 600) == (7, "damaged-record", True)
    assert "offsets-2, offset 77, key " in caught.value.message
    return caught.value


@pytest.mark.parametrize("value", [b"", b"\xff", b"no JSON", b"[]", b"{}", b'{"v":1}', b'{"v":1,"later":1}'])
@pytest.mark.parametrize("kind", RECORDS)
def test_a_damaged_record_is_refused_of_whatever_kind(kind: str, value: bytes) -> None:
    for state in (JobState("job"), TaskState("job", run=1, task=7)):
        assert "nothing was sent twice" in refused(RECORDS[kind][0], value, state).hint


@pytest.mark.parametrize(
    "key",
    [b'{"later":1}]', b'{"control":"later"}]', b'{"control":1}]', b'{"task":"3"}]', b'{"task": 3}]', b'{"task":3}',
     b'{"task":null}]', b'{"gap":7}]', b"{}]", b"[1,2]]", b"7]", b"\xff]", b"", b'{"file":"a","start":0}', b"[" * 100_000],
)  # fmt: skip
def test_a_key_of_no_kind_that_is_known_is_refused_unless_its_record_is_a_tombstone(key: bytes) -> None:
    refused(record.key_prefix("job") + key, b'{"v":1}', JobState("job"))
    JobState("job").fold([LogRecord(3, record.key_prefix("job") + key, None)])


# ---- while tasks send ----------------------------------------------------------------------------------------------


class Sending(table_jobs._Launcher):
    """Spark that sends for three seconds, while a stranger writes."""

    entry: tuple[bytes, bytes]
    cancelled = False

    def start(self, settings: TaskSettings) -> None:
        producer = self._job.kafka.task(settings).producer(0)  # type: ignore[attr-defined]
        producer.init_transactions()
        producer.begin()
        producer.produce("sink", Records([b"key"], [b"value"]))
        producer.flush()
        self._job.write(self.entry)

    def poll(self, timeout_s: float) -> Any:
        self._job.kafka.wait(1.5)
        return JobResult([]) if self.cancelled else None

    def cancel(self) -> None:
        Sending.cancelled = True


@pytest.mark.parametrize("kind", RECORDS)
@pytest.mark.parametrize(("value", "code"), [(b'{"v":2}', "newer-format"), (b'{"v":1}', "damaged-record")])
def test_a_record_that_comes_while_tasks_send_ends_the_run(
    monkeypatch: pytest.MonkeyPatch, kind: str, value: bytes, code: str
) -> None:
    """Breaks when Spark goes on and sends, or when the run ends without a fence for what its tasks have begun."""
    rows = next(made for made in map(template, range(24)) if len(made.files) > 1)
    job = table_job(MemoryKafka("offsets"), Tables(rows, Random("scope")))
    monkeypatch.setattr(table_jobs, "_Launcher", Sending)
    monkeypatch.setattr(Sending, "entry", (RECORDS[kind][0], value), raising=False)
    monkeypatch.setattr(Sending, "cancelled", False)
    with pytest.raises(FatalError) as caught:
        job.run()
    assert (caught.value.code, Sending.cancelled, job.values()) == (code, True, [])
    assert job.kafka.admin.open_transactions("sink", 0) == [], "fenced"
    states = [
        record.ControlRecord.decode(entry.value or b"").state
        for entry in job.kafka.committed("offsets")
        if entry.key == record.control_key("job") and entry.value != value
    ]
    assert states == [record.CLAIMED, record.RUNNING, record.SETTLING], "no verdict without the log"
