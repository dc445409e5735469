"""Stores the planned splits compactly for Spark's tasks, as numbers and compressed blocks. Pure.

A task whose rows pass through Spark SQL finds their splits by the hashes in the rows, so every task gets all splits. As
objects, a million splits take a GB in each Python worker of an executor, and seconds to unpickle before the first row.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from eosingest.protocol.plan import PlannedSplit

_BLOCK = 64  # splits that are compressed together; a read of one decompresses all


class SplitTable(Mapping[int, PlannedSplit]):
    """Splits by the signed 64-bit hash that their rows carry. Immutable; it pickles as a few large objects."""

    def __init__(self, splits: Mapping[int, PlannedSplit]) -> None:
        """Compress the splits; they are in the order of the plan, in which neighbours are of one item."""
        keys = np.fromiter(splits, np.int64, len(splits))
        order = np.argsort(keys)
        self._keys, self._place_of = keys[order], order.astype(np.int32)
        planned = list(splits.values())
        blocks = (planned[at : at + _BLOCK] for at in range(0, len(planned), _BLOCK))
        self._blocks = [zlib.compress(pickle.dumps(block), 1) for block in blocks]
        self._last: tuple[int, Sequence[PlannedSplit]] = (-1, ())

    def __getitem__(self, key: int) -> PlannedSplit:
        """Return the split. Raises KeyError where no planned split has that hash."""
        found = int(np.searchsorted(self._keys, key))
        if found == len(self._keys) or self._keys[found] != key:
            raise KeyError(key)
        number, within = divmod(int(self._place_of[found]), _BLOCK)
        if self._last[0] != number:  # rows come split by split: most successive reads are of one block
            self._last = (number, pickle.loads(zlib.decompress(self._blocks[number])))
        return self._last[1][within]

    def __iter__(self) -> Iterator[int]:
        """Yield the hashes, as numbers in ascending order."""
        return iter(self._keys.tolist())

    def __len__(self) -> int:
        """The number of splits."""
        return len(self._keys)
