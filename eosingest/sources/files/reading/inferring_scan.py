"""Implements the common part of scans of JSON and CSV: a schema that is not given is inferred from all rows.

split ─▶ a task's function: what it has seen ─▶ merged by file ─▶ the schema, or the check of the pinned one
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from pyspark.sql.types import StructType

from eosingest.errors import SpecError
from eosingest.protocol.plan import Plan
from eosingest.sources.files.reading.file_scan import FileScan
from eosingest.sources.files.reading.schema_drift import too_much_to_infer_again
from eosingest.sources.files.reading.schema_types import columns_ddl
from eosingest.spark.python_scan import PythonSplit, planned_splits
from eosingest.spark.scan import Tasks

_INFERENCE_MAX_BYTES = 1 << 30
_Seen = TypeVar("_Seen")


@dataclass(frozen=True)
class InferringScan(FileScan):
    """How such files are read."""

    @property
    def reads_all_to_infer(self) -> bool:
        """Whether the spec gives no schema."""
        return self.read.schema is None

    def refuse_to_infer(self, plan: Plan, first: Callable[[PythonSplit], StructType]) -> None:
        """Raise SpecError if the pending files are too large; its hint has the `first` columns of a split."""
        if plan.size_to_read <= _INFERENCE_MAX_BYTES:
            return
        columns = columns_ddl(first(planned_splits(plan)[0]))
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
        tasks: Tasks,
        plan: Plan,
        function: Callable[[Iterable[PythonSplit]], Iterable[tuple[str, _Seen]]],
        merge: Callable[[_Seen, _Seen], _Seen],
    ) -> dict[str, _Seen]:
        """Return what the tasks' `function` has seen in each pending file."""
        found: dict[str, _Seen] = {}
        for name, seen in tasks(function, planned_splits(plan)):
            found[name] = merge(found[name], seen) if name in found else seen
        return found
