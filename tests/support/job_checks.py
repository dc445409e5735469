"""What the tests of the protocol see of a job from outside: source rows, positions, transactions and logs.

Beside harness.py, which runs the command and reads the topic. Which split a line belongs to is told here by Hadoop's rule
(a line that begins exactly at a cut belongs to the split before it), sharing no code with eosingest.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from eosingest.kafka.config import ClientSettings
from eosingest.kafka.kafka_python import KafkaPythonAdmin
from eosingest.kafka.offsets_reader import LibrdkafkaOffsetsReader
from eosingest.protocol.offsets import topic
from eosingest.protocol.offsets.state import JobState
from tests.support.builders import place
from tests.support.harness import Job, Record, end_offsets, number_of, wait_for, watermarks

SPLIT_BYTES = 64 << 10
OFFSETS_TOPIC = "eosingest-offsets"
PREFIX = "eosingest."  # of transactional ids
TOPIC_PARTITIONS = 3

# ---- the source --------------------------------------------------------------------------------------------------------


class Line(NamedTuple):
    """A row of the source: its item's name, the start of its split, its row in the split from 1, and the number in it.

    `position` is what is recorded when it is the last row that was sent; None where rows or bytes are counted.
    """

    file: str
    start: int | str | None
    row: int
    number: int
    position: object = None


def source_lines(job: Job, split_bytes: int = SPLIT_BYTES) -> list[Line]:
    """Return every line of data/*.jsonl that is valid, by file and place; a corrupt one only counts as a row.

    Or the rows of the job's other source.
    """
    if job.lines is not None:
        return list(job.lines)
    lines = []
    for path in sorted(job.data.glob("*.jsonl")):
        at, rows = 0, Counter[int]()
        for text in path.read_bytes().splitlines(keepends=True):
            start = (max(at, 1) - 1) // split_bytes * split_bytes
            rows[start] += 1
            with contextlib.suppress(ValueError):
                lines.append(Line(f"data/{path.name}", start, rows[start], int(json.loads(text)["n"])))
            at += len(text)
    return lines


def write_files(job: Job, files: int, rows: int) -> None:
    """Write numbers 0, 1, 2 … over several files: ascending in each, so that order can be checked split by split."""
    for file in range(files):
        job.write_numbers(f"part-{file}.jsonl", range(file * rows, (file + 1) * rows))


def told(letter: Record) -> dict[str, str]:
    """Return what the headers of a dead letter say."""
    return {name.removeprefix("eosingest."): (value or b"").decode() for name, value in letter.headers}


# ---- the promises ------------------------------------------------------------------------------------------------------


def assert_exact(job: Job, expected: Iterable[Line] | None = None) -> None:
    """P1 and P2: the topic holds each source row once, and each split's in order in every topic partition."""
    lines = source_lines(job) if expected is None else list(expected)
    records = job.records()
    found, wanted = Counter(number_of(record.value) for record in records), Counter(line.number for line in lines)
    missing, extra = wanted - found, found - wanted
    assert not missing and not extra, (
        f"{missing.total()} records missing (as {sorted(missing)[:5]}), {extra.total()} too many (as {sorted(extra)[:5]})"
    )
    assert_in_order(records, lines)


def assert_in_order(records: Iterable[Record], lines: Iterable[Line]) -> None:
    """P2: in every topic partition the records of one split ascend."""
    split_of = {line.number: (line.file, line.start) for line in lines}
    last: dict[tuple[int, str, object], int] = {}
    for record in records:
        number = number_of(record.value)
        place = (record.partition, *split_of[number])
        assert last.get(place, -1) < number, f"{number} comes after {last[place]} in {place}"
        last[place] = number


def assert_positions(job: Job, offsets_topic: str = OFFSETS_TOPIC) -> None:
    """P4: each committed position is what was written up to it: the first rows of its split, no more and no fewer.

    Each is a record or a dead letter, and the offset record says how many of these there are.
    """
    state, records, letters = at_one_moment(job, offsets_topic)
    rows: dict[tuple[str, object], list[int]] = defaultdict(list)
    positions = {}
    for line in source_lines(job):
        rows[line.file, line.start].append(line.number)
        positions[line.number] = line.position
    split_of = {number: split for split, numbers in rows.items() for number in numbers}
    written: dict[tuple[str, object], list[int]] = defaultdict(list)
    for record in records + letters:
        written[split_of[number_of(record.value)]].append(number_of(record.value))
    dead = Counter(split_of[number_of(letter.value)] for letter in letters)
    offsets = {place(split): offset for split, offset in state.offsets.items()}
    assert set(written) <= set(offsets), f"records without an offset record: {set(written) - set(offsets)}"
    for split, offset in offsets.items():
        assert sorted(written[split]) == rows[split][: offset.rows], f"{split} is committed up to row {offset.rows}"
        assert (offset.records, offset.dead.count) == (offset.rows - dead[split], dead[split]), split
        last = positions[rows[split][offset.rows - 1]] if offset.rows else None
        assert last is None or offset.position == last, f"{split} goes on behind {offset.position}, and not {last}"
        assert not offset.done or offset.rows == len(rows[split]), f"{split} is done before its last row"


def at_one_moment(job: Job, offsets_topic: str = OFFSETS_TOPIC) -> tuple[JobState, list[Record], list[Record]]:
    """Read offsets, records and letters with nothing committed in between: an orphaned worker may live on for seconds."""
    while True:
        before, records, letters = committed_state(job, offsets_topic), job.records(), job.letters()
        if committed_state(job, offsets_topic).end == before.end:
            return before, records, letters


def committed_state(job: Job, offsets_topic: str = OFFSETS_TOPIC) -> JobState:
    """Read the job's state as a run would, waiting for open transactions; disturbs nobody."""
    partition = offsets_partition(job)
    reader = LibrdkafkaOffsetsReader(offsets_topic, partition, ClientSettings(job.servers))
    try:
        state = JobState(job.name)
        topic.read_to_high_watermark(reader, state, deadline_s=60)
        return state
    finally:
        reader.close()


def offsets_partition(job: Job) -> int:
    """Return the partition of the offsets topic that holds the job."""
    return topic.partition_of(job.name, topic.PARTITIONS)


# ---- transactions and logs ---------------------------------------------------------------------------------------------


def open_transactions(job: Job, offsets_topic: str = OFFSETS_TOPIC) -> list[str]:
    """Name the job's open transactions, as the brokers list them for its topics and for its offsets partition."""
    places = [
        *((job.name, partition) for partition in range(TOPIC_PARTITIONS)),
        *((job.dead, partition) for partition in (end_offsets(job.servers, job.dead) if job.bad else ())),
        (offsets_topic, offsets_partition(job)),
    ]
    admin = KafkaPythonAdmin(ClientSettings(job.servers))
    try:
        found = [entry.transactional_id for place in places for entry in admin.open_transactions(*place)]
    finally:
        admin.close()
    return [name for name in found if name.startswith(f"{PREFIX}{job.name}.")]


def high_watermarks(servers: str, name: str) -> list[int]:
    """Return the high watermark of each partition: every record, marker and aborted record counts."""
    return [high for _, high in sorted(end_offsets(servers, name).items())]


def last_stable_offsets(servers: str, name: str) -> list[int]:
    """Return the last stable offset of each partition: where a transaction is open, it lies below the high watermark."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "stable", "isolation.level": "read_committed"})
    try:
        partitions = consumer.list_topics(name, timeout=20).topics[name].partitions
        return [watermarks(consumer, name, partition)[1] for partition in sorted(partitions)]
    finally:
        consumer.close()


def delete_topic(servers: str, name: str) -> None:
    """Delete a topic and wait until it is gone."""
    admin = AdminClient({"bootstrap.servers": servers})
    admin.delete_topics([name])[name].result(timeout=30)
    wait_for(lambda: name not in admin.list_topics(timeout=10).topics)


@contextlib.contextmanager
def concurrent_reader(servers: str, name: str) -> Iterator[list[tuple[int, int, int]]]:
    """Read a topic read_committed for as long as the context lasts; give the list of (partition, offset, number) seen."""
    seen: list[tuple[int, int, int]] = []
    stop = threading.Event()

    def read() -> None:
        consumer = Consumer({"bootstrap.servers": servers, "group.id": "concurrent", "enable.auto.commit": False})
        consumer.assign([TopicPartition(name, partition, 0) for partition in range(TOPIC_PARTITIONS)])
        while not stop.is_set():
            for message in consumer.consume(1000, timeout=0.1):
                if not message.error():
                    seen.append((message.partition(), message.offset(), number_of(message.value())))
        consumer.close()

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        thread.join()
