"""From a Spec to the settings of Spark and of the records: for the launcher of a run and for an audit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from eosingest.kafka.config import ClientSettings
from eosingest.spark import session, site
from eosingest.spark.job import SparkSettings, to_nobody
from eosingest.spark.record_columns import RecordSettings
from eosingest.spark.scan import Scan
from eosingest.spec import Spec, generations


def record_settings(spec: Spec) -> RecordSettings:
    """Return the spec's expressions."""
    return RecordSettings(
        where=spec.transform.where,
        select=spec.transform.select,
        key=spec.record.key,
        value=spec.record.value,
        headers={} if isinstance(spec.record.headers, str) else dict(spec.record.headers),
        header_column=spec.record.headers if isinstance(spec.record.headers, str) else None,
        timestamp=spec.record.timestamp,
        partition=spec.record.partition,
    )


def spark_conf(spec: Spec) -> dict[str, str]:
    """Return the spec's Spark settings."""
    return {**generations.spark_conf(spec.defaults_of), **spec.spark.conf}


def spark_settings(
    spec: Spec,
    client: ClientSettings,
    scan: Scan,
    check: Callable[[], None],
    log_file: Path | None,
    note: Callable[[str], None] = to_nobody,
) -> SparkSettings:
    """Make the settings. Spark's output goes to `log_file`, None: stderr; `note` takes one line for the user."""
    master = site.spark_master(spec, session.submitted_master() if spec.spark.master is None else None)
    site.refuse_embedded_elsewhere(spec, master)
    return SparkSettings(
        job=spec.name,
        master=master,
        conf=spark_conf(spec),
        records=record_settings(spec),
        scan=scan,
        client=client,
        partitioner=spec.sink.partitioner,
        prefix=spec.sink.transactional_id_prefix,
        check=check,
        log_file=log_file,
        executor_wait_s=spec.spark.executor_wait,
        note=note,
    )
