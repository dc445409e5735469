"""What a run reports: its progress while it goes on, and its result. Plain values; cli/ renders them as text or JSON."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from eosingest.errors import EosingestError


@dataclass(frozen=True)
class Progress:
    """How far a run is, as the offsets topic tells it. `seconds` since the run began, bytes are the source's.

    `bytes_done` are of done splits, and of others as far as they are committed: where they are read by rows, by the size of a
    row so far. `records_before` is what earlier runs have sent.
    """

    records_sent: int
    splits_done: int
    splits_planned: int
    bytes_done: int
    bytes_planned: int
    seconds: float
    records_before: int = 0

    @property
    def records_per_second(self) -> float:
        """Records committed per second since the run began."""
        return self.records_sent / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """Time left at the pace so far, None while there is none."""
        if not self.bytes_done:
            return None
        return self.seconds * (self.bytes_planned - self.bytes_done) / self.bytes_done


@dataclass(frozen=True)
class AuditProgress:
    """How much of what an audit reads now is read, in `unit`s (offset, row), as finished Spark tasks have counted it.

    `what` is read now; `seconds` since that began.
    """

    what: str
    unit: str
    done: int
    planned: int
    seconds: float

    @property
    def per_second(self) -> float:
        """Read per second so far."""
        return self.done / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """Time left at the pace so far, None while there is none."""
        return self.seconds * (self.planned - self.done) / self.done if self.done else None


class Observer(Protocol):
    """Where a run says what it sees."""

    def note(self, text: str) -> None:
        """Take one line for the person who watches."""

    def progress(self, progress: Progress) -> None:
        """Take the state of the offsets topic, about once a second."""


class AuditObserver(Observer, Protocol):
    """Where an audit says what it sees."""

    def audited(self, progress: AuditProgress) -> None:
        """Take how much is read, about once a second."""


class Noting:
    """Keeps the notes for the report, and passes all on (an `Observer`)."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        """Keep a note and pass it on."""
        self.notes.append(text)
        self._observer.note(text)

    def progress(self, progress: Progress) -> None:
        """Pass progress on."""
        self._observer.progress(progress)


@dataclass(frozen=True)
class RunReport:
    """The result of a run. `records_sent` by this run, `records_total` by all runs of the job, as the offset records say;
    `records_resent` lie in the topic beside them: of files as they were before they were sent again as a whole.
    `notes` is what the observer was told on the way, `log` the file with Spark's own words, None where it was not started.
    """

    job: str
    run: int
    topic: str
    bootstrap_servers: str
    exit_code: int
    files: int
    files_done: int
    splits_planned: int
    splits_done: int
    records_sent: int
    records_total: int
    seconds: float
    errors: tuple[EosingestError, ...] = ()
    notes: tuple[str, ...] = ()
    records_resent: int = 0
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
            "files": self.files,
            "files_done": self.files_done,
            "splits_planned": self.splits_planned,
            "splits_done": self.splits_done,
            "records_sent": self.records_sent,
            "records_total": self.records_total,
            "records_resent": self.records_resent,
            "seconds": round(self.seconds, 3),
            "records_per_second": round(self.records_sent / self.seconds) if self.seconds else 0,
            "isolation_level_to_read_with": "read_committed",
            "log": self.log,
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class PlanReport:
    """What a run would do now, from a look at the offsets topic that disturbs nobody. Sizes in bytes.

    `files` holds, per listed file, its name, length, splits, pending splits and state (done | half done | new | changed).
    `bytes_to_read` is at least `bytes_to_send`: the finished splits of a half-done file are read again to get past them.
    """

    job: str
    topic: str
    bootstrap_servers: str
    files: tuple[dict[str, Any], ...]
    splits: int
    splits_pending: int
    bytes_total: int
    bytes_to_read: int
    bytes_to_send: int
    split_size: int
    records_committed: int
    hidden: int
    too_young: tuple[str, ...]
    empty: tuple[str, ...]
    vanished: tuple[str, ...]
    errors: tuple[EosingestError, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def work_pending(self) -> bool:
        """Whether a run would send anything."""
        return self.splits_pending > 0

    def to_json(self) -> dict[str, Any]:
        """Return the report as the `data` of the JSON envelope."""
        data = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "errors"}
        return {**data, "work_pending": self.work_pending}


@dataclass(frozen=True)
class StatusReport:
    """What the offsets topic says of a job. `state` as in the control record, of run `run`; times as text in UTC.

    `alive`: whether the run's process is, where it goes on and is of this host. `said`: the errors that it ended with, where
    this host knows them (code, message, hint). `refused`: for what reason the next run would refuse to begin, in the same form.
    """

    job: str
    topic: str
    bootstrap_servers: str
    state: str
    run: int
    host: str
    pid: int
    time: str
    files: int
    files_done: int
    splits: int
    splits_done: int
    records_total: int
    open_transactions: tuple[dict[str, Any], ...]
    versions: dict[str, str]
    alive: bool | None = None
    said: tuple[dict[str, str], ...] = ()
    refused: dict[str, str] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the report as the `data` of the JSON envelope."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True)
class VerifyReport:
    """What an audit of the sink topic found. `verdict` is verified, mismatch or inconclusive.

    `expected` and `found` hold records and checksum (hex); `found_late` is what of it was written after the job was complete.
    `counts` says how many records are lost, doubled, changed, foreign: at least so many. `findings` and `partitions` are
    tables for JSON. `source_splits` is how many splits were compared with the source, None without it.
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
    seconds: float
    errors: tuple[EosingestError, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def records_per_second(self) -> float:
        """Records read from the topic per second, from the beginning of the audit to its end."""
        return float(self.found["records"]) / self.seconds if self.seconds > 0 else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the report as the `data` of the JSON envelope; the errors have their own place there."""
        data = {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in ("errors", "counts")}
        numbers = {"seconds": round(self.seconds, 3), "records_per_second": round(self.records_per_second)}
        return {**data, **self.counts, **numbers}


@dataclass(frozen=True)
class ShownRecord:
    """A record that somebody looks at: of a preview (`file`, maybe `corrupt`), or of a topic (`offset`).

    A `timestamp_ms` of None is the time of sending, a `partition` of None the partitioner's choice.
    """

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int | None = None
    partition: int | None = None
    offset: int | None = None
    file: str | None = None
    corrupt: str | None = None

    @property
    def size(self) -> int:
        """Return the bytes of key, value and headers."""
        headers = sum(len(name.encode()) + len(value or b"") for name, value in self.headers)
        return len(self.key or b"") + len(self.value or b"") + headers

    @property
    def time(self) -> str | None:
        """Return the timestamp in UTC, None where it is the time of sending, or none that a calendar has."""
        if self.timestamp_ms is None:
            return None
        try:
            moment = datetime.fromtimestamp(self.timestamp_ms / 1000, UTC)
        except (OverflowError, ValueError, OSError):
            return f"{self.timestamp_ms} ms"
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def to_json(self) -> dict[str, Any]:
        """Return the record whole. Bytes that are UTF-8 are a string, others {"base64": …}."""
        data: dict[str, Any] = {"file": self.file} if self.offset is None else {"offset": self.offset}
        if self.corrupt is not None:
            return {**data, "corrupt": self.corrupt}
        return {
            **data,
            "partition": self.partition,
            "timestamp": self.time,
            "key": _json_of(self.key),
            "value": _json_of(self.value),
            "headers": [[name, _json_of(value)] for name, value in self.headers],
            "size": self.size,
        }


def _json_of(value: bytes | None) -> str | dict[str, str] | None:
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}


@dataclass(frozen=True)
class PreviewReport:
    """What a first run would send: the resolved schema (DDL) and the first records. `files` is how many there are.

    `log` is the file with Spark's own words.
    """

    job: str
    topic: str
    format: str
    files: int
    schema: str | None
    records: tuple[ShownRecord, ...] = ()
    log: str | None = None
    errors: tuple[EosingestError, ...] = ()
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the report as the `data` of the JSON envelope; the errors have their own place there."""
        data = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "errors"}
        return {**data, "records": [record.to_json() for record in self.records], "notes": list(self.notes)}


@dataclass(frozen=True)
class PeekReport:
    """Records of a topic as read_committed shows them. `offsets` is how many the partitions hold, markers included."""

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
