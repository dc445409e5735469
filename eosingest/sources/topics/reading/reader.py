"""Reads a range of offsets in a task, read_committed, as the columns of its records (`python_scan.ArrowReader`).

It begins after the committed offset, and ends by position: a range may end with markers, aborted or compacted records. It
returns fetched records only after it has checked that the topic is still the planned one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from eosingest.errors import ChangedError, FatalError
from eosingest.kafka.config import ClientSettings
from eosingest.kafka.librdkafka import DAMAGED
from eosingest.kafka.ports import FailureKind, KafkaFailure
from eosingest.kafka.topic_reader import TopicReader, TopicRecord, record_of
from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.sources.topics import errors
from eosingest.sources.topics.columns import COLUMNS
from eosingest.sources.topics.ranges import RangeSplit, first_unread
from eosingest.spark.python_scan import PythonSplit

PATIENCE_S = 60.0
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_TIME = pa.timestamp("ms", tz="UTC")
# Error codes for offsets that do not exist, and for topics that do not.
_OUT_OF_RANGE = frozenset({"_AUTO_OFFSET_RESET", "_LOG_TRUNCATION", "OFFSET_OUT_OF_RANGE"})
_UNKNOWN = frozenset({"UNKNOWN_TOPIC_OR_PART", "UNKNOWN_TOPIC_ID", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION"})


@dataclass(frozen=True)
class RecordsReader:
    """Reads the ranges of a topic. `client` may hold secrets: it is sent only in the task closure."""

    client: ClientSettings
    topic: str

    def read(self, split: PythonSplit, committed: OffsetRecord | None) -> Iterator[pa.RecordBatch]:
        """Yield the records of a range after the committed ones; see `python_scan.ArrowReader`.

        Raises ChangedError for another topic, and if records were deleted or cut off before they were read; OSError if the
        brokers do not answer.
        """
        wanted = split.planned.split
        assert isinstance(wanted, RangeSplit), "this source cuts no others"
        start = first_unread(wanted, committed.committed_position if committed is not None else None)
        reader = TopicReader(self.topic, self.client, patience_s=PATIENCE_S)
        try:
            yield from _Reading(reader, wanted, start).batches()
        finally:
            reader.close()


class _Reading:
    """One read of a range, from an offset on; `_next` is the first offset that was not returned yet."""

    def __init__(self, reader: TopicReader, wanted: RangeSplit, start: int) -> None:
        self._reader = reader
        self._wanted = wanted
        self._next = start

    def batches(self) -> Iterator[pa.RecordBatch]:
        wanted = self._wanted
        with self._explained():
            self._refuse_changes()
            for messages in self._reader.read(wanted.partition, self._next, wanted.end):
                self._refuse_other_topic()
                yield _columns(wanted, messages)
                self._next = messages[-1].offset() + 1
            self._refuse_other_topic()

    def _refuse_other_topic(self) -> None:
        """Raise ChangedError if the topic is not the planned one; otherwise all records until now are of the planned one."""
        now = self._reader.topic_id()
        if now != self._wanted.topic_id:
            raise errors.recreated(self._wanted.topic, self._wanted.topic_id, now)

    def _refuse_changes(self) -> None:
        """Raise ChangedError if the topic is another one, or does not hold the rest of the range."""
        self._refuse_other_topic()
        wanted = self._wanted
        if self._next >= wanted.end:
            return  # all of the range is read
        earliest, stable = self._reader.bounds(wanted.partition)
        if earliest > self._next:
            raise errors.records_deleted(wanted.topic, wanted.partition, self._next, earliest)
        if stable < wanted.end:
            raise errors.truncated(wanted.topic, wanted.partition, wanted.end, stable)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn failures of the client into errors of the source."""
        try:
            yield
        except KafkaFailure as failure:
            raise self._error(failure) from failure

    def _error(self, failure: KafkaFailure) -> Exception:
        wanted = self._wanted
        try:
            if failure.code in _OUT_OF_RANGE or failure.code in _UNKNOWN:
                self._refuse_changes()
        except ChangedError as error:
            return error
        except KafkaFailure as again:
            if again.code in _UNKNOWN:
                return errors.recreated(wanted.topic, wanted.topic_id, None)
            return OSError(str(again))
        if failure.code == "_LOG_TRUNCATION":
            return errors.truncated(wanted.topic, wanted.partition, self._next, self._next)
        if failure.code in DAMAGED:
            return FatalError(
                f"{wanted.label}: a batch at offset {self._next:,} or after it is damaged: {failure}",
                code="bad-data",
                hint="committed records are kept; restore the partition's segment from another replica; then run again",
                item=wanted.item,
            )
        if failure.kind is FailureKind.REFUSED and failure.code not in _UNKNOWN:
            return FatalError(
                f"{wanted.label}: could not be read, Kafka refused: {failure}",
                code="kafka-refused",
                hint="committed records are kept; the source's user needs Read on the topic; then run again",
                item=wanted.item,
            )
        return OSError(f"{wanted.label}: {failure}")


def _columns(wanted: RangeSplit, messages: Sequence[Any]) -> pa.RecordBatch:
    """Return the columns (columns.py) of messages of a partition."""
    records = [_record(wanted, message) for message in messages]
    headers = [[{"key": name, "value": value} for name, value in record.headers] for record in records]
    arrays = {
        "key": pa.array([record.key for record in records], pa.binary()),
        "value": pa.array([record.value for record in records], pa.binary()),
        "headers": pa.array(headers, _HEADERS),
        "topic": pa.array([wanted.topic] * len(records), pa.string()),
        "partition": pa.array([wanted.partition] * len(records), pa.int32()),
        "offset": pa.array([record.offset for record in records], pa.int64()),
        "timestamp": pa.array([record.timestamp_ms for record in records], _TIME),
    }
    return pa.RecordBatch.from_arrays([arrays[name] for name in COLUMNS], names=list(COLUMNS))


def _record(wanted: RangeSplit, message: Any) -> TopicRecord:
    """Return the values of a message. Raises FatalError for a header whose name is not UTF-8."""
    try:
        return record_of(message)
    except UnicodeDecodeError as error:
        raise FatalError(
            f"{wanted.label}: the record at offset {message.offset()} has a header whose name is not UTF-8",
            code="bad-data",
            hint="committed records are kept; a name that is not UTF-8 cannot be sent",
            item=wanted.item,
        ) from error
