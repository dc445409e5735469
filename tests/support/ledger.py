"""A kind of source of the tests' own, whose splits are read in Python: ledgers, files of rows with a length in front of each.

Its words are none of files': a split is so many rows of a ledger from one on, its position a number of rows, and its table
in a spec has keys of its own (ledger_table.py). Only processes of tests know it (`register`).
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from eosingest.errors import ChangedError, SpecError
from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.protocol.source import (
    CommittedPosition,
    Item,
    Json,
    Kept,
    Recorded,
    Snapshot,
    Source,
    Split,
    SplitId,
    SplitKind,
    Version,
)
from eosingest.report.wording import Wording
from eosingest.sources import registry
from eosingest.sources.base import compared
from eosingest.sources.registry import Kind

ROWS = 16  # of a split
_BATCH_ROWS = 5  # no split ends with a batch
_ROOT = Path(__file__).parents[2]
# What is PYTHONPATH for processes that are to know ledgers.
PROCESSES = os.pathsep.join(map(str, (_ROOT / "tests" / "support" / "ledger_site", _ROOT)))
COLUMNS = {"n": "BIGINT", "v": "STRING", "raw": "BINARY"}


def write_rows(path: Path, rows: Iterable[bytes]) -> None:
    path.write_bytes(b"".join(struct.pack("<I", len(row)) + row for row in rows))


def read_rows(path: Path) -> list[bytes]:
    data, rows, at = path.read_bytes(), list[bytes](), 0
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at)
        rows.append(data[at + 4 : at + 4 + length])
        at += 4 + length
    return rows


@dataclass(frozen=True)
class LedgerSplit(Split):
    """`rows` rows of a ledger, from row `first` on."""

    ledger: str
    first: int
    rows: int

    @property
    def item(self) -> str:
        return self.ledger

    @property
    def key(self) -> dict[str, Json]:
        return {"ledger": self.ledger, "first": self.first}

    @property
    def bounds(self) -> dict[str, Json]:
        return {"rows": self.rows}

    @property
    def size(self) -> int:
        return self.rows

    @property
    def label(self) -> str:
        return f"{self.ledger}, rows from {self.first} on"

    def size_before(self, committed: CommittedPosition) -> int | None:
        return None


WORDING = Wording(
    item="ledger",
    items="ledgers",
    unit="rows",
    not_named="not in the folder now",
    kept="its length and time of writing",
    later="",
    on_executors="have the ledgers",
)


@dataclass(frozen=True)
class Ledger:
    """One ledger as it was listed (a `protocol.source.Item`): its rows and bytes, and when it was written, in nanoseconds."""

    name: str
    path: str
    size: int
    bytes: int
    written: int

    @property
    def seen(self) -> tuple[Json, ...]:
        return (self.bytes, self.written)


class LedgerSplits(SplitKind):
    """Ledgers as splits."""

    def cut(self, item: Item, split_size: int) -> tuple[Split, ...]:
        assert isinstance(item, Ledger)
        rows = len(read_rows(Path(item.path)))
        return tuple(LedgerSplit(item.name, first, min(ROWS, rows - first)) for first in range(0, rows, ROWS))

    def split(self, split: SplitId, bounds: Mapping[str, Json]) -> LedgerSplit:
        key = json.loads(split)
        return LedgerSplit(key["ledger"], key["first"], cast(int, bounds["rows"]))

    def item(self, split: SplitId) -> str:
        return cast(str, json.loads(split)["ledger"])

    def covers(self, done: Iterable[Kept], version: Version) -> bool:
        splits = [self.split(*kept) for kept in done]
        rows = {row for one in splits for row in range(one.first, one.first + one.rows)}
        return rows >= set(range(cast(int, version["rows"])))


class LedgerSource(Source):
    """The ledgers of a folder."""

    wording = WORDING
    splits = LedgerSplits()

    def __init__(self, directory: Path, folder: str) -> None:
        self._directory, self._folder = directory, folder

    def check(self) -> None:
        """Raise SpecError for a folder without a ledger."""
        if not self._listed():
            raise SpecError(f"there is no ledger in {self._folder}", code="source-empty", hint="nothing was sent")

    def plan(self, scope: object = None, recorded: Iterable[Recorded] = (), purpose: object = None) -> Snapshot:
        return compared(Snapshot(self._listed()), self.splits, recorded, _unchanged, _version)

    def _listed(self) -> tuple[Ledger, ...]:
        return tuple(self._ledger(path) for path in sorted((self._directory / self._folder).iterdir()))

    def _ledger(self, path: Path) -> Ledger:
        status = path.stat()
        name = f"{self._folder}/{path.name}"
        return Ledger(name, str(path), len(read_rows(path)), status.st_size, status.st_mtime_ns)

    def changed(self, items: Iterable[Item]) -> list[str]:
        return [item.name for item in items if not _is_as_listed(item)]

    def missing(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if not (self._directory / name).exists()]


def _version(item: Ledger, known: Sequence[Version]) -> Version:
    same = next((one for one in known if [one["size"], one["time"]] == [*item.seen]), None)
    if same is not None:
        return same
    if not _is_as_listed(item):
        raise ChangedError(f"{item.name} was changed since it was listed", code="file-changed")
    digest = hashlib.sha256(Path(item.path).read_bytes()).hexdigest()
    return {"size": item.bytes, "time": item.written, "sha": digest, "rows": len(read_rows(Path(item.path)))}


def _unchanged(item: Ledger, recorded: Sequence[Version]) -> bool:
    now = _version(item, recorded)
    return all(one["sha"] == now["sha"] for one in recorded)


def _is_as_listed(item: Any) -> bool:
    try:
        status = os.stat(item.path)
    except FileNotFoundError:
        return False
    return [status.st_size, status.st_mtime_ns] == [*item.seen]


def die_at(path: Path, row: int) -> Path:
    """Have the process that reads a ledger die once, at about a row; return what is there until then."""
    mark = path.parent.parent / f"{path.name}.die"
    mark.write_text(str(row))
    return mark


def _die_where_told(path: str, row: int) -> None:
    mark = Path(path).parent.parent / f"{Path(path).name}.die"
    if mark.exists() and row >= int(mark.read_text()):
        mark.unlink()
        os.kill(os.getpid(), signal.SIGKILL)


class LedgerReader:
    """Reads a split (`python_scan.ArrowReader`)."""

    def read(self, split: Any, committed: OffsetRecord | None) -> Iterator[pa.RecordBatch]:
        planned = split.planned.split
        for first in range(planned.first, planned.first + planned.rows, _BATCH_ROWS):
            if not _is_as_listed(split.item):
                raise ChangedError(
                    f"{split.item.name}: changed after it was listed",
                    code="changed-while-read",
                    hint="restore the ledger",
                    item=split.item.name,
                )
            _die_where_told(split.item.path, first)
            end = min(first + _BATCH_ROWS, planned.first + planned.rows)
            rows = read_rows(Path(split.item.path))[first:end]
            numbers, texts = pa.array(range(first, end), pa.int64()), pa.array([row.decode() for row in rows])
            yield pa.RecordBatch.from_arrays([numbers, texts, pa.array(rows, pa.binary())], names=list(COLUMNS))


def source_of(table: Any, directory: Path, check: Callable[[], None]) -> LedgerSource:
    return LedgerSource(directory, table.folder)


def scan_of(table: Any, records: Any, conf: Mapping[str, str]) -> Any:
    from eosingest.spark.python_scan import PythonScan
    from eosingest.spark.scan import Scan

    class LedgerScan(Scan):
        """Reads ledgers, whose columns are always the same."""

        def of(self, plan: Any, schema: str | None = None) -> PythonScan:
            return PythonScan(records, LedgerReader(), COLUMNS)

    return LedgerScan()


LEDGERS = Kind(
    ("ledger",),
    table_class="tests.support.ledger_table:LedgerTable",
    source_factory=f"{__name__}:source_of",
    scan_factory=f"{__name__}:scan_of",
    in_tasks=(__name__,),
)


def register() -> None:
    """Let this process know ledgers."""
    registry.KINDS = (*registry.KINDS, LEDGERS)
