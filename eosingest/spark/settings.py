"""From a Spec to what Spark is started with and what it reads: for the launcher of a run and for an audit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from eosingest.kafka.config import ClientSettings
from eosingest.sources.files.source import FileSource
from eosingest.spark import session, site
from eosingest.spark.job import SparkSettings, to_nobody
from eosingest.spark.record_columns import ReadSettings
from eosingest.spec import Spec, generations


def spark_settings(
    spec: Spec,
    client: ClientSettings,
    source: FileSource,
    check: Callable[[], None],
    log_file: Path | None,
    note: Callable[[str], None] = to_nobody,
) -> SparkSettings:
    """Make the settings. `log_file` takes Spark's own output, None leaves it on stderr; `note` a line for who watches."""
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
        partition=spec.record.partition,
    )
    master = site.spark_master(spec, session.submitted_master() if spec.spark.master is None else None)
    site.refuse_embedded_elsewhere(spec, master)
    return SparkSettings(
        job=spec.name,
        master=master,
        conf={**generations.spark_conf(spec.defaults_of), **spec.spark.conf},
        read=read,
        base_path=lambda plan: source.partition_base(entry.file for entry in plan.files),
        client=client,
        partitioner=spec.sink.partitioner,
        prefix=spec.sink.transactional_id_prefix,
        check=check,
        log_file=log_file,
        executor_wait_s=spec.spark.executor_wait,
        note=note,
    )
