"""What the driver is told, and what it asks of Spark and of its surroundings.

Between settings.py and run.py, which make these values, and driver.py.
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
    """How the sink topic is made where it does not exist."""

    partitions: int
    replication_factor: int
    config: Mapping[str, str]


@dataclass(frozen=True)
class DriverSettings:
    """What a run is told. Times in seconds, sizes in bytes.

    `started` tells this run from any other of the same number. `digests` maps the names of everything that shapes the
    bytes to a digest of its meaning, by each generation of defaults (spec/generations.py); names that begin with "version."
    have the version itself. `generation` is the one that the spec asks for. `accept_change`: take a changed spec in where
    what was sent is proven to stay; `has_metadata`: a record has headers or a timestamp of its own.
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
    digests: Mapping[int, Mapping[str, str]]
    generation: int | None
    split_size: int
    on_change: str
    transaction_timeout_s: float
    max_records: int
    max_bytes: int
    from_scratch: bool
    accept_change: bool
    has_metadata: bool
    host: str
    pid: int
    versions: Mapping[str, str]


@dataclass(frozen=True)
class Prepared:
    """What Spark will do: number of tasks, the resolved schema (DDL), and the splits by their hash in the split column."""

    tasks: int
    schema: str | None
    splits: Mapping[int, PlannedSplit]


@dataclass(frozen=True)
class Proof:
    """What the rows of splits add up to, as far as their receipts go, and the resolved schema that they were read by (DDL)."""

    sums: Mapping[SplitId, Totals]
    schema: str | None


class Launcher(Protocol):
    """Spark, as the driver sees it."""

    def prepare(self, plan: Plan, schema: str | None, *, generation: int, same_items: bool) -> Prepared:
        """Start Spark, make and check the DataFrame. Raises the errors of errors.py.

        `generation` is that of the spec's defaults. `schema` is the pinned one; unless it was held against the `same_items`
        already, and if it was inferred, ChangedError where the items have columns that it would drop.
        """

    def prove(self, plan: Plan, generation: int) -> Proof:
        """Read what was sent of the plan's splits, under the spec as it is now. Raises the errors of errors.py."""

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
