"""Defines a column of byte strings as addresses in memory: librdkafka reads records from it without Python objects.

spark/worker.py makes it from Arrow batches. Other code than librdkafka's sees a sequence of `bytes | None`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import overload

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class BinaryColumn(Sequence[bytes | None]):
    """`addresses` (0 is null; an empty value has one) and `lengths` in bytes, of memory that lives as long as `owner`.

    All values are in one block of memory, so that the bytes between two of them may be read, too.
    """

    owner: object
    addresses: npt.NDArray[np.uint64]
    lengths: npt.NDArray[np.int64]

    @classmethod
    def of(
        cls,
        owner: object,
        *,
        data: int,
        offsets: npt.NDArray[np.int32] | npt.NDArray[np.int64],
        valid: npt.NDArray[np.bool_] | None,
    ) -> BinaryColumn:
        """Make it from an Arrow layout: n + 1 `offsets` into memory at the address `data`; `valid` None: no value is null."""
        starts = offsets[:-1].astype(np.uint64) + np.uint64(data)
        lengths = np.diff(offsets).astype(np.int64)
        if valid is not None:
            starts, lengths = np.where(valid, starts, np.uint64(0)), np.where(valid, lengths, 0)
        return cls(owner, starts, lengths)

    @classmethod
    def nulls(cls, count: int) -> BinaryColumn:
        """Make a column of nulls only."""
        return cls(None, np.zeros(count, np.uint64), np.zeros(count, np.int64))

    def __len__(self) -> int:
        return len(self.addresses)

    @overload
    def __getitem__(self, index: int) -> bytes | None: ...
    @overload
    def __getitem__(self, index: slice) -> BinaryColumn: ...
    def __getitem__(self, index: int | slice) -> bytes | BinaryColumn | None:
        if isinstance(index, slice):
            return BinaryColumn(self.owner, self.addresses[index], self.lengths[index])
        return _bytes_at(int(self.addresses[index]), int(self.lengths[index]))

    def where(self, mask: npt.NDArray[np.bool_]) -> BinaryColumn:
        """Return the values for which the mask is true."""
        return BinaryColumn(self.owner, self.addresses[mask], self.lengths[mask])

    def __iter__(self) -> Iterator[bytes | None]:
        """Copy the memory once and cut it: a copy of each value by ctypes takes three times as long."""
        there = self.addresses != 0
        if not there.any():
            return repeat(None, len(self))
        begin = self.addresses[there].min()
        starts = (self.addresses - begin).astype(np.int64)  # means nothing where the value is null
        ends = starts + self.lengths
        data = ctypes.string_at(int(begin), int(ends[there].max()))
        slices = zip(starts.tolist(), ends.tolist(), strict=True)
        if there.all():
            return iter([data[start:end] for start, end in slices])
        values = zip(there.tolist(), slices, strict=True)
        return iter([data[start:end] if is_there else None for is_there, (start, end) in values])

    def __contains__(self, value: object) -> bool:
        return not self.addresses.all() if value is None else any(value == found for found in self)


def _bytes_at(address: int, length: int) -> bytes | None:
    return ctypes.string_at(address, length) if address else None
