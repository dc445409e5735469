"""Stores the planned splits compactly for Spark's tasks, as columns of numbers and compressed bytes. Pure.

Spark alone decides which splits a task gets, so every task gets all of them. As objects, a million splits take a GB in each
Python worker of an executor, and seconds to unpickle before the first row. Here they take some ten MB, which are only copied.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np

from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.protocol.plan import PlannedSplit
from eosingest.protocol.source import Json, Split, SplitId

_BLOCK = 64  # texts that are compressed together; a read of one decompresses all


class _Texts:
    """JSON texts by number, in compressed blocks, since neighbours are similar. No text may have a zero byte."""

    def __init__(self, texts: Iterable[bytes]) -> None:
        listed = list(texts)
        blocks = (listed[at : at + _BLOCK] for at in range(0, len(listed), _BLOCK))
        self._blocks = [zlib.compress(b"\0".join(block), 1) for block in blocks]
        self._last: tuple[int, list[bytes]] = (-1, [])

    def __getitem__(self, at: int) -> bytes:
        number, within = divmod(at, _BLOCK)
        if self._last[0] != number:  # rows come split by split: most successive reads are of one block
            self._last = (number, zlib.decompress(self._blocks[number]).split(b"\0"))
        return self._last[1][within]


class SplitTable(Mapping[int, PlannedSplit]):
    """Splits by the signed 64-bit hash that their rows carry. Immutable; it pickles as a few large objects."""

    def __init__(
        self, splits: Mapping[int, PlannedSplit], restore: Callable[[SplitId, Mapping[str, Json]], Split]
    ) -> None:
        """`restore` builds a split from its identity and bounds; pickle requires a module's function."""
        keys = np.fromiter(splits, np.int64, len(splits))
        order = np.argsort(keys)
        self._keys, self._place_of = keys[order], order.astype(np.int32)
        self._restore = restore
        planned = list(splits.values())  # in the order of the plan, where neighbours are of one item
        numbers: dict[bytes, int] = {}
        self._version_of = np.array(
            [numbers.setdefault(_encoded(one.version), len(numbers)) for one in planned], np.int32
        )
        self._versions = _Texts(numbers)
        self._ids = _Texts(one.id.encode("utf-8", "surrogateescape") for one in planned)
        self._bounds = _Texts(_encoded(one.split.bounds) for one in planned)
        self._committed = _Texts(one.committed.encode() if one.committed else b"" for one in planned)

    def __getitem__(self, key: int) -> PlannedSplit:
        """Return the split. Raises KeyError where no planned split has that hash."""
        found = int(np.searchsorted(self._keys, key))
        if found == len(self._keys) or self._keys[found] != key:
            raise KeyError(key)
        at = int(self._place_of[found])
        split, value = self._ids[at].decode("utf-8", "surrogateescape"), self._committed[at]
        return PlannedSplit(
            self._restore(split, json.loads(self._bounds[at])),
            json.loads(self._versions[int(self._version_of[at])]),
            OffsetRecord.decode(value, split=split) if value else None,
        )

    def __iter__(self) -> Iterator[int]:
        """Yield the hashes, as numbers in ascending order."""
        return iter(self._keys.tolist())

    def __len__(self) -> int:
        """The number of splits."""
        return len(self._keys)


def _encoded(value: Mapping[str, Json]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
