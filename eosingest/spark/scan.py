"""Which splits Spark will read, read back from the plan that it will execute, and that the plan is narrow.

Spark drops listed files without a word in some cases, and packs the splits as it likes: so the driver asks. Between
read.py, which makes the DataFrame, and the task's table of splits. Reached through py4j: nothing of it is public API
of pyspark, and tests hold it to each supported version.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pyspark.sql import DataFrame

from eosingest.checksum import signed_hash
from eosingest.errors import ChangedError, FatalError, SpecError
from eosingest.plan import Plan
from eosingest.sources.files import metadata_file_path
from eosingest.task_contract import TaskSplit

# What a plan may hold so that each row comes from one row, in order. The list is of what is allowed.
_NARROW = frozenset(
    {
        "ColumnarToRowExec",
        "FileSourceScanExec",
        "FilterExec",
        "GenerateExec",
        "InputAdapter",
        "ProjectExec",
        "WholeStageCodegenExec",
    }
)
_PIECE = re.compile(r"path: file://(\S+), range: (\d+)-(\d+), partition values: ")


class Piece(NamedTuple):
    """A split as Spark has it: path as in `_metadata.file_path` without its scheme, start and length in bytes."""

    path: str
    start: int
    length: int


def check_narrow(frame: DataFrame) -> None:
    """Raise SpecError unless every row of the frame is made from one row of the source, the same way each time."""
    execution = frame._jdf.queryExecution()
    for node in _nodes(execution.executedPlan()):
        name = node.getClass().getSimpleName()
        if name not in _NARROW:
            raise SpecError(
                f"transform and record may only compute each record from its own row; Spark would need {name}",
                code="not-narrow",
                hint="aggregates, windows, joins and subqueries are not possible here: prepare the data before",
            )
    if not execution.executedPlan().subqueriesAll().isEmpty():
        raise SpecError("transform and record may not hold subqueries", code="not-narrow")
    if not execution.analyzed().deterministic():
        raise SpecError(
            "transform or record holds an expression that Spark calls non-deterministic",
            code="not-deterministic",
            hint="a retried split must give the same bytes again",
        )


def generates_rows(frame: DataFrame) -> bool:
    """Say whether the frame holds a generator such as `explode`, which may make no row of one."""
    nodes = _nodes(frame._jdf.queryExecution().executedPlan())
    return any(node.getClass().getSimpleName() == "GenerateExec" for node in nodes)


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    children = plan.children()
    for index in range(children.size()):
        yield from _nodes(children.apply(index))


def partitions(frame: DataFrame) -> list[list[Piece]]:
    """Return the splits of each of Spark's file partitions, in the order of reading; empty where there is no scan."""
    jvm: Any = frame.sparkSession._jvm
    leaves = frame._jdf.queryExecution().executedPlan().collectLeaves()
    scans = [leaves.apply(index) for index in range(leaves.size())]
    if [scan.getClass().getSimpleName() for scan in scans] != ["FileSourceScanExec"]:
        return []
    found = scans[0].inputRDD().filePartitions()
    texts = (jvm.scala.runtime.ScalaRunTime.stringOf(found.apply(index).files()) for index in range(found.size()))
    return [
        [Piece(path, int(start), int(end) - int(start)) for path, start, end in _PIECE.findall(text)] for text in texts
    ]


def task_splits(plan: Plan, whole: DataFrame, frame: DataFrame) -> tuple[dict[int, TaskSplit], int]:
    """Return the planned splits by the hash that their rows carry, and the number of Spark's file partitions.

    `whole` is the frame before filters: every planned split must be in its plan. In the plan of `frame`, which is
    executed, a filter on folder columns may have left files out; none may be there twice. Raises ChangedError where a
    file is not as it was planned, FatalError where two hashes are equal.
    """
    executed = partitions(frame)
    pieces = [piece for partition in executed for piece in partition]
    if len(set(pieces)) != len(pieces):
        raise FatalError("Spark would read a split twice", code="split-met-twice", hint="nothing was sent")
    paths = {entry.file.path: metadata_file_path(entry.file.path) for entry in plan.pending_files}
    _refuse_missing(plan, paths, set(pieces), whole)
    by_hash: dict[int, TaskSplit] = {}
    for entry in plan.pending_files:
        file, uri = entry.file, paths[entry.file.path].encode()
        for planned in (*entry.pending, *entry.skipped):
            split = planned.split
            key = signed_hash((uri, split.start, file.length, file.mtime_ms * 1000))
            if key in by_hash:
                raise FatalError(f"the hashes of two splits are equal ({split.file})", code="hash-collision")
            by_hash[key] = TaskSplit(split.file, split.start, split.length, planned.fingerprint, planned.committed)
    return by_hash, len(executed)


def _refuse_missing(plan: Plan, paths: Mapping[str, str], executed: set[Piece], whole: DataFrame) -> None:
    """Every planned split must be one that Spark reads, or would read if no filter spared it the file."""
    planned = {
        Piece(paths[entry.file.path].removeprefix("file:"), pending.split.start, pending.split.length): entry.file.name
        for entry in plan.pending_files
        for pending in entry.pending
    }
    missing = planned.keys() - executed
    if missing:
        missing -= {piece for partition in partitions(whole) for piece in partition}
    if missing:
        names = sorted({planned[piece] for piece in missing})
        raise ChangedError(
            f"{', '.join(names[:10])}: Spark does not see the splits that were planned: the file changed after it was"
            " listed",
            code="changed-while-read",
            hint="nothing was sent; run again once nothing writes to the source any more (source.min_age)",
        )
