"""Cutting files: the same (file, start, length) as Spark's file scan makes, computed without a JVM.

Holds for sessions with `spark.sql.files.minPartitionNum=1` and `spark.sql.files.maxPartitionBytes=<split size>`: then
the cuts inside a file depend on that file alone. tests/integration/test_spark_splits.py compares with Spark's plan.
"""

from __future__ import annotations

from eosingest.protocol.source import SourceFile, Split

_COLUMNAR = frozenset({"parquet", "orc"})
# Hadoop's codecs by suffix, which it looks up without regard to case. bzip2 is the only one that can be cut.
_UNSPLITTABLE_SUFFIXES = (".gz", ".deflate", ".snappy", ".lz4", ".zst")


def is_splittable(format: str, path: str) -> bool:
    """Tell whether Spark cuts this file. Parquet and ORC always: they compress inside, whatever the suffix says."""
    return format in _COLUMNAR or not path.lower().endswith(_UNSPLITTABLE_SUFFIXES)


def is_cut_by_codec(path: str) -> bool:
    """Tell whether a compressed text file is cut: of .bz2 only Hadoop knows where a split's rows begin."""
    return path.lower().endswith(".bz2")


def cut(file: SourceFile, split_size: int) -> tuple[Split, ...]:
    """Cut at every multiple of `split_size` bytes; an unsplittable file is one split, an empty one has none."""
    step = split_size if file.splittable else max(file.length, 1)
    return tuple(Split(file.name, start, min(step, file.length - start)) for start in range(0, file.length, step))
