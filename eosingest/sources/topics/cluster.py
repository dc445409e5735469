"""What the brokers say of a topic's partitions: where each begins and ends, and which transactions hold its end back.

Below source.py, which makes ranges of it.
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
    """The offsets of a partition: the first one that it holds, the last stable offset, and the one behind its last record.

    `epoch` is that of the leader that said the last stable offset, None where it tells none.
    """

    earliest: int
    stable: int
    latest: int
    epoch: int | None


def partitions_of(admin: KafkaPythonAdmin, topic: TopicDescription) -> list[Partition]:
    """Return the topic's partitions, by number.

    The last stable offset is asked behind the high watermark: where it is lower, a transaction is open.
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
    """Return the ranges that the log does not have any more to their end, each with the offset at which it was cut off.

    It ends before them now; or it has grown again, and the leader epoch under which they were frozen ends earlier (KIP-320).
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
    """Raise ChangedError for the first range that the log does not have any more to its end."""
    for split, end in cut_off(admin, topic, partitions, read):
        raise errors.truncated(topic.name, split.partition, split.end, end)


def held_back(
    admin: KafkaPythonAdmin, topic: TopicDescription, partitions: Sequence[Partition], frozen: Frozen
) -> list[str]:
    """Return a note for each partition of which records lie behind an open transaction, and so are left for a later run.

    A warning where this run reads nothing of the partition because of it, or where the transaction hangs: nobody will end it.
    """
    behind = [number for number, found in enumerate(partitions) if found.stable < found.latest]
    read = {split.partition for split in frozen.splits}
    notes = [_note(admin, topic, number, partitions[number], number in read) for number in behind[:_NAMED_AT_MOST]]
    if len(behind) > _NAMED_AT_MOST:
        notes.append(f"and {len(behind) - _NAMED_AT_MOST} more partitions of {topic.name} end at an open transaction")
    return notes


def _note(admin: KafkaPythonAdmin, topic: TopicDescription, number: int, found: Partition, is_read: bool) -> str:
    holders: list[OpenTransaction] = []
    with contextlib.suppress(EosingestError):  # the right to ask may be missing
        holders = admin.open_transactions(topic.name, number)
    hanging = [holder for holder in holders if holder.hanging]
    first = "" if is_read and not hanging else "warning: "
    left = found.latest - found.stable
    text = f"{first}{topic.name}-{number}: {left:,} offsets from {found.stable} on are left for a later run"
    return "".join([text, ", behind an open transaction", *_named(topic, number, holders)])


def _named(topic: TopicDescription, number: int, holders: Sequence[OpenTransaction]) -> Iterator[str]:
    """Yield who holds the transaction open, and how to end one that hangs."""
    if holders:
        yield f" of {holders[0].transactional_id} ({holders[0].age_s:.0f} s old)"
    for holder in holders:
        if holder.hanging:
            yield (
                "; it hangs: no coordinator knows it, so that nobody will end it but kafka-transactions abort"
                f" --topic {topic.name} --partition {number} --start-offset {holder.start_offset}"
            )
            return
