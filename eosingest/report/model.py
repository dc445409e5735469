"""Defines the results of the verbs as plain values; cli/ renders them as text or JSON."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from eosingest.errors import EosingestError
from eosingest.report.wording import Wording


@dataclass(frozen=True)
class RunReport:
    """The result of a run. `records_sent` counts the records of this run, `records_total` those of all runs of the job, by the
    offset records; `records_resent` counts other records in the topic: the old ones of items that were sent again as a whole.
    `dead_letters` and `dead_letters_total` count the rows that went to the `dead_letter_topic` instead, None if there is none.
    `notes` are those of the observer, `log` is Spark's log file, None if Spark was not started.
    """

    job: str
    run: int
    topic: str
    bootstrap_servers: str
    exit_code: int
    wording: Wording
    items: int
    items_done: int
    splits_planned: int
    splits_done: int
    records_sent: int
    records_total: int
    seconds: float
    errors: tuple[EosingestError, ...] = ()
    notes: tuple[str, ...] = ()
    records_resent: int = 0
    dead_letters: int = 0
    dead_letters_total: int = 0
    dead_letter_topic: str | None = None
    log: str | None = None

    @property
    def complete(self) -> bool:
        """Whether every split of the plan and of the offset records is done."""
        return not self.errors

    def to_json(self) -> dict[str, Any]:
        """Return the report as the `data` of the JSON envelope; the errors have their own place there."""
        return {
            "job": self.job,
            "run": self.run,
            "topic": self.topic,
            "bootstrap_servers": self.bootstrap_servers,
            "complete": self.complete,
            **_counts(self.wording, self.items, self.items_done),
            "splits_planned": self.splits_planned,
            "splits_done": self.splits_done,
            "records_sent": self.records_sent,
            "records_total": self.records_total,
            "records_resent": self.records_resent,
            "dead_letters": self.dead_letters,
            "dead_letters_total": self.dead_letters_total,
            "dead_letter_topic": self.dead_letter_topic,
            "skipped": False,  # a run that was skipped has no report
            "seconds": round(self.seconds, 3),
            "records_per_second": round(self.records_sent / self.seconds) if self.seconds else 0,
            "isolation_level_to_read_with": "read_committed",
            "log": self.log,
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class PlanReport:
    """The work of a run that would begin now, by the offsets topic to its last stable offset. Sizes are in the source's unit.

    `items` has, per listed item, its name, size, splits, pending splits and state (done | half done | new | changed).
    `size_to_read` is at least `size_to_send`: done splits of a half done item may be read again. `split_size` is in bytes, None
    if items are not cut by it. `left_out` maps a reason to the items that the listing ignored for it: their names, or their
    number.
    """

    job: str
    topic: str
    bootstrap_servers: str
    wording: Wording
    items: tuple[dict[str, Any], ...]
    splits: int
    splits_pending: int
    size_total: int
    size_to_read: int
    size_to_send: int
    split_size: int | None
    records_committed: int
    left_out: dict[str, tuple[str, ...] | int]
    vanished: tuple[str, ...]
    errors: tuple[EosingestError, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def work_pending(self) -> bool:
        """Whether a run would send anything."""
        return self.splits_pending > 0

    def to_json(self) -> dict[str, Any]:
        """Return the report as the `data` of the JSON envelope."""
        unit = self.wording.unit
        return {
            "job": self.job,
            "topic": self.topic,
            "bootstrap_servers": self.bootstrap_servers,
            **_counts(self.wording, len(self.items)),
            self.wording.items: self.items,
            "splits": self.splits,
            "splits_pending": self.splits_pending,
            "unit": unit,
            f"{unit}_total": self.size_total,
            f"{unit}_to_read": self.size_to_read,
            f"{unit}_to_send": self.size_to_send,
            "split_size": self.split_size,
            "records_committed": self.records_committed,
            **{why.replace(" ", "_"): what for why, what in self.left_out.items()},
            "vanished": self.vanished,
            "notes": self.notes,
            "work_pending": self.work_pending,
        }


@dataclass(frozen=True)
class StatusReport:
    """The state of a job in the offsets topic. `state` is the control record's, of run number `run`; times are UTC, as text.

    `alive`: whether the process of a run without a verdict is alive, None if it is not on this host. `said`: the errors with
    which the run ended, if this host has them (code, message, hint). `refused`: the error with which the next run would refuse
    to begin, in the same form, or None. `gaps`: data deleted from the source before it was read; the loss was accepted.
    """

    job: str
    topic: str
    bootstrap_servers: str
    state: str
    run: int
    host: str
    pid: int
    time: str
    wording: Wording
    items: int
    items_done: int
    splits: int
    splits_done: int
    records_total: int
    open_transactions: tuple[dict[str, Any], ...]
    versions: dict[str, str]
    alive: bool | None = None
    said: tuple[dict[str, str], ...] = ()
    dead_letters_total: int = 0
    dead_letter_topic: str | None = None
    refused: dict[str, str] | None = None
    gaps: tuple[dict[str, Any], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the report as the `data` of the JSON envelope."""
        counts = ("wording", "items", "items_done")
        data = {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in counts}
        return {**data, **_counts(self.wording, self.items, self.items_done)}


@dataclass(frozen=True)
class VerifyReport:
    """The result of an audit of the sink topic. `verdict` is verified, mismatch or inconclusive.

    `expected` and `found` are number of records and checksum (hex); `found_late` is the part of `found` that was written after
    the job was complete. `counts` has the least number of records lost, doubled, changed, foreign. `findings` and `partitions`
    are tables for JSON. `source_splits` is the number of splits compared with the source, None if it was not read;
    `source_reader` names the reader that read them, "" for the reader of a run. `gaps`: as in the status. `dead_letters`: their
    topic, and how many are expected and found there; None without any.
    """

    job: str
    topic: str
    bootstrap_servers: str
    run: int
    state: str
    verdict: str
    expected: dict[str, Any]
    found: dict[str, Any]
    found_late: dict[str, Any]
    counts: dict[str, int]
    findings: tuple[dict[str, Any], ...]
    partitions: tuple[dict[str, int], ...]
    source_splits: int | None
    source_reader: str
    seconds: float
    gaps: tuple[dict[str, Any], ...] = ()
    dead_letters: dict[str, Any] | None = None
    errors: tuple[EosingestError, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def records_per_second(self) -> float:
        """Records read from the topic per second, over the whole audit."""
        return float(self.found["records"]) / self.seconds if self.seconds > 0 else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the report as the `data` of the JSON envelope; the errors have their own place there."""
        data = {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in ("errors", "counts")}
        numbers = {"seconds": round(self.seconds, 3), "records_per_second": round(self.records_per_second)}
        return {**data, **self.counts, **numbers}


@dataclass(frozen=True)
class ShownRecord:
    """A record to show: of a preview (it has an `item`, and may be `corrupt` or `unfit`) or of a topic (it has an `offset`).

    `why`: the reason of a corrupt one, "" where it is not known. `decoded` has `key` and `value` as JSON, if they are
    encoded by a schema. `timestamp_ms` None: the time of sending. `partition` None: the partitioner will choose.
    """

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int | None = None
    partition: int | None = None
    offset: int | None = None
    item: str | None = None
    corrupt: str | None = None
    why: str = ""
    unfit: str | None = None
    decoded: dict[str, str | None] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Return the size of key, value and headers in bytes."""
        headers = sum(len(name.encode()) + len(value or b"") for name, value in self.headers)
        return len(self.key or b"") + len(self.value or b"") + headers

    @property
    def time(self) -> str | None:
        """Return the timestamp as UTC text, in ms if it is out of the calendar's range; None if it is the time of sending."""
        if self.timestamp_ms is None:
            return None
        try:
            moment = datetime.fromtimestamp(self.timestamp_ms / 1000, UTC)
        except (OverflowError, ValueError, OSError):
            return f"{self.timestamp_ms} ms"
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def to_json(self) -> dict[str, Any]:
        """Return the whole record. Bytes are a string if they are UTF-8, else {"base64": …}."""
        data: dict[str, Any] = {} if self.offset is None else {"offset": self.offset}
        if self.corrupt is not None:
            return {**data, "corrupt": self.corrupt, "why": self.why}
        if self.unfit is not None:
            return {**data, "unfit": self.unfit}
        return {
            **data,
            "partition": self.partition,
            "timestamp": self.time,
            "key": _json_of(self.key),
            "value": _json_of(self.value),
            "headers": [[name, _json_of(value)] for name, value in self.headers],
            "size": self.size,
            **{f"{name}_decoded": None if text is None else json.loads(text) for name, text in self.decoded.items()},
        }


def _counts(wording: Wording, items: int, done: int | None = None) -> dict[str, Any]:
    """Return the number of items under two names: `items`, as for all kinds, and this kind's own noun."""
    data: dict[str, Any] = {"item": wording.item, "items": items, wording.items: items}
    return data if done is None else {**data, "items_done": done, f"{wording.items}_done": done}


def _json_of(value: bytes | None) -> str | dict[str, str] | None:
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}


@dataclass(frozen=True)
class PreviewReport:
    """The records that a first run would send: the resolved schema (DDL) and the first records. `items` is the number of items.

    `log` is Spark's log file. `lacks_schema`: the spec may contain a schema, and does not.
    """

    job: str
    topic: str
    format: str
    wording: Wording
    items: int
    schema: str | None
    lacks_schema: bool
    records: tuple[ShownRecord, ...] = ()
    log: str | None = None
    errors: tuple[EosingestError, ...] = ()
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the report as the `data` of the JSON envelope; the errors have their own place there."""
        left = ("errors", "wording", "items", "lacks_schema")
        data = {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in left}
        records = [{self.wording.item: record.item, **record.to_json()} for record in self.records]
        return {**data, **_counts(self.wording, self.items), "records": records, "notes": list(self.notes)}


@dataclass(frozen=True)
class PeekReport:
    """Records of a topic as a read_committed consumer sees them. `offsets` is their number in the log, markers included."""

    topic: str
    bootstrap_servers: str
    partitions: int
    offsets: int
    last: bool
    records: tuple[ShownRecord, ...] = ()
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the report as the `data` of the JSON envelope."""
        data = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**data, "records": [record.to_json() for record in self.records], "notes": list(self.notes)}
