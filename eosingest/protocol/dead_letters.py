"""Makes dead letters: records in place of rows that the sink topic cannot take, in the same transaction.

For row_rejection.py; task.py sends them, split_progress.py counts them. No Kafka client here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from eosingest.kafka.ports import Records
from eosingest.protocol.offsets.dead_letters import NO_DEAD_LETTERS, DeadLetters
from eosingest.protocol.plan import PlannedSplit
from eosingest.protocol.task_contract import Batch, DeadLetterSettings, TaskSettings
from eosingest.records import checksum
from eosingest.records.limits import BATCH_OVERHEAD, BadRow

JOB_HEADER = "eosingest.job"
_HEADER_OVERHEAD = 10  # at most: the lengths of name and value
_Header = tuple[str, bytes | None]


@dataclass(frozen=True)
class Letters:
    """The dead letters of a batch: `rows` has their row numbers in it, ascending, and `records` a record for each."""

    rows: npt.NDArray[np.int64]
    records: Records

    def __len__(self) -> int:
        return len(self.rows)

    def between(self, start: int, end: int) -> Letters:
        """Return the dead letters of the rows [start, end), numbered from `start`."""
        first, last = np.searchsorted(self.rows, (start, end)).tolist()
        return Letters(self.rows[first:last] - start, self.records.slice(first, last))

    def others(self, batch: Batch) -> Batch:
        """Return the batch's rows that are not dead letters."""
        if not len(self):
            return batch
        mask = np.ones(len(batch.splits), np.bool_)
        mask[self.rows] = False
        return batch.where(mask)

    def without(self, hashes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the hashes of rows that are not dead letters."""
        return np.delete(hashes, self.rows) if len(self) else hashes

    def receipt(self, batch: Batch) -> DeadLetters:
        """Return their receipt for an offset record."""
        if not len(self):
            return NO_DEAD_LETTERS
        rows = checksum.add(0, batch.hashes[self.rows])
        metadata = 0 if batch.metadata is None else checksum.add(0, batch.metadata[self.rows])
        written = sum(checksum.record_hashes(zip(self.records.keys, self.records.values, strict=True)))
        return DeadLetters(len(self), rows, metadata, written % checksum.MODULUS)

    def sizes(self) -> npt.NDArray[np.int64]:
        """Return the size of each in bytes: key, value and headers."""
        each = zip(self.records.keys, self.records.values, self.records.headers or (), strict=True)
        return np.array([_length(key) + _length(value) + _size(headers) for key, value, headers in each], np.int64)


NO_LETTERS = Letters(np.zeros(0, np.int64), Records([], [], headers=[]))


def letters_of(settings: TaskSettings, split: PlannedSplit, rows: Batch, before: int, bad: Sequence[BadRow]) -> Letters:
    """Make the dead letters of a batch's bad rows; `before` counts the split's rows before it.

    The value is the text of a row that could not be parsed, else the record's value, as JSON where it does not fit the
    schema that should encode it. A dead letter too long for its topic is cut, and a header says so.
    """
    dead = settings.dead_letters
    assert dead is not None, "called only with a dead-letter topic"
    keys, values, headers = list[bytes | None](), list[bytes | None](), list[list[_Header]]()
    for each in bad:
        raw = rows.corrupt[each.index] if rows.corrupt is not None else None
        value = rows.records.values[each.index] if raw is None else raw
        told = _headers(settings, split, before + each.index + 1, each)
        key, value, told = _cut(dead, rows.records.keys[each.index], value, told)
        keys.append(key)
        values.append(value)
        headers.append(told)
    return Letters(np.array([each.index for each in bad], np.int64), Records(keys, values, headers=headers))


def with_sizes(rows: Batch, letters: Letters) -> Batch:
    """Return the rows, with the sizes of dead letters for their rows."""
    if not len(letters):
        return rows
    sizes = rows.sizes.copy()
    sizes[letters.rows] = letters.sizes()
    return replace(rows, sizes=sizes)


def _headers(settings: TaskSettings, split: PlannedSplit, row: int, bad: BadRow) -> list[_Header]:
    told = {
        "job": settings.job,
        "run": str(settings.run),
        "topic": settings.topic,
        "split": split.label,
        "row": str(row),
        "code": bad.code,
        "reason": bad.reason,
    }
    return [(f"eosingest.{name}", text.encode()) for name, text in told.items()]


def _cut(
    dead: DeadLetterSettings, key: bytes | None, value: bytes | None, headers: list[_Header]
) -> tuple[bytes | None, bytes | None, list[_Header]]:
    """Cut the value and drop a long key, to fit the topic; a header says how many bytes they had."""
    room = dead.max_message_bytes - BATCH_OVERHEAD - _size(headers)
    length = _length(key) + _length(value)
    if length <= room:
        return key, value, headers
    headers = [*headers, ("eosingest.truncated", str(length).encode())]
    room = max(0, room - _size(headers[-1:]))
    if _length(key) > room // 2:
        key = None
    return key, None if value is None else value[: room - _length(key)], headers


def _size(headers: Sequence[_Header]) -> int:
    return sum(_HEADER_OVERHEAD + len(name.encode()) + _length(value) for name, value in headers)


def _length(data: bytes | None) -> int:
    return 0 if data is None else len(data)
