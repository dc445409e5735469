"""What kinds of sources keep whose rows all go in one transaction, or none: what rests on that, beside test_conformance.py.

Whatever ends a run, a reader of committed records sees all that it had to send, or nothing of it: Life.run looks after each.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from eosingest.host.failpoints import NAMES
from tests.sources.conftest import made_subject
from tests.sources.test_conformance import assert_exact, half_sent
from tests.support.builders import place
from tests.support.held_runs import run_killed_at
from tests.support.sources.in_one_transaction import EndsEarly
from tests.support.sources.in_process import MAX_RECORDS, Life
from tests.support.sources.jobs import assert_all_sent, assert_nothing_sent, assert_sent_once, job_over
from tests.support.sources.kinds import CHANGING, KINDS, WHOLE, FileSubject, paired
from tests.support.sources.meddling import Meddler, run_meddled

ALWAYS = ("text.whole",)  # by Spark as well where the end of the rows is Spark's
ALL = paired(WHOLE, always=ALWAYS)
FILES = paired([kind for kind in WHOLE if issubclass(KINDS[kind], FileSubject)], always=ALWAYS)
CHANGED = paired([kind for kind in WHOLE if kind in CHANGING], always=ALWAYS)
DEAD = paired([kind for kind in WHOLE if KINDS[kind].dead_config is not None], always=["text.to.dead.whole"])

# By these points everything is committed; by the others nothing.
_ALL_SENT = (
    "task-after-commit",
    "task-at-end",
    "driver-before-verdict",
    "driver-after-settling",
    "driver-after-verdict",
)
# When something is done to the source, and whether all may have been sent by then.
_MOMENTS = {
    "between plan and read": ("driver-before-running", False),
    "while it is sent": ("task-after-begin", True),
    "before the commit": ("task-before-commit", True),
    "before the verdict": ("driver-before-verdict", True),
}


# ---- the limits ----------------------------------------------------------------------------------------------------


@paired(WHOLE)
def test_as_many_as_one_transaction_may_have(life: Life) -> None:
    """Breaks when the transaction ends where it is full: nothing has to follow. One more is refused, and nothing is sent."""
    most = len(life.subject.rows())
    life.configure(_in_one(most - 1))
    ended = life.run()
    assert (ended.exit_code, ended.codes) == (7, ["too-large-for-one-transaction"])
    assert (life.records(), life.history()) == ([], [])
    life.configure(_in_one(most))
    assert life.run().rows_sent == most
    assert_exact(life)
    assert life.audit() == []


@DEAD
def test_more_dead_letters_than_are_allowed(life: Life) -> None:
    """Breaks when rows are sent, or letters, of a run that must end."""
    dead = len([row for row in life.subject.rows() if life.subject.is_dead(row)])
    life.configure(_in_one(), dead - 1)
    ended = life.run()
    assert ended.exit_code == 7, ended
    assert (life.records(), life.history()) == ([], [])
    life.configure(_in_one(), dead)
    assert life.run().exit_code == 0
    assert_exact(life)
    assert life.audit() == []


# ---- the proof of the end ------------------------------------------------------------------------------------------


@paired(WHOLE)
def test_an_input_that_ends_early_sends_nothing(life: Life) -> None:
    """Breaks when the end of the input is taken for the end of the rows: wherever it is, and behind the last row too."""
    cuts: list[EndsEarly] = []

    def cut(items: int) -> EndsEarly:
        reading = life.reading()
        assert reading.sent([], lambda inputs: cuts.append(EndsEarly(inputs, items)) or cuts[-1]) == []
        return cuts[-1]

    whole = cut(-1)
    assert whole.all_given and whole.given > 2
    for items in (0, 1, whole.given // 2, whole.given - 1):
        assert not cut(items).all_given
    assert Counter(life.reading().sent([])) == Counter(life.subject.rows())


@FILES
def test_an_item_without_rows_is_done_with_the_others(life: Life) -> None:
    """Breaks when only splits that gave rows are taken as ended."""
    subject = life.subject
    assert isinstance(subject, FileSubject)
    subject._write(subject._path(subject.items()[1]), [])
    life.run_killed_at("task-after-commit")
    _assert_all_done(life)
    assert (life.run().launched, life.run().rows_sent) == (False, 0)
    assert_exact(life)
    assert life.audit() == []


# ---- what changes under a run --------------------------------------------------------------------------------------


@pytest.mark.in_turns("one change each")
@CHANGED
@pytest.mark.parametrize("what", ["edited", "removed"])
@pytest.mark.parametrize("moment", _MOMENTS)
def test_what_changes_in_a_run_is_noticed(life: Life, moment: str, what: str) -> None:
    """The run says so, and has sent all that it had listed, or nothing. Restored, the job goes on."""
    subject = life.subject
    assert isinstance(subject, FileSubject)
    item, rows = subject.items()[-1], subject.rows()
    path = subject._path(item)
    kept = subject._read(path)
    life.listed = rows

    def act() -> None:
        if what == "edited":
            subject.edit(kept[-1], unseen=False)
        else:
            subject.remove(item)

    point, may_be_sent = _MOMENTS[moment]
    code, codes = run_meddled(life, Meddler(point, 1, act))
    assert code == 12 or "bad-data" in codes, codes  # Spark cannot open a file that is gone
    assert set(codes) <= {"changed-while-read", "source-changed", "incomplete", "bad-data"}, codes
    assert Counter(life.records()) in ([Counter(), Counter(rows)] if may_be_sent else [Counter()])
    subject._write(path, kept)
    assert life.run().exit_code == 0
    assert_exact(life)
    assert life.run().rows_sent == 0


# ---- killed --------------------------------------------------------------------------------------------------------


@pytest.mark.in_turns("one fail point of one kind each")
@paired(WHOLE, pytest.mark.slow)
@pytest.mark.parametrize("point", NAMES)
def test_killed_at_every_point_and_run_again(life: Life, point: str) -> None:
    """Twice at the same point: all is committed by then, and marked as done, or nothing."""
    sent = life.subject.rows() if point in _ALL_SENT else []
    life.run_killed_at(point)
    assert Counter(life.records()) == Counter(sent)
    assert [found for found in life.history() if found.rows] == [] or sent
    if sent:
        _assert_all_done(life)
        life.run_killed_at("driver-after-claim")
    else:
        life.run_killed_at(point)
        assert life.records() == []
    again = life.run()
    assert (again.exit_code, again.launched) == (0, not sent)
    assert_exact(life)
    assert life.audit() == []
    written = life.kafka.written()
    assert (life.run().rows_sent, life.kafka.written()) == (0, written)


@CHANGED
def test_touched_between_a_kill_and_the_next_run(life: Life) -> None:
    """Nothing is sent yet, so that it may be any other content as well."""
    life.run_killed_at("task-before-commit")
    first = life.subject.items()[0]
    life.subject.touch(first)
    life.subject.edit(life.subject.rows()[0], unseen=False)
    life.subject.grow()
    assert life.run().exit_code == 0
    assert_exact(life)
    assert life.audit() == []


# ---- beside a job that sends by parts ------------------------------------------------------------------------------


@ALL
def test_what_is_half_sent_by_parts_is_refused_and_finished_by_parts(life: Life) -> None:
    """Breaks when the rest goes in one transaction, and is taken for all. Once the job is complete it may be one again."""
    life.configure(_BY_PARTS)
    half_sent(life)
    before = life.records()
    life.bound(MAX_RECORDS)
    for _ in range(2):
        ended = life.run()
        assert (ended.exit_code, ended.codes, ended.launched) == (12, ["half-sent"], False)
    assert life.records() == before
    life.configure(_BY_PARTS)
    assert life.run().exit_code == 0
    assert_exact(life)
    assert life.audit() == []
    life.bound(MAX_RECORDS)
    assert (life.run().exit_code, life.run().launched) == (0, False)


@CHANGED
def test_what_comes_after_a_job_by_parts_goes_in_one_transaction(life: Life) -> None:
    life.configure(_BY_PARTS)
    assert life.run().exit_code == 0
    before = life.records()
    life.subject.grow()
    life.bound(MAX_RECORDS)
    life.run_killed_at("task-before-commit")
    assert life.records() == before
    assert life.run().rows_sent == len(life.subject.rows()) - len(before)
    assert_exact(life)
    assert life.audit() == []


@ALL
def test_a_run_by_parts_goes_on_behind_one_that_sent_nothing(life: Life) -> None:
    life.run_killed_at("task-before-commit")
    life.configure(_BY_PARTS)
    assert life.run().exit_code == 0
    assert_exact(life)
    assert life.audit() == []


@pytest.mark.parametrize("subject", ["text.whole"], indirect=True)
def test_runs_by_parts_that_sent_nothing_do_not_stand_against_one_transaction(life: Life) -> None:
    """Twice: the rows before were sent at once by a run without a verdict. Breaks when its rows are taken for a part."""
    for _ in range(2):
        life.run_killed_at("task-after-commit")
        before = life.records()
        _assert_all_done(life)
        life.subject.grow()
        life.configure(_BY_PARTS)
        life.run_killed_at("driver-after-running")
        life.run_killed_at("task-before-commit")
        assert life.records() == before
        life.bound(MAX_RECORDS)
    assert life.run().rows_sent == len(life.subject.rows()) - len(before)
    assert_exact(life)


# ---- real processes ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.in_turns("one kind of source each")
@pytest.mark.parametrize("kind", WHOLE)
def test_with_real_processes(kind: str, servers: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """On a real broker: killed by SIGKILL twice before the commit, and behind it; run again, run once more, and verified."""
    subject = made_subject(kind, tmp_path, request)
    job = job_over(subject, tmp_path, servers, f"conformance-{kind}")
    run_killed_at(job, "task-after-produce")
    run_killed_at(job, "task-before-commit")
    assert_nothing_sent(job, subject)
    run_killed_at(job, "task-after-commit")
    assert_all_sent(job, subject)
    done = job.run_until_complete()
    assert done.data["records_sent"] == 0
    assert_sent_once(job, subject)


# ---- what the tests share ------------------------------------------------------------------------------------------

_BY_PARTS = f"max_records = {MAX_RECORDS}\n"


def _in_one(max_records: int = 1000) -> str:
    return f'boundary = "job"\nmax_records = {max_records}\n'


def _assert_all_done(life: Life) -> None:
    """Every split of the source has an offset record by which it is done."""
    offsets = life.state().offsets.values()
    assert all(found.done for found in offsets)
    assert {place(found) for found in offsets} == {place(split) for found in life.splits().values() for split in found}
