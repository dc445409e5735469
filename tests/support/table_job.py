"""A job over tables that grow (frozen_table.py): driver and tasks as in production, in this process, on any Kafka."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

from eosingest.host.interruption import Interruption
from eosingest.kafka.ports import LogRecord
from eosingest.protocol.control_log import DriverKafka
from eosingest.protocol.driver import Driver
from eosingest.protocol.driver_contract import DriverSettings, Prepared, Runtime
from eosingest.protocol.offsets import record, topic
from eosingest.protocol.offsets.state import JobState
from eosingest.protocol.plan import Plan, PlannedSplit
from eosingest.protocol.task import Task
from eosingest.protocol.task_contract import Batch, Signal, TaskKafka, TaskSettings
from eosingest.protocol.verdict import JobResult
from eosingest.report.model import RunReport
from tests.support.builders import driver_settings, place
from tests.support.frozen_table import FrozenTables, KeyRange, Tables
from tests.support.memory_job import Unheard, killed_at

_VERSION = "one"
_TASKS = 2
_attempts = itertools.count(1)


class JobKafka(DriverKafka, Protocol):
    """A Kafka, and the clock that goes with it."""

    def now(self) -> float: ...
    def wait(self, seconds: float) -> None: ...
    def task(self, settings: TaskSettings) -> TaskKafka: ...
    def committed(self, topic: str) -> list[LogRecord]: ...


@dataclass
class TableJob:
    """The job, run by run. `launched` says of the last one whether Spark was asked for anything; `source` was its source."""

    kafka: JobKafka
    tables: Tables
    settings: DriverSettings
    launched: bool = False
    source: FrozenTables | None = None

    def run(self, **changes: Any) -> RunReport:
        """Run once; what a run raises is raised."""
        source = self.source = FrozenTables(self.tables)
        runtime = Runtime(
            now=self.kafka.now,
            sleep=self.kafka.wait,
            now_ms=lambda: int(self.kafka.now() * 1000),
            utc=lambda: "now",
            interruption=Interruption(lambda: None),
        )
        self.launched = False
        settings = replace(self.settings, started=f"start {next(_attempts)}", **changes)
        return Driver(settings, self.kafka, source, _Launcher(self), Unheard(), runtime).run()

    def run_killed_at(self, point: str, hit: int = 1) -> None:
        with killed_at(point, hit):
            self.run()

    def values(self) -> list[bytes]:
        """Return what is committed in the topic, in order of values."""
        return sorted(entry.value or b"" for entry in self.kafka.committed(self.settings.topic))

    def expected(self) -> list[bytes]:
        """Return the rows up to where the last run listed the tables."""
        assert self.source is not None
        parts = self.tables.rows.rows[_VERSION].items()
        return sorted(value for (table, at), rows in parts if at < self.source.listed[table] for value in rows.values)

    def state(self) -> JobState:
        """Return what the offsets topic tells of the job."""
        state = JobState(self.settings.job)
        state.fold(self.kafka.committed(self.settings.offsets_topic))
        return state

    def write(self, *entries: tuple[bytes, bytes | None]) -> None:
        """Write to the job's partition of the offsets topic, as a foreign hand."""
        partition = topic.partition_of(self.settings.job, topic.PARTITIONS)
        producer = self.kafka.control_producer("foreign")
        producer.init_transactions()
        producer.begin()
        for key, value in entries:
            producer.produce_to_partition(self.settings.offsets_topic, partition, key, value)
        producer.flush()
        producer.commit()
        producer.close()


def table_job(kafka: JobKafka, tables: Tables, **changes: Any) -> TableJob:
    """Make a job whose transactions have two records at most."""
    return TableJob(kafka, tables, driver_settings(max_records=2, **changes))


class _Launcher:
    """Spark, as far as a driver sees it: two tasks, one after another, each in this process."""

    def __init__(self, job: TableJob) -> None:
        self._job = job
        self._parts: list[list[PlannedSplit]] = []
        self._result = JobResult([])

    def prepare(self, plan: Plan, schema: str | None, *, same_items: bool, encodings: str) -> Prepared:
        self._job.launched = True
        splits = [split for file in plan.pending_items for split in (*file.pending, *file.skipped)]
        self._parts = [splits[task::_TASKS] for task in range(_TASKS)]
        hashes = self._job.tables.rows.hashes
        return Prepared(_TASKS, "schema", {hashes[place(planned)]: planned for planned in splits})

    def start(self, settings: TaskSettings) -> None:
        kafka = self._job.kafka
        for number, splits in enumerate(self._parts):
            task = Task(
                settings,
                number,
                kafka.task(settings),
                attempt=next(_attempts),
                attempt_number=0,
                now=kafka.now,
                now_ms=lambda: int(kafka.now() * 1000),
            )
            outcome = task.run(_Rows(self._job.tables, splits))
            self._result = JobResult([*self._result.outcomes, outcome])

    def poll(self, timeout_s: float) -> JobResult:
        return self._result

    def cancel(self) -> None:
        """Nothing is at work."""

    def prove(self, plan: Plan, schema: str | None, encodings: str) -> Any:
        raise AssertionError("no spec changes here")


class _Rows:
    """A task's input, as Spark gives it: row by row, each split from its first one on."""

    def __init__(self, tables: Tables, splits: list[PlannedSplit]) -> None:
        self._items = self._batches(tables, splits)

    @staticmethod
    def _batches(tables: Tables, splits: list[PlannedSplit]) -> Iterator[Batch]:
        for planned in splits:
            assert isinstance(planned.split, KeyRange)
            whole = tables.rows_of(planned.split, _VERSION).batch
            for at in range(len(whole.splits)):
                yield whole.slice(at, at + 1)

    def begin(self, committed: Callable[[PlannedSplit], record.OffsetRecord | None]) -> None:
        """Nothing: every split is given from its first row on."""

    def get(self, timeout_s: float) -> Batch | Signal:
        return next(self._items, Signal.END)

    def stop(self) -> None:
        """Nothing reads on."""
