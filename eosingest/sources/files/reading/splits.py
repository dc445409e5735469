"""Reads back the splits of files from the plan that Spark will execute, and checks them.

Spark drops listed files silently in some cases, and packs splits into partitions as it likes: so the driver checks. Between
rows.py, which makes the DataFrame, and the task's split table. It uses py4j: none of this is public API of pyspark, and tests
check it with the pinned version.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from pyspark.sql import DataFrame

from eosingest.errors import ChangedError, FatalError, listed
from eosingest.protocol.plan import Plan, PlannedSplit
from eosingest.protocol.split_table import SplitTable
from eosingest.records.checksum import signed_hash
from eosingest.sources.files.cuts import file_split, split_of
from eosingest.sources.files.listing.names import metadata_file_path
from eosingest.sources.files.listing.source_file import SourceFile, as_file
from eosingest.sources.files.reading.planned_files import pending_files

SCAN_NODES = frozenset({"FileSourceScanExec"})
# The start of the path of a row's file in `_metadata.file_path`, and in `input_file_name()`.
METADATA = "file:"
BLOCK = "file://"
_PIECE = re.compile(r"path: (?:file://)?(\S+), range: (\d+)-(\d+), partition values: ")
# Hadoop's `FileStatus` as a string. Greedy: a path may hold any text, so the last match of the text after it is the right one.
_FILE_STATUS = re.compile(
    r"\w+\{path=file:(?P<path>.*); isDirectory=false; length=(?P<length>\d+); replication=\d+; blocksize=\d+; "
    r"modification_time=(?P<mtime>-?\d+); .*\}",
    re.DOTALL,
)


class Piece(NamedTuple):
    """A split in Spark's plan: path as in `_metadata.file_path`, a local one without its scheme; start and length in bytes."""

    path: str
    start: int
    length: int


def file_columns(frame: DataFrame) -> list[str]:
    """Return the columns that are read from the files themselves, not from the names of their folders."""
    relation = frame._jdf.queryExecution().analyzed().collectLeaves().apply(0).relation()
    folders = set(_fields(relation.partitionSchema()))
    return [name for name in _fields(relation.dataSchema()) if name not in folders]


def _fields(schema: Any) -> list[str]:
    """Return the names of a schema's fields: one call into the JVM, in place of one for each."""
    return [field["name"] for field in json.loads(schema.json())["fields"]]


def partitions(frame: DataFrame) -> list[list[Piece]]:
    """Return the splits of each of Spark's file partitions, in the order of reading; empty where the plan has no file scan."""
    jvm: Any = frame.sparkSession._jvm
    leaves = frame._jdf.queryExecution().executedPlan().collectLeaves()
    scans = [leaves.apply(index) for index in range(leaves.size())]
    if [scan.getClass().getSimpleName() for scan in scans] != list(SCAN_NODES):
        return []
    found = scans[0].inputRDD().filePartitions()
    texts = (jvm.scala.runtime.ScalaRunTime.stringOf(found.apply(index).files()) for index in range(found.size()))
    return [
        [Piece(path, int(start), int(end) - int(start)) for path, start, end in _PIECE.findall(text)] for text in texts
    ]


def task_splits(plan: Plan, whole: DataFrame, frame: DataFrame, scheme: str) -> tuple[SplitTable, int]:
    """Return the planned splits by the hash in their rows, and the number of Spark's file partitions.

    `whole` is the frame before filters: every planned split must be in its plan, and Spark must have listed every file as it
    was planned. In the plan of `frame`, which is executed, a filter on folder columns may have left files out; no split may
    occur twice. `scheme` is as in `planned_splits`. Raises ChangedError if a file is not as it was planned, FatalError if a
    split occurs twice or two hashes are equal.
    """
    executed = partitions(frame)
    pieces = [piece for partition in executed for piece in partition]
    if len(set(pieces)) != len(pieces):
        raise FatalError("Spark would read a split twice", code="split-met-twice", hint="nothing was sent")
    paths = {file.path: metadata_file_path(file.path) for file in pending_files(plan)}
    _refuse_missing(plan, paths, set(pieces), whole)
    _refuse_changed(plan, whole)
    return SplitTable({key: planned for key, _, planned in planned_splits(plan, scheme)}, split_of), len(executed)


def planned_splits(plan: Plan, scheme: str) -> list[tuple[int, SourceFile, PlannedSplit]]:
    """Return hash, file and split of everything to read, in the plan's order; the hash is the one in the rows of the split.

    It covers the path as a row spells it, a local one after `scheme` (METADATA or BLOCK), and the split's start in bytes.
    Raises FatalError if two hashes are equal.
    """
    found: dict[int, tuple[int, SourceFile, PlannedSplit]] = {}
    for entry in plan.pending_items:
        file = as_file(entry.item)
        uri = _uri_in_rows(file, scheme).encode()
        for planned in sorted((*entry.pending, *entry.skipped), key=lambda planned: file_split(planned.split).start):
            split = file_split(planned.split)
            key = signed_hash((uri, split.start))
            if key in found:
                raise FatalError(f"the hashes of two splits are equal ({split.file})", code="hash-collision")
            found[key] = (key, file, planned)
    return list(found.values())


def _uri_in_rows(file: SourceFile, scheme: str) -> str:
    spelled = metadata_file_path(file.path)
    return scheme + spelled.removeprefix(METADATA) if spelled.startswith(METADATA) else spelled


def _refuse_missing(plan: Plan, paths: Mapping[str, str], executed: set[Piece], whole: DataFrame) -> None:
    """Raise ChangedError if a planned split is neither executed nor in the plan of `whole`, which has no filters."""
    planned = {
        Piece(paths[as_file(entry.item).path].removeprefix("file:"), split.start, split.length): entry.item.name
        for entry in plan.pending_items
        for split in (file_split(planned.split) for planned in entry.pending)
    }
    missing = planned.keys() - executed
    if missing:
        missing -= {piece for partition in partitions(whole) for piece in partition}
    if missing:
        raise _changed({planned[piece] for piece in missing}, "Spark does not see the splits that were planned")


def _refuse_changed(plan: Plan, whole: DataFrame) -> None:
    """Raise ChangedError if Spark's own listing has a planned file with another length or modification time.

    The JVM gives one string for all files, joined by zero bytes, which no name holds: a call per file takes 20 s for 100,000.
    """
    if all(file.etag for file in pending_files(plan)):
        return  # Spark lists no store: its index is the plan's (spark_reader.py)
    listing = whole._jdf.queryExecution().analyzed().collectLeaves().apply(0).relation().location()
    found = map(_FILE_STATUS.fullmatch, listing.allFiles().mkString("\0").split("\0"))
    listed = {status["path"]: (int(status["length"]), int(status["mtime"])) for status in found if status is not None}
    changed = {file.name for file in pending_files(plan) if listed.get(file.path) != (file.length, file.mtime_ms)}
    if changed:
        raise _changed(changed, "Spark found it with another length or modification time")


def _changed(files: set[str], what: str) -> ChangedError:
    return ChangedError(
        f"{listed(sorted(files), 10)}: {what}: the file changed after it was listed",
        code="changed-while-read",
        hint="nothing was sent; run again once nothing writes to the source any more (source.min_age)",
    )
