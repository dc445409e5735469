"""Decides whether a spec may change in the middle of a job (`run --accept-change`), and what must be proven first. Pure.

The driver has the old pins and the receipts, and Spark reads the source under the new spec. Every split of which anything was
sent under the old pins must give its receipt, a done one over its whole length. Nothing is sent before that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from eosingest.errors import ChangedError, listed
from eosingest.protocol.audited_source import AuditedSource
from eosingest.protocol.offsets.record import ControlRecord, OffsetRecord
from eosingest.protocol.pins import from_scratch_hint
from eosingest.protocol.source import SplitId
from eosingest.records.checksum import Totals

# Settings of a record's partition, which no receipt covers.
_BEYOND_RECEIPTS = frozenset({"record.partition", "sink.partitioner"})
_NAMED_AT_MOST = 5


def sent_since_pinned(control: ControlRecord, offsets: Mapping[SplitId, OffsetRecord]) -> dict[SplitId, OffsetRecord]:
    """Return the receipts that the changed spec has to give: those of runs since the pins were made."""
    return {split: offset for split, offset in offsets.items() if offset.run >= control.pinned_since}


def refuse_unprovable(changed: Iterable[str]) -> None:
    """Raise ChangedError where receipts cannot prove that the records in the topic stay as they are."""
    beyond = sorted(_BEYOND_RECEIPTS & set(changed))
    if beyond:
        raise _refused(f"{', '.join(beyond)} cannot be changed in the middle of a job: receipts do not cover it")


def refuse_unproven(rows: AuditedSource, sums: Mapping[SplitId, Totals]) -> None:
    """Raise ChangedError where a split that was sent does not give its receipt under the new spec, or cannot be read."""
    left = [*rows.unread, *(f"{name}: sent, and {rows.plan.wording.not_named}" for name in rows.elsewhere)]
    unlike = [f"{unit.name}: the changed spec gives other rows than were sent" for unit in rows.unlike(sums)]
    if left or unlike:
        raise _refused(listed([*unlike, *left], _NAMED_AT_MOST, separator="; ", rest="; and {} more"))


def _refused(text: str) -> ChangedError:
    return ChangedError(
        f"the changed spec was not accepted: {text}",
        code="change-not-proven",
        hint="nothing was sent; restore the spec and run again until the job is complete, then change it; or take a new job"
        f" name{from_scratch_hint()}",
    )
