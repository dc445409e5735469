"""Implements the common part of scans of JSON and CSV: a schema that is not given is inferred from all rows.

split ─▶ a task's function: what it has seen ─▶ merged by file ─▶ the schema, or the check of the pinned one
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from eosingest.errors import EosingestError, SpecError
from eosingest.protocol.plan import Plan
from eosingest.sources.files.reading.files_in_python import FilesInPython, ddl_of
from eosingest.sources.files.reading.schema_drift import too_much_to_infer_again
from eosingest.spark.python_scan import PythonScan, PythonSplit, planned_splits
from eosingest.spark.scan import tasks_of
from eosingest.spec.expressions import quote_name

_INFERENCE_MAX_BYTES = 1 << 30
_TASKS_PER_SLOT = 4
_Seen = TypeVar("_Seen")


@dataclass(frozen=True)
class InferringScan(FilesInPython):
    """How such files are read."""

    def without_spark(self, plan: Plan) -> PythonScan | None:
        """See `scan.ReadWithoutSpark`."""
        return None if self.read.schema is None else self.of(plan)

    def refuse_to_infer(self, plan: Plan, first: Callable[[PythonSplit], StructType]) -> None:
        """Raise SpecError if the pending files are too large; its hint has the `first` columns of a split."""
        if plan.size_to_read <= _INFERENCE_MAX_BYTES:
            return
        fields = first(planned_splits(plan)[0]).fields
        columns = ", ".join(f"{quote_name(each.name)} {ddl_of(each.dataType)}" for each in fields)
        raise SpecError(
            f"source.schema is missing, and to infer it the run would read {plan.size_to_read >> 20} MiB twice",
            code="schema-needed",
            hint=f'this is what the first rows look like; check it and put it into the spec:\nschema = "{columns}"',
        )

    def refuse_to_infer_again(self, plan: Plan) -> None:
        """Raise ChangedError if the pending files are too large to infer their schema again."""
        if plan.size_to_read > _INFERENCE_MAX_BYTES:
            raise too_much_to_infer_again()

    def seen_by_file(
        self,
        spark: SparkSession,
        plan: Plan,
        function: Callable[[Iterable[PythonSplit]], Iterable[tuple[str, _Seen] | EosingestError]],
        merge: Callable[[_Seen, _Seen], _Seen],
    ) -> dict[str, _Seen]:
        """Return what the tasks' `function` has seen in each pending file. Raises the first error that it yields."""
        splits = planned_splits(plan)
        count = max(1, min(len(splits), _TASKS_PER_SLOT * spark.sparkContext.defaultParallelism))
        found: dict[str, _Seen] = {}
        for result in tasks_of(spark.sparkContext)(function, splits, count):
            if isinstance(result, EosingestError):
                raise result
            name, seen = result
            found[name] = merge(found[name], seen) if name in found else seen
        return found
