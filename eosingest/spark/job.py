"""Implements `driver_contract.Launcher`: prepares the DataFrame, runs the Spark job, reports how it ended."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from json import loads
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eosingest.errors import EosingestError, FatalError, listed
from eosingest.host import interruptible
from eosingest.kafka.config import ClientSettings
from eosingest.protocol.driver_contract import Prepared
from eosingest.protocol.plan import Plan
from eosingest.protocol.task_contract import Outcome, TaskSettings
from eosingest.protocol.verdict import JobResult
from eosingest.spark import avro_jar, causes, executors, failures, required_settings, session
from eosingest.spark.direct import is_constant
from eosingest.spark.executors import LossWatch
from eosingest.spark.record_settings import RecordSettings
from eosingest.spark.scan import Scan, tasks_of
from eosingest.spec.masters import attempts_of_tasks, is_local

if TYPE_CHECKING:
    from eosingest.spark.reading import Reading

_CANCEL_WAIT_S = 4.0
_NAMED_AT_MOST = 10
_CANCEL_EVERY_S = 0.5


def to_nobody(_: str) -> None:
    """Drop a note."""


@dataclass(frozen=True)
class SparkSettings:
    """How Spark starts and what it reads. `note` receives a line of progress for the user. `whole` as in `TaskSettings`."""

    job: str
    master: str
    conf: Mapping[str, str]
    records: RecordSettings
    scan: Scan
    client: ClientSettings
    partitioner: str
    prefix: str
    check: Callable[[], None]
    log_file: Path | None
    executor_wait_s: float = 120.0
    note: Callable[[str], None] = to_nobody
    whole: bool = False

    def boot(self) -> dict[str, str]:
        """Return the settings that its JVM starts with."""
        return session.settings_of(self.master, self.conf, self.scan.spark_conf(), self._jars())

    def _jars(self) -> Sequence[str]:
        return avro_jar.jars(self.conf) if self.records.is_avro else ()

    def start(self) -> session.Spark:
        """Start Spark; see `session.start`."""
        return session.start(
            job=self.job,
            master=self.master,
            conf=self.conf,
            of_source=self.scan.spark_conf(),
            jars=self._jars(),
            log_file=self.log_file,
            wait_s=self.executor_wait_s,
            note=self.note,
        )


class SparkLauncher:
    """One Spark session with one job, started when there is something to send."""

    def __init__(self, settings: SparkSettings) -> None:
        """Start nothing yet."""
        self._settings = settings
        self._spark: Any = None
        self._reading: Reading | None = None
        self._plan: Plan | None = None  # the plan that is read now
        self._thread: threading.Thread | None = None
        self._outcomes: Any = None
        self._error: EosingestError | None = None
        self._losses: LossWatch | None = None  # on a cluster, while the job runs

    def prepare(self, plan: Plan, schema: str | None, *, same_items: bool) -> Prepared:
        """Start Spark, make the DataFrame, check that its plan is narrow and reads each planned split once.

        `schema` is the pinned one, as DDL. `same_items`: it was last checked against this same list of items.
        A signal ends the wait at once. Raises the errors of errors.py.
        """
        return interruptible.in_thread(
            lambda: self._prepare(plan, schema, same_items), self._settings.check, "spark-prepare"
        )

    def _prepare(self, plan: Plan, schema: str | None, same_items: bool) -> Prepared:
        # Imported here and below, since they import Kafka's client and what tasks need; a preview has no tasks.
        from eosingest.spark.reading import direct_reading, frame_reading

        settings, scan = self._settings, self._settings.scan
        self._spark = settings.start()
        self._plan = plan
        try:
            executors.ready(self._spark, settings.executor_wait_s, settings.note)
            direct = scan.direct(plan)
            slots = executors.most_tasks(self._spark)
            most_tasks = 1 if settings.whole else slots
            tasks = tasks_of(self._spark.context, slots)
            inspected = interruptible.begin(lambda: scan.inspect(tasks, plan), "spark-inspect")
            if direct is not None:
                inspected.result()
                if schema is not None and not same_items:
                    scan.check_pinned_schema(tasks, plan, schema)
                self._reading = direct_reading(direct, schema, most_tasks)
                return replace(self._reading.prepared, slots=slots)
            sql = self._spark.sql()  # takes 1.5 s, during which tasks inspect
            inspected.result()
            if schema is not None and not same_items:
                scan.check_pinned_schema(tasks, plan, schema)
            rows = scan.frame(sql, plan, schema, most_tasks, resumed=True)
            self._reading = frame_reading(rows, settings.records, most_tasks)
            return replace(self._reading.prepared, slots=slots)
        except failures.FROM_THE_JVM as error:
            explained = self._explain(error)
            if explained.code == "spark-job" and not executors.is_lost(causes.text_of(error)):
                raise FatalError(
                    explained.message, code="spark-prepare", hint="nothing was sent; correct the spec"
                ) from error
            raise explained from error

    def start(self, task_settings: TaskSettings) -> None:
        """Start the job in a separate thread; if the JVM has ended meanwhile, the job's failure reports it."""
        assert self._reading is not None, "prepare comes first"
        settings = self._settings
        if not is_local(settings.master):
            self._losses = LossWatch(executors.watch_of(self._spark, settings.executor_wait_s, settings.note))
        self._thread = threading.Thread(target=self._run, args=(task_settings,), name="spark-job", daemon=True)
        self._thread.start()

    def _run(self, task_settings: TaskSettings) -> None:
        try:
            self._job(task_settings).collect()
        except Exception as error:
            self._error = self._explain(error)

    def _job(self, task_settings: TaskSettings) -> Any:
        """Return the DataFrame or RDD whose rows are the tasks' outcomes."""
        from eosingest.kafka.producer import ProducerSettings
        from eosingest.spark.worker import Outcomes, WorkerKafka

        context = self._spark.context
        self._outcomes = context.accumulator([], Outcomes())
        sizes = [
            each.max_message_bytes for each in (task_settings.limits, task_settings.dead_letters) if each is not None
        ]
        producer_settings = ProducerSettings(
            client=self._settings.client,
            topic=task_settings.topic,
            transaction_timeout_s=task_settings.transaction_timeout_s,
            partitioner=self._settings.partitioner,
            message_max_bytes=max(sizes),
            batch_max_bytes=min(sizes),
        )
        attempts = attempts_of_tasks(self._settings.master) or required_settings.MAX_ATTEMPTS
        task_settings = replace(task_settings, max_attempts=attempts)
        kafka = WorkerKafka(task_settings, producer_settings, self._settings.prefix)
        assert self._reading is not None and self._plan is not None, "prepare comes first"
        confirm = self._settings.scan.confirm(self._plan) if task_settings.whole else is_constant
        return self._reading.job(context, kafka, self._outcomes, confirm)

    def poll(self, timeout_s: float) -> JobResult | None:
        """Wait `timeout_s` seconds for the job's end; None if it still runs.

        The accumulator has the outcomes of successful tasks, also if the job failed. It may have outcomes of another run
        (`JobResult.of_run`).
        """
        assert self._thread is not None, "start comes first"
        self._thread.join(timeout_s)
        lost = self._losses.error if self._losses is not None else None
        if self._thread.is_alive() and lost is None:
            return None
        if self._thread.is_alive():
            self.cancel()
        told = self._outcomes.value if self._outcomes is not None else []
        outcomes = [Outcome.from_json(loads(text)) for text in told]
        if lost is None and self._error is None and is_local(self._settings.master):
            self._spark.begin_to_stop()  # while the driver determines the verdict, without Spark
        return JobResult(outcomes, lost or self._error)

    def cancel(self) -> None:
        """Cancel the job, repeatedly for a few seconds: Spark ignores a cancellation before the job is submitted."""
        canceller = threading.Thread(target=self._cancel_all, name="spark-cancel", daemon=True)
        canceller.start()
        canceller.join(_CANCEL_WAIT_S)

    def _cancel_all(self) -> None:
        with contextlib.suppress(Exception):  # the JVM may have ended: then no task runs
            while self._thread is not None and self._thread.is_alive():
                self._spark.context.cancelAllJobs()
                self._thread.join(_CANCEL_EVERY_S)

    def close(self) -> None:
        """Stop Spark."""
        if self._losses is not None:
            self._losses.end()
        if self._spark is not None:
            self._spark.stop()

    def _explain(self, error: Exception) -> EosingestError:
        """Make the error for the job's failure: bad data is fatal, most other failures may be retried."""
        process = self._spark and self._spark.process
        return failures.of_a_run(error, process, self._pending_items, self._settings.log_file)

    def _pending_items(self) -> str:
        assert self._plan is not None, "nothing is read without a plan"
        return listed([entry.item.name for entry in self._plan.pending_items], _NAMED_AT_MOST)
