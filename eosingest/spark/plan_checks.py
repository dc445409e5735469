"""Checks that Spark's plan is narrow (no shuffle) and deterministic.

For the plans that record_columns.py makes. The plan is read through py4j, by Spark's internal API; tests check it against the
pinned pyspark.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame

from eosingest.errors import SpecError

# The nodes that read the source (python_scan.py).
_READ = frozenset({"RangeExec", "MapInArrowExec"})
# The only other nodes that a plan may have: they compute each row from one row, and keep their order.
_NARROW = frozenset(
    {"ColumnarToRowExec", "FilterExec", "GenerateExec", "InputAdapter", "ProjectExec", "WholeStageCodegenExec"}
)


def check_narrow(frame: DataFrame) -> None:
    """Raise SpecError unless every row of the frame is made from one row of the source."""
    execution = frame._jdf.queryExecution()
    for node in nodes_of(execution.executedPlan()):
        name = node.getClass().getSimpleName()
        if name not in _NARROW | _READ:
            raise SpecError(
                f"transform and record may only compute each record from its own row; Spark would need {name}",
                code="not-narrow",
                hint="aggregates, windows, joins and subqueries are not possible here: prepare the data before",
            )
    if not execution.executedPlan().subqueriesAll().isEmpty():
        raise SpecError("transform and record may not hold subqueries", code="not-narrow")


def check_deterministic(frame: DataFrame) -> None:
    """Raise SpecError unless the frame gives the same rows each time that it is computed."""
    if not frame._jdf.queryExecution().analyzed().deterministic():
        raise SpecError(
            "transform or record holds an expression that Spark calls non-deterministic",
            code="not-deterministic",
            hint="a retried split must give the same bytes again",
        )


def generates_rows(frame: DataFrame) -> bool:
    """Say whether the frame has a generator such as `explode`, which may drop a row."""
    nodes = nodes_of(frame._jdf.queryExecution().analyzed())
    return any(node.getClass().getSimpleName() == "Generate" for node in nodes)


def referenced(frame: DataFrame, rows: DataFrame) -> set[str]:
    """Return the columns of `rows` that the optimized plan of `frame` refers to, above its leaves and what Python reads.

    A plan names a column as the expression does: `id` for a column ID, which only the number of the attribute shows.
    """
    plan = frame._jdf.queryExecution().optimizedPlan()
    used = {
        attribute
        for node in nodes_of(plan)
        if not node.children().isEmpty() and node.getClass().getSimpleName() != "MapInArrow"
        for attribute in _attributes(node.references().toSeq())
    }
    numbers, names = {number for _, number in used}, {name.lower() for name, _ in used}
    output = _attributes(rows._jdf.queryExecution().analyzed().output())
    return {
        column
        for column, (name, number) in zip(rows.columns, output, strict=True)
        if number in numbers or name.lower() in names
    }


def _attributes(attributes: Any) -> list[tuple[str, str]]:
    """Return names and numbers of attributes, which the JVM writes as `name#12L`: one call in place of two for each."""
    count = attributes.size()
    texts = str(attributes.mkString("\0")).split("\0") if count else []
    if len(texts) != count:  # a name has this character
        texts = [attributes.apply(place).toString() for place in range(count)]
    parts = (text.rpartition("#") for text in texts)
    return [(name, number.rstrip("L")) for name, _, number in parts]


def nodes_of(plan: Any) -> Iterator[Any]:
    """Yield a node of a plan and all its descendants."""
    yield plan
    children = plan.children()
    for index in range(children.size()):
        yield from nodes_of(children.apply(index))
