"""The planned splits as the tasks that Spark gives rows to are told of them: columns of numbers, and bytes. Pure.

Which splits such a task gets Spark alone decides, so each is told of all. As objects a million of them take a GB in each of
an executor's workers, and seconds to unpickle before the first row; here it is some hundred MB, and a copy.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np

from eosingest.protocol.offsets.record import decode_offset
from eosingest.protocol.plan import PlannedSplit
from eosingest.protocol.source import Json, Split, SplitId


class _Texts:
    """A row of byte strings, end to end."""

    def __init__(self, texts: Iterable[bytes]) -> None:
        listed = list(texts)
        self._ends = np.cumsum([len(text) for text in listed], dtype=np.int64)
        self._bytes = b"".join(listed)

    def __getitem__(self, at: int) -> bytes:
        return self._bytes[int(self._ends[at - 1]) if at else 0 : int(self._ends[at])]


class SplitTable(Mapping[int, PlannedSplit]):
    """Splits by the signed 64-bit hash that their rows carry. Frozen, and pickles as few large pieces."""

    def __init__(
        self, splits: Mapping[int, PlannedSplit], restore: Callable[[SplitId, Mapping[str, Json]], Split]
    ) -> None:
        """Take the splits in; `restore`, a function of a module, makes a split again of its identity and its bounds."""
        keys = np.fromiter(splits, np.int64, len(splits))
        self._keys = np.sort(keys)
        self._restore = restore
        ordered = [splits[key] for key in self._keys.tolist()]
        numbers: dict[bytes, int] = {}
        of_version = [numbers.setdefault(_encoded(planned.version), len(numbers)) for planned in ordered]
        self._version_of = np.array(of_version, np.int32)
        self._versions = _Texts(numbers)
        self._ids = _Texts(planned.id.encode("utf-8", "surrogateescape") for planned in ordered)
        self._bounds = _Texts(_encoded(planned.split.bounds) for planned in ordered)
        self._committed = _Texts(planned.committed.encode() if planned.committed else b"" for planned in ordered)

    def __getitem__(self, key: int) -> PlannedSplit:
        """Return the split; KeyError where no planned one has that hash."""
        at = int(np.searchsorted(self._keys, key))
        if at == len(self._keys) or self._keys[at] != key:
            raise KeyError(key)
        split, value = self._ids[at].decode("utf-8", "surrogateescape"), self._committed[at]
        return PlannedSplit(
            self._restore(split, json.loads(self._bounds[at])),
            json.loads(self._versions[int(self._version_of[at])]),
            decode_offset(split, value) if value else None,
        )

    def __iter__(self) -> Iterator[int]:
        """Yield the hashes, in their order as numbers."""
        return iter(self._keys.tolist())

    def __len__(self) -> int:
        """How many splits there are."""
        return len(self._keys)


def _encoded(value: Mapping[str, Json]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
