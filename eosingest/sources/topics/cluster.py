"""Reads from the brokers where a topic's partitions begin and end, and which transactions hold their ends back.

source.py makes ranges from these offsets.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from eosingest.errors import EosingestError
from eosingest.kafka.kafka_python import KafkaPythonAdmin
from eosingest.kafka.ports import OpenTransaction, TopicDescription
from eosingest.sources.topics import errors
from eosingest.sources.topics.ranges import Frozen, RangeSplit

_NAMED_AT_MOST = 5


@dataclass(frozen=True)
class Partition:
    """The offsets of a partition: its first offset, its last stable offset, and the offset after its last record.

    `epoch` is that of the leader that reported the last stable offset, None if it reports none.
    """

    earliest: int
    stable: int
    latest: int
    epoch: int | None


def partitions_of(admin: KafkaPythonAdmin, topic: TopicDescription) -> list[Partition]:
    """Return the topic's partitions, by number.

    The last stable offset is requested after the high watermark: if it is lower, a transaction is open.
    """
    ranges = admin.offset_ranges(topic.name, topic.partitions)
    stable = admin.last_stable_ends(topic.name, topic.partitions)
    return [
        Partition(each.start, end.offset, max(each.end, end.offset), end.epoch)
        for each, end in zip(ranges, stable, strict=True)
    ]


def cut_off(
    admin: KafkaPythonAdmin, topic: TopicDescription, partitions: Sequence[Partition], read: Iterable[RangeSplit]
) -> list[tuple[RangeSplit, int]]:
    """Return the ranges whose end the log no longer reaches, each with the offset at which the log was cut off.

    The log ends earlier now; or it has grown again, and the leader epoch under which they were frozen ends earlier (KIP-320).
    """
    read = list(read)
    epochs = {split.partition: split.epoch for split in read if split.epoch is not None}
    ends = admin.ends_of_epochs(topic.name, epochs) if epochs else {}
    found = []
    for split in read:
        latest = partitions[split.partition].latest
        end = latest if split.epoch is None else min(latest, max(0, ends[split.partition]))
        if end < split.end:
            found.append((split, end))
    return found


def refuse_cut_off(
    admin: KafkaPythonAdmin, topic: TopicDescription, partitions: Sequence[Partition], read: Iterable[RangeSplit]
) -> None:
    """Raise ChangedError for the first range whose end the log no longer reaches."""
    for split, end in cut_off(admin, topic, partitions, read):
        raise errors.truncated(topic.name, split.partition, split.end, end)


def held_back(
    admin: KafkaPythonAdmin, topic: TopicDescription, partitions: Sequence[Partition], frozen: Frozen
) -> list[str]:
    """Return notes on the partitions with records after an open transaction, which are left for a later run.

    It is a warning if this run therefore reads nothing of the partition, or if the transaction hangs, so that nobody ends it.
    """
    behind = [number for number, found in enumerate(partitions) if found.stable < found.latest]
    read = {split.partition for split in frozen.splits}
    notes = [_note(admin, topic, number, partitions[number], number in read) for number in behind[:_NAMED_AT_MOST]]
    if len(behind) > _NAMED_AT_MOST:
        notes.append(f"and {len(behind) - _NAMED_AT_MOST} more partitions of {topic.name} end at an open transaction")
    return notes


def _note(admin: KafkaPythonAdmin, topic: TopicDescription, number: int, found: Partition, is_read: bool) -> str:
    holders: list[OpenTransaction] = []
    with contextlib.suppress(EosingestError):  # the right to describe them may be missing
        holders = admin.open_transactions(topic.name, number)
    hanging = [holder for holder in holders if holder.hanging]
    first = "" if is_read and not hanging else "warning: "
    left = found.latest - found.stable
    text = f"{first}{topic.name}-{number}: {left:,} offsets from {found.stable} on are left for a later run"
    return "".join([text, " because of an open transaction", *_named(topic, number, holders)])


def _named(topic: TopicDescription, number: int, holders: Sequence[OpenTransaction]) -> Iterator[str]:
    """Yield the holder of the open transaction, and how to end one that hangs."""
    if holders:
        yield f" of {holders[0].transactional_id} ({holders[0].age_s:.0f} s old)"
    for holder in holders:
        if holder.hanging:
            yield (
                "; it hangs: no coordinator knows it, so that nobody will end it but kafka-transactions abort"
                f" --topic {topic.name} --partition {number} --start-offset {holder.start_offset}"
            )
            return
