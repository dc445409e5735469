"""The source of a simulated job: files, splits, rows and what they become, made once and shared by many schedules."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from random import Random

import numpy as np

from eosingest.kafka.ports import Records
from eosingest.protocol.source import Snapshot
from eosingest.protocol.task_contract import Batch
from eosingest.records import checksum
from eosingest.sources.files.listing.fingerprint import Fingerprint
from eosingest.sources.files.listing.source_file import SourceFile
from tests.support.builders import Place, fingerprint, listing, source_file
from tests.support.made_up_files import VersionsOfFiles

TEMPLATES = 24
SPLIT_SIZE = 100
EDITED = "~"  # behind the version in the values of a split that was edited; length and modification time are as before
_VERSIONS = ("one", "two", f"one{EDITED}", f"two{EDITED}")


@dataclass(frozen=True)
class Rows:
    """The rows of one split in one version of the spec, as the batch that Spark makes of them."""

    batch: Batch
    values: tuple[bytes, ...]
    checksums: tuple[int, ...]  # of the first n rows


@dataclass
class SimulatedSource(VersionsOfFiles):
    """A source; `rows` by version, file and start: those of an edited split under the version with EDITED."""

    files: tuple[SourceFile, ...]
    lengths: dict[Place, int]  # rows of each split
    hashes: dict[Place, int]
    rows: dict[str, dict[Place, Rows]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__(self.read_content)

    def find(self) -> Snapshot:
        return listing(*self.files)

    def read_content(self, file: SourceFile) -> Fingerprint:
        return fingerprint(file.length, mtime_ms=file.mtime_ms)

    def changed(self, files: Iterable[SourceFile]) -> list[str]:
        return []

    @property
    def row_count(self) -> int:
        return sum(self.lengths.values())


def value_of(split: Place, row: int, version: str) -> bytes:
    """Return the value of a row's record: it says where it comes from, and by which version of the spec."""
    return f"{split[0]}|{split[1]}|{row}|{version}".encode()


@cache
def template(number: int) -> SimulatedSource:
    """Make one of TEMPLATES sources: few files, few splits, few rows; some splits without any."""
    random = Random(f"source {number}")
    files, lengths, hashes = [], {}, {}
    for index in range(random.choice((1, 1, 2, 2, 3))):
        name = f"file-{index}"
        splits = random.choice((1, 2, 2, 3))
        files.append(source_file(name, splits * SPLIT_SIZE))
        for start in range(0, splits * SPLIT_SIZE, SPLIT_SIZE):
            lengths[name, start] = random.choice((0, 1, 2, 3, 4, 6))
            hashes[name, start] = len(hashes) + 1
    if not any(lengths.values()):
        lengths["file-0", 0] = 2
    source = SimulatedSource(tuple(files), lengths, hashes)
    source.rows = {version: {split: _rows(source, split, version) for split in lengths} for version in _VERSIONS}
    return source


def _rows(source: SimulatedSource, split: Place, version: str) -> Rows:
    count = source.lengths[split]
    values = [value_of(split, row, version) for row in range(count)]
    keys = [f"k{row % 3}".encode() for row in range(count)]
    unsigned = [checksum.record_hash(key, value) for key, value in zip(keys, values, strict=True)]
    sums = [0]
    for digest in unsigned:
        sums.append((sums[-1] + digest) % (1 << 64))
    batch = Batch(
        splits=np.full(count, source.hashes[split], dtype=np.int64),
        records=Records(keys, values),
        hashes=np.array(unsigned, dtype=np.uint64).view(np.int64),
        sizes=np.array([len(key) + len(value) for key, value in zip(keys, values, strict=True)], dtype=np.int64),
    )
    return Rows(batch, tuple(values), tuple(sums))
