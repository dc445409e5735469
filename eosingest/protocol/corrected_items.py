"""Accepts items that were corrected after a part of them was sent, if what was sent of them is proven to be as it was.

Planning uses it before it makes the plan. The proof is that of accept_change.py: each split of the item that has an offset
record must give its receipt, a done one over its whole length. Their offset records then get the item's new version. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from eosingest.protocol.audited_source import AuditedSource, Unit, audited_source
from eosingest.protocol.offsets.record import DRIVER, ControlRecord, OffsetRecord
from eosingest.protocol.source import Item, Snapshot, Source, SplitId, Version, by_item, covered
from eosingest.records.checksum import Totals


@dataclass(frozen=True)
class Corrections:
    """What a proof is to compare (`rows`), and the offset records of each item that may be accepted, as of its new version."""

    rows: AuditedSource
    records: Mapping[str, tuple[OffsetRecord, ...]]

    def unproven(self, source: Source, sums: Mapping[SplitId, Totals]) -> dict[str, list[Unit]]:
        """Return the splits that do not give their receipts, by the names of their items."""
        found: dict[str, list[Unit]] = {}
        for unit in self.rows.unlike(sums):
            found.setdefault(source.splits.item(unit.splits[0]), []).append(unit)
        return found

    def accepted(self, snapshot: Snapshot, unproven: Collection[str] = ()) -> tuple[Snapshot, tuple[OffsetRecord, ...]]:
        """Return the snapshot in which items are not changed, except `unproven` ones, with their new offset records."""
        proven = {name: records for name, records in self.records.items() if name not in unproven}
        changed = tuple(name for name in snapshot.changed if name not in proven)
        return replace(snapshot, changed=changed), tuple(each for records in proven.values() for each in records)


def corrections(
    source: Source, snapshot: Snapshot, offsets: Mapping[SplitId, OffsetRecord], control: ControlRecord
) -> Corrections | None:
    """Return what is to be proven of changed items that are sent in part; None where there are none."""
    if not source.splits.may_be_corrected or not snapshot.changed:
        return None
    changed, recorded = set(snapshot.changed), by_item(source.splits, offsets.values())
    found = dict[str, tuple[OffsetRecord, ...]]()
    for item in snapshot.items:
        if item.name in changed and not covered(source.splits, recorded[item.name]):
            records = _as_cut_now(source, item, recorded[item.name], snapshot.versions[item.name], control)
            if records:
                found[item.name] = records
    if not found:
        return None
    items = tuple(item for item in snapshot.items if item.name in found)
    sent = {record.split: record for records in found.values() for record in records}
    return Corrections(audited_source(source, replace(snapshot, items=items, changed=()), sent, control), found)


def _as_cut_now(
    source: Source, item: Item, records: Iterable[OffsetRecord], version: Version, control: ControlRecord
) -> tuple[OffsetRecord, ...]:
    """Return the item's offset records with its new version; none where a recorded split is cut otherwise now.

    Only the last split may have become longer or shorter, if it is not done: its rows are left to send.
    """
    bounds = {split.id: split.bounds for split in source.splits.cut(item, control.split_size)}
    moved = []
    for record in records:
        if record.split not in bounds or (record.done and bounds[record.split] != record.bounds):
            return ()
        moved.append(
            replace(
                record,
                bounds=bounds[record.split],
                version=version,
                run=control.run,
                task=DRIVER,
                sequence=record.sequence + 1,
            )
        )
    return tuple(moved)
