"""Converts a Spec to the settings of Spark and of the records, for the launcher of a run and for audits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from eosingest.kafka.config import ClientSettings
from eosingest.records.encoding import Encoding
from eosingest.spark import session, spark_defaults
from eosingest.spark.job import SparkSettings, to_nobody
from eosingest.spark.record_settings import RecordSettings
from eosingest.spark.scan import Scan
from eosingest.spec import Spec
from eosingest.spec.encodings import Encoded


def record_settings(spec: Spec, encodings: Mapping[str, Encoding] = MappingProxyType({})) -> RecordSettings:
    """Return the spec's expressions; `encodings` are of the keys and values with a schema."""

    def part(name: str, given: str | Encoded) -> str | Encoding:
        return given if isinstance(given, str) else encodings.get(name, _unresolved(given))

    key, value = spec.record.key, spec.record.value
    return RecordSettings(
        where=spec.transform.where,
        select=spec.transform.select,
        key=None if key is None else part("key", key),
        value=part("value", value),
        headers={} if isinstance(spec.record.headers, str) else dict(spec.record.headers),
        header_column=spec.record.headers if isinstance(spec.record.headers, str) else None,
        timestamp=spec.record.timestamp,
        partition=spec.record.partition,
    )


def _unresolved(part: Encoded) -> Encoding:
    """Return an encoding that can write nothing, but suffices to decide how to read the source."""
    return Encoding(part.by.subject, 0, "", part.by.expression, part.by.kind)


def spark_settings(
    spec: Spec,
    client: ClientSettings,
    scan: Scan,
    check: Callable[[], None],
    log_file: Path | None,
    note: Callable[[str], None] = to_nobody,
    encodings: Mapping[str, Encoding] = MappingProxyType({}),
) -> SparkSettings:
    """Make the settings. Spark's output goes to `log_file`, None: stderr; `note` receives lines for the user."""
    master = spark_defaults.spark_master(spec, session.submitted_master() if spec.spark.master is None else None)
    spark_defaults.refuse_embedded_elsewhere(spec, master)
    return SparkSettings(
        job=spec.name,
        master=master,
        conf=dict(spec.spark.conf),
        records=record_settings(spec, encodings),
        scan=scan,
        client=client,
        partitioner=spec.sink.partitioner,
        prefix=spec.sink.transactional_id_prefix,
        whole=spec.transaction.whole,
        check=check,
        log_file=log_file,
        executor_wait_s=spec.spark.executor_wait,
        note=note,
    )
