"""Defines the records of the offsets topic and their wire form: control record, run record, claim, offset record.

Tasks and the driver write them, all commands read them. Keys are JSON arrays in the form of Kafka Connect's offsets
topic (`["<job>", {...}]`, never 4 bytes long: KAFKA-14055); values are JSON objects with a format version `v`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Self, TypeAlias

from eosingest.protocol.offsets import wire
from eosingest.protocol.offsets.dead_letters import NO_DEAD_LETTERS, DeadLetterPin, DeadLetters
from eosingest.protocol.offsets.wire import Checksum
from eosingest.protocol.source import (
    CommittedPosition,
    Json,
    Position,
    PositionKind,
    SplitId,
    Version,
)

DRIVER: Final = -1  # in place of a task's number, where the driver wrote the position

CLAIMED: Final = "claimed"
RUNNING: Final = "running"
SETTLING: Final = "settling"  # the Spark job has ended, successful or not: no task may start any more
COMPLETE: Final = "complete"
FAILED: Final = "failed"

# By the state of a run's last control record: the states that its next one may have.
TRANSITIONS: Final[Mapping[str, frozenset[str]]] = {
    CLAIMED: frozenset({RUNNING, COMPLETE, FAILED}),
    RUNNING: frozenset({SETTLING}),
    SETTLING: frozenset({COMPLETE, FAILED}),
    COMPLETE: frozenset(),
    FAILED: frozenset(),
}

State: TypeAlias = str
TaskNumber: TypeAlias = int
wire.FORMS.update(
    {
        "State": wire.Form("a state of a run", (str,), TRANSITIONS.__contains__),
        "TaskNumber": wire.Form("a task's number", (int,), DRIVER.__le__),
        "PositionKind": wire.Form("a kind of position", (str,), frozenset(PositionKind).__contains__, PositionKind),
        "Position": wire.Form("a position", (int, str, list)),
        "Version": wire.FORMS["Mapping[str, Json]"],
    }
)


def control_key(job: str) -> bytes:
    """Return the key of a job's control record."""
    return wire.encode([job, {"control": "run"}])


def settled_key(job: str) -> bytes:
    """Return the key of the copy of the last control record that is not a claim."""
    return wire.encode([job, {"control": "settled"}])


def claim_key(job: str, task: int) -> bytes:
    """Return the key of a task's claim."""
    return wire.encode([job, {"task": task}])


def run_key(job: str, run: int, *, ended: bool = False) -> bytes:
    """Return the key of the run record of a run's claim, or of its end: each is written once."""
    return wire.encode([job, {"ended" if ended else "run": run}])


def split_key(job: str, split: SplitId) -> bytes:
    """Return the key of a split's offset record."""
    return key_prefix(job) + split.encode() + b"]"


def split_id_of(job: str, key: bytes) -> SplitId:
    """Return the identity of the split whose offset record has this key."""
    return key[len(key_prefix(job)) : -1].decode()


@lru_cache(64)  # used for each record
def key_prefix(job: str) -> bytes:
    """Return the prefix of every key of the job, and of no other."""
    return wire.encode([job])[:-1] + b","


_JOB = re.compile(rb'\["([A-Za-z0-9._-]+)",')  # as the spec allows job names


def job_of(key: bytes) -> str | None:
    """Return the name of the job whose key it may be, None for a foreign key."""
    found = _JOB.match(key)
    return found[1].decode() if found is not None else None


def key_of(job: str, key: bytes) -> dict[str, Any]:
    """Return the second element of a key of the job: two names or more for a split, one for any other record.

    {} for a key that eosingest does not write.
    """
    try:
        second = json.loads(split_id_of(job, key))  # json would guess the encoding of bytes: 1.5 times as slow
    except (ValueError, RecursionError):
        return {}
    if type(second) is not dict or not key.endswith(b"]"):
        return {}
    return second if len(second) > 1 or wire.encode([job, second]) == key else {}


@dataclass(frozen=True)
class Claim(wire.Record):
    """A task attempt's claim on its transactional id: the run, its start, and Spark's task attempt id."""

    run: int
    started: str
    attempt: int


@dataclass(frozen=True)
class RunRecord(wire.Record):
    """Says that a run has claimed the job, or has ended, under a separate key: so compaction does not remove it."""

    in_key = ("run", "ended")

    run: int
    started: str
    ended: bool

    def key(self, job: str) -> bytes:
        """Return the key."""
        return run_key(job, self.run, ended=self.ended)


@dataclass(frozen=True)
class OffsetRecord(wire.Record):
    """The committed position of a split, and the receipt of the records written for it so far.

    `rows` counts rows of the split after `where`: sent ones (`records`) and dead letters (`dead`). `position` says the same by
    its `position_kind`: "rows"; "bytes", where in the decompressed file reading resumes; "offset" or "key" of
    the last source row. `row_records` is how many rows of the source row at the position are handed over; None where a source
    row is always one row, or where only rows are counted. `bounds` and `version` are the source's (protocol/source.py).
    `records` and `checksum` (see checksum.py) cover all records sent for the split up to the position, `metadata_checksum`
    their headers and timestamps. `sequence` grows by one with each record of the split.
    """

    in_key = ("split",)

    split: SplitId
    bounds: Mapping[str, Json]
    position: Position
    done: bool
    rows: int
    records: int
    checksum: Checksum
    metadata_checksum: Checksum
    version: Version
    run: int
    task: TaskNumber
    sequence: int
    position_kind: PositionKind = PositionKind.ROWS
    row_records: int | None = None
    dead: DeadLetters = NO_DEAD_LETTERS

    @classmethod
    def from_json(cls, loaded: Any, **key: Any) -> Self:
        """Read what `to_json` wrote. Raises RecordError for anything else, and for a position that is not of its kind."""
        found = super().from_json(loaded, **key)
        if found.position_kind is not PositionKind.KEY and type(found.position) is not int:
            raise wire.RecordError(f"position: {found.position!r:.40} is not a position in {found.position_kind}")
        return found

    @property
    def committed_position(self) -> CommittedPosition:
        """How far the split is committed, in its source's form."""
        return CommittedPosition(self.position_kind, self.position, self.row_records)

    def key(self, job: str) -> bytes:
        """Return the key."""
        return split_key(job, self.split)


@dataclass(frozen=True)
class Pinned(wire.Part):
    """The pins for the job's life: another value is an error (exit 12), or needs `--from-scratch`.

    `offsets_topic_id` is the id of the offsets topic when the run began: a record found in a topic of another id was written
    while the topic was recreated.
    """

    format: str
    root: str
    topic: str
    topic_id: str
    cluster_id: str
    offsets_partitions: int
    prefix: str
    offsets_topic_id: str


@dataclass(frozen=True)
class Audit(wire.Part):
    """The data that `verify` needs in addition to offset records. Offsets by partition of the sink topic.

    The job's records begin at `start` (at 0 in a partition that it lacks: that was added later), and end before `end`, which
    is set from `complete` until a run sends again. `retired_records` and `retired_checksum` add up the receipts whose
    offset records were tombstoned because their items were sent again as a whole: their records are still in the topic.
    """

    start: tuple[int, ...] = ()
    end: tuple[int, ...] | None = None
    retired_records: int = 0
    retired_checksum: Checksum = 0


@dataclass(frozen=True)
class ScopePin(wire.Part):
    """The control record's pin of the source's scope: a hash of its text, and the number of pieces that hold it."""

    hash: str
    pieces: int


@dataclass(frozen=True)
class ControlRecord(wire.Record):
    """The run that owns the job, and its state. The last committed control record says which run may write.

    `started` distinguishes runs of one number (UTC time and a random part). `tasks_alive` is how many task ids, from 0, may
    still have a producer. `digest`, `split_size` (bytes) and `schema` (DDL) are pinned since run `pinned_since`; they are in
    force while `pin_open` (from `running` until `complete`, also over runs that fail), once anything was committed.
    `schema_files` is a digest of the list of items that the schema was last checked against (`Plan.list_digest`), "" for none:
    while it is the same, the items need no new check for columns that the schema does not have.
    `encodings` pins the registered schemas that encode keys and values, as text that only its writer reads; "" for none.
    `dead_letters` pins the dead-letter topic; None where the job has had none. `by_parts_since`: the first run
    that may have sent rows in several transactions since the job was last complete; 0 for none (single_transaction.py).
    `scope` pins the source's scope, from `running` until `complete`; None for a source that freezes nothing.
    `forgotten` says that `--from-scratch` claimed a job whose progress was lost: until it sends, only another such run may.
    `records_total` is the sum over the job's offset records at that time: a lower sum later means lost progress.
    """

    run: int
    started: str
    state: State
    tasks_alive: int
    pinned: Pinned
    pinned_since: int
    pin_open: bool = False
    digest: Mapping[str, str] = field(default_factory=dict)
    split_size: int = 0
    schema: str | None = None
    schema_files: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    host: str = ""
    pid: int = 0
    time: str = ""
    records_total: int = 0
    forgotten: bool = False
    audit: Audit = Audit()
    scope: ScopePin | None = None
    encodings: str = ""
    dead_letters: DeadLetterPin | None = None
    by_parts_since: int = 0

    def may_become(self, state: str) -> bool:
        """Say whether this run's next control record may have the state."""
        return state in TRANSITIONS[self.state]
