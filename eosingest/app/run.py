"""Wires the parts of a run together: clients, source, driver, and a Spark launcher that imports pyspark when needed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from eosingest.app import prepare
from eosingest.app.assemble import Parts, assemble
from eosingest.app.connection import Connection
from eosingest.app.encodings import resolved
from eosingest.app.settings import RunOptions, utc_now
from eosingest.errors import ActiveRunError, EosingestError, FencedError, TemporaryError
from eosingest.host import last_errors
from eosingest.host.host_lock import HostLock
from eosingest.host.interruptible import in_thread
from eosingest.host.interruption import Interruption
from eosingest.kafka.config import ClientSettings
from eosingest.kafka.replicas import TRANSACTION_LOG, too_few_replicas
from eosingest.protocol.driver import Driver
from eosingest.protocol.driver_contract import Prepared, Proof, Runtime
from eosingest.protocol.plan import Plan
from eosingest.protocol.task_contract import TaskSettings
from eosingest.protocol.verdict import JobResult
from eosingest.records.encoding import Encoding, pinned
from eosingest.report.model import RunReport
from eosingest.report.progress import Observer
from eosingest.spec import Spec
from eosingest.spec.columns import columns_of


def run(spec: Spec, options: RunOptions, observer: Observer, interrupted: Callable[[], int | None]) -> RunReport | None:
    """Run the job; return None if another run is active on this host and `if_running` is "skip".

    Raises the errors of errors.py if the run ends before its Spark job; later errors, which leave the job incomplete, are in
    the report.
    """
    interruption = Interruption(interrupted)
    parts = assemble(spec, observer, interruption.check)
    with parts.connected() as kafka, HostLock(kafka.admin.cluster_id(), spec.name) as lock:
        if not lock.acquired:
            if_running = options.if_running or spec.if_running
            if if_running == "skip":
                return None
            if if_running == "fail":
                raise ActiveRunError(
                    f"another run of {spec.name} is active on this host",
                    hint="nothing was done; wait for it, or run with --if-running fence to take the job over",
                )
            lock.keep_trying()  # so that the next run sees this run, not only the one that is fenced now
        # Before the claim, which fences an active run: an unavailable registry must not end that run.
        in_thread(lambda: resolved(spec, "", unknown="show"), interruption.check, "registry")
        launcher = _LazyLauncher(parts, kafka.client, observer)
        runtime = Runtime(
            now=time.monotonic,
            sleep=time.sleep,
            now_ms=lambda: int(time.time() * 1000),
            utc=utc_now,
            interruption=interruption,
        )
        settings = parts.driver_settings(kafka, options)
        try:
            report = Driver(settings, kafka, parts.source, launcher, parts.observer, runtime).run()
        except FencedError:
            raise  # do not overwrite the errors that a newer run keeps
        except EosingestError as error:
            if interruption.signal_number is None:
                _name_lost_brokers([error], kafka, spec)
            last_errors.keep(lock.cluster_id, spec.name, [error])
            raise
        finally:
            launcher.close()
        if interruption.signal_number is None:  # after a signal there is no time for the query
            _name_lost_brokers(report.errors, kafka, spec)
        last_errors.keep(lock.cluster_id, spec.name, report.errors)
    if launcher.started and report.complete:
        prepare.begin_in_background(spec, observer.note)
    return replace(report, notes=tuple(parts.observer.notes), log=launcher.log)


def _name_lost_brokers(errors: Sequence[EosingestError], kafka: Connection, spec: Spec) -> None:
    """Add to temporary errors of Kafka their likely cause: replicas that are missing now."""
    temporary = [error for error in errors if isinstance(error, TemporaryError)]
    if temporary:
        topics = (spec.sink.topic, spec.sink.offsets_topic, TRANSACTION_LOG)
        missing = too_few_replicas(kafka.client, kafka.admin, topics)
        if missing:
            temporary[0].message += f". Brokers are lost: {'; '.join(missing)}"


class _LazyLauncher:
    """A SparkLauncher that imports pyspark at the first `prepare`, which a run with nothing pending never calls."""

    def __init__(self, parts: Parts, client: ClientSettings, observer: Observer) -> None:
        self._parts = parts
        self._client = client
        self._observer = observer
        self._launcher: Any = None
        self.log: str | None = None

    def prepare(self, plan: Plan, schema: str | None, *, same_items: bool, encodings: str) -> Prepared:
        # Shown to the user but not kept in the report: it is the only sign of progress until records are committed.
        self._note_misspelt(plan)
        self._observer.note(f"starting Spark to read {plan.wording.count(len(plan.pending_items))}")
        spec = self._parts.spec
        found = in_thread(lambda: resolved(spec, encodings, unknown="register"), self._parts.check, "registry")
        self._launcher = self._make(found)
        prepared: Prepared = self._launcher.prepare(plan, schema, same_items=same_items)
        return replace(prepared, encodings=pinned(found))

    def _note_misspelt(self, plan: Plan) -> None:
        source = self._parts.spec.source
        if source.given_schema is None or plan.sample is None:
            return
        from eosingest.sniff.column_typos import misspelt

        given, _ = columns_of(source.given_schema)
        names = [name for name in given.names if name.lower() not in plan.folders] if given is not None else []
        found = misspelt(plan.sample, source.format, names, source.row_name)
        if found is not None:
            self._observer.note(found)

    def prove(self, plan: Plan, schema: str | None, encodings: str) -> Proof:
        """Read the rows that were sent, under the current spec and in a separate Spark session; return their sums."""
        from eosingest.audit.session import SparkAuditor

        spec = self._parts.spec
        found = in_thread(lambda: resolved(spec, encodings, unknown="refuse"), self._parts.check, "registry")
        spark = SparkAuditor(self._spark_settings(found))
        try:
            spark.start()
            sums = spark.read_source(plan, schema)
            return Proof(sums, spark.schema, pinned(found))
        finally:
            spark.close()

    def start(self, settings: TaskSettings) -> None:
        self._launcher.start(settings)

    def poll(self, timeout_s: float) -> JobResult | None:
        result: JobResult | None = self._launcher.poll(timeout_s)
        return result

    def cancel(self) -> None:
        self._launcher.cancel()

    def close(self) -> None:
        if self._launcher is not None:
            self._launcher.close()

    @property
    def started(self) -> bool:
        """Say whether Spark was started."""
        return self._launcher is not None

    def _make(self, encodings: Mapping[str, Encoding]) -> Any:
        from eosingest.spark.job import SparkLauncher

        return SparkLauncher(self._spark_settings(encodings))

    def _spark_settings(self, encodings: Mapping[str, Encoding]) -> Any:
        settings = self._parts.spark_settings(self._client, self._observer.note, encodings)
        self.log = str(settings.log_file) if settings.log_file is not None else None
        return settings
