"""Records that Kafka would refuse, or delete at once, found before they are produced.

Between Spark's rows and the transaction: the task asks for the first bad row of a batch. One such record in a
transaction would abort it on every retry; here it becomes an error with split and row (docs/protocol.md, The task).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from eosingest.kafka.protocols import ANY_PARTITION, LARGEST_RECORD_BYTES

# Bytes of a record batch around a single record: 61 of batch header and at most 21 of record header (KIP-98 format).
_BATCH_OVERHEAD = 61 + 21
_NEVER_MS = 9223372036854775807
_DAY_MS = 86_400_000


@dataclass(frozen=True)
class TopicLimits:
    """What the topic accepts. Sizes in bytes, times in milliseconds; None where there is no limit, or it is not known.

    `retention_ms` is set only where records of a given time are deleted by age (`cleanup.policy` has delete, and the
    topic keeps the producer's timestamps): then a record with an old timestamp is deleted after a run reported success.
    `partitions` is how many the topic has.
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


def first_bad_row(
    limits: TopicLimits,
    *,
    keys: Sequence[bytes | None],
    sizes: npt.NDArray[np.int64],
    timestamps_ms: Sequence[int | None] | None,
    corrupt: Sequence[str | None] | None,
    now_ms: int,
    partitions: npt.NDArray[np.int32] | None = None,
    unfit: Sequence[str | None] | None = None,
) -> BadRow | None:
    """Return the first row that cannot be sent, None if all can. All columns have the same length.

    `sizes` are in bytes, of key, value and headers; `corrupt` and `unfit` as in `Batch`; `now_ms` is the time of day.
    """
    found = [
        _first_corrupt(corrupt),
        _first_unfit(unfit),
        _first_too_large(sizes, limits),
        _first_null_key(keys, limits),
        _first_bad_time(timestamps_ms, limits, now_ms),
        _first_bad_partition(partitions, limits),
    ]
    return min((bad for bad in found if bad is not None), key=lambda bad: bad.index, default=None)


def _first_corrupt(corrupt: Sequence[str | None] | None) -> BadRow | None:
    for index, text in enumerate(corrupt or ()):
        if text is not None:
            return BadRow(index, "corrupt-row", f"the row cannot be parsed by the schema: {_shortened(text)}")
    return None


def _first_unfit(unfit: Sequence[str | None] | None) -> BadRow | None:
    for index, reason in enumerate(unfit or ()):
        if reason is not None:
            return BadRow(index, "does-not-fit", f"the row does not fit the schema: {reason}")
    return None


def _first_too_large(sizes: npt.NDArray[np.int64], limits: TopicLimits) -> BadRow | None:
    over = np.flatnonzero(sizes > limits.max_message_bytes - _BATCH_OVERHEAD)
    if not len(over):
        return None
    index, most = int(over[0]), limits.max_message_bytes
    whose = "eosingest sends at most" if most == LARGEST_RECORD_BYTES else "the topic's max.message.bytes is"
    return BadRow(index, "record-too-large", f"the record has {int(sizes[index])} bytes, {whose} {most}")


def _first_null_key(keys: Sequence[bytes | None], limits: TopicLimits) -> BadRow | None:
    if limits.null_key_allowed or None not in keys:
        return None
    return BadRow(list(keys).index(None), "null-key", "the key is null, and the topic is compacted")


def _first_bad_time(timestamps_ms: Sequence[int | None] | None, limits: TopicLimits, now_ms: int) -> BadRow | None:
    for index, timestamp in enumerate(timestamps_ms or ()):
        if timestamp is not None:
            reason = _time_reason(timestamp, limits, now_ms)
            if reason:
                return BadRow(index, "bad-timestamp", reason)
    return None


def _first_bad_partition(partitions: npt.NDArray[np.int32] | None, limits: TopicLimits) -> BadRow | None:
    if partitions is None:
        return None
    wrong = partitions < ANY_PARTITION
    if limits.partitions is not None:
        wrong |= partitions >= limits.partitions
    if not wrong.any():
        return None
    index = int(np.flatnonzero(wrong)[0])
    number = "a negative number" if partitions[index] < 0 else str(partitions[index])
    return BadRow(
        index, "bad-partition", f"the partition is {number}, and the topic has {limits.partitions}, counted from 0"
    )


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
