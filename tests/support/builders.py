"""The values of the protocol as tests make them: what matters to a test is said by it, all the rest has a default.

How a split is identified, what its bounds are and what tells a changed file stand here and nowhere else in the unit tests
and the simulation: a test says file, start and length, and reads them back by `place`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from eosingest.errors import ChangedError, FatalError, FencedError, IncompleteError, TemporaryError
from eosingest.protocol.driver_contract import DriverSettings, TopicCreation
from eosingest.protocol.offsets.record import RUNNING, ControlRecord, OffsetRecord, Pinned
from eosingest.protocol.offsets.state import JobState
from eosingest.protocol.plan import Plan, PlannedItem, PlannedSplit
from eosingest.protocol.source import PositionKind, Snapshot, Split, SplitId, Version
from eosingest.protocol.task_contract import BAD_ROWS, Outcome, TaskSettings
from eosingest.records.limits import TopicLimits
from eosingest.sources.files.cuts import FileSplit
from eosingest.sources.files.listing.fingerprint import Fingerprint
from eosingest.sources.files.listing.source_file import WORDING, SourceFile, left_out

Place = tuple[str, int]  # a split as tests name it: file and start

# ---- the source ----------------------------------------------------------------------------------------------------


def fingerprint(length: int = 100, *, content: str = "x", mtime_ms: int = 1) -> Fingerprint:
    """What a file was when it was read: `length` is the whole file's."""
    return Fingerprint(length, mtime_ms, content)


def source_file(
    name: str = "a", length: int = 100, *, path: str = "", mtime_ms: int = 1, splittable: bool = True
) -> SourceFile:
    return SourceFile(name, path or f"/{name}", length, mtime_ms, splittable)


def listing(
    *files: SourceFile, hidden: int = 0, too_young: Iterable[str] = (), empty: Iterable[str] = (), **more: Any
) -> Snapshot:
    versions = {file.name: fingerprint(file.size).to_json() for file in files}
    return Snapshot(files, versions, left_out=left_out(tuple(empty), tuple(too_young), hidden), **more)


def passed_over(found: Snapshot | Plan, why: str) -> tuple[str, ...] | int:
    """What was left out for a reason: the names, or how many."""
    return next(out.what for out in found.left_out if out.why == why)


def split(file: str = "a", start: int = 0, length: int = 100) -> FileSplit:
    return FileSplit(file, start, length)


def cut_evenly(file: SourceFile, size: int) -> tuple[FileSplit, ...]:
    """Cut a file every `size` bytes, the last piece being shorter."""
    return tuple(split(file.name, at, min(size, file.length - at)) for at in range(0, file.length, size))


def split_id(file: str = "a", start: int = 0) -> SplitId:
    """The key by which a split is found in maps."""
    return split(file, start).id


def place(found: Split | PlannedSplit | OffsetRecord | SplitId) -> Place:
    """Return item and start of whatever stands for a split."""
    if isinstance(found, PlannedSplit):
        found = found.split
    if isinstance(found, FileSplit):
        return found.file, found.start
    key = json.loads(found if isinstance(found, str) else found.split if isinstance(found, OffsetRecord) else found.id)
    *item, start = key.values()
    return "-".join(map(str, item)), tuple(start) if isinstance(start, list) else start


def places(found: Iterable[Split | PlannedSplit | OffsetRecord | SplitId]) -> list[Place]:
    return [place(each) for each in found]


# ---- the offsets topic ---------------------------------------------------------------------------------------------


def offset_record(
    file: str = "a",
    start: int = 0,
    length: int = 100,
    *,
    rows: int = 0,
    position: int | None = None,
    records: int | None = None,
    checksum: int = 0,
    done: bool = False,
    read: Fingerprint | None = None,
    run: int = 1,
    task: int = 0,
    sequence: int = 0,
    position_kind: PositionKind = PositionKind.ROWS,
    metadata_checksum: int = 0,
) -> OffsetRecord:
    """A split after `rows` rows; position and records are as many unless said otherwise. `read` is what the file was."""
    return OffsetRecord(
        split=split_id(file, start),
        bounds={"length": length},
        position=rows if position is None else position,
        done=done,
        rows=rows,
        records=rows if records is None else records,
        checksum=checksum,
        version=(read or fingerprint()).to_json(),
        run=run,
        task=task,
        sequence=sequence,
        position_kind=position_kind,
        metadata_checksum=metadata_checksum,
    )


def as_recorded(split: Split, version: Version | None = None, *, done: bool = True) -> OffsetRecord:
    """A split of any kind as an offset record."""
    return replace(offset_record(done=done), split=split.id, bounds=split.bounds, version=version or {})


def by_split(records: Iterable[OffsetRecord]) -> dict[SplitId, OffsetRecord]:
    """Offset records as a job's state has them."""
    return {record.split: record for record in records}


def moved(record: OffsetRecord, file: str | None = None, start: int | None = None, **changes: Any) -> OffsetRecord:
    """The same of another split."""
    return replace(
        record,
        split=split_id(place(record)[0] if file is None else file, place(record)[1] if start is None else start),
        **changes,
    )


def job_state(*offsets: OffsetRecord, job: str = "job") -> JobState:
    return JobState(job, offsets=by_split(offsets))


def pinned(**changes: Any) -> Pinned:
    base = Pinned(
        format="json",
        root="",
        topic="orders",
        topic_id="topic-id",
        cluster_id="cluster-id",
        offsets_partitions=5,
        prefix="eosingest.",
        offsets_topic_id="id-1",
    )
    return replace(base, **changes)


def control_record(run: int = 1, state: str = RUNNING, **changes: Any) -> ControlRecord:
    """A run that pinned what it reads, and has no task, unless said otherwise."""
    base = ControlRecord(run=run, started=f"start {run}", state=state, tasks_alive=0, pinned=pinned(), pinned_since=run)
    return replace(base, **changes)


# ---- plans and tasks -----------------------------------------------------------------------------------------------


def planned_split(
    file: str = "a",
    start: int = 0,
    length: int = 100,
    *,
    now: Fingerprint | None = None,
    committed: OffsetRecord | None = None,
) -> PlannedSplit:
    """A split that is left to do. `now` is what its file is."""
    return PlannedSplit(split(file, start, length), (now or fingerprint()).to_json(), committed)


def planned_item(file: SourceFile, pending: Iterable[PlannedSplit], *, started: bool = False) -> PlannedItem:
    """A file with nothing left but these splits."""
    left = tuple(pending)
    return PlannedItem(file, len(left), left, started=started)


def plan(*files: PlannedItem, split_size: int = 100, **more: Any) -> Plan:
    return Plan(split_size, files, WORDING, **more)


def task_settings(**changes: Any) -> TaskSettings:
    base = TaskSettings(
        job="job",
        run=1,
        started="now",
        topic="topic",
        offsets_topic="offsets",
        offsets_topic_id="id-1",
        offsets_partition=2,
        plan_end=0,
        splits={},
        limits=TopicLimits(1_000_000),
        transaction_timeout_s=10,
        max_records=1000,
        max_bytes=1_000_000,
        wording=WORDING,
    )
    return replace(base, **changes)


_ERROR_OF = {
    made.exit_code: made.__name__ for made in (ChangedError, FatalError, FencedError, IncompleteError, TemporaryError)
}


def outcome(task: int = 0, last: tuple[SplitId, int] | None = None, *, read_all: bool = True, **more: Any) -> Outcome:
    """How a task ended; `last` is as `last_split` makes it. The error is the one of the exit code."""
    if more.get("code") != BAD_ROWS:
        more.setdefault("error", _ERROR_OF.get(more.get("exit_code", 0), ""))
    named = {"job": "j", "run": 7, "started": "s", **more}
    return Outcome(task, last_split=last, read_all=read_all, **named)


def last_split(file: str, start: int, rows: int) -> tuple[SplitId, int]:
    """What an outcome says of the last split that its task saw."""
    return (split_id(file, start), rows)


def bad_row(
    file: str = "a",
    start: int = 0,
    row: int = 3,
    code: str = "corrupt-row",
    reason: str = "cannot be parsed",
    letters: str = "name a topic",
) -> dict[str, Any]:
    return {
        "split": split_id(file, start),
        "label": split(file, start).label,
        "row": row,
        "code": code,
        "reason": reason,
        "letters": letters,
        "whole": False,
    }


def driver_settings(**changes: Any) -> DriverSettings:
    base = DriverSettings(
        job="job",
        started="now",
        format="json",
        root="",
        bootstrap_servers="memory",
        topic="sink",
        create=TopicCreation(1, 1, {}),
        offsets_topic="offsets",
        prefix="p.",
        digest={},
        split_size=100,
        on_change="error",
        transaction_timeout_s=10,
        max_records=100,
        max_bytes=1_000_000,
        from_scratch=False,
        accept_change=False,
        accept_gap=False,
        host="host",
        pid=1,
        versions={},
    )
    return replace(base, **changes)
