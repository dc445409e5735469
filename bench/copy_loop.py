"""A contender: the loop that copies a topic with confluent-kafka alone: consume, produce, commit a transaction, nothing else.

One process copies the partitions `PART, PART + PARTS, …` up to the ends that they have when it begins:

    python -m bench.copy_loop SERVERS SOURCE TARGET PROPERTIES_AS_JSON PART PARTS
"""

from __future__ import annotations

import json
import sys
import time

from confluent_kafka import Consumer, Producer, TopicPartition

_AT_ONCE = 10_000
_TRANSACTION = 100_000  # records
_LOOK_S = 0.1  # `consume` waits as long for as many as it was asked for
_WAIT_S = 30


def main() -> None:
    """Copy, and end."""
    servers, source, target, properties, part, parts = sys.argv[1:]
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "bench-copy",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",
        }
    )
    partitions = range(len(consumer.list_topics(source, 20).topics[source].partitions))[int(part) :: int(parts)]
    ends = {number: consumer.get_watermark_offsets(TopicPartition(source, number), 20)[1] for number in partitions}
    consumer.assign([TopicPartition(source, number, 0) for number in partitions])
    producer = Producer(
        {"bootstrap.servers": servers, "transactional.id": f"{target}.{part}", **json.loads(properties)}
    )
    producer.init_transactions()
    producer.begin_transaction()
    sent, left = 0, {number for number, end in ends.items() if end}
    came = time.monotonic()
    while left:
        messages = consumer.consume(_AT_ONCE, _LOOK_S)
        if messages:
            came = time.monotonic()
        elif time.monotonic() - came > _WAIT_S:
            raise TimeoutError(f"nothing came of {source} for {_WAIT_S} s")
        for message in messages:
            assert message.error() is None, message.error()
            producer.produce(
                target,
                message.value(),
                message.key(),
                message.partition(),
                timestamp=message.timestamp()[1],
                headers=message.headers(),
            )
            if message.offset() + 1 >= ends[message.partition()]:
                left.discard(message.partition())
        sent += len(messages)
        producer.poll(0)
        if sent >= _TRANSACTION:
            producer.commit_transaction()
            producer.begin_transaction()
            sent = 0
    producer.commit_transaction()
    consumer.close()


if __name__ == "__main__":
    main()
