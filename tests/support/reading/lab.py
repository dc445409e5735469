"""The reading path alone, without a broker: files in, record values out, in one warm Spark session for many cases.

What a run does with its files is done here in the same order and by the same functions: options, listing, plan, inspection,
then lines that tasks read themselves, or rows for Spark SQL. `without_spark` goes as far as no JVM is needed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from eosingest.errors import FatalError, SpecError
from eosingest.protocol.plan import Plan, make_plan
from eosingest.protocol.task_contract import SplitEnd
from eosingest.sources.files.formats import options as file_options
from eosingest.sources.files.formats.registry import FORMATS
from eosingest.sources.files.formats.whole import is_one_value
from eosingest.sources.files.reading.avro_scan import AvroScan
from eosingest.sources.files.reading.csv_scan import CsvScan
from eosingest.sources.files.reading.file_scan import FileScan
from eosingest.sources.files.reading.json_scan import JsonScan
from eosingest.sources.files.reading.orc_scan import OrcScan
from eosingest.sources.files.reading.parquet_scan import ParquetScan
from eosingest.sources.files.reading.read_settings import ReadSettings
from eosingest.sources.files.reading.text_reader import LINE
from eosingest.sources.files.reading.text_scan import TextScan
from eosingest.sources.files.reading.value_scan import ValueScan
from eosingest.sources.files.reading.xml_scan import XmlScan
from eosingest.sources.files.source import FileSource
from eosingest.spark import causes, failures, python_scan
from eosingest.spark.direct import DirectInputs
from eosingest.spark.record_columns import record_frame
from eosingest.spark.record_settings import CORRUPT, SPLIT
from eosingest.spark.scan import Direct, tasks_of
from tests.support.reading.independent import plain
from tests.support.warm_spark import warm_spark

SPLIT_SIZE = 32 << 20
_LONGEST = 64 << 20
SCANS: Mapping[str, type[FileScan]] = {
    "avro": AvroScan,
    "csv": CsvScan,
    "json": JsonScan,
    "orc": OrcScan,
    "parquet": ParquetScan,
    "text": TextScan,
    "binaryFile": ValueScan,
    "xml": XmlScan,
}


@dataclass(frozen=True)
class Asked:
    """Some files, and how a spec says that they are to be read."""

    format: str
    files: Mapping[str, bytes]
    value: str
    options: Mapping[str, str] = field(default_factory=dict)
    schema: str | None = None
    where: str | None = None
    split_size: int = SPLIT_SIZE
    compression: str | None = None


@dataclass(frozen=True)
class Pending:
    """What goes through Spark SQL: `batch` is equal for what may be read together."""

    read: ReadSettings
    plan: Plan

    @property
    def needs_no_jvm(self) -> bool:
        """Say whether its schema can be parsed without one."""
        return self.read.format == "xml"

    @property
    def scan(self) -> FileScan:
        return scan_of(self.read)

    def rows(self) -> list[Any]:
        """Return what Python's reader gives of the files, in this process and without Spark, as records have it in JSON;
        lines of text as bytes.

        Raises FatalError for a corrupt row.
        """
        reader = self.scan.of(self.plan).reader
        batches = (batch for split in python_scan.planned_splits(self.plan) for batch in reader.read(split, None))
        if self.read.format == "text":  # which may be no UTF-8
            return [line for batch in batches for line in batch.column(LINE).view(pa.binary()).to_pylist()]
        found = [_as_json(row, pa.struct(list(batch.schema))) for batch in batches for row in batch.to_pylist()]
        corrupt = [row.pop(CORRUPT, None) for row in found]
        if any(text is not None for text in corrupt):
            raise FatalError("a corrupt row", code="corrupt-row")
        return found

    @property
    def batch(self) -> str:
        return f"{self.read} {self.plan.split_size} {self.scan.folders(self.plan)}"


def scan_of(read: ReadSettings) -> FileScan:
    """Return how files are read with these settings."""
    return (ValueScan if is_one_value(read.format, read.options) else SCANS[read.format])(read, read)


def _as_json(value: Any, kind: pa.DataType) -> Any:
    """Return a value of Arrow's as JSON has it: a float of 32 bits as the shortest text that means it."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {field.name: _as_json(value[field.name], field.type) for field in kind}
    if pa.types.is_list(kind):
        return [_as_json(each, kind.value_type) for each in value]
    return plain(float(str(np.float32(value))) if pa.types.is_float32(kind) else value)


def without_spark(asked: Asked, folder: Path) -> list[bytes | None] | Pending:
    """Write the files into a new folder, and read them as far as no JVM is needed. Raises what a run ends with.

    The folder's name is part of the files' identity, so that those of many cases are told apart.
    """
    for name, content in asked.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    refused = list(file_options.refused_options(asked.format, asked.options, has_schema=asked.schema is not None))
    if refused:
        raise SpecError(f"source.options: {refused}")
    read = settings_of(asked)
    source = FileSource(
        format=asked.format,
        paths=[folder.name],
        directory=folder.parent,
        root=None,
        min_age_s=0,
        options=asked.options,
        compression=asked.compression,
    )
    plan = make_plan(source, {}, asked.split_size, source.plan())
    if not plan.pending_items:
        return []
    pending = Pending(read, plan)
    pending.scan.inspect(tasks_of(None), plan)
    direct = pending.scan.direct(plan) if asked.format in ("text", "binaryFile") else None
    return pending if direct is None else direct_values(direct)


def settings_of(asked: Asked) -> ReadSettings:
    """Return the settings with which a run reads the files."""
    options = dict(asked.options)
    options.update(FORMATS[asked.format].defaults_of(options))
    return ReadSettings(
        format=asked.format,
        options=dict(options),
        schema=asked.schema,
        where=asked.where,
        select=("*",),
        key=None,
        value=asked.value,
        headers={},
        timestamp=None,
    )


def plan_of(folder: Path, format: str, split_size: int = SPLIT_SIZE) -> Plan:
    """Return the plan of all files in a folder."""
    source = FileSource(format=format, paths=["*"], directory=folder, root=None, min_age_s=0)
    return make_plan(source, {}, split_size, source.plan())


def direct_values(direct: Direct) -> list[bytes | None]:
    """Return the values of the records that tasks make without Spark SQL."""
    values: list[bytes | None] = []
    for item in DirectInputs(direct.reader, direct.splits, _LONGEST)._items(lambda split: None):
        if not isinstance(item, SplitEnd):
            values += item.records.values
    return values


@dataclass
class Lab:
    """One Spark for the tests of a module."""

    spark: SparkSession
    folder: Path
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def new_folder(self) -> Path:
        folder = self.folder / str(next(self.numbers))
        folder.mkdir()
        return folder

    def values(
        self,
        format: str,
        data: bytes | Mapping[str, bytes],
        value: str = "to_json(struct(*))",
        *,
        split_size: int = SPLIT_SIZE,
        **settings: Any,
    ) -> list[bytes | None]:
        """Return the values of the records in the order of the files; a corrupt row raises ValueError with its text."""
        folder = self.new_folder()
        for name, content in ({f"a.{format}": data} if isinstance(data, bytes) else data).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        options = settings.pop("options", {})
        schema = settings.pop("schema", None)
        read = ReadSettings(
            format=format,
            options=dict(options),
            schema=schema,
            value=value,
            **{"where": None, "select": ("*",), "key": None, "headers": {}, "timestamp": None, **settings},
        )
        source = FileSource(
            format=format, paths=[str(folder)], directory=folder, root=None, min_age_s=0, options=options
        )
        plan = make_plan(source, {}, split_size, source.plan())
        pending = Pending(read, plan)
        pending.scan.inspect(tasks_of(None), plan)
        ((rows, corrupt),) = self.read([pending])
        if corrupt:
            raise ValueError(f"corrupt row: {corrupt[0]!r}")
        return rows

    def read(self, together: Sequence[Pending]) -> list[tuple[list[bytes | None], list[bytes]]]:
        """Have Spark read what may be read together; return the values and the corrupt rows of each, in order."""
        first = together[0]
        plan = replace(first.plan, items=tuple(entry for each in together for entry in each.plan.items))
        frame = record_frame(first.scan.frame(self.spark, plan, None, 1), first.read)
        table, _ = frame.source.verified(frame.records)
        splits = {split.key: table[split.key] for split in python_scan.planned_splits(plan)}
        by_split: dict[int, list[Any]] = {key: [] for key in splits}
        for row in _collected(frame.records):
            by_split[row[SPLIT]].append(row)
        found = []
        for each in together:
            names = {entry.item.name for entry in each.plan.items}
            rows = [row for key, split in splits.items() if split.split.item in names for row in by_split[key]]
            values = [None if row["value"] is None else bytes(row["value"]) for row in rows]
            found.append((values, [bytes(row[CORRUPT]) for row in rows if CORRUPT in row and row[CORRUPT] is not None]))
        return found


def _collected(records: DataFrame) -> list[Any]:
    """Return all columns, or Spark would not compute some. Raises the error of a reader in a worker as it was."""
    try:
        return records.coalesce(1).collect()
    except failures.FROM_THE_JVM as error:
        raise failures.by_a_reader(causes.text_of(error)) or error from error


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Start Spark with the settings that a run has."""
    with warm_spark() as spark:
        yield Lab(spark, tmp_path_factory.mktemp("lab"))
