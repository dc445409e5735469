"""Selects the items and splits that an audit reads: those with receipts, up to their committed positions. Pure.

Its input is the snapshot and the offset records; Spark reads the resulting plan. Items that can no longer be compared with
their receipts (changed, vanished, sent under an earlier spec) are always named.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from eosingest.protocol.offsets.record import ControlRecord, OffsetRecord
from eosingest.protocol.plan import Plan, PlannedItem, PlannedSplit, make_plan
from eosingest.protocol.source import Snapshot, Source, SplitId
from eosingest.records.checksum import Totals


@dataclass(frozen=True)
class Unit:
    """The unit compared with a receipt: a split, or an item that is cut in another way today or read as one.

    `run` is the first run that sent any of it.
    """

    name: str
    splits: tuple[SplitId, ...]
    receipt: Totals
    run: int

    def is_given_by(self, rows: Mapping[SplitId, Totals]) -> bool:
        """Say whether the sums over its splits' rows equal the receipt."""
        return sum((rows[split] for split in self.splits), Totals()) == self.receipt


@dataclass(frozen=True)
class AuditedSource:
    """The splits for Spark to read (`plan`), the receipts to compare (`units`), and why the rest is not read (`unread`).

    `elsewhere` are items that were sent and are not listed now: of other days, say, where a job sends a day at a time.
    """

    plan: Plan
    units: tuple[Unit, ...]
    unread: tuple[str, ...]
    elsewhere: tuple[str, ...] = ()

    def unlike(self, rows: Mapping[SplitId, Totals]) -> list[Unit]:
        """Return the units whose receipts do not equal the sums over their rows."""
        return [unit for unit in self.units if not unit.is_given_by(rows)]


def audited_source(
    source: Source,
    snapshot: Snapshot,
    offsets: Mapping[SplitId, OffsetRecord],
    control: ControlRecord,
) -> AuditedSource:
    """Match the snapshot with the receipts. Raises the errors of `make_plan`."""
    plan = make_plan(source, offsets, control.split_size, snapshot)
    receipts: dict[str, list[OffsetRecord]] = {}
    for receipt in offsets.values():
        receipts.setdefault(source.splits.item(receipt.split), []).append(receipt)
    items, units = [], list[Unit]()
    for entry in plan.items:
        found = receipts.get(entry.item.name, [])
        if found and entry.item.name not in plan.changed:
            planned, units_here = _units(source, entry, found, control.split_size)
            items.append(replace(entry, pending=planned, skipped=()))
            units += units_here
    read = {entry.item.name for entry in items}
    left = {name: _why(name, plan, snapshot) for name in sorted(receipts) if name not in read}
    elsewhere = tuple(name for name, why in left.items() if not why)
    if elsewhere and not items:
        left.update(dict.fromkeys(elsewhere, f"sent, and {plan.wording.not_named}, like everything else that was sent"))
        elsewhere = ()
    unread = tuple(f"{name}: {why}" for name, why in left.items() if why)
    return AuditedSource(replace(plan, items=tuple(items)), tuple(units), unread, elsewhere)


def _units(
    source: Source, entry: PlannedItem, receipts: list[OffsetRecord], split_size: int
) -> tuple[tuple[PlannedSplit, ...], list[Unit]]:
    """Return the splits of an item that are to be read, and the units to compare with their rows."""
    splits = source.splits.cut(entry.item, split_size)
    bounds = {split.id: split.bounds for split in splits}
    cut_alike = all(bounds.get(receipt.split) == receipt.bounds for receipt in receipts)
    if cut_alike:
        by_split = {receipt.split: receipt for receipt in receipts}
        sent = [
            PlannedSplit(split, by_split[split.id].version, by_split[split.id])
            for split in splits
            if split.id in by_split
        ]
        return tuple(sent), [_unit(planned.label, (planned.id,), [by_split[planned.id]]) for planned in sent]
    # All rows of the item were sent, even if with another split size.
    whole = _unit(entry.item.name, tuple(split.id for split in splits), receipts)
    some = receipts[0]
    return tuple(
        PlannedSplit(split, some.version, replace(some, split=split.id, bounds=split.bounds, done=True))
        for split in splits
    ), [whole]


def _unit(name: str, splits: tuple[SplitId, ...], receipts: list[OffsetRecord]) -> Unit:
    sums = sum((_of_all_rows(receipt) for receipt in receipts), Totals())
    return Unit(name, splits, sums, min(receipt.run for receipt in receipts))


def _of_all_rows(receipt: OffsetRecord) -> Totals:
    """Return the sums over a split's rows: those sent, and those that became dead letters."""
    sent, dead = Totals(receipt.records, receipt.checksum, receipt.metadata_checksum), receipt.dead
    return sent + Totals(dead.count, dead.rows, dead.metadata)


def _why(name: str, plan: Plan, snapshot: Snapshot) -> str:
    """Say why an item that was sent cannot be compared; "" where it is not listed now."""
    if name in plan.changed:
        return "changed since it was sent"
    for out in snapshot.left_out:
        if name in out.names:
            return out.audited or plan.wording.left_alone
    return ""
