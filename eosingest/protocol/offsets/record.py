"""The records of the offsets topic and their wire form: control record, claim, offset record.

Tasks and the driver write these, everybody reads them. Keys are JSON arrays in the form of Kafka Connect's own offsets
topic (`["<job>", {...}]`, never 4 bytes long: KAFKA-14055); values are JSON objects with a format version `v`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from eosingest.errors import FatalError
from eosingest.protocol.offsets import wire
from eosingest.protocol.offsets.dead_letters import NO_DEAD_LETTERS, DeadLetterPin, DeadLetters
from eosingest.protocol.source import (
    POSITION_KIND_BYTES,
    POSITION_KIND_ROWS,
    POSITION_KINDS,
    Json,
    Position,
    Reached,
    SplitId,
    Version,
)

# A record is written in the oldest version that can express it, so that earlier releases read what they can.
_WRITTEN: Final = 1
_WRITTEN_IN_BYTES: Final = 2  # version 1 knows positions in rows only
_WRITTEN_OTHERWISE: Final = 3  # version 2 knows whole rows only, positions in rows or bytes, and a length as bounds
_WRITTEN_WITH_SCOPE: Final = 4  # version 3 knows no scope: such a release would cut anew
_WRITTEN_WITH_DEAD_LETTERS: Final = 5  # version 4 knows none: their rows would be missing in its proof of a prefix
ID_FORMAT_VERSION: Final = 1
DRIVER: Final = -1  # in place of a task's number, where the driver wrote an offset record first

_LENGTH: Final = "length"  # bounds of this one name are written as a field of their own, as in version 1

CLAIMED: Final = "claimed"
RUNNING: Final = "running"
SETTLING: Final = "settling"  # the Spark job has ended, successful or not: no task may start any more
COMPLETE: Final = "complete"
FAILED: Final = "failed"

# From the state of a run's last control record to the states that its next one may have.
TRANSITIONS: Final[Mapping[str, frozenset[str]]] = {
    CLAIMED: frozenset({RUNNING, COMPLETE, FAILED}),
    RUNNING: frozenset({SETTLING}),
    SETTLING: frozenset({COMPLETE, FAILED}),
    COMPLETE: frozenset(),
    FAILED: frozenset(),
}


def control_key(job: str) -> bytes:
    """Return the key of a job's control record."""
    return wire.encode([job, {"control": "run"}])


def settled_key(job: str) -> bytes:
    """Return the key under which the last control record is kept that is more than a claim."""
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


def key_prefix(job: str) -> bytes:
    """Return what every key of the job, and of no other, begins with."""
    return wire.encode([job])[:-1] + b","


# How the second element begins in keys of records that are no offset records.
_OTHER_KEYS: Final = tuple(f'{{"{name}":'.encode() for name in ("control", "task", "run", "ended", "scope", "gap"))
_ONE_NAME = re.compile(rb'\{"(?:[^"\\]|\\.)*":(?:"(?:[^"\\]|\\.)*"|[^"{}\[\],]*)\}')


def other_key_prefixes(job: str) -> tuple[bytes, ...]:
    """Return what the keys of all records of the job begin with that are no offset records."""
    return tuple(key_prefix(job) + begin for begin in _OTHER_KEYS)


def is_split_id(split: SplitId) -> bool:
    """Say whether the second element of a key is a split's: of two names or more. All other kinds of records have one."""
    return _ONE_NAME.fullmatch(split.encode()) is None


def decode_key(key: bytes) -> dict[str, Any]:
    """Return the second element of a key."""
    second: dict[str, Any] = json.loads(key.decode())[1]  # of bytes json would guess the encoding: half as slow again
    return second


@dataclass(frozen=True)
class Claim:
    """A task attempt's claim on its transactional id: which run, started when, which of Spark's task attempts."""

    run: int
    started: str
    attempt: int

    def encode(self) -> bytes:
        """Return the wire form."""
        return wire.encode({"v": _WRITTEN, **vars(self)})


@dataclass(frozen=True)
class RunRecord:
    """Says that a run has claimed the job, or has ended, under a key of its own: so compaction does not remove it."""

    run: int
    started: str
    ended: bool

    def key(self, job: str) -> bytes:
        """Return the key."""
        return run_key(job, self.run, ended=self.ended)

    def encode(self) -> bytes:
        """Return the wire form of the value; the run's number, and whether it ended, are in the key."""
        return wire.encode({"v": _WRITTEN, "started": self.started})


@dataclass(frozen=True)
class OffsetRecord:
    """How far a split is committed, and the receipt of the records written for it so far.

    `rows` counts rows of the split after `where`: those that were sent, `records`, and `dead` letters; `position` says the same
    as a `position_kind`: "rows"; "bytes", where in the file, once decompressed, reading goes on; "offset", "row-index" or "key"
    of the last source row. `row_records` is how many rows of the source row at the position are handed over; None where a
    source row is one, or where rows are all that is counted. `bounds` and `version` are the source's (protocol/source.py).
    `records` and `checksum` (see checksum.py) cover everything that was sent for the split up to there, and so does
    `metadata_checksum`, over headers and timestamps: None in records of earlier releases. `sequence` grows by one with each
    record of the split.
    """

    split: SplitId
    bounds: Mapping[str, Json]
    position: Position
    done: bool
    rows: int
    records: int
    checksum: int
    version: Version
    run: int
    task: int
    sequence: int
    position_kind: str = POSITION_KIND_ROWS
    metadata_checksum: int | None = None
    row_records: int | None = None
    dead: DeadLetters = NO_DEAD_LETTERS

    def encode(self) -> bytes:
        """Return the wire form of the value; the split is in the key. The order of the fields stays as it was."""
        flat = self.bounds.keys() == {_LENGTH}
        value: dict[str, Any] = {
            "v": self._oldest_reader(flat),
            **(self.bounds if flat else {"bounds": self.bounds}),
            "position": self.position,
            "done": self.done,
            "rows": self.rows,
            "records": self.records,
            "checksum": f"{self.checksum:016x}",
            "fingerprint": self.version,
            "run": self.run,
            "task": self.task,
            "sequence": self.sequence,
            "position_kind": self.position_kind,
        }
        if self.metadata_checksum is not None:
            value["metadata_checksum"] = f"{self.metadata_checksum:x}"
        if self.row_records is not None:
            value["row_records"] = self.row_records
        if self.dead.count:
            value["dead"] = self.dead.to_json()
        return wire.encode(value)

    def _oldest_reader(self, flat: bool) -> int:
        """Return the oldest format version that can express the record."""
        if self.dead.count:
            return _WRITTEN_WITH_DEAD_LETTERS
        if not flat or self.row_records is not None:
            return _WRITTEN_OTHERWISE
        kinds = {POSITION_KIND_ROWS: _WRITTEN, POSITION_KIND_BYTES: _WRITTEN_IN_BYTES}
        return kinds.get(self.position_kind, _WRITTEN_OTHERWISE)

    @property
    def reached(self) -> Reached:
        """How far the split is committed, as its source takes it."""
        return Reached(self.position_kind, self.position, self.row_records)

    def key(self, job: str) -> bytes:
        """Return the key."""
        return split_key(job, self.split)


@dataclass(frozen=True)
class Pinned:
    """What stays for the job's life: another value is an error (exit 12), or asks for `--from-scratch`.

    `offsets_topic_id` is that of the offsets topic that the run found when it began, "" in older records: a record that lies
    in a topic of another id was written while the topic was recreated.
    """

    format: str
    root: str
    topic: str
    topic_id: str
    cluster_id: str
    offsets_partitions: int
    prefix: str
    id_format: int = ID_FORMAT_VERSION
    offsets_topic_id: str = ""


@dataclass(frozen=True)
class Audit:
    """What `verify` must know beside the offset records. Offsets by partition of the sink topic.

    The job's records lie from `start` on (None: not known; a partition added later: from 0), and before `end`, which is
    there from `complete` until a run sends again. `retired_records` and `retired_checksum` add up the receipts whose
    offset records were tombstoned because their items were sent again as a whole: their records are still in the topic.
    """

    start: tuple[int, ...] | None = None
    end: tuple[int, ...] | None = None
    retired_records: int = 0
    retired_checksum: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the form that goes into a control record."""
        return {**vars(self), "retired_checksum": f"{self.retired_checksum:016x}"}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Audit:
        """Read what `to_json` wrote."""
        return cls(
            start=None if value["start"] is None else tuple(value["start"]),
            end=None if value["end"] is None else tuple(value["end"]),
            retired_records=value["retired_records"],
            retired_checksum=int(value["retired_checksum"], 16),
        )


@dataclass(frozen=True)
class ScopePin:
    """What the control record says of the source's scope: a hash of its text, and the number of pieces that hold it."""

    hash: str
    pieces: int


@dataclass(frozen=True)
class ControlRecord:
    """The run that owns the job and how far it is. The last committed one says which run may write.

    `started` tells two runs of one number apart (UTC time and a random part). `tasks_alive` is how many task ids, from
    0, may still have a producer. `digest`, `split_size` (bytes) and `schema` (DDL) are pinned since run `pinned_since`; they
    bind while `pin_open` (from `running` until `complete`, also over runs that fail), once anything was committed.
    `schema_files` is a digest of the list of items that the schema was last checked against (`Plan.list_digest`), "" in older
    records: while it is the same, the items need not be looked at again for columns that the schema does not have.
    `encodings` pins by which registered schemas keys and values are encoded, as text that only their maker reads; "" for none.
    `dead_letters`: where rows went that could not be sent; None while none may. `whole`: all that was committed since
    `pinned_since` was committed by runs that each sent all they had in one transaction.
    `scope` pins the source's scope, from `running` until `complete`; None for a source that freezes nothing.
    `forgotten` says that `--from-scratch` claimed a job whose progress was lost: until it sends, only another such run may.
    `records_total` is the sum over the job's offset records at that time: fewer later means that progress was lost.
    """

    run: int
    started: str
    state: str
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
    whole: bool = False

    def encode(self) -> bytes:
        """Return the wire form. What the job does not have is no field of it, so that earlier releases can read it."""
        value: dict[str, Any] = {**vars(self), "pinned": vars(self.pinned), "audit": self.audit.to_json()}
        version = _WRITTEN
        for name in ("encodings", "scope", "dead_letters", "whole"):
            if not value[name]:
                del value[name]
        if self.scope is not None:
            value["scope"], version = vars(self.scope), _WRITTEN_WITH_SCOPE
        if self.dead_letters is not None:
            value["dead_letters"], version = self.dead_letters.to_json(), _WRITTEN_WITH_DEAD_LETTERS
        return wire.encode({"v": version, **value})

    def may_become(self, state: str) -> bool:
        """Say whether this run's next control record may have the state."""
        return state in TRANSITIONS[self.state]


def decode_claim(value: bytes) -> Claim:
    """Parse a claim."""
    return Claim(**wire.known(Claim, wire.load(value, "claim")))


def decode_run(key: dict[str, Any], value: bytes) -> RunRecord:
    """Parse a run's record from its decoded key and its value."""
    ended = "ended" in key
    number = int(key["ended" if ended else "run"])
    return RunRecord(**{**wire.known(RunRecord, wire.load(value, "run record")), "run": number, "ended": ended})


def decode_control(value: bytes) -> ControlRecord:
    """Parse a control record."""
    loaded = wire.known(ControlRecord, wire.load(value, "control record"))
    loaded["pinned"] = Pinned(**wire.known(Pinned, loaded["pinned"]))
    if "audit" in loaded:  # earlier releases did not write it
        loaded["audit"] = Audit.from_json(loaded["audit"])
    if "scope" in loaded:
        loaded["scope"] = ScopePin(**wire.known(ScopePin, loaded["scope"]))
    if "dead_letters" in loaded:
        loaded["dead_letters"] = DeadLetterPin.from_json(loaded["dead_letters"])
    return ControlRecord(**loaded)


def writer_of(value: bytes) -> tuple[int, int]:
    """Return the numbers of the run and the task that wrote an offset record, from its value."""
    loaded = wire.load(value, "offset record")
    return loaded["run"], loaded["task"]


def decode_offset(split: SplitId, value: bytes) -> OffsetRecord:
    """Parse an offset record from its split's identity and its value."""
    loaded = wire.load(value, "offset record")
    kind = loaded.get("position_kind", POSITION_KIND_ROWS)
    if kind not in POSITION_KINDS:
        raise FatalError(
            f"an offset record counts in {kind!r}", code="newer-format", hint="upgrade eosingest; nothing was sent"
        )
    metadata = loaded.get("metadata_checksum")
    return OffsetRecord(
        split=split,
        bounds={_LENGTH: loaded[_LENGTH]} if _LENGTH in loaded else loaded["bounds"],
        position=loaded["position"],
        position_kind=kind,
        done=loaded["done"],
        rows=loaded["rows"],
        records=loaded["records"],
        checksum=int(loaded["checksum"], 16),
        version=loaded["fingerprint"],
        run=loaded["run"],
        task=loaded["task"],
        sequence=loaded["sequence"],
        metadata_checksum=None if metadata is None else int(metadata, 16),
        row_records=loaded.get("row_records"),
        dead=DeadLetters.from_json(loaded.get("dead")),
    )
