"""Converts a Spec to the plain values that source and driver take, because the protocol does not import pydantic."""

from __future__ import annotations

import contextlib
import os
import platform
import secrets
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import xxhash

from eosingest import __version__, broker
from eosingest.app.connection import EMBEDDED, embedded_is_down
from eosingest.errors import FatalError
from eosingest.host.interruption import never
from eosingest.host.java import find_java, java_major_version
from eosingest.host.paths import cache_directory
from eosingest.kafka.sticky_partitioner import spreads
from eosingest.protocol.driver_contract import DeadLetterOrder, DriverSettings, TopicCreation
from eosingest.protocol.source import Source
from eosingest.records.encoding import Encoding
from eosingest.report.wording import Wording
from eosingest.sources.registry import kind_of
from eosingest.spark import spark_defaults
from eosingest.spec import Spec, digest_parts, resolve_properties
from eosingest.spec.model import Create, DeadLetters
from eosingest.spec.tables import Beside, SourceTable

if TYPE_CHECKING:
    from eosingest.spark.scan import Scan

_LOGS_KEPT_S = 7 * 86_400


def source_of(spec: Spec, check: Callable[[], None] = never) -> Source:
    """Make the source; `check` ends long listings by raising."""
    return kind_of(spec.source.format).source(_source_table(spec), spec.directory, check)


def _source_table(spec: Spec) -> SourceTable:
    def sink() -> tuple[str, dict[str, str]]:
        servers = spec.sink.bootstrap_servers
        if servers == EMBEDDED:
            servers = broker.status().bootstrap_servers
            if not servers:
                raise embedded_is_down()
        return servers, resolve_properties(spec)

    return spec.source.beside(
        Beside(
            spec.sink.topic,
            spec.sink.offsets_topic,
            None if spec.on_error == "fail" else spec.on_error.topic,
            sink,
            lambda properties, key: resolve_properties(spec, properties, key),
        )
    )


def wording_of(spec: Spec) -> Wording:
    """Return the words of the source's kind for messages and reports."""
    return source_of(spec).wording


def scan_of(spec: Spec, encodings: Mapping[str, Encoding] = MappingProxyType({})) -> Scan:
    """Return the Scan that reads the source with Spark. Imports pyspark."""
    from eosingest.spark.settings import record_settings

    records = record_settings(spec, encodings)
    scan: Scan = kind_of(spec.source.format).scan(_source_table(spec), records, dict(spec.spark.conf))
    return scan


@dataclass(frozen=True)
class RunOptions:
    """The options of a run that are not in the spec. `if_running` None: use the spec's."""

    from_scratch: bool = False
    accept_change: bool = False
    accept_gap: bool = False
    if_running: str | None = None


NO_OPTIONS = RunOptions()


def driver_settings(spec: Spec, bootstrap_servers: str, options: RunOptions = NO_OPTIONS) -> DriverSettings:
    """Make the driver's settings, with a digest of everything that shapes the bytes."""
    versions = versions_now()
    of_versions = {
        "version.spark": ".".join(versions["spark"].split(".")[:2]),
        "version.java": versions["java"],
    }
    return DriverSettings(
        job=spec.name,
        started=f"{utc_now()} {secrets.token_hex(4)}",
        format=spec.source.format,
        root=spec.root_as_written or spec.source.root_as_written,
        bootstrap_servers=bootstrap_servers,
        topic=spec.sink.topic,
        create=_creation(spec.sink.create),
        offsets_topic=spec.sink.offsets_topic,
        prefix=spec.sink.transactional_id_prefix,
        digest={**_digest(spec), **of_versions},
        split_size=spec.source.split_size,
        on_change=spec.source.on_change,
        transaction_timeout_s=spec.transaction.timeout,
        max_records=spec.transaction.max_records,
        max_bytes=spec.transaction.max_bytes,
        rate_limit=spec.sink.rate_limit,
        dead_letters=_dead_letters(spec.on_error),
        whole=spec.transaction.whole,
        from_scratch=options.from_scratch,
        accept_change=options.accept_change,
        accept_gap=options.accept_gap,
        host=socket.gethostname(),
        pid=os.getpid(),
        versions=versions,
        keeps_partitions=spec.record.partition is None and spreads(spec.sink.partitioner),
    )


def _creation(create: Create | None) -> TopicCreation | None:
    return TopicCreation(create.partitions, create.replication_factor, create.config) if create else None


def _dead_letters(on_error: DeadLetters | str) -> DeadLetterOrder | None:
    if isinstance(on_error, str):
        return None
    return DeadLetterOrder(on_error.topic, on_error.max, _creation(on_error.create))


def _digest(spec: Spec) -> dict[str, str]:
    return {name: xxhash.xxh3_64_hexdigest(text.encode()) for name, text in digest_parts(spec).items()}


def versions_now() -> dict[str, str]:
    """Return the versions that the control record pins; Java's is read without starting a JVM if possible."""
    try:
        java = str(java_major_version(find_java()))
    except FatalError:
        java = "none"  # an error only when Spark is to be started
    return {"eosingest": __version__, "spark": version("pyspark"), "python": platform.python_version(), "java": java}


def utc_now() -> str:
    """Return the current time in UTC as text, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def spark_log_file(job: str) -> Path | None:
    """Return the log file for this process's Spark, and remove log files older than a week.

    None under spark-submit, whose JVM writes to spark-submit's stderr.
    """
    folder = cache_directory() / "logs"
    for old in folder.glob("*.log"):
        with contextlib.suppress(OSError):
            if time.time() - old.stat().st_mtime > _LOGS_KEPT_S:
                old.unlink()
    return None if spark_defaults.is_submitted() else folder / f"{job}-{os.getpid()}.log"
