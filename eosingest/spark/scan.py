"""What a kind of source says about how it is read: by Spark (`Scan.frame`), or by the tasks themselves (`Scan.direct`).

    Scan ─▶ SplitFrame: the source's rows, and which split each is of ─▶ record_columns.py ─▶ FrameReading
      └──▶ Direct: planned splits, and who reads them ───────────────────────────────────────▶ DirectReading

The launcher (job.py), previews and audits read by these; nothing in spark/ knows what a source is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import Column, DataFrame, SparkSession

from eosingest.protocol.plan import Plan, PlannedSplit
from eosingest.spark.direct import DirectReader, DirectSplit


class SplitFrame(Protocol):
    """The rows of a plan's splits, before the spec makes anything of them; those of a split come in its order."""

    @property
    def rows(self) -> DataFrame:
        """The columns of the source; record_columns.CORRUPT too, where a row may be one that its reader cannot read."""

    @property
    def visible(self) -> Sequence[str]:
        """The columns that expressions may name."""

    @property
    def schema(self) -> str:
        """The visible columns with their types, as DDL."""

    @property
    def split(self) -> Column:
        """The hash of the split that a row is of (BIGINT); computed from `rows`."""

    @property
    def split_last(self) -> bool:
        """Whether `split` is to be computed behind all expressions, since Spark moves no filter below it."""

    def fitted(self, records: DataFrame) -> SplitFrame:
        """Return the frame to make the records of, which were made of this one: Spark may not execute every plan."""

    def verified(self, records: DataFrame) -> tuple[Mapping[int, PlannedSplit], int]:
        """Return the planned splits by the hashes in their rows, and in how many partitions Spark will read them.

        Read back from the plan that is executed: each planned split is in it exactly once, or without any row.
        Raises ChangedError where the source is not what was planned.
        """


@dataclass(frozen=True)
class Direct:
    """What tasks read themselves: the planned splits, done ones too, their reader, and their columns as DDL."""

    reader: DirectReader
    splits: Sequence[DirectSplit]
    schema: str


@dataclass(frozen=True)
class Apart:
    """Rows that an audit reads by another reader: split and hash of each record, and the splits, as in `SplitFrame`."""

    hashes: DataFrame
    splits: Mapping[int, PlannedSplit]


class Scan(Protocol):
    """How a source is read. Every method may raise the errors of errors.py, each naming what of the source it speaks of."""

    @property
    def scan_nodes(self) -> frozenset[str]:
        """The nodes of Spark's physical plans by which it may be read."""

    def spark_conf(self, split_size: int) -> Mapping[str, str]:
        """Return the settings of Spark that its rows rest on; they are set over the user's, and read back."""

    def direct(self, plan: Plan) -> Direct | None:
        """Say how tasks read the pending splits themselves, None where Spark is to read them."""

    def inspect(self, context: Any, plan: Plan, *, direct: bool, slots: int) -> None:
        """Look for what readers would misread, before anything is sent. `slots`: how many tasks run at a time."""

    def refuse_outgrown(self, spark: SparkSession, plan: Plan, pinned: str) -> None:
        """Raise ChangedError where the pinned schema (DDL), if it was inferred, does not take what the plan holds now."""

    def frame(self, spark: SparkSession, plan: Plan, schema: str | None, most_tasks: int) -> SplitFrame:
        """Return the rows of the pending splits, and perhaps of done ones beside them.

        `schema`: the pinned one, as DDL. `most_tasks`: how many tasks may read them.
        """

    def apart(
        self, spark: SparkSession, plan: Plan, slots: int, *, by_another_reader: bool
    ) -> tuple[Plan, Apart | None]:
        """Return what of the plan an audit has Spark read, and what it reads otherwise.

        `by_another_reader`: than the run, where there is one; else only what Spark cannot read is apart.
        """

    def blamed(self, plan: Plan, text: str) -> str:
        """Name the item that an error of Spark speaks of, or all that it may speak of."""
