"""Refuses a run in one transaction (`transaction.boundary = "job"`) that is half sent, too large or too long. Pure.

For the driver before it sends (planning.py), and tasks while they send (task.py). See docs/protocol.md, All in one
transaction.
"""

from __future__ import annotations

from collections.abc import Iterable

from eosingest.errors import ChangedError, FatalError
from eosingest.protocol.offsets.record import ControlRecord, OffsetRecord
from eosingest.protocol.pins import from_scratch_hint
from eosingest.protocol.plan import Plan
from eosingest.protocol.task_contract import TaskSettings

_TOO_LARGE = "too-large-for-one-transaction"
_BY_PARTS = 'or send it by parts, with transaction.boundary = "limits"'


def refuse_half_sent(control: ControlRecord, plan: Plan, offsets: Iterable[OffsetRecord]) -> None:
    """Raise ChangedError where rows were committed by parts since the job was last complete, and more are to be sent.

    A run that sent everything in one transaction may have ended before its verdict: newer rows go in another transaction.
    """
    first = control.by_parts_since
    if plan.pending and first and any(offset.rows and offset.run >= first for offset in offsets):
        left = "1 split is" if len(plan.pending) == 1 else f"{len(plan.pending):,} splits are"
        raise ChangedError(
            f"{left} left to send, and earlier runs have sent other rows in separate transactions",
            code="half-sent",
            hint='nothing was sent; finish with transaction.boundary = "limits", and set "job" again once the job is complete;'
            f" or take a new job name{from_scratch_hint()}",
        )


def by_parts_since(control: ControlRecord, *, whole: bool) -> int:
    """Return the field for `running`: 0 if `whole`, as then no run by parts has sent a row since `complete`."""
    return 0 if whole else control.by_parts_since or control.run


def too_large(settings: TaskSettings) -> FatalError:
    """Make the error of a run that has more records or bytes than one transaction may have."""
    return FatalError(
        f"the run has more than the {settings.max_records:,} records or {settings.max_bytes:,} bytes that one transaction may"
        " have",
        code=_TOO_LARGE,
        hint=f"nothing was sent; raise transaction.max_records or transaction.max_bytes, {_BY_PARTS}",
    )


def too_long(settings: TaskSettings) -> FatalError:
    """Make the error of a run that takes longer than its transaction may be open."""
    return FatalError(
        f"the run had not sent everything before its transaction would time out ({settings.transaction_timeout_s:g} s)",
        code=_TOO_LARGE,
        hint="nothing was sent; raise transaction.timeout, up to the brokers' transaction.max.timeout.ms (15 minutes by"
        f" default), {_BY_PARTS}",
    )
