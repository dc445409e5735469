"""Makes the errors for a topic that was recreated, or that lost records: exit 12. Pure.

Raised by the source, which lists, and by the reader in the tasks.
"""

from __future__ import annotations

from collections.abc import Sequence

from eosingest.errors import ChangedError, listed

_AGAIN = (
    "send all records of the topic, in addition to those in the sink, with: eosingest run SPEC --from-scratch; or begin a new"
    ' job (another name) with source.from = "earliest" or a time'
)
_DELETED = (
    "committed records are kept; lengthen the topic's retention, or run more often. To resume after the deleted"
    f" records and record the gap: eosingest run SPEC --accept-gap; or {_AGAIN}"
)
_NAMED_AT_MOST = 5


def place(topic: str, partition: int, first: int, end: int) -> str:
    """Return the name of the offsets [first, end) of a partition."""
    return f"{topic}-{partition}, " + (f"offset {first}" if end == first + 1 else f"offsets {first} to {end - 1}")


def recreated(topic: str, was: str, now: str | None) -> ChangedError:
    """Make the error for a topic with another id, None for none: it was deleted, recreated, or is on another cluster."""
    text = f"topic {topic} has the id {now}" if now is not None else f"topic {topic} is gone"
    return ChangedError(
        f"{text}, and the job reads the one with the id {was}: it was deleted and recreated, or the spec names another topic"
        " or cluster",
        code="source-topic-recreated",
        hint=f"nothing of the other topic was sent; name the topic that was read; or {_AGAIN}",
        item=topic,
    )


def records_deleted(topic: str, partition: int, unread: int, earliest: int) -> ChangedError:
    """Make the error for records up to `earliest` that were deleted (retention, DeleteRecords) before they were read."""
    return ChangedError(
        f"{place(topic, partition, unread, earliest)}: deleted before they were read; the partition now begins at {earliest}"
        " (retention, or deleted records)",
        code="source-records-deleted",
        hint=_DELETED,
        item=f"{topic}-{partition}",
    )


def unread(gaps: Sequence[str]) -> ChangedError:
    """Make the same error for several gaps, each in words: `orders-0, offsets 3 to 12`."""
    return ChangedError(
        f"{listed(list(gaps), _NAMED_AT_MOST, separator='; ', rest='; and {} more partitions')}: deleted before they were read"
        " (retention, or deleted records)",
        code="source-records-deleted",
        hint=_DELETED,
    )


def truncated(topic: str, partition: int, read: int, end: int) -> ChangedError:
    """Make the error for a partition whose log was cut off at the offset `end`, before the end of a read or planned range."""
    return ChangedError(
        f"{topic}-{partition}: offsets up to {read - 1} were there, and since then the log was cut off at {end} (an unclean"
        " leader election, or a restored disk): other records have, or may get, the offsets from there on",
        code="source-truncated",
        hint=f"committed records are kept; find out which records were lost. To continue, {_AGAIN}",
        item=f"{topic}-{partition}",
    )
