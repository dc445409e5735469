"""Defines the driver's settings, and its interfaces to Spark, the clock and signals.

app/settings.py and app/run.py make these values for driver.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from eosingest.host.interruption import Interruption
from eosingest.protocol.plan import Plan, PlannedSplit
from eosingest.protocol.source import SplitId
from eosingest.protocol.task_contract import TaskSettings
from eosingest.protocol.verdict import JobResult
from eosingest.records.checksum import Totals


@dataclass(frozen=True)
class TopicCreation:
    """How a topic is created where it does not exist."""

    partitions: int
    replication_factor: int
    config: Mapping[str, str]


@dataclass(frozen=True)
class DeadLetterOrder:
    """The dead-letter topic, and how many dead letters are `allowed` until the job is complete.

    `create` says how to make a topic that does not exist; None: it must exist.
    """

    topic: str
    allowed: int
    create: TopicCreation | None = None


@dataclass(frozen=True)
class DriverSettings:
    """The settings of a run. Times in seconds, sizes in bytes.

    `started` distinguishes this run from any other of the same number. `digest` maps the name of each setting that shapes
    the bytes of records to a hash of its meaning, names that begin with "version." to the version itself.
    `accept_change`: accept a changed spec where the sent records are proven to stay the same. `accept_gap`: skip source data
    that was deleted before it was read.
    `keeps_partitions`: as in `TaskSettings`. `rate_limit` is that of all tasks together, in bytes per second. `dead_letters`
    None: a bad row ends its split and fails the run. `whole`: everything is sent in one transaction, or nothing.
    """

    job: str
    started: str
    format: str
    root: str
    bootstrap_servers: str
    topic: str
    create: TopicCreation | None
    offsets_topic: str
    prefix: str
    digest: Mapping[str, str]
    split_size: int
    on_change: str
    transaction_timeout_s: float
    max_records: int
    max_bytes: int
    from_scratch: bool
    accept_change: bool
    accept_gap: bool
    host: str
    pid: int
    versions: Mapping[str, str]
    keeps_partitions: bool = False
    rate_limit: float | None = None
    dead_letters: DeadLetterOrder | None = None
    whole: bool = False


@dataclass(frozen=True)
class Prepared:
    """The prepared Spark job: number of tasks, resolved schema (DDL), and the splits by their hash in the split column.

    `slots` is how many tasks may run at a time, None where that is not known. `encodings` is the pin of the schemas by
    which keys and values are encoded (`ControlRecord.encodings`).
    """

    tasks: int
    schema: str | None
    splits: Mapping[int, PlannedSplit]
    slots: int | None = None
    encodings: str = ""

    @property
    def at_once(self) -> int:
        """How many tasks run at a time, at most."""
        return max(1, min(self.tasks, self.slots if self.slots is not None else self.tasks))


@dataclass(frozen=True)
class Proof:
    """The sums over each split's rows, up to its committed position, and the resolved schema by which they were read (DDL)."""

    sums: Mapping[SplitId, Totals]
    schema: str | None
    encodings: str = ""


class Launcher(Protocol):
    """The driver's interface to Spark."""

    def prepare(self, plan: Plan, schema: str | None, *, same_items: bool, encodings: str) -> Prepared:
        """Start Spark, make and check the DataFrame. Raises the errors of errors.py.

        `schema` is the pinned one, None for none. `same_items`: it was inferred from or checked against these items. If not,
        an inferred one raises ChangedError where the items have columns that it would drop.
        `encodings` are the pinned ones, "" for none: then schemas are registered.
        """

    def prove(self, plan: Plan, schema: str | None, encodings: str) -> Proof:
        """Read the sent rows of the plan's splits, under the spec as it is now. Raises the errors of errors.py.

        `schema` and `encodings` are the pinned ones, as in `prepare`; None and "" where the spec's own are to be used.
        """

    def start(self, settings: TaskSettings) -> None:
        """Start the job in the background."""

    def poll(self, timeout_s: float) -> JobResult | None:
        """Wait up to `timeout_s` seconds for the job's end."""

    def cancel(self) -> None:
        """Cancel the job, waiting a few seconds at most."""


@dataclass(frozen=True)
class Runtime:
    """Time and signals: a monotonic clock and sleep in s, the time of day in ms and as UTC text, whether a signal came."""

    now: Callable[[], float]
    sleep: Callable[[float], None]
    now_ms: Callable[[], int]
    utc: Callable[[], str]
    interruption: Interruption
