"""Files of lines as an audit reads them where Spark's readers cannot: by the reader of the run, its only one.

Beside read.py for an audit of the source (auditor.py): a run that sends lines as they are reads .lz4, every .zst and .gz
with zeros behind it in its tasks. Everything else is read by Spark, which is not what the run read it with.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from eosingest import checksum
from eosingest.errors import EosingestError
from eosingest.plan import Plan
from eosingest.sources.base import SourceFile
from eosingest.sources.codecs import PIECE_BYTES, DamagedError, codec_of, pieces
from eosingest.sources.inspection import inspect
from eosingest.sources.lines import Bounds, is_compressed, open_file, read_lines
from eosingest.spark.line_inputs import LineSplit
from eosingest.spark.read import CHECKSUM, SPLIT

_SCHEMA = f"{SPLIT} BIGINT, {CHECKSUM} BIGINT"


def parted(context: Any, plan: Plan) -> tuple[Plan, Plan]:
    """Part a plan of lines in what Spark reads, and what it cannot; a file that nobody can read is left to Spark to refuse."""
    compressed = [entry.file for entry in plan.files if is_compressed(entry.file.path)]
    if not compressed:
        return plan, replace(plan, files=())
    tasks = min(len(compressed), context.defaultParallelism)
    apart = set(context.parallelize(compressed, tasks).mapPartitions(_read_by_lines_alone).collect())
    return (
        replace(plan, files=tuple(entry for entry in plan.files if entry.file.name not in apart)),
        replace(plan, files=tuple(entry for entry in plan.files if entry.file.name in apart)),
    )


def _read_by_lines_alone(files: Iterable[SourceFile]) -> Iterator[str]:
    for file in files:
        if (codec_of(file.path) == "lz4" or not _read_by_spark(file)) and _whole(file):
            yield file.name


def _read_by_spark(file: SourceFile) -> bool:
    try:
        if codec_of(file.path) in ("gzip", "deflate"):  # what Hadoop tells itself the inspection passes over
            with open(file.path, "rb") as opened:
                for _ in pieces(opened, file.path):
                    pass
            return True
        return inspect(file, "text", {}) is None
    except DamagedError:
        return False
    except EosingestError:  # Spark says it in its own way
        return True


def _whole(file: SourceFile) -> bool:
    try:
        with open_file(file.path) as opened:
            while opened.read(PIECE_BYTES):
                pass
    except (DamagedError, EOFError, zlib.error, gzip.BadGzipFile, OSError):
        return False
    return True


def line_hashes(spark: SparkSession, splits: Sequence[LineSplit], separator: int | None) -> DataFrame:
    """Return split and hash of each line of whole files, file by file."""
    numbers = spark.range(0, len(splits), 1, len(splits))
    return numbers.mapInArrow(_Hashes(tuple(splits), separator), _SCHEMA)


@dataclass(frozen=True)
class _Hashes:
    """What each task reads. Pickled into the tasks."""

    splits: tuple[LineSplit, ...]
    separator: int | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the hashes of the files whose numbers come."""
        for batch in batches:
            for number in batch.column(0).to_numpy():
                yield from self._of(self.splits[number])

    def _of(self, split: LineSplit) -> Iterator[pa.RecordBatch]:
        with open_file(split.file.path) as file:
            for lines in read_lines(file, Bounds(start=0, end=None), self.separator):
                keys = np.full(len(lines), split.key, np.int64)
                hashes = np.asarray(checksum.value_hashes(lines.values(self.separator)), np.int64)
                yield pa.RecordBatch.from_arrays([pa.array(keys), pa.array(hashes)], names=[SPLIT, CHECKSUM])
