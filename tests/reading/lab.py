"""The reading path alone, without a broker: files in, record values out, in one warm Spark session for many cases."""

from __future__ import annotations

import itertools
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from eosingest.sources.files import FileSource
from eosingest.sources.inspection import error_of, inspect, needs_inspection
from eosingest.spark import session
from eosingest.spark.read import CORRUPT, ReadSettings, record_frame
from eosingest.spec.options import reader_options

SPLIT_SIZE = 32 << 20


@dataclass
class Lab:
    """One Spark for the tests of a module."""

    spark: SparkSession
    folder: Path
    numbers: Iterator[int] = field(default_factory=itertools.count)

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
        folder = self.folder / str(next(self.numbers))
        folder.mkdir()
        for name, content in ({f"a.{format}": data} if isinstance(data, bytes) else data).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        options = settings.pop("options", {})
        schema = settings.pop("schema", None)
        read = ReadSettings(
            format=format,
            options=reader_options(format, options, has_schema=schema is not None),
            schema=schema,
            value=value,
            **{"where": None, "select": ("*",), "key": None, "headers": {}, "timestamp": None, **settings},
        )
        source = FileSource(format=format, paths=[str(folder)], directory=folder, root=None, min_age_s=0)
        files = source.list().files
        plan: Any = SimpleNamespace(
            pending_files=[SimpleNamespace(file=file) for file in files],
            bytes_to_read=sum(file.length for file in files),
            split_size=split_size,
        )
        self.spark.conf.set("spark.sql.files.maxPartitionBytes", str(split_size))
        wrong = [inspect(file, format, read.options, split_size) for file in files if _is_inspected(read, file.path)]
        if any(wrong):
            raise error_of([finding for finding in wrong if finding is not None])
        rows = record_frame(self.spark, read, plan, source.partition_base(files)).records.coalesce(1).collect()
        for row in rows:
            if row[CORRUPT] is not None:
                raise ValueError(f"corrupt row: {bytes(row[CORRUPT])!r}")
        return [None if row["value"] is None else bytes(row["value"]) for row in rows]


def _is_inspected(read: ReadSettings, path: str) -> bool:
    return needs_inspection(read.format, read.options, path)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Start Spark with the settings that a run has."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).disabled = True
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.extraJavaOptions", session.SAME_EVERYWHERE)
    for key, value in {**session.DEFAULTS, **session.required_settings(SPLIT_SIZE)}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    yield Lab(spark, tmp_path_factory.mktemp("lab"))
    spark.stop()
