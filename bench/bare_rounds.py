"""The limit: librdkafka alone. Lines in memory, cut beforehand, handed over in one C call a batch, in transactions.

One process is one producer: `python -m bench.bare_rounds PART PARTS`. Reads lines of JSON, answers each with one.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np

from bench.works import WORKS
from eosingest.kafka.columns import BinaryColumn
from eosingest.kafka.config import ClientSettings
from eosingest.kafka.ports import Records
from eosingest.kafka.producer import LibrdkafkaProducer, ProducerSettings
from eosingest.sources.files.bytes.lines import Bounds, open_file, read_lines

_ROWS = 5_000  # in one call
_TRANSACTION = 100_000  # records: as eosingest


def pieces(path: Path) -> list[Records]:
    """Return the lines of a file in memory."""
    made = []
    with open_file(str(path)) as file:
        for lines in read_lines(file, Bounds(start=0, end=None), separator=None):
            at = np.frombuffer(lines.data, np.uint8).ctypes.data
            values = BinaryColumn(lines.data, lines.starts.astype(np.uint64) + np.uint64(at), lines.ends - lines.starts)
            keys = BinaryColumn.nulls(len(lines))
            made += [
                Records(keys[first : first + _ROWS], values[first : first + _ROWS])
                for first in range(0, len(lines), _ROWS)
            ]
    return made


def main() -> None:
    """Answer until the input ends."""
    part, parts = int(sys.argv[1]), int(sys.argv[2])
    held: dict[str, list[Records]] = {}
    for line in sys.stdin:
        order = json.loads(line)
        if order["path"] not in held:
            held = {order["path"]: [r for p in sorted(Path(order["path"]).iterdir())[part::parts] for r in pieces(p)]}
        assert WORKS[order["work"]].format == "text"
        client = ClientSettings(order["servers"], order["properties"])
        producer = LibrdkafkaProducer(f"{order['topic']}.{part}", ProducerSettings(client, order["topic"], 60))
        began = time.monotonic()
        producer.init_transactions()
        producer.begin()
        sent = 0
        for records in held[order["path"]]:
            producer.produce(order["topic"], records)
            sent += len(records)
            if sent >= _TRANSACTION:
                producer.flush()
                producer.commit()
                producer.begin()
                sent = 0
        producer.flush()
        producer.commit()
        seconds = time.monotonic() - began
        producer.close()
        print(json.dumps({"seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
