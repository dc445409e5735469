"""Puts the parts of a run together: clients, source, driver, and a Spark launcher that imports pyspark when needed."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eosingest.connection import connected, refuse_unusable_properties
from eosingest.driver import Driver
from eosingest.driver_contract import Prepared, Surroundings
from eosingest.errors import ActiveRunError
from eosingest.host_lock import HostLock
from eosingest.interruption import Interruption
from eosingest.kafka.config import ClientSettings
from eosingest.paths import cache_directory
from eosingest.plan import Plan
from eosingest.report import Noting, Observer, RunReport
from eosingest.settings import driver_settings, file_source, utc_now
from eosingest.sources.files import FileSource
from eosingest.spec import Spec, spark_master
from eosingest.task_contract import TaskSettings
from eosingest.verdict import JobResult

_LOGS_KEPT_S = 7 * 86_400


@dataclass(frozen=True)
class RunOptions:
    """What the command line says of a run beside the spec. `if_running` None: as the spec says."""

    from_scratch: bool = False
    if_running: str | None = None
    verbose: bool = False


def run(spec: Spec, options: RunOptions, observer: Observer, interrupted: Callable[[], int | None]) -> RunReport | None:
    """Run the job; None where another run is active on this host and `if_running` is "skip".

    Raises the errors of errors.py for what ends a run before its job; what keeps a job from being complete is in the
    report's errors.
    """
    refuse_unusable_properties(spec)
    interruption = Interruption(interrupted)
    noting = Noting(observer)
    with connected(spec, noting, interruption.check) as kafka, HostLock(kafka.admin.cluster_id(), spec.name) as lock:
        if not lock.acquired:
            if_running = options.if_running or spec.if_running
            if if_running == "skip":
                return None
            if if_running == "fail":
                raise ActiveRunError(
                    f"another run of {spec.name} is active on this host",
                    hint="nothing was done; wait for it, or run with --if-running fence to take the job over",
                )
        source = file_source(spec, interruption.check)
        launcher = _LazyLauncher(spec, kafka.client, source, options.verbose, interruption.check)
        around = Surroundings(
            now=time.monotonic,
            sleep=time.sleep,
            now_ms=lambda: int(time.time() * 1000),
            utc=utc_now,
            interruption=interruption,
        )
        settings = driver_settings(spec, kafka.client.bootstrap_servers, source, from_scratch=options.from_scratch)
        try:
            report = Driver(settings, kafka, source, launcher, noting, around).run()
        finally:
            launcher.close()
        return replace(report, notes=tuple(noting.notes))


class _LazyLauncher:
    """A SparkLauncher that imports pyspark when it is first asked to prepare: a run with nothing to do never is."""

    def __init__(
        self, spec: Spec, client: ClientSettings, source: FileSource, verbose: bool, check: Callable[[], None]
    ) -> None:
        self._check = check
        self._spec = spec
        self._client = client
        self._source = source
        self._verbose = verbose
        self._launcher: Any = None

    def prepare(self, plan: Plan, schema: str | None) -> Prepared:
        self._launcher = self._make()
        prepared: Prepared = self._launcher.prepare(plan, schema)
        return prepared

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

    def _make(self) -> Any:
        from eosingest.spark.job import SparkLauncher, SparkSettings
        from eosingest.spark.read import ReadSettings

        spec = self._spec
        read = ReadSettings(
            format=spec.source.format,
            options=spec.source.reader_options(),
            schema=spec.source.ddl,
            where=spec.transform.where,
            select=spec.transform.select,
            key=spec.record.key,
            value=spec.record.value,
            headers=dict(spec.record.headers),
            timestamp=spec.record.timestamp,
        )
        return SparkLauncher(
            SparkSettings(
                job=spec.name,
                master=spark_master(spec),
                conf=spec.spark.conf,
                read=read,
                base_path=lambda plan: self._source.partition_base(entry.file for entry in plan.files),
                client=self._client,
                partitioner=spec.sink.partitioner,
                prefix=spec.sink.transactional_id_prefix,
                check=self._check,
                log_file=None if self._verbose else _log_file(spec.name),
            )
        )


def _log_file(job: str) -> Path:
    """Return where this run's Spark writes, and clear away what is older than a week."""
    folder = cache_directory() / "logs"
    for old in folder.glob("*.log"):
        with contextlib.suppress(OSError):
            if time.time() - old.stat().st_mtime > _LOGS_KEPT_S:
                old.unlink()
    return folder / f"{job}-{os.getpid()}.log"
