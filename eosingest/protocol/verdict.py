"""Decides after the Spark job which splits are proven done, and with which errors the run ends. Pure.

It takes the outcomes of the tasks that Spark calls successful, the offset records read back, and the plan; it returns done
marks and errors. End of input does not imply end of split (docs/protocol.md): this module decides which proof does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from eosingest.errors import (
    EXIT_FENCED,
    ChangedError,
    EosingestError,
    FatalError,
    IncompleteError,
    TemporaryError,
    listed,
)
from eosingest.host.interruption import RUN_AGAIN, interrupted_by
from eosingest.protocol.offsets.record import DRIVER, OffsetRecord
from eosingest.protocol.offsets.state import JobState
from eosingest.protocol.plan import Plan, PlannedSplit
from eosingest.protocol.source import SplitId
from eosingest.protocol.task_contract import Outcome
from eosingest.report.wording import Wording

_NAMED_AT_MOST = 10
_CHANGED = "changed-while-read"  # of an item; what reads it reports it too
_TASK_ERRORS: dict[str, type[EosingestError]] = {
    known.__name__: known for known in (ChangedError, FatalError, IncompleteError, TemporaryError)
}
_MEND_IT = "committed records are kept, nothing was sent twice; correct the cause and run again: it resumes from here"


@dataclass(frozen=True)
class JobResult:
    """How the Spark job ended: outcomes of the tasks that Spark calls successful, and its error, None where it has none.

    The outcomes may include those of another run: pyspark numbers accumulators from 0 in each driver, so a zombie's update may
    reach the accumulator of a later driver of the same JVM. `of_run` drops them.
    """

    outcomes: Sequence[Outcome]
    error: EosingestError | None = None

    def of_run(self, job: str, run: int, started: str) -> JobResult:
        """Return the result with the outcomes of one run alone, the last one of each task."""
        own = (each for each in self.outcomes if (each.job, each.run, each.started) == (job, run, started))
        return replace(self, outcomes=list({outcome.task: outcome for outcome in own}.values()))


def proven_done(
    plan: Plan, state: JobState, result: JobResult, *, tasks: int, run: int, changed: Sequence[str] = ()
) -> list[OffsetRecord]:
    """Return done marks for the last splits of successful tasks, and for splits that were read and gave no row.

    Splits without a row are marked only where the whole job succeeded and each of the `tasks` committed all of its input:
    then every planned split was read (the scan has checked it on the plan that Spark executed), from its first row or from
    after its position. Items in `changed`, by name, changed while they were read and get no mark: once such an item is gone, a
    later run would take it for sent.
    """
    last, bad, all_read = _last_rows(result), _bad_splits(result), _all_read(result, tasks)
    marks = []
    for planned in plan.pending:
        split = planned.id
        found = state.offsets.get(split)
        if split in bad or planned.split.item in changed or state.is_done(split):
            continue
        if found is not None and last.get(split) == found.rows:
            marks.append(replace(found, done=True, run=run, sequence=found.sequence + 1))
        elif all_read and split not in last:
            if found is None:
                marks.append(_empty(planned, run))
            elif _is_read_behind(found):
                marks.append(replace(found, done=True, run=run, sequence=found.sequence + 1))
    return marks


def _is_read_behind(found: OffsetRecord) -> bool:
    """Say whether reading begins after the split's position: then no row means that nothing is left of it."""
    return not found.position_kind.counted and found.row_records is None


def _last_rows(result: JobResult) -> dict[SplitId, int]:
    """Return how many rows the last split of each task gave."""
    return {outcome.last_split[0]: outcome.last_split[1] for outcome in result.outcomes if outcome.last_split}


def _bad_splits(result: JobResult) -> set[SplitId]:
    return {row["split"] for outcome in result.outcomes for row in outcome.bad_rows}


def _all_read(result: JobResult, tasks: int) -> bool:
    return result.error is None and {o.task for o in result.outcomes if o.read_all} == set(range(tasks))


def _empty(planned: PlannedSplit, run: int) -> OffsetRecord:
    """Make the offset record of a split that has no row. No task wrote for it."""
    return OffsetRecord(
        split=planned.id,
        bounds=planned.split.bounds,
        position=0,
        done=True,
        rows=0,
        records=0,
        checksum=0,
        version=planned.version,
        run=run,
        task=DRIVER,
        sequence=0,
        metadata_checksum=0,
    )


def errors_of(
    plan: Plan,
    state: JobState,
    result: JobResult,
    *,
    tasks: int,
    signal_number: int | None,
    changed: Sequence[str],
    half_done: Callable[[], Sequence[str]],
) -> list[EosingestError]:
    """Return the errors that keep the job from being complete. `state` includes the done marks of this run.

    `changed` are names of items that changed while they were read; `half_done` gives names of items that are half sent.
    """
    errors: list[EosingestError] = []
    if signal_number is not None:
        errors.append(interrupted_by(signal_number))
    outcomes = [outcome for outcome in result.outcomes if not _says_so_too(outcome, changed)]
    errors += outcome_errors(outcomes, plan.wording)
    if result.error is not None and signal_number is None and not _says_so_too(result.error, changed):
        errors.append(result.error)
    if changed:
        errors.append(_changed_while_read(changed, plan.wording, in_part=_has_rows_of(changed, plan, state)))
    left = unfinished(plan, state)
    errors += _shrunk(left, state, result, tasks, plan.wording)
    if not errors and left:
        errors.append(IncompleteError(f"{len(left)} of {len(plan.pending)} splits are not done", hint=RUN_AGAIN))
    elif not errors:
        errors += half_done_error(half_done(), plan.wording)
    return errors


def _shrunk(
    left: Sequence[PlannedSplit], state: JobState, result: JobResult, tasks: int, wording: Wording
) -> list[EosingestError]:
    """Return an error for splits that gave fewer rows than are committed, unseen by the task as no split followed.

    They would not be done in any later run either.
    """
    last, bad, all_read = _last_rows(result), _bad_splits(result), _all_read(result, tasks)
    texts = []
    for planned in left:
        split = planned.id
        found = state.offsets.get(split)
        gave = last.get(split, 0 if all_read else None)
        if found is None or gave is None or split in bad or (split not in last and _is_read_behind(found)):
            continue
        if gave < found.rows:
            texts.append(f"{planned.label} gave {gave} rows, and {found.rows} were committed by an earlier run")
    if not texts:
        return []
    return [
        ChangedError(
            f"{_listed(texts)}: the same split must give the same rows",
            code="split-shrank",
            hint=f"nothing of it was sent again; was the {wording.item} changed and {wording.kept} kept?",
        )
    ]


def unfinished(plan: Plan, state: JobState) -> list[PlannedSplit]:
    """Return the planned splits that are not done."""
    return [planned for planned in plan.pending if not state.is_done(planned.id)]


def half_done_error(items: Sequence[str], wording: Wording) -> list[EosingestError]:
    """Return an error for items that are half sent and that this run did not touch: it leaves them for a later one."""
    if not items:
        return []
    return [IncompleteError(f"{_listed(items)}: partly sent, and {wording.left_alone}", hint=RUN_AGAIN)]


def outcome_errors(outcomes: Sequence[Outcome], wording: Wording) -> list[EosingestError]:
    """Turn the outcomes of tasks into errors: one for all bad rows, one for each other code."""
    errors: list[EosingestError] = []
    rows = [row for outcome in outcomes for row in outcome.bad_rows]
    if rows:
        lines = [f"{row['label']}, row {row['row']}: {row['reason']}" for row in rows]
        errors.append(
            FatalError(
                _listed(lines, separator="\n"),
                code=str(rows[0]["code"]),
                hint=f"{_sent(rows)}; {_way_on(rows, wording)}",
            )
        )
    others = {outcome.code: outcome for outcome in outcomes if outcome.error and outcome.exit_code != EXIT_FENCED}
    # A "fenced" outcome alone is no evidence: the driver read the control record, and it was ours.
    return errors + [_outcome_error(outcome) for outcome in others.values()]


def _sent(rows: Sequence[Mapping[str, Any]]) -> str:
    if _is_whole(rows):
        return "nothing was sent, since everything goes in one transaction"
    return "everything before these rows, and every other split, was sent once"


def _is_whole(rows: Sequence[Mapping[str, Any]]) -> bool:
    return any(row.get("whole") for row in rows)


def _way_on(rows: Sequence[Mapping[str, Any]], wording: Wording) -> str:
    ways = {row.get("letters") for row in rows}
    if "raise max" in ways and _is_whole(rows):
        return f"on_error.max allows fewer dead letters than there are: raise it and run again; or {wording.corrected}"
    if "raise max" in ways:
        return f"the dead letters that on_error.max allows are written: raise it and run again; or {wording.corrected}"
    if "name a topic" in ways:
        return f"{wording.corrected}; or let on_error name a dead-letter topic for them, and run again"
    return wording.corrected


def _outcome_error(outcome: Outcome) -> EosingestError:
    error_class = _TASK_ERRORS[outcome.error]
    hint = outcome.hint or (_MEND_IT if error_class is FatalError else RUN_AGAIN)
    return error_class(outcome.message, code=outcome.code, hint=hint, item=outcome.item)


def _says_so_too(error: Outcome | EosingestError, changed: Sequence[str]) -> bool:
    """Say whether a task, or the Spark job, has reported one of the `changed` items: that is one error, not two."""
    return error.code == _CHANGED and error.item in changed


def _has_rows_of(items: Sequence[str], plan: Plan, state: JobState) -> bool:
    """Say whether rows of some of the items are committed."""
    names = set(items)
    splits = (split for entry in plan.items if entry.item.name in names for split in (*entry.pending, *entry.skipped))
    return any(offset.rows for split in splits if (offset := state.offsets.get(split.id)) is not None)


def _changed_while_read(names: Sequence[str], wording: Wording, *, in_part: bool) -> ChangedError:
    """Make the error for items that changed. `in_part`: rows of them are committed."""
    hint = "nothing of it was sent; run again"
    if in_part and not wording.later:  # such items are not sent twice
        hint = f"committed records are kept; run again: the next plan says what the {wording.item} has lost"
    elif in_part:
        hint = (
            "some of its rows may have been sent: the topic may hold neither its old nor its new content."
            f' Restore the {wording.item}, or send it again as a whole with source.on_change = "reingest"'
        )
    waits = f"; {wording.later} waits for writers" if wording.later else ""
    return ChangedError(f"{_listed(names)}: changed while it was read", code=_CHANGED, hint=f"{hint}{waits}")


def _listed(items: Sequence[str], separator: str = ", ") -> str:
    return listed(items, _NAMED_AT_MOST, separator=separator, rest=separator + "and {} more")
