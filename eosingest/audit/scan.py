"""Reads topic and source for an audit, in Spark's tasks: first only sums, and every record's hash if the sums differ.

    topic   ranges of offsets, one share a task ─▶ consume read_committed ─▶ hash in Python ─▶ count and checksum
    source  the same DataFrame that a run sends (record_columns.py) ─▶ split and hash ─▶ count and checksum a split
    both    hashes, grouped ─▶ missing and surplus records, and their places

The topic's hashes are computed in the Python workers: 0.2 µs per record, compared with 1.1 µs for reading it, and less than
passing key and value to the JVM would cost (docs/performance.md).
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.accumulators import Accumulator
from pyspark.sql import DataFrame, SparkSession, Window, functions

from eosingest.audit.receipts import DOUBLED, LOST, Compared, Copies, Found, Missing, Slice
from eosingest.kafka.config import ClientSettings
from eosingest.kafka.topic_reader import TopicReader
from eosingest.protocol.plan import PlannedSplit
from eosingest.protocol.source import SplitId
from eosingest.records import checksum
from eosingest.records.checksum import MODULUS, Totals, record_hashes
from eosingest.records.runs import runs
from eosingest.spark.record_settings import CHECKSUM, METADATA, SPLIT
from eosingest.spark.without_pandas import map_in_arrow

_EXAMPLES = 10
_SUMS = "late BOOLEAN, records BIGINT, checksum STRING"
_SPLIT_SUMS = "split BIGINT, records BIGINT, checksum STRING, metadata STRING"
# A record of the topic (source = 0) or of the source. `at` is partition and offset, or split and row, in one number.
_HASHES = "hash BIGINT, source INT, late INT, at BIGINT"
_PARTITION_BITS = 48
_SPLIT_BITS = 40
_OFFSET_MASK = (1 << _PARTITION_BITS) - 1
_ROW_MASK = (1 << _SPLIT_BITS) - 1
_HASHES_A_PARTITION = 2_000_000
_NAMED_AT_MOST = 100
_UNKNOWN = "unknown"
_LATE_COPY = "late > 0 AND topic > late"  # written after the job was complete, and equal to one of its records


@dataclass(frozen=True)
class ReadTopic:
    """The function for `mapInArrow` over task numbers: a call reads one share of the topic and yields its sums or hashes."""

    topic: str
    client: ClientSettings
    shares: tuple[tuple[Slice, ...], ...]
    patience_s: float
    hashes: bool
    read: Accumulator[int]  # offsets read by finished tasks

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the share. Raises KafkaFailure, upon which Spark retries the task."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver handles a terminal's Ctrl-C
        tasks: list[int] = [task for batch in batches for task in batch.column("id").to_numpy()]
        reader = TopicReader(self.topic, self.client, patience_s=self.patience_s)
        try:
            for part in (part for task in tasks for part in self.shares[task]):
                yield from self._hashes(reader, part) if self.hashes else self._sums(reader, part)
                self.read.add(part.end - part.start)
        finally:
            reader.close()

    def _sums(self, reader: TopicReader, part: Slice) -> Iterator[pa.RecordBatch]:
        records, checksum = 0, 0
        for messages in reader.read(part.partition, part.start, part.end):
            records += len(messages)
            checksum += sum(record_hashes((message.key(), message.value()) for message in messages))
        yield _batch(late=[part.late], records=[records], checksum=[f"{checksum % MODULUS:016x}"])

    def _hashes(self, reader: TopicReader, part: Slice) -> Iterator[pa.RecordBatch]:
        for messages in reader.read(part.partition, part.start, part.end):
            hashes = record_hashes((message.key(), message.value()) for message in messages)
            offsets = np.array([message.offset() for message in messages], dtype=np.int64)
            yield _batch(
                hash=np.array(hashes, dtype=np.uint64).view(np.int64),
                source=np.zeros(len(messages), dtype=np.int32),
                late=np.full(len(messages), part.late, dtype=np.int32),
                at=part.partition << _PARTITION_BITS | offsets,
            )


@dataclass(frozen=True)
class ReadSource:
    """The function for `mapInArrow` over (split, hash) of the source's rows, in their order; with the metadata hash, if any.

    `limits` maps the hash of a split to the number of rows that its receipt covers: None means all; a split that is not in it
    has none. `numbers` maps it to a small number. `read` counts the rows read by finished tasks.
    """

    limits: Mapping[int, int | None]
    numbers: Mapping[int, int]
    hashes: bool
    read: Accumulator[int] | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the sums or hashes of the rows that receipts cover, of this task's splits."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        seen: dict[int, int] = {}
        sums: dict[int, Totals] = {}
        for batch in batches:
            splits = batch.column(SPLIT).to_numpy(zero_copy_only=False)
            hashes = batch.column(CHECKSUM).to_numpy(zero_copy_only=False)
            metadata = batch.column(METADATA).to_numpy(zero_copy_only=False) if METADATA in batch.schema.names else None
            for start, end in runs(splits):
                split = int(splits[start])
                before = seen.get(split, 0)
                seen[split] = before + end - start
                until = start + self._covered(split, before, end - start)
                taken = hashes[start:until]
                if self.hashes and len(taken):
                    yield self._rows(split, before, taken)
                beside = 0 if metadata is None else _sum(metadata[start:until])
                sums[split] = sums.get(split, Totals()) + Totals(len(taken), _sum(taken), beside)
        if self.read is not None:
            self.read.add(sum(total.records for total in sums.values()))
        if not self.hashes:
            yield _batch(
                split=np.array(list(sums), dtype=np.int64),
                records=np.array([total.records for total in sums.values()], dtype=np.int64),
                checksum=[f"{total.checksum:016x}" for total in sums.values()],
                metadata=[f"{total.metadata:016x}" for total in sums.values()],
            )

    def _covered(self, split: int, before: int, rows: int) -> int:
        limit = self.limits.get(split, 0)
        return rows if limit is None else max(0, min(rows, limit - before))

    def _rows(self, split: int, before: int, hashes: Any) -> pa.RecordBatch:
        rows = np.arange(before + 1, before + 1 + len(hashes), dtype=np.int64)
        return _batch(
            hash=hashes,
            source=np.ones(len(hashes), dtype=np.int32),
            late=np.zeros(len(hashes), dtype=np.int32),
            at=self.numbers[split] << _SPLIT_BITS | rows,
        )


def _sum(hashes: Any) -> int:
    return checksum.add(0, hashes)


def _batch(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(values) for values in columns.values()], names=list(columns))


# ---- the driver's side -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TopicData:
    """The offset ranges of the topic, to be read by Spark's tasks."""

    spark: SparkSession
    topic: str
    client: ClientSettings
    shares: tuple[tuple[Slice, ...], ...]
    patience_s: float
    read: Accumulator[int]

    @property
    def offsets(self) -> int:
        """The number of offsets in the ranges, including markers and aborted records."""
        return sum(part.end - part.start for share in self.shares for part in share)

    def sums(self) -> Found:
        """Read the topic and return counts and checksums."""
        totals = {False: Totals(), True: Totals()}
        for row in self._read(_SUMS, hashes=False).collect():
            totals[row.late] += Totals(row.records, int(row.checksum, 16))
        return Found(totals[False], totals[True])

    def hashes(self) -> DataFrame:
        """Return a DataFrame with one row per record: hash and place."""
        return self._read(_HASHES, hashes=True)

    def _read(self, schema: str, *, hashes: bool) -> DataFrame:
        function = ReadTopic(self.topic, self.client, self.shares, self.patience_s, hashes, self.read)
        tasks = len(self.shares)
        return map_in_arrow(self.spark.range(0, tasks, 1, max(1, tasks)), function, schema)


@dataclass(frozen=True)
class SourceData:
    """The rows of the source that receipts cover. `splits` maps the hash of a split, which its rows carry, to the split."""

    records: DataFrame
    splits: Mapping[int, PlannedSplit]
    tasks: int
    read: Accumulator[int]

    @property
    def rows(self) -> int:
        """The number of rows that the receipts cover."""
        return sum(split.committed.rows for split in self.splits.values() if split.committed is not None)

    def sums(self) -> dict[SplitId, Totals]:
        """Read the source and return, for each split, count and checksum of the rows that its receipt covers."""
        totals = {split.id: Totals() for split in self.splits.values()}
        for row in self._read(_SPLIT_SUMS, hashes=False).collect():
            split = self.splits.get(row.split)
            if split is not None:
                totals[split.id] += Totals(row.records, int(row.checksum, 16), int(row.metadata, 16))
        return totals

    def hashes(self) -> DataFrame:
        """Return a DataFrame with one row per record of the source: hash and place."""
        return self._read(_HASHES, hashes=True)

    def name(self, number: int) -> str:
        """Return the name of the split with this number."""
        return list(self.splits.values())[number].label

    def _read(self, schema: str, *, hashes: bool) -> DataFrame:
        limits = {key: _limit(split) for key, split in self.splits.items()}
        numbers = {key: number for number, key in enumerate(self.splits)}
        metadata = [METADATA] if METADATA in self.records.columns and not hashes else []
        rows = self.records.select(SPLIT, CHECKSUM, *metadata).coalesce(self.tasks)
        return map_in_arrow(rows, ReadSource(limits, numbers, hashes, self.read), schema)


def _limit(split: PlannedSplit) -> int | None:
    """Return the number of rows of a split that its receipt covers; None: all."""
    receipt = split.committed
    if receipt is None:
        return 0
    return None if receipt.done else receipt.rows


def first_differences(before: SourceData, source: SourceData) -> dict[SplitId, int]:
    """Return the first row in which two reads of the same splits differ, of each split that has one."""
    one, other = before.hashes().select("at", "hash"), source.hashes().selectExpr("at", "hash AS other")
    rows = one.join(other, "at", "full").where("NOT hash <=> other").selectExpr(f"at >> {_SPLIT_BITS} AS split", "at")
    found = rows.groupBy("split").agg(functions.min("at").alias("at")).collect()
    ids = [split.id for split in source.splits.values()]
    return {ids[row.split]: row["at"] & _ROW_MASK for row in found}


def compare(
    spark: SparkSession, topic: TopicData, source: SourceData | None, surplus: Totals, records: int
) -> tuple[Copies, Compared]:
    """Count every hash in topic and source. Return the equal records in the topic, and the comparison with the source.

    `surplus` is the topic's sum minus the receipts'; `records` is about how many records there are, for the partitioning.
    """
    spark.conf.set("spark.sql.shuffle.partitions", str(len(topic.shares) + records // _HASHES_A_PARTITION + 1))
    rows = topic.hashes() if source is None else topic.hashes().unionAll(source.hashes())
    counted = rows.groupBy("hash").agg(
        functions.expr("sum(1 - source) AS topic"),
        functions.expr("sum(source) AS source"),
        functions.expr("sum(late) AS late"),
        functions.expr("max(IF(source = 0, at, NULL)) AS at"),
        functions.expr("min(IF(source = 1, at, NULL)) AS row"),
    )
    counted = counted.persist()
    try:
        return _copies(counted, surplus), _compared(counted, source) if source is not None else Compared()
    finally:
        counted.unpersist()


def _copies(counted: DataFrame, surplus: Totals) -> Copies:
    wanted = surplus.checksum - MODULUS if surplus.checksum >= MODULUS >> 1 else surplus.checksum
    (found,) = counted.selectExpr(
        "sum(topic - 1) FILTER (WHERE topic > 1) AS copies",
        "sum(CAST(hash AS DECIMAL(20, 0)) * (topic - 1)) FILTER (WHERE topic > 1) AS checksum",
        f"sum(topic) FILTER (WHERE hash = {wanted}) AS of_the_surplus",
        f"sum(late) FILTER (WHERE {_LATE_COPY}) AS late",
    ).collect()
    of_the_surplus = found.of_the_surplus or 0 if surplus.records == 1 else 0
    which = f"hash = {wanted}" if of_the_surplus > 1 else _LATE_COPY if found.late else "topic > 1"
    return Copies(
        Totals(found.copies or 0, int(found.checksum or 0) % MODULUS),
        of_the_surplus,
        found.late or 0,
        tuple(_place(row.at) for row in counted.where(which).limit(_EXAMPLES).collect()),
    )


def _compared(counted: DataFrame, source: SourceData) -> Compared:
    kind = f"IF(source = 0, '{_UNKNOWN}', IF(topic < source, '{LOST}', '{DOUBLED}')) AS kind"
    differing = counted.where("topic <> source").selectExpr(
        kind, f"row >> {_SPLIT_BITS} AS split", "abs(topic - source) AS records", "at", "row"
    )
    sums = differing.groupBy("kind", "split").agg(functions.sum("records").alias("records"))
    groups = {(row.kind, row.split): row.records for row in sums.orderBy("kind", "split").collect()}
    examples = _examples(differing) if groups else {}
    missing = [
        Missing(kind, source.name(split), records, examples.get((kind, split), ()))
        for (kind, split), records in list(groups.items())[:_NAMED_AT_MOST]
        if kind != _UNKNOWN
    ]
    for kind in (LOST, DOUBLED):
        rest = [records for (found, _), records in list(groups.items())[_NAMED_AT_MOST:] if found == kind]
        if rest:
            missing.append(Missing(kind, f"{len(rest):,} more splits", sum(rest)))
    unknown = (_UNKNOWN, None)
    return Compared(tuple(missing), groups.get(unknown, 0), examples.get(unknown, ()))


def _examples(differing: DataFrame) -> dict[tuple[str, int | None], tuple[str, ...]]:
    """Return the places of some differing records by kind and split: the row of a lost one, the offset of another one."""
    number = functions.row_number().over(Window.partitionBy("kind", "split").orderBy("row", "at"))
    found: dict[tuple[str, int | None], list[str]] = {}
    rows = differing.withColumn("number", number).where(f"number <= {_EXAMPLES}").orderBy("row", "at")
    for row in rows.limit(_EXAMPLES * _NAMED_AT_MOST).collect():
        text = f"row {row.row & _ROW_MASK:,}" if row.kind == LOST else _place(row.at)
        found.setdefault((row.kind, row.split), []).append(text)
    return {place: tuple(texts) for place, texts in found.items()}


def _place(at: int) -> str:
    return f"partition {at >> _PARTITION_BITS}, offset {at & _OFFSET_MASK:,}"
