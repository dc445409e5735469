"""Rounds some of whose rows cannot be sent: each becomes a dead letter, in a topic of the round's own.

    drawn by seed and number ─▶ which rows, and what is wrong with them ─▶ the input, or record.partition ─▶ on_error

What is wrong with a row is named by the code that its letter must have. inputs.py writes what this module says.
"""

from __future__ import annotations

import json
import random
import re

from tests.support.harness import Job, create_topic

SHARE = 0.3  # of the rounds
_CORRUPT, _UNFIT, _LARGE, _PARTITION = "corrupt-row", "does-not-fit", "record-too-large", "bad-partition"
_CODES = {
    "json": (_CORRUPT, _PARTITION),
    "lines": (_LARGE,),
    "bucket": (_LARGE,),
    "hdfs": (_CORRUPT, _PARTITION),
    "topic": (_LARGE,),
    "table": (_PARTITION,),
    "json-as-avro": (_CORRUPT, _UNFIT, _PARTITION),
    "table-as-avro": (_PARTITION,),
}
_MOST = 40
_SINK_BYTES = 20_000  # what a record of the topic may have, where rows are too large
_LARGE_PAD = 25_000
_PAD = 20
_CONFIGS = ({}, {}, {"max.message.bytes": "4000"})  # of the dead-letter topic: what is larger is cut
_BROKERS_DEFAULT = -1  # as many replicas as the cluster has brokers


def draw(chance: random.Random, reads: str, rows: int) -> dict[int, str]:
    """Return which of the numbers below `rows` are bad, and how, where `reads` is read."""
    numbers = chance.sample(range(rows), chance.randint(1, _MOST))
    return {number: chance.choice(_CODES[reads]) for number in sorted(numbers)}


def spoil_files(job: Job) -> None:
    """Write the job's bad rows into its files, in place of good ones."""
    for path in job.data.iterdir():
        numbers = [json.loads(line)["n"] for line in path.read_text().splitlines()]
        path.write_text("".join(f"{row(number, job.bad.get(number, ''))}\n" for number in numbers))


def row(number: int, code: str) -> str:
    """Return a row as JSON with which so much is wrong; "" for nothing."""
    pad: str | None = "x" * (_LARGE_PAD if code == _LARGE else _PAD)
    return json.dumps({"n": float(number) if code == _CORRUPT else number, "pad": None if code == _UNFIT else pad})


def order(job: Job, brokers: str, chance: random.Random) -> None:
    """Create the dead-letter topic, let the spec name it, and make rows bad that are so by the spec or by the sink's topic."""
    config = chance.choice(_CONFIGS)
    create_topic(brokers, job.dead, partitions=chance.randint(1, 3), config=config, replication_factor=_BROKERS_DEFAULT)
    allow(job, len(job.bad) + chance.choice((0, 0, 100)))
    if _LARGE in job.bad.values():
        create = f'create = {{ partitions = 3, config = {{ "max.message.bytes" = {_SINK_BYTES} }} }}'
        job.edit_spec("create = { partitions = 3 }", create)
    nowhere = [str(number) for number, code in job.bad.items() if code == _PARTITION]
    if nowhere:
        job.edit_spec("[record]\n", f'[record]\npartition = "CASE WHEN n IN ({", ".join(nowhere)}) THEN 99 END"\n')


def allow(job: Job, most: int) -> None:
    """Let the spec allow so many letters; with none it says nothing of them."""
    spec = re.sub(r"on_error = .*\n", "", job.spec.read_text())
    job.spec.write_text((f'on_error = {{ topic = "{job.dead}", max = {most} }}\n' if most else "") + spec)
