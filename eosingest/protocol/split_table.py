"""The planned splits as the tasks that Spark gives rows to are told of them: columns of numbers, and bytes. Pure.

Which splits such a task gets Spark alone decides, so each is told of all. As objects a million of them take a GB in each of
an executor's workers, and seconds to unpickle before the first row; here it is some hundred MB, and a copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from eosingest.protocol.offsets.record import OffsetRecord, decode_offset
from eosingest.protocol.source import Fingerprint
from eosingest.protocol.task_contract import TaskSplit


class _Texts:
    """A row of byte strings, end to end."""

    def __init__(self, texts: Iterable[bytes]) -> None:
        listed = list(texts)
        self._ends = np.cumsum([len(text) for text in listed], dtype=np.int64)
        self._bytes = b"".join(listed)

    def __getitem__(self, at: int) -> bytes:
        return self._bytes[int(self._ends[at - 1]) if at else 0 : int(self._ends[at])]


class SplitTable(Mapping[int, TaskSplit]):
    """Splits by the signed 64-bit hash that their rows carry. Frozen, and pickles as few large pieces."""

    def __init__(self, splits: Mapping[int, TaskSplit]) -> None:
        """Take the splits in; files are told once each."""
        keys = np.fromiter(splits, np.int64, len(splits))
        self._keys = np.sort(keys)
        ordered = [splits[key] for key in self._keys.tolist()]
        numbers: dict[tuple[str, Fingerprint], int] = {}
        of_file = [numbers.setdefault((split.file, split.fingerprint), len(numbers)) for split in ordered]
        self._file_of = np.array(of_file, np.int32)
        self._starts = np.array([split.start for split in ordered], np.int64)
        self._lengths = np.array([split.length for split in ordered], np.int64)
        self._names = _Texts(name.encode("utf-8", "surrogateescape") for name, _ in numbers)
        self._contents = _Texts(fingerprint.content.encode() for _, fingerprint in numbers)
        self._file_lengths = np.array([fingerprint.length for _, fingerprint in numbers], np.int64)
        self._mtimes = np.array([fingerprint.mtime_ms for _, fingerprint in numbers], np.int64)
        self._committed = _Texts(split.committed.encode() if split.committed else b"" for split in ordered)

    def __getitem__(self, key: int) -> TaskSplit:
        """Return the split; KeyError where no planned one has that hash."""
        at = int(np.searchsorted(self._keys, key))
        if at == len(self._keys) or self._keys[at] != key:
            raise KeyError(key)
        file = int(self._file_of[at])
        name, start = self._names[file].decode("utf-8", "surrogateescape"), int(self._starts[at])
        return TaskSplit(name, start, int(self._lengths[at]), self._fingerprint(file), self._record(at, name, start))

    def _fingerprint(self, file: int) -> Fingerprint:
        return Fingerprint(int(self._file_lengths[file]), int(self._mtimes[file]), self._contents[file].decode())

    def _record(self, at: int, name: str, start: int) -> OffsetRecord | None:
        value = self._committed[at]
        return decode_offset({"file": name, "start": start}, value) if value else None

    def __iter__(self) -> Iterator[int]:
        """Yield the hashes, in their order as numbers."""
        return iter(self._keys.tolist())

    def __len__(self) -> int:
        """How many splits there are."""
        return len(self._keys)
