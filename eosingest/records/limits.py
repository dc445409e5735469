"""Finds records that Kafka would refuse, or delete at once, before they are produced.

Between Spark's rows and the transaction: the task calls it for the bad rows of a batch. One such record in a transaction would
abort it on every retry; here it becomes an error with split and row, or a dead letter (docs/protocol.md, The task).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from eosingest.kafka.ports import ANY_PARTITION, LARGEST_RECORD_BYTES

# Bytes of a record batch around a single record: 61 of batch header and at most 21 of record header (KIP-98 format).
BATCH_OVERHEAD = 61 + 21
_NEVER_MS = 9223372036854775807
_DAY_MS = 86_400_000


@dataclass(frozen=True)
class TopicLimits:
    """The limits of a topic. Sizes in bytes, times in milliseconds; None if there is no limit, or it is not known.

    `retention_ms` is set only if records of a given time are deleted by age (`cleanup.policy` has delete, and the topic keeps
    the producer's timestamps): then a record with an old timestamp is deleted after a run reported success. `partitions` is the
    topic's number of partitions.
    """

    max_message_bytes: int
    null_key_allowed: bool = True
    retention_ms: int | None = None
    before_max_ms: int | None = None
    after_max_ms: int | None = None
    partitions: int | None = None


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be sent: its `index` in the batch, a `code` for scripts, and the `reason` in words."""

    index: int
    code: str
    reason: str


def topic_limits(config: Mapping[str, str] | None, partitions: int) -> TopicLimits:
    """Read the limits from a topic's configuration; without the right to read it, Kafka's default size alone."""
    if config is None:
        return TopicLimits(max_message_bytes=1_048_588, partitions=partitions)
    policy = config.get("cleanup.policy", "delete")
    create_time = config.get("message.timestamp.type", "CreateTime") == "CreateTime"
    retention_ms = int(config.get("retention.ms", -1))
    return TopicLimits(
        max_message_bytes=min(LARGEST_RECORD_BYTES, int(config.get("max.message.bytes", 1_048_588))),
        null_key_allowed="compact" not in policy,
        retention_ms=retention_ms if create_time and "delete" in policy and retention_ms >= 0 else None,
        before_max_ms=_limit(config, "message.timestamp.before.max.ms") if create_time else None,
        after_max_ms=_limit(config, "message.timestamp.after.max.ms") if create_time else None,
        partitions=partitions,
    )


def _limit(config: Mapping[str, str], name: str) -> int | None:
    value = int(config.get(name, _NEVER_MS))
    return None if value == _NEVER_MS else value


def bad_rows(
    limits: TopicLimits,
    *,
    keys: Sequence[bytes | None],
    sizes: npt.NDArray[np.int64],
    timestamps_ms: Sequence[int | None] | None,
    corrupt: Sequence[bytes | None] | None,
    now_ms: int,
    partitions: npt.NDArray[np.int32] | None = None,
    unfit: Sequence[str | None] | None = None,
) -> list[BadRow]:
    """Return the rows that cannot be sent, sorted by index, each once. All columns have the same length.

    `sizes` are in bytes, of key, value and headers; `corrupt` and `unfit` as in `Batch`; `now_ms` is the current time.
    """
    found = itertools.chain(
        _corrupt(corrupt, unfit),
        _unfit(unfit),
        _too_large(sizes, limits),
        _null_keys(keys, limits),
        _bad_times(timestamps_ms, limits, now_ms),
        _bad_partitions(partitions, limits),
    )
    by_index = dict[int, BadRow]()
    for bad in found:
        by_index.setdefault(bad.index, bad)
    return [by_index[index] for index in sorted(by_index)]


def _corrupt(corrupt: Sequence[bytes | None] | None, unfit: Sequence[str | None] | None) -> Iterator[BadRow]:
    for index, text in enumerate(corrupt or ()):
        if text is not None:
            shown = _shortened(text.decode("utf-8", "backslashreplace"))
            why = f" ({unfit[index]})" if unfit is not None and unfit[index] else ""
            yield BadRow(index, "corrupt-row", f"the row cannot be parsed by the schema{why}: {shown}")


def _unfit(unfit: Sequence[str | None] | None) -> Iterator[BadRow]:
    for index, reason in enumerate(unfit or ()):
        if reason is not None:
            yield BadRow(index, "does-not-fit", f"the row does not fit: {reason}")


def _too_large(sizes: npt.NDArray[np.int64], limits: TopicLimits) -> Iterator[BadRow]:
    most = limits.max_message_bytes
    whose = "eosingest sends at most" if most == LARGEST_RECORD_BYTES else "the topic's max.message.bytes is"
    for index in np.flatnonzero(sizes > most - BATCH_OVERHEAD).tolist():
        yield BadRow(index, "record-too-large", f"the record has {int(sizes[index])} bytes, {whose} {most}")


def _null_keys(keys: Sequence[bytes | None], limits: TopicLimits) -> Iterator[BadRow]:
    if limits.null_key_allowed or None not in keys:
        return
    for index, key in enumerate(keys):
        if key is None:
            yield BadRow(index, "null-key", "the key is null, and the topic is compacted")


def _bad_times(timestamps_ms: Sequence[int | None] | None, limits: TopicLimits, now_ms: int) -> Iterator[BadRow]:
    for index, timestamp in enumerate(timestamps_ms or ()):
        if timestamp is not None:
            reason = _time_reason(timestamp, limits, now_ms)
            if reason:
                yield BadRow(index, "bad-timestamp", reason)


def _bad_partitions(partitions: npt.NDArray[np.int32] | None, limits: TopicLimits) -> Iterator[BadRow]:
    if partitions is None:
        return
    wrong = partitions < ANY_PARTITION
    if limits.partitions is not None:
        wrong |= partitions >= limits.partitions
    for index in np.flatnonzero(wrong).tolist():
        number = "a negative number" if partitions[index] < 0 else str(partitions[index])
        reason = f"the partition is {number}, and the topic has {limits.partitions}, counted from 0"
        yield BadRow(index, "bad-partition", reason)


def _time_reason(timestamp_ms: int, limits: TopicLimits, now_ms: int) -> str:
    age_ms = now_ms - timestamp_ms
    if timestamp_ms <= 0:
        return f"the timestamp {timestamp_ms} is not after 1970-01-01T00:00:00Z"
    if limits.retention_ms is not None and age_ms > limits.retention_ms:
        return (
            f"the timestamp is {age_ms / _DAY_MS:.1f} days old and the topic keeps records for"
            f" {limits.retention_ms / _DAY_MS:.1f} days (retention.ms): the brokers would delete it"
        )
    if limits.before_max_ms is not None and age_ms > limits.before_max_ms:
        return (
            f"the timestamp is older than the topic's message.timestamp.before.max.ms ({limits.before_max_ms}) allows"
        )
    if limits.after_max_ms is not None and -age_ms > limits.after_max_ms:
        return f"the timestamp is further ahead than message.timestamp.after.max.ms ({limits.after_max_ms}) allows"
    return ""


def _shortened(text: str) -> str:
    return text if len(text) <= 200 else text[:200] + " …"
