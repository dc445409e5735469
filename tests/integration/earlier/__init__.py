"""Jobs that an earlier release left half done, as they lay in Kafka: what its offset and control records were, byte for byte.

`python -m tests.integration.earlier FOLDER` records them anew with the release that is installed, on a broker of its own; a
format is recorded once, by the last release that wrote it alone, and kept.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
NAMES = ("lines", "rows")

FILES = {f"part-{number}.jsonl": range(number * 400, number * 400 + 400) for number in range(3)}
MTIME_S = 1_790_000_000

SPECS = {
    "lines": """format = "text"
path = "data/*.jsonl"
split_size = "4KiB"
[record]
value = "value"
""",
    "rows": """format = "json"
path = "data/*.jsonl"
schema = "n BIGINT, pad STRING"
split_size = "4KiB"
[record]
key = "CAST(n % 100 AS STRING)"
value = "CAST(n AS STRING)"
headers = { origin = "'flights'" }
""",
}
TAIL = """[sink]
bootstrap_servers = "{servers}"
topic = "{topic}"
create = {{ partitions = 3 }}
[transaction]
timeout = "10s"
max_records = 50
[spark]
master = "local[2]"
"""


@dataclass(frozen=True)
class Earlier:
    """What a run that was killed left behind: records of the offsets topic and of the sink topic, in the order of their logs.

    `offsets` are (key, value) of the job's partition, None for a tombstone; `sink` are (partition, key, value, headers). The
    ids of the recording's cluster and topics stand in the control records, and have to be replaced where they are played.
    """

    release: str
    name: str
    topic: str
    ids: dict[str, str]
    offsets: list[tuple[str, str | None]]
    sink: list[tuple[int, str | None, str, dict[str, str]]] = field(repr=False)

    @classmethod
    def load(cls, name: str) -> Earlier:
        """Read a recording."""
        loaded: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
        return cls(**{**loaded, "offsets": [(key, value) for key, value in loaded["offsets"]]})


def spec_of(name: str, job: str, servers: str) -> str:
    """Return the spec of a recording's job."""
    return f'name = "{job}"\n[source]\n{SPECS[name]}{TAIL.format(servers=servers, topic=job)}'


def write_files(folder: Path) -> None:
    """Write the source files as they were, with the same modification time."""
    import os

    folder.mkdir(parents=True, exist_ok=True)
    for name, numbers in FILES.items():
        path = folder / name
        path.write_text("".join(json.dumps({"n": number, "pad": "x" * 20}) + "\n" for number in numbers))
        os.utime(path, (MTIME_S, MTIME_S))
