"""Merges offset records of adjacent done splits, so that state stays bounded.

With `complete`, for a kind of source that makes new splits in every run (`protocol.source.SplitKind.merges`). Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from eosingest.protocol.offsets.dead_letters import NO_DEAD_LETTERS
from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.protocol.source import Fold, SplitId, SplitKind
from eosingest.records.checksum import MODULUS


@dataclass(frozen=True)
class Folded:
    """The changes with `complete`: the records of merged splits, and the splits whose records are tombstoned."""

    records: tuple[OffsetRecord, ...] = ()
    gone: tuple[SplitId, ...] = ()


def folded(splits: SplitKind, offsets: Mapping[SplitId, OffsetRecord]) -> Folded:
    """Merge the done splits among `offsets` that the kind names. All sums over them stay the same."""
    folds = splits.merges((record.split, record.bounds) for record in offsets.values() if record.done)
    records = tuple(_joined(fold, [offsets[split] for split in fold.splits]) for fold in folds)
    return Folded(records, tuple(split for fold in folds for split in fold.splits[1:]))


def _joined(fold: Fold, parts: Sequence[OffsetRecord]) -> OffsetRecord:
    """Return one record for several, by the identity of the first, with the position and version of the last.

    `run` is the lowest: an audit names the first run that sent any of them.
    """
    return replace(
        parts[-1],
        split=fold.splits[0],
        bounds=fold.bounds,
        rows=sum(part.rows for part in parts),
        records=sum(part.records for part in parts),
        checksum=sum(part.checksum for part in parts) % MODULUS,
        metadata_checksum=sum(part.metadata_checksum for part in parts) % MODULUS,
        dead=sum((part.dead for part in parts), NO_DEAD_LETTERS),
        run=min(part.run for part in parts),
        sequence=max(part.sequence for part in parts) + 1,
    )
