"""Reads the source as a run would, and sends nothing (`check --read`): only the source is contacted, and no JVM is started.

snapshot ─▶ the plan of a first run ─▶ the inspection of a run ─▶ the reader of a run: rows that cannot be parsed
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from eosingest.app.assemble import assemble
from eosingest.app.preview import check_of
from eosingest.app.settings import scan_of
from eosingest.errors import FatalError
from eosingest.protocol.plan import Plan
from eosingest.report.progress import Observer
from eosingest.spec import Spec

if TYPE_CHECKING:
    from eosingest.spark.read_check import Rows

_NAMED_AT_MOST = 10


def read_source(spec: Spec, observer: Observer, interrupted: Callable[[], int | None]) -> list[str]:
    """Return notes on the files that were read. Raises the errors of a run for the source, and one for corrupt rows."""
    check = check_of(interrupted)
    parts = assemble(spec, observer, check, asks_brokers=False)
    parts.source.check()
    plan = parts.first_plan()
    if not plan.items:
        return [f"nothing was read: there is no {plan.wording.item} with data in it"]
    from eosingest.spark.read_check import count_rows, in_processes

    scan = scan_of(spec)
    if not scan.checked_by_reading:
        return [f"nothing was read: a {plan.wording.item} is read by a run only"]
    observer.note(f"reading {plan.wording.count(len(plan.items))}; nothing is sent")
    tasks = in_processes(check)
    scan.inspect(tasks, plan)
    if scan.reads_all_to_infer:
        return [
            f"read {plan.wording.count(len(plan.items))}; without source.schema, values are compared with types by a run only"
        ]
    rows = count_rows(tasks, scan.of(plan), plan)
    return [_read(spec, plan, rows)]


def _read(spec: Spec, plan: Plan, rows: Sequence[Rows]) -> str:
    """Return a note with the number of rows. Raises FatalError if rows are corrupt, and none may be a dead letter."""
    corrupt = [each for each in rows if each.corrupt]
    bad = sum(each.corrupt for each in corrupt)
    total = f"{sum(each.count for each in rows):,} rows of {plan.wording.count(len(plan.items))} were read"
    if not bad:
        return f"{total}; each can be parsed"
    named = [
        f"{each.item}: {each.corrupt:,} of {each.count:,}, the first: {each.first[:200]}"
        for each in corrupt[:_NAMED_AT_MOST]
    ]
    more = ["…"] if len(corrupt) > _NAMED_AT_MOST else []
    text = f"{total}; {bad:,} cannot be parsed by the schema: {'; '.join([*named, *more])}"
    if spec.on_error != "fail" and bad <= spec.on_error.max:
        return f"{text}. A run sends them to {spec.on_error.topic}"
    way_out = (
        "have bad rows sent to a dead-letter topic (on_error)" if spec.on_error == "fail" else "raise on_error.max"
    )
    raise FatalError(
        text,
        code="corrupt-row",
        hint=f"nothing was sent; correct the {plan.wording.item}, source.schema or source.options, or {way_out}",
    )
