"""Which records are refused before they are produced, by what the topic's configuration says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from eosingest.kafka.ports import ANY_PARTITION, NO_PARTITION
from eosingest.records.limits import BadRow, TopicLimits, bad_rows, topic_limits

DAY_MS = 86_400_000
NOW_MS = 1_800_000_000_000
NEVER = "9223372036854775807"
BATCH_OVERHEAD = 82  # 61 bytes of batch header, 21 of record header

# What a Kafka 4 broker answers for a topic made without settings.
DEFAULTS = {
    "cleanup.policy": "delete",
    "max.message.bytes": "1048588",
    "message.timestamp.type": "CreateTime",
    "retention.ms": "604800000",
    "message.timestamp.before.max.ms": NEVER,
    "message.timestamp.after.max.ms": "3600000",
}


def bad(limits: TopicLimits | None = None, rows: int = 3, **columns: Any) -> BadRow | None:
    """Check rows that are all good but for the columns given."""
    good: dict[str, Any] = {
        "keys": [b"k"] * rows,
        "sizes": np.full(rows, 10, dtype=np.int64),
        "timestamps_ms": None,
        "corrupt": None,
        "now_ms": NOW_MS,
    }
    return next(iter(bad_rows(limits or TopicLimits(1_000_000), **{**good, **columns})), None)


def test_limits_of_a_topic_with_default_settings() -> None:
    assert topic_limits(DEFAULTS, 3) == TopicLimits(
        max_message_bytes=1_048_588,
        null_key_allowed=True,
        retention_ms=7 * DAY_MS,
        after_max_ms=3_600_000,
        partitions=3,
    )


def test_without_the_right_to_read_the_configuration_only_the_default_size_counts() -> None:
    assert topic_limits(None, 3) == TopicLimits(1_048_588, partitions=3)


@pytest.mark.parametrize(
    ("policy", "null_key_allowed", "retention_ms"),
    [
        ("delete", True, 1000),
        ("compact", False, None),
        ("compact,delete", False, 1000),
        ("delete,compact", False, 1000),
    ],
)
def test_cleanup_policy(policy: str, null_key_allowed: bool, retention_ms: int | None) -> None:
    limits = topic_limits({**DEFAULTS, "cleanup.policy": policy, "retention.ms": "1000"}, 3)
    assert (limits.null_key_allowed, limits.retention_ms) == (null_key_allowed, retention_ms)


def test_infinite_retention_is_no_limit() -> None:
    assert topic_limits({**DEFAULTS, "retention.ms": "-1"}, 3).retention_ms is None


def test_a_topic_that_stamps_records_itself_takes_any_time() -> None:
    limits = topic_limits({**DEFAULTS, "message.timestamp.type": "LogAppendTime", "retention.ms": "1000"}, 3)
    assert (limits.retention_ms, limits.before_max_ms, limits.after_max_ms) == (None, None, None)


def test_good_rows_pass() -> None:
    limits = topic_limits(DEFAULTS, 3)
    assert bad(limits, timestamps_ms=[NOW_MS, None, NOW_MS - DAY_MS], corrupt=[None, None, None]) is None
    assert bad(limits, rows=0) is None


def test_corrupt_row_is_named_with_its_text_shortened() -> None:
    found = bad(corrupt=[None, b'{"id": ' + b"x" * 1000, b"y"])
    assert found is not None
    assert (found.index, found.code) == (1, "corrupt-row")
    assert '{"id": xxx' in found.reason
    assert len(found.reason) < 300


def test_an_empty_corrupt_text_is_corrupt_too() -> None:
    found = bad(corrupt=[None, None, b""])
    assert found is not None
    assert (found.index, found.code) == (2, "corrupt-row")


def test_size_limit_counts_the_batch_around_the_record() -> None:
    limits = TopicLimits(max_message_bytes=1000)
    fits = 1000 - BATCH_OVERHEAD
    assert bad(limits, sizes=np.array([fits, fits, fits])) is None
    found = bad(limits, sizes=np.array([fits, fits + 1, 5000]))
    assert found is not None
    assert (found.index, found.code) == (1, "record-too-large")
    assert str(fits + 1) in found.reason
    assert "1000" in found.reason


def test_null_key_on_a_compacted_topic() -> None:
    compacted = TopicLimits(1000, null_key_allowed=False)
    assert bad(compacted, keys=[b"", b"a", b"b"]) is None, "an empty key is a key"
    assert bad(keys=[None, None, None]) is None
    found = bad(compacted, keys=[b"a", None, None])
    assert found is not None
    assert (found.index, found.code) == (1, "null-key")


@pytest.mark.parametrize(
    ("limits", "timestamp_ms", "word"),
    [
        (TopicLimits(1000), 0, "1970"),
        (TopicLimits(1000), -1, "1970"),
        (TopicLimits(1000, retention_ms=7 * DAY_MS), NOW_MS - 7 * DAY_MS - 1, "retention.ms"),
        (TopicLimits(1000, before_max_ms=1000), NOW_MS - 1001, "message.timestamp.before.max.ms"),
        (TopicLimits(1000, after_max_ms=1000), NOW_MS + 1001, "message.timestamp.after.max.ms"),
    ],
)
def test_bad_timestamps(limits: TopicLimits, timestamp_ms: int, word: str) -> None:
    found = bad(limits, timestamps_ms=[NOW_MS, None, timestamp_ms])
    assert found is not None
    assert (found.index, found.code) == (2, "bad-timestamp")
    assert word in found.reason


@pytest.mark.parametrize(
    ("limits", "timestamp_ms"),
    [
        (TopicLimits(1000), 1),
        (TopicLimits(1000), NOW_MS + 100 * DAY_MS),
        (TopicLimits(1000, retention_ms=7 * DAY_MS), NOW_MS - 7 * DAY_MS),
        (TopicLimits(1000, retention_ms=0), NOW_MS + 5),
        (TopicLimits(1000, before_max_ms=1000), NOW_MS - 1000),
        (TopicLimits(1000, after_max_ms=1000), NOW_MS + 1000),
        (TopicLimits(1000, after_max_ms=0), NOW_MS),
    ],
)
def test_timestamps_at_the_limit_pass(limits: TopicLimits, timestamp_ms: int) -> None:
    assert bad(limits, timestamps_ms=[timestamp_ms] * 3) is None


def test_the_deletion_is_told_in_days() -> None:
    found = bad(TopicLimits(1000, retention_ms=7 * DAY_MS), timestamps_ms=[NOW_MS - 30 * DAY_MS, None, None])
    assert found is not None
    assert "30.0 days old" in found.reason
    assert "7.0 days" in found.reason


def test_bad_rows_are_told_in_order_whatever_their_reason() -> None:
    limits = TopicLimits(1000, null_key_allowed=False)
    columns: dict[str, Any] = {
        "keys": [b"a", b"a", b"a", None],
        "sizes": np.array([1, 1, 5000, 1]),
        "timestamps_ms": [None, -5, None, None],
        "corrupt": [b"bad", None, None, None],
    }
    order = []
    for index, good in enumerate(({"corrupt": None}, {"timestamps_ms": None}, {"sizes": np.ones(4)}, {})):
        found = bad(limits, rows=4, **columns)
        assert found is not None
        assert found.index == index
        order.append(found.code)
        columns.update(good)
    assert order == ["corrupt-row", "bad-timestamp", "record-too-large", "null-key"]


@pytest.mark.parametrize(
    ("partitions", "index", "reason"),
    [
        ([0, 2, ANY_PARTITION], None, ""),
        ([0, 3, 4], 1, "the partition is 3, and the topic has 3"),
        ([0, 1, NO_PARTITION], 2, "the partition is a negative number"),
        ([2**31 - 1, 0, 0], 0, "2147483647"),
    ],
)
def test_partitions(partitions: list[int], index: int | None, reason: str) -> None:
    found = bad(TopicLimits(1_000_000, partitions=3), partitions=np.array(partitions, np.int32))
    if index is None:
        assert found is None
    else:
        assert found is not None
        assert (found.index, found.code) == (index, "bad-partition")
        assert reason in found.reason


def test_a_topic_that_takes_more_than_the_client() -> None:
    """Breaks when a record is offered that the client's queue never takes, or a setting that it does not know."""
    limits = topic_limits({"max.message.bytes": str(2**31 - 1)}, 1)
    assert limits.max_message_bytes == 64 << 20
    (found,) = bad_rows(
        limits, keys=[None], sizes=np.array([(64 << 20) - 81]), timestamps_ms=None, corrupt=None, now_ms=0
    )
    assert found.reason == f"the record has {(64 << 20) - 81} bytes, eosingest sends at most {64 << 20}"
