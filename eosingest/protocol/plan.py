"""Makes a Plan from a source's splits and their committed positions: done splits, pending splits, obstacles. Pure.

The Spark job reads the plan. The offset records are the only progress. The driver plans after it has fenced and read;
`eosingest plan` shows a plan and fences no producer.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from eosingest.errors import ChangedError, FatalError, listed
from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.protocol.source import (
    Item,
    LeftOut,
    Snapshot,
    Source,
    Split,
    SplitId,
    SplitKind,
    Version,
    by_item,
    covered,
)
from eosingest.report.wording import Wording

_NAMED_AT_MOST = 20


@dataclass(frozen=True)
class PlannedSplit:
    """A split that a run reads, with the version that its item has now.

    `committed` is its offset record as it was when the plan was made, None where it had none. Tasks get planned splits, too.
    """

    split: Split
    version: Version
    committed: OffsetRecord | None

    @property
    def id(self) -> SplitId:
        """The split's identity."""
        return self.split.id

    @property
    def label(self) -> str:
        """The split's name in messages."""
        return self.split.label

    @property
    def done(self) -> bool:
        """Whether the split was done when the plan was made."""
        return self.committed is not None and self.committed.done


@dataclass(frozen=True)
class PlannedItem:
    """A listed item: how many `splits` it has, which are `pending`, and whether some of it is committed (`started`).

    `skipped` are the done splits of an item with pending ones: Spark reads them too, and the task skips their rows.
    """

    item: Item
    splits: int
    pending: tuple[PlannedSplit, ...]
    started: bool
    skipped: tuple[PlannedSplit, ...] = ()

    @property
    def done(self) -> bool:
        """Whether all of the item is covered by done splits."""
        return not self.pending

    @property
    def half_done(self) -> bool:
        """Whether some of the item is committed and some is not."""
        return self.started and bool(self.pending)


@dataclass(frozen=True)
class Plan:
    """The plan of a run. `changed` names sent items that have changed, `vanished` half-sent ones that are not listed.

    `stale` are the splits of changed items, whose offset records are tombstoned before the item is read again. `passed` names
    items that were sent whole and are no longer listed. `left_out`, `notes`, `folders` and `sample` are the snapshot's,
    `wording` the source's. `split_size` is in bytes; other sizes are in the unit of the kind of source (`wording.unit`).
    """

    split_size: int
    items: tuple[PlannedItem, ...]
    wording: Wording
    changed: tuple[str, ...] = ()
    vanished: tuple[str, ...] = ()
    stale: tuple[SplitId, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    committed_records: int = 0
    passed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    sample: Path | None = None

    @property
    def empty(self) -> tuple[str, ...]:
        """The names of items that have no rows at all."""
        return tuple(name for group in self.left_out if group.empty for name in group.names)

    @property
    def pending_items(self) -> tuple[PlannedItem, ...]:
        """The items that have to be read."""
        return tuple(entry for entry in self.items if entry.pending)

    @property
    def pending(self) -> tuple[PlannedSplit, ...]:
        """The splits that are left to send, by item and start."""
        return tuple(split for entry in self.items for split in entry.pending)

    @property
    def size_to_read(self) -> int:
        """The size of all items with pending splits: Spark reads their done splits again, to skip them."""
        return sum(entry.item.size for entry in self.pending_items)

    @property
    def size_to_send(self) -> int:
        """The size of the pending splits: at most this much of the source is left to send."""
        return sum(planned.split.size for planned in self.pending)

    @property
    def list_digest(self) -> str:
        """A digest of the listed items, done ones as well: their names, and the listing's data on them (`Item.seen`)."""
        digest = hashlib.blake2b(digest_size=8)
        for entry in self.items:
            digest.update(json.dumps([entry.item.name, *entry.item.seen]).encode())
        return digest.hexdigest()

    @property
    def half_done(self) -> bool:
        """Whether any item, listed or vanished, is half done."""
        return bool(self.vanished) or any(entry.half_done for entry in self.items)

    def refuse_changes(self, on_change: str) -> None:
        """Raise ChangedError where items changed and `on_change` is "error", or where a half-done item is gone."""
        item, items = self.wording.item, self.wording.items
        if self.vanished:
            raise ChangedError(
                f"{self._named(self.vanished)}: partly sent, and {self.wording.not_named}",
                code="source-vanished",
                hint=f"nothing was sent; bring the {item} back (or run with the earlier --param values) and run again",
            )
        if self.changed and on_change == "error":
            raise ChangedError(
                f"{self._named(self.changed)}: changed since it was sent",
                code="source-changed",
                hint=f"nothing was sent; restore the {item}, give the new data a new name, or set"
                f' source.on_change = "reingest" to send changed {items} again as a whole'
                " (their old records stay in the topic)",
            )

    def _named(self, names: Iterable[str]) -> str:
        return listed(list(names), _NAMED_AT_MOST, rest=f" and {{}} more {self.wording.items}")


def notes_of(plan: Plan, source: Source) -> list[str]:
    """Return a run's notes on its plan: the snapshot's, and one on sent items that are gone."""
    gone = source.missing(plan.passed)
    return [*plan.notes, *([gone_note(gone, plan.wording)] if gone else [])]


def left_out(plan: Plan) -> list[str]:
    """Return a run's notes on items that it leaves for later, or sends again."""
    notes = [group.note for group in plan.left_out if group.note]
    if plan.changed:
        changed = len(plan.changed)
        are = f"1 changed {plan.wording.item} is" if changed == 1 else f"{changed:,} changed {plan.wording.items} are"
        notes.append(f"{are} sent again as a whole; the old records stay in the topic")
    return notes


def gone_note(names: Iterable[str], wording: Wording, host: str = "") -> str:
    """Return the note on items that were sent whole and no longer exist; `host` is that of the last run, if another one."""
    gone = list(names)
    was, exist, do_not = ("was", "exists", "does not") if len(gone) == 1 else ("were", "exist", "do not")
    are = f"{was} sent whole and no longer {exist}"
    if host:
        are = f"{was} sent whole, and {do_not} exist on this host (the last run was on {host})"
    return f"{listed(gone, 5, rest=f' and {{:,}} more {wording.items}')} {are}; the records stay in the topic"


def make_plan(source: Source, offsets: Mapping[SplitId, OffsetRecord], split_size: int, snapshot: Snapshot) -> Plan:
    """Plan the splits of a snapshot that are left to send, by the offset records.

    Raises ChangedError where a half-sent item is cut into other splits than those that were sent.
    """
    recorded = by_item(source.splits, offsets.values())
    emptied = (name for out in snapshot.left_out if out.empty for name in out.names)
    changed = [name for name in (*emptied, *snapshot.changed) if name in recorded]
    plan_item = partial(_plan_item, source, split_size=split_size, versions=snapshot.versions)
    again = set(changed)
    present = {item.name for item in snapshot.items} | {name for out in snapshot.left_out for name in out.names}
    plan = Plan(
        split_size=split_size,
        items=tuple(
            plan_item(item, () if item.name in again else recorded.get(item.name, ())) for item in snapshot.items
        ),
        wording=source.wording,
        changed=tuple(changed),
        vanished=tuple(name for name in recorded if name not in present and not covered(source.splits, recorded[name])),
        passed=tuple(
            sorted(name for name in recorded if name not in present and covered(source.splits, recorded[name]))
        ),
        notes=snapshot.notes,
        folders=snapshot.folders,
        sample=snapshot.sample,
        stale=tuple(record.split for name in changed for record in recorded[name]),
        left_out=snapshot.left_out,
        committed_records=sum(record.records for record in offsets.values()),
    )
    _refuse_unassigned(source.splits, plan, recorded)
    return plan


def _refuse_unassigned(splits: SplitKind, plan: Plan, recorded: Iterable[str]) -> None:
    """Raise FatalError unless each `recorded` item has one fate: planned, changed, vanished, sent and gone, or left out.

    Its splits would be sent twice, or count as sent. So would rows that no split of a half-sent item covers.
    """
    changed = set(plan.changed)
    others = (*(entry.item.name for entry in plan.items), *(name for out in plan.left_out for name in out.names))
    fates = Counter((*plan.changed, *plan.vanished, *plan.passed, *(name for name in others if name not in changed)))
    wrong = [name for name in recorded if name not in fates] + [name for name, count in fates.items() if count > 1]
    for entry in plan.items:
        cut = ((each.id, each.split.bounds) for each in (*entry.pending, *entry.skipped))
        if entry.half_done and not splits.covers(cut, entry.pending[0].version):
            wrong.append(entry.item.name)
    if wrong:
        raise FatalError(
            f"{listed(wrong, _NAMED_AT_MOST)}: recorded splits are not planned once each",
            code="plan-inconsistent",
            hint="this is a bug in eosingest, please report it; nothing was sent by this run",
        )


def half_done_items(splits: SplitKind, offsets: Mapping[SplitId, OffsetRecord]) -> list[str]:
    """Return the names of items, listed or not, that are sent in part."""
    return [name for name, records in by_item(splits, offsets.values()).items() if not covered(splits, records)]


def _plan_item(
    source: Source, item: Item, records: Sequence[OffsetRecord], split_size: int, versions: Mapping[str, Version]
) -> PlannedItem:
    splits = source.splits.cut(item, split_size)
    if records and covered(source.splits, records):
        return PlannedItem(item, len(splits), (), started=True)
    by_split = {record.split: record for record in records}
    if records:
        _refuse_other_cuts(source, item, splits, by_split)
    planned = [PlannedSplit(split, versions[item.name], by_split.get(split.id)) for split in splits]
    return PlannedItem(
        item,
        len(splits),
        tuple(entry for entry in planned if not entry.done),
        started=bool(records),
        skipped=tuple(entry for entry in planned if entry.done),
    )


def _refuse_other_cuts(
    source: Source, item: Item, splits: Iterable[Split], records: Mapping[SplitId, OffsetRecord]
) -> None:
    """Raise ChangedError where a half-done item is cut into other splits now: part of one would be sent twice."""
    bounds = {split.id: split.bounds for split in splits}
    for split, record in records.items():
        if bounds.get(split) != record.bounds:
            was = source.splits.split(split, record.bounds)
            raise ChangedError(
                f"{item.name}: partly sent in splits of another size ({was.label}: {was.size} {source.wording.unit})",
                code="split-size-changed",
                hint="nothing was sent; run with the source.split_size that the earlier run used",
            )
