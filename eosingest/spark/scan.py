"""Defines how a kind of source is read: by Spark (`Scan.frame`), or by the tasks themselves (`Scan.direct`).

    Scan ─▶ SplitFrame: the source's rows, each with its split ───────▶ record_columns.py ─▶ FrameReading
      └──▶ Direct: planned splits, and their reader ─────────────────────────────────────────▶ DirectReading

The launcher (job.py), previews and audits use these protocols; spark/ depends on no kind of source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from pyspark.sql import Column, DataFrame, SparkSession

from eosingest.protocol.plan import Plan, PlannedSplit
from eosingest.spark.corrupt_rows import Why
from eosingest.spark.direct import Confirm, DirectReader, DirectSplit

if TYPE_CHECKING:
    from eosingest.spark.python_scan import PythonScan

# Calls a function, which is pickled, with the items, dealt to so many tasks; returns what it yields.
Tasks: TypeAlias = Callable[[Callable[[Iterable[Any]], Iterable[Any]], Sequence[Any], int], list[Any]]


def tasks_of(context: Any) -> Tasks:
    """Return the tasks of a SparkContext."""
    return lambda function, items, count: context.parallelize(items, count).mapPartitions(function).collect()


class SplitFrame(Protocol):
    """The rows of a plan's splits, before the spec's expressions are applied; the rows of a split are in its order."""

    @property
    def rows(self) -> DataFrame:
        """The source's columns, record_columns.CORRUPT if its reader may meet rows that it cannot parse, and ITEM_COLUMN."""

    @property
    def visible(self) -> Sequence[str]:
        """The columns that expressions may name."""

    @property
    def schema(self) -> str:
        """The visible columns with their types, as DDL."""

    @property
    def split(self) -> Column:
        """The column, over `rows`, with the hash of each row's split (BIGINT)."""

    @property
    def position(self) -> Column | None:
        """The column, over `rows`, with the position of each row (positions.py), None where rows are counted."""

    @property
    def why(self) -> Why | None:
        """See `corrupt_rows.why_of`."""

    def fitted(self, records: DataFrame) -> SplitFrame:
        """Return this frame, or the one to use instead if Spark could not execute the plan of `records`, computed from it."""

    def verified(self, records: DataFrame) -> tuple[Mapping[int, PlannedSplit], int]:
        """Return the planned splits by the hashes in their rows, and the number of partitions that Spark will read.

        Both are read from the plan that is executed, which has each planned split exactly once, except splits without any
        row. Raises ChangedError if the source differs from the plan.
        """


@dataclass(frozen=True)
class Direct:
    """How tasks read the source themselves: the planned splits, done ones too, their reader, and the columns as DDL."""

    reader: DirectReader
    splits: Sequence[DirectSplit]
    schema: str


class Scan(Protocol):
    """How a source is read. Every method may raise the errors of errors.py; each names the item concerned."""

    @property
    def infers_schema(self) -> bool:
        """Whether the schema was inferred, also where tasks read the source themselves: `check_pinned_schema` is needed."""

    def spark_conf(self, split_size: int) -> Mapping[str, str]:
        """Return the Spark settings that reading requires; they override the user's, and are checked in the running Spark."""

    def direct(self, plan: Plan) -> Direct | None:
        """Return how tasks read the pending splits themselves; None if Spark has to read them."""

    def inspect(self, tasks: Tasks, plan: Plan, *, direct: bool, slots: int) -> None:
        """Check, before anything is sent, for data that readers would misread. `slots`: how many of `tasks` run at a time."""

    def check_pinned_schema(self, spark: SparkSession, plan: Plan, pinned: str) -> None:
        """Raise ChangedError if the `pinned` schema (DDL) was inferred and no longer fits the data of the plan."""

    def frame(
        self, spark: SparkSession, plan: Plan, schema: str | None, most_tasks: int, *, resumed: bool = False
    ) -> SplitFrame:
        """Return the rows of the pending splits; rows of done splits may be among them.

        `schema`: the pinned one, as DDL. `most_tasks`: how many tasks may read them. `resumed`: where rows have positions,
        those that are committed may be left out; otherwise each split is read from its first row on.
        """

    def confirm(self, plan: Plan) -> Confirm:
        """Return what a task calls before it commits everything in one transaction: `task_contract.Inputs.confirm`."""

    def for_audit(self) -> Scan:
        """Return the scan by which an audit reads: by another reader than a run's, if the kind has one."""

    @property
    def audit_reader(self) -> str:
        """The name of that other reader; "" if there is only the reader of a run."""


@runtime_checkable
class ReadWithoutSpark(Scan, Protocol):
    """A Scan whose splits can be read without a JVM."""

    def without_spark(self, plan: Plan) -> PythonScan | None:
        """Return the scan of a plan; None if the types of its columns are inferred from its rows."""
