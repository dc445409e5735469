"""Defines how a kind of source is read: its `Scan` returns, for a plan, the columns of the rows and their reader.

    Scan.of(plan) ─▶ PythonScan (python_scan.py) ─▶ Direct: the tasks send what they read     ─▶ DirectReading
                                                └──▶ PythonRows ─▶ record_columns.py: Spark SQL ─▶ FrameReading

The launcher (job.py), previews and audits use this class; spark/ depends on no kind of source.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from pyspark.sql import SparkSession

from eosingest.errors import EosingestError
from eosingest.protocol.plan import Plan
from eosingest.spark.direct import Confirm, Direct, is_constant

if TYPE_CHECKING:  # it imports Kafka's client, which previews do not need
    from eosingest.spark.python_scan import PythonRows, PythonScan

_TASKS_PER_SLOT = 4  # items differ in size: many small tasks end at about the same time
# Calls a function, which is pickled, with the items, dealt to tasks; returns what it yields. Raises the first of its errors.
Tasks: TypeAlias = Callable[[Callable[[Iterable[Any]], Iterable[Any]], Sequence[Any]], list[Any]]


@dataclass(frozen=True)
class ErrorsAsValues:
    """A function of tasks that yields the error that ends it: one that is raised reaches the driver as a text. Pickled."""

    function: Callable[[Iterable[Any]], Iterable[Any]]

    def __call__(self, items: Iterable[Any]) -> Iterator[Any]:
        """Yield what the function yields."""
        try:
            yield from self.function(items)
        except EosingestError as error:
            yield error


def results(found: Iterable[Any]) -> list[Any]:
    """Return what ErrorsAsValues has yielded. Raises the first error."""
    values = list(found)
    for error in (each for each in values if isinstance(each, EosingestError)):
        raise error
    return values


def tasks_of(context: Any, slots: int | None = None) -> Tasks:
    """Return the tasks of a SparkContext. `slots`: how many run at a time, by default its parallelism."""

    def run(function: Callable[[Iterable[Any]], Iterable[Any]], items: Sequence[Any]) -> list[Any]:
        count = min(len(items), _TASKS_PER_SLOT * (slots or context.defaultParallelism))
        return results(context.parallelize(items, max(1, count)).mapPartitions(ErrorsAsValues(function)).collect())

    return run


class Scan(ABC):
    """How a source is read. Every method may raise the errors of errors.py; each names the item concerned.

    `checked_by_reading`: `check --read` reads the source.
    """

    checked_by_reading = False

    @property
    def reads_all_to_infer(self) -> bool:
        """Whether the types of the columns are inferred from all rows, which tasks of Spark read for that."""
        return False

    @property
    def audit_reader(self) -> str:
        """The name of an audit's reader, if that is another one than a run's; "" if there is only the reader of a run."""
        return ""

    @abstractmethod
    def of(self, plan: Plan, schema: str | None = None) -> PythonScan:
        """Return the columns of a plan's rows, and their reader.

        `schema` is the pinned or inferred one, as DDL; a kind may prefer the one that the spec gives.
        """

    def spark_conf(self) -> Mapping[str, str]:
        """Return the Spark settings that reading requires; they override the user's, and are checked in the running Spark."""
        return {}

    def inspect(self, tasks: Tasks, plan: Plan) -> None:  # noqa: B027 - a kind whose columns have types needs none
        """Check, before anything is sent, for data that readers would misread."""

    def inferred(self, tasks: Tasks, plan: Plan) -> str:
        """Return the schema that is inferred from all rows, as DDL: for a kind that has `reads_all_to_infer`."""
        raise NotImplementedError

    def check_pinned_schema(self, tasks: Tasks, plan: Plan, pinned: str) -> None:  # noqa: B027 - of an inferred one only
        """Raise ChangedError if the `pinned` schema (DDL) was inferred and no longer fits the data of the plan."""

    def direct(self, plan: Plan) -> Direct | None:
        """Return how tasks read the pending splits and send them, without Spark SQL; None if the records need that."""
        return None if self.reads_all_to_infer else self.of(plan).direct(plan)

    def frame(
        self, spark: SparkSession, plan: Plan, schema: str | None, most_tasks: int, *, resumed: bool = False
    ) -> PythonRows:
        """Return the rows of the pending splits; see `PythonScan.frame`. `schema`: the pinned one, as DDL."""
        if schema is None and self.reads_all_to_infer:
            schema = self.inferred(tasks_of(spark.sparkContext), plan)
        return self.of(plan, schema).frame(spark, plan, most_tasks, resumed=resumed)

    def confirm(self, plan: Plan) -> Confirm:
        """Return what a task calls before it commits everything in one transaction: `task_contract.Inputs.confirm`."""
        return is_constant

    def for_audit(self) -> Scan:
        """Return the scan by which an audit reads: by another reader than a run's, if the kind has one."""
        return self
