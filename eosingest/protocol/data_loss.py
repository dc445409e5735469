"""Refuses or records source data that was deleted before it was read (`run --accept-gap`).

Follows the plan. The transaction of `running` moves the position to the end of the gap and records the gap: sent records,
missing data and the position from which reading resumes never disagree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from eosingest.errors import SpecError
from eosingest.protocol.offsets.gap import GapRecord
from eosingest.protocol.offsets.record import DRIVER, OffsetRecord
from eosingest.protocol.offsets.state import JobState
from eosingest.protocol.plan import Plan, PlannedItem, PlannedSplit
from eosingest.protocol.source import Gap, Source, SplitId


@dataclass(frozen=True)
class Accepted:
    """The gaps that a run skips: the records of them, and the moved offset records of their splits."""

    gaps: tuple[GapRecord, ...] = ()
    moved: tuple[OffsetRecord, ...] = ()


def refuse_without_use(source: Source) -> None:
    """Raise SpecError where gaps are to be accepted of a source whose data does not expire."""
    if source.splits.unread is None:
        raise SpecError(
            f"--accept-gap: data of a {source.wording.item} does not expire before it is read, as records of a topic do",
            code="no-gaps",
            hint="nothing was sent; run without --accept-gap",
        )


def refuse(source: Source, gaps: Sequence[Gap]) -> None:
    """Raise the source's ChangedError for gaps, where there are any."""
    if gaps and source.splits.unread is not None:
        raise source.splits.unread([gap.text for gap in gaps])


def accepted(plan: Plan, gaps: Iterable[Gap], *, run: int, time: str) -> tuple[Plan, Accepted]:
    """Return the plan whose splits resume after the gaps, and the records to commit with `running` for that."""
    by_split = {gap.split: gap for gap in gaps}
    moved = {
        planned.id: _moved(planned, by_split[planned.id], run) for planned in plan.pending if planned.id in by_split
    }
    records = tuple(GapRecord(gap.name, gap.text, gap.size, run, time) for gap in by_split.values())
    items = tuple(_behind(entry, moved) for entry in plan.items)
    return replace(plan, items=items), Accepted(records, tuple(moved.values()))


def told(state: JobState) -> tuple[dict[str, Any], ...]:
    """Return the job's gaps for reports, by name."""
    return tuple(vars(gap) for _, gap in sorted(state.gaps.items()))


def _behind(entry: PlannedItem, moved: Mapping[SplitId, OffsetRecord]) -> PlannedItem:
    pending = tuple(replace(planned, committed=moved.get(planned.id, planned.committed)) for planned in entry.pending)
    return replace(entry, pending=pending)


def _moved(planned: PlannedSplit, gap: Gap, run: int) -> OffsetRecord:
    """Return the split's offset record with the position at the gap's end. Count and receipt stay: nothing was sent."""
    committed = planned.committed
    if committed is None:
        return OffsetRecord(
            split=planned.id,
            bounds=planned.split.bounds,
            position=gap.position,
            position_kind=gap.position_kind,
            done=False,
            rows=0,
            records=0,
            checksum=0,
            version=planned.version,
            run=run,
            task=DRIVER,
            sequence=0,
            metadata_checksum=0,
        )
    return replace(
        committed,
        position=gap.position,
        position_kind=gap.position_kind,
        row_records=None,  # the rest of a source row that was sent in part is gone with it
        run=run,
        task=DRIVER,
        sequence=committed.sequence + 1,
    )
