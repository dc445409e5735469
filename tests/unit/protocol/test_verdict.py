"""What the end of a job proves: done marks only on evidence, and every reason why a run is not complete."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from eosingest.errors import (
    ChangedError,
    EosingestError,
    FatalError,
    IncompleteError,
    InterruptedRunError,
    TemporaryError,
    worst_exit_code,
)
from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.protocol.offsets.state import JobState
from eosingest.protocol.plan import Plan, half_done_items
from eosingest.protocol.source import PositionKind
from eosingest.protocol.split_progress import SplitProgress
from eosingest.protocol.task import Outcome
from eosingest.protocol.verdict import JobResult, errors_of, half_done_error, outcome_errors, proven_done, unfinished
from eosingest.sources.files.listing.source_file import WORDING
from tests.support import builders
from tests.support.builders import (
    Place,
    fingerprint,
    job_state,
    offset_record,
    place,
    places,
    plan,
    planned_item,
    planned_split,
    source_file,
)
from tests.support.made_up_files import MadeUpFiles

RUN = 5
CONTENT = fingerprint(300)
SPLITS = [("a", 0), ("a", 100), ("a", 200)]


def offset(start: int, position: int, *, done: bool = False, file: str = "a", run: int = RUN) -> OffsetRecord:
    return offset_record(file, start, rows=position, done=done, checksum=123, read=CONTENT, run=run, task=2, sequence=7)


def plan_of(*splits: Place) -> Plan:
    pending = [planned_split(name, start, now=CONTENT) for name, start in splits or SPLITS]
    return plan(planned_item(source_file("a", 300), pending))


def outcome(last: tuple[str, int, int] | None = None, *, task: int = 0, **more: Any) -> Outcome:
    return builders.outcome(task, None if last is None else builders.last_split(*last), **more)


def bad_row(start: int, file: str = "a", **more: Any) -> dict[str, Any]:
    return builders.bad_row(file, start, **more)


def marked(state: JobState, *outcomes: Outcome, error: EosingestError | None = None, tasks: int = 0) -> list[Place]:
    """Return which splits of the plan get a done mark; the job had as many tasks as outcomes unless said otherwise."""
    result = JobResult(outcomes, error)
    return places(proven_done(plan_of(), state, result, tasks=tasks or len(outcomes) or 1, run=RUN))


# ---- outcomes of other runs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", [{"job": "other"}, {"run": RUN - 1}, {"started": "earlier"}])
def test_an_outcome_of_another_run_proves_nothing(other: dict[str, Any]) -> None:
    """Breaks when a zombie's outcome, of another job, run or start, marks a split that no task of this run has read."""
    own = {"job": "j", "run": RUN, "started": "s"}
    foreign = outcome(("a", 0, 42), exit_code=7, code="x", **{**own, **other})
    result = JobResult([outcome(read_all=False, **own), foreign], FatalError("e"))
    found = result.of_run("j", RUN, "s")
    assert (list(found.outcomes), found.error) == ([result.outcomes[0]], result.error)
    assert proven_done(plan_of(), job_state(offset(0, 42)), found, tasks=1, run=RUN) == []


def test_the_last_outcome_of_each_task_counts() -> None:
    first, last = outcome(run=RUN, records=1), outcome(run=RUN, records=2)
    assert JobResult([first, last]).of_run("j", RUN, "s").outcomes == [last]


# ---- done marks --------------------------------------------------------------------------------------------------


def test_a_file_that_changed_while_it_was_read_gets_no_mark() -> None:
    result = JobResult([outcome(("a", 100, 42))])
    state = job_state(offset(100, 42))
    assert places(proven_done(plan_of(), state, result, tasks=1, run=RUN)) == SPLITS
    assert proven_done(plan_of(), state, result, tasks=1, run=RUN, changed=["a"]) == []


def test_the_last_split_of_a_successful_task_is_done_where_its_position_is_committed() -> None:
    committed = offset(100, 42, run=4)
    result = JobResult([outcome(("a", 100, 42), read_all=False)])
    (mark,) = proven_done(plan_of(("a", 100)), job_state(committed), result, tasks=2, run=RUN)
    assert (mark.done, mark.run, mark.sequence) == (True, RUN, committed.sequence + 1)
    assert (mark.position, mark.rows, mark.records, mark.checksum) == (42, 42, 42, 123), "the receipt stays"
    assert mark == replace(committed, done=True, run=RUN, sequence=committed.sequence + 1)


@pytest.mark.parametrize("position", [41, 43, 0])
def test_another_position_than_the_committed_one_proves_nothing(position: int) -> None:
    state = job_state(offset(0, 1, done=True), offset(100, 42), offset(200, 1, done=True))
    assert marked(state, outcome(("a", 100, position))) == []


def test_a_last_split_without_any_offset_record_is_neither_ended_nor_empty() -> None:
    state = job_state(offset(0, 1, done=True), offset(200, 1, done=True))
    assert marked(state, outcome(("a", 100, 42))) == []


def test_without_the_word_of_spark_positions_are_just_positions() -> None:
    state = job_state(offset(0, 42), offset(100, 42), offset(200, 42))
    assert marked(state) == []
    assert marked(state, error=FatalError("the job failed")) == []


def test_a_failed_job_still_proves_the_tasks_that_succeeded_but_nothing_empty() -> None:
    state = job_state(offset(0, 42), offset(100, 13))
    found = marked(state, outcome(("a", 0, 42)), error=TemporaryError("the job failed"))
    assert found == [("a", 0)], "100 belongs to a task that failed, 200 may not have been read"


def test_no_outcome_at_all_proves_nothing_empty() -> None:
    assert marked(job_state()) == [], "a job that was cancelled, or whose accumulators were lost"


def test_splits_without_a_row_are_empty_when_everything_was_read() -> None:
    result = JobResult([outcome(("a", 0, 42)), outcome(task=1)])
    marks = proven_done(plan_of(), job_state(offset(0, 42)), result, tasks=2, run=RUN)
    assert [(place(mark), mark.done) for mark in marks] == [(split, True) for split in SPLITS]
    empty = marks[1]
    assert (empty.position, empty.rows, empty.records, empty.checksum, empty.sequence) == (0, 0, 0, 0, 0)
    assert (empty.bounds, empty.version, empty.run, empty.task) == ({"length": 100}, CONTENT.to_json(), RUN, -1)


def test_one_task_that_did_not_commit_its_whole_input_leaves_all_empty_splits_open() -> None:
    """Its last transaction is gone: a split without an offset record may be one whose rows were all in flight."""
    lost = outcome(task=1, read_all=False, exit_code=5, code="kafka-failed")
    assert marked(job_state(offset(0, 42)), outcome(("a", 0, 42)), lost) == [("a", 0)]


def test_one_task_that_is_missing_leaves_all_empty_splits_open() -> None:
    assert marked(job_state(offset(0, 42)), outcome(("a", 0, 42)), tasks=2) == [("a", 0)]


def test_one_task_told_twice_does_not_stand_for_another() -> None:
    twice = [outcome(("a", 0, 42)), outcome(("a", 0, 42))]
    assert marked(job_state(offset(0, 42)), *twice, tasks=2) == [("a", 0)]


def test_done_splits_are_not_marked_again() -> None:
    state = job_state(*(offset(start, 42, done=True) for _, start in SPLITS))
    assert marked(state, outcome(("a", 0, 42))) == []


def test_a_half_sent_split_is_never_taken_for_an_empty_one() -> None:
    state = job_state(offset(0, 42), offset(100, 0), offset(200, 1, done=True))
    assert marked(state, outcome()) == []


BEHIND = replace(offset(0, 42), position=99, position_kind=PositionKind.OFFSET)


def test_nothing_behind_a_position_is_the_end_of_a_split() -> None:
    """Its rows are not read again: breaks when it stays half sent for ever, or is taken for done where it was not read."""
    state = job_state(BEHIND)
    (mark, *empty) = proven_done(plan_of(), state, JobResult([outcome()]), tasks=1, run=RUN)
    assert mark == replace(BEHIND, done=True, run=RUN, sequence=BEHIND.sequence + 1)
    assert len(empty) == 2
    assert errors(job_state(*(mark, *empty)), outcome()) == []
    lost = outcome(task=1, read_all=False, exit_code=5, code="kafka-failed")
    assert marked(state, outcome(), lost, tasks=2) == []
    assert marked(state, outcome(), tasks=2) == []
    assert marked(state, outcome(("a", 0, 41))) == [("a", 100), ("a", 200)], "rows of it came, and too few"
    bad = outcome(exit_code=7, code="bad-rows", bad_rows=[bad_row(0)])
    assert ("a", 0) not in marked(state, bad)
    assert ("a", 0) not in [
        place(m) for m in proven_done(plan_of(), state, JobResult([outcome()]), tasks=1, run=RUN, changed=["a"])
    ]


@pytest.mark.parametrize("kind", PositionKind)
def test_task_and_verdict_agree_on_which_splits_are_read_from_their_first_row_on(kind: PositionKind) -> None:
    """Breaks when a task counts rows of a split, and no row of it is taken for its end; or the other way round."""
    committed = replace(offset(0, 42), position_kind=kind)
    begun = SplitProgress.begin(planned_split("a", 0, committed=committed), committed)
    counted = kind in ("rows", "bytes")
    assert (begun.by_position, begun.seen) == (not counted, 0 if counted else 42)
    nothing = JobResult([outcome()])
    assert bool(proven_done(plan_of(("a", 0)), job_state(committed), nothing, tasks=1, run=RUN)) is not counted


def test_a_source_row_that_has_to_come_in_again_is_missed() -> None:
    """Breaks when a split is done though the row is gone of which some records are still to be sent."""
    state = job_state(replace(BEHIND, row_records=2), offset(100, 1, done=True), offset(200, 1, done=True))
    assert marked(state, outcome()) == []
    (error,) = errors(state, outcome())
    assert (error.exit_code, error.code) == (12, "split-shrank")


def test_splits_with_a_bad_row_are_never_done() -> None:
    state = job_state(offset(0, 2), offset(200, 9, done=True))
    found = outcome(("a", 0, 2), exit_code=7, code="bad-rows", bad_rows=[bad_row(0), bad_row(100, row=1)])
    assert marked(state, found) == [], "neither as last split nor, where the very first row is bad, as an empty one"


def test_bad_rows_elsewhere_do_not_keep_other_splits_open() -> None:
    state = job_state(offset(0, 2), offset(100, 42))
    found = outcome(("a", 100, 42), exit_code=7, code="bad-rows", bad_rows=[bad_row(0)])
    assert marked(state, found) == [("a", 100), ("a", 200)]


# ---- errors ------------------------------------------------------------------------------------------------------


def errors(
    state: JobState, *outcomes: Outcome, error: EosingestError | None = None, **more: Any
) -> list[EosingestError]:
    arguments: dict[str, Any] = {"signal_number": None, "changed": (), "tasks": len(outcomes) or 1, **more}
    half_done = partial(half_done_items, MadeUpFiles.splits, state.offsets)
    plan = arguments.pop("plan", plan_of())
    return errors_of(plan, state, JobResult(outcomes, error), half_done=half_done, **arguments)


ALL_DONE = job_state(*(offset(start, 1, done=True) for _, start in SPLITS))
HALF = job_state(offset(0, 1, done=True), offset(100, 1))


def test_everything_done_is_complete() -> None:
    assert errors(ALL_DONE, outcome()) == []


def test_splits_left_are_incomplete() -> None:
    (error,) = errors(HALF, outcome(read_all=False))
    assert isinstance(error, IncompleteError)
    assert "2 of 3" in error.message
    assert "run again" in error.hint
    assert places(unfinished(plan_of(), HALF)) == [("a", 100), ("a", 200)]


def test_a_job_that_vanished_without_a_word_is_incomplete() -> None:
    (error,) = errors(job_state())
    assert isinstance(error, IncompleteError)


def test_files_half_sent_and_not_planned_keep_the_run_from_being_complete() -> None:
    state = job_state(*ALL_DONE.offsets.values(), offset(0, 1, file="young"))
    (error,) = errors(state, outcome())
    assert isinstance(error, IncompleteError)
    assert "young" in error.message
    assert half_done_error([], WORDING) == []


def test_a_signal_is_said_and_the_jobs_own_end_by_it_is_not() -> None:
    (error,) = errors(HALF, error=FatalError("the job was cancelled"), signal_number=15)
    assert isinstance(error, InterruptedRunError)
    assert (error.signal_number, error.exit_code) == (15, 143)


def test_a_signal_at_the_very_end_does_not_hide_that_a_file_changed() -> None:
    found = errors(ALL_DONE, outcome(), signal_number=2, changed=["a"])
    assert [error.exit_code for error in found] == [130, 12]


def test_a_file_that_changed_while_it_was_read_is_an_error_though_all_is_done() -> None:
    (error,) = errors(ALL_DONE, outcome(), changed=["a", "b"])
    assert isinstance(error, ChangedError)
    assert error.code == "changed-while-read"
    assert "a, b" in error.message


@pytest.mark.parametrize(
    ("last", "gave"), [(("a", 100, 3), 3), (None, 0)], ids=["the last one of its task", "no row at all"]
)
def test_a_split_that_gives_fewer_rows_than_are_committed(last: tuple[str, int, int] | None, gave: int) -> None:
    """Breaks when it is "incomplete, run again", for ever: no later run will find more rows in it."""
    state = job_state(offset(0, 1, done=True), offset(100, 4), offset(200, 1, done=True))
    (error,) = errors(state, outcome(last))
    assert (error.exit_code, error.code) == (12, "split-shrank")
    assert f"a, split at byte 100 gave {gave} rows, and 4 were" in error.message


@pytest.mark.parametrize(
    "told",
    [
        outcome(("a", 100, 4), read_all=False),  # as many
        outcome(read_all=False),  # not read to its end
        outcome(("a", 100, 3), exit_code=7, code="bad-rows", bad_rows=[bad_row(100)]),  # stopped there
    ],
)
def test_what_does_not_prove_that_a_split_shrank(told: Outcome) -> None:
    state = job_state(offset(0, 1, done=True), offset(100, 4), offset(200, 1, done=True))
    assert "split-shrank" not in [error.code for error in errors(state, told)]


def test_a_change_that_a_task_has_seen_too_is_one_error() -> None:
    seen, unseen = (
        outcome(
            task=task, read_all=False, exit_code=12, code="changed-while-read", message=f"{name}: changed", item=name
        )
        for task, name in enumerate(["a", "b"])
    )
    (error,) = errors(HALF, seen, changed=["a"])
    assert error.message.startswith("a: changed while")
    assert [error.message for error in errors(HALF, seen, unseen, changed=["a"])] == ["b: changed", error.message]


def test_the_spark_job_says_so_of_a_file_that_changed() -> None:
    """A reader in a Spark worker ends the job with its error: of the same file, that is one error too."""
    said = ChangedError("a: changed after it was listed", code="changed-while-read", item="a")
    (error,) = errors(HALF, error=said, changed=["a"])
    assert "a: changed while it was read" in error.message and "reingest" in error.hint
    assert "nothing of it was sent; run again" in errors(job_state(), error=said, changed=["a"])[0].hint
    range_ = replace(plan_of(), wording=replace(plan_of().wording, item="range", later=""))
    (of_range,) = errors(HALF, error=said, changed=["a"], plan=range_)
    assert of_range.hint == "committed records are kept; run again: the next plan says what the range has lost"
    assert [each.message for each in errors(HALF, error=said, changed=["b"])] == [
        said.message,
        "b: changed while it was read",
    ]


def test_many_names_are_cut() -> None:
    (error,) = errors(ALL_DONE, outcome(), changed=[f"f{n:02}" for n in range(13)])
    assert "f09" in error.message
    assert "f10" not in error.message
    assert "3 more" in error.message


def test_the_jobs_error_is_passed_on() -> None:
    failed = TemporaryError("executor lost")
    assert errors(HALF, error=failed) == [failed]


def test_all_bad_rows_make_one_error() -> None:
    outcomes = [
        outcome(exit_code=7, code="bad-rows", bad_rows=[bad_row(0), bad_row(100, row=8)]),
        outcome(task=1, exit_code=7, code="bad-rows", bad_rows=[bad_row(200, file="b", row=1, code="null-key")]),
    ]
    (error,) = outcome_errors(outcomes, WORDING)
    assert isinstance(error, FatalError)
    assert error.code == "corrupt-row"
    lines = error.message.splitlines()
    assert [line.split(": ")[0] for line in lines] == [
        "a, split at byte 0, row 3",
        "a, split at byte 100, row 8",
        "b, split at byte 200, row 1",
    ]


def test_bad_rows_of_a_task_that_then_ended_otherwise_are_told_beside_it() -> None:
    both = outcome(exit_code=5, code="kafka-failed", message="gone", bad_rows=[bad_row(0)])
    assert [error.exit_code for error in outcome_errors([both], WORDING)] == [7, 5]


@pytest.mark.parametrize(
    ("exit_code", "error_class"), [(12, ChangedError), (5, TemporaryError), (3, IncompleteError), (7, FatalError)]
)
def test_an_outcome_becomes_the_error_of_its_exit_code(exit_code: int, error_class: type[EosingestError]) -> None:
    (error,) = outcome_errors([outcome(exit_code=exit_code, code="some-word", message="what", hint="next")], WORDING)
    assert type(error) is error_class
    assert (error.exit_code, error.code, error.message, error.hint) == (exit_code, "some-word", "what", "next")


@pytest.mark.parametrize(
    ("letters", "words"),
    [
        ("name a topic", "or let on_error name a dead-letter topic for them, and run again"),
        ("raise max", "the dead letters that on_error.max allows are written: raise it and run again"),
        ("", ""),
    ],
)
def test_the_way_on_behind_bad_rows(letters: str, words: str) -> None:
    """Breaks when it is advised to name a topic that the spec has, or where no letter can be made of the row."""
    (error,) = outcome_errors([outcome(exit_code=7, code="bad-rows", bad_rows=[bad_row(0, letters=letters)])], WORDING)
    assert "was sent once" in error.hint and WORDING.corrected in error.hint
    assert words in error.hint and ("on_error" in error.hint) is bool(words)


def test_an_outcome_without_a_hint_gets_one() -> None:
    (error,) = outcome_errors([outcome(exit_code=5, code="kafka-failed", message="gone")], WORDING)
    assert "run again" in error.hint


def test_many_tasks_that_ended_alike_say_it_once() -> None:
    many = [outcome(task=n, exit_code=5, code="kafka-failed", message=f"task {n}") for n in range(8)]
    assert (
        len(outcome_errors([*many, outcome(task=9, exit_code=12, code="unplanned-split", message="x")], WORDING)) == 2
    )


def test_a_tasks_word_fenced_is_no_evidence() -> None:
    fenced = outcome(exit_code=6, code="fenced", message="the job belongs to run 6", read_all=False)
    assert outcome_errors([fenced], WORDING) == []
    (error,) = errors(HALF, fenced)
    assert isinstance(error, IncompleteError), "the control record was read, and it was ours"


def test_the_worst_of_them_is_the_exit_code() -> None:
    outcomes = [
        outcome(exit_code=5, code="kafka-failed", message="x"),
        outcome(task=1, exit_code=7, code="bad-rows", bad_rows=[bad_row(0)]),
        outcome(task=2, exit_code=12, code="unplanned-split", message="x"),
    ]
    found = errors(HALF, *outcomes, error=IncompleteError("executor lost"), changed=["a"])
    assert sorted(error.exit_code for error in found) == [3, 5, 7, 12, 12]
    assert worst_exit_code(error.exit_code for error in found) == 7


def test_something_left_is_not_said_beside_the_reason() -> None:
    found = errors(HALF, outcome(exit_code=7, code="bad-rows", bad_rows=[bad_row(100)]))
    assert [error.exit_code for error in found] == [7]
