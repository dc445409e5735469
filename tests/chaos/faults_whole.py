"""What its user does to a job that goes in one transaction: it is begun by parts, or limits or expressions are mended late."""

from __future__ import annotations

import re

from tests.chaos import whole
from tests.chaos.rounds import AGAIN, KILLED, Round, ViolationError

_EXIT_CHANGED, _HALF_SENT = 12, "half-sent"
_DEAD_S = 10.0


def set_job_late(round: Round) -> None:
    """A run by parts is killed half way, and then all is to go in one transaction: refused. The parts are ended as begun."""
    round.max_records(round.chance.choice((150, 300)))
    point = round.chance.choice(("task-after-commit", "task-before-commit", "task-after-produce", "task-after-begin"))
    hit = round.chance.randint(2, 5)
    run = round.start(f"{point}=group-kill@{hit}")
    run.killed = True
    round.say(f"{point}@{hit}")
    round.finish(run)
    run.kill_everybody()  # an orphan would go on beside what is counted here
    round.wait_until(lambda: not run.processes(), None, _DEAD_S)
    rows = len(round.rows)
    whole.set_boundary(round.job, "job")
    whole.limit(round.job, rows)
    for _ in range(round.chance.choice((1, 2))):
        there = _there(round)
        half = 0 < there < rows
        done = round.run(allowed={_EXIT_CHANGED} if half else AGAIN)
        after = _there(round)
        round.say(f"{there} of {rows}: {' '.join(done.codes) or done.exit_code}")
        if half and (done.codes != [_HALF_SENT] or after != there):
            raise ViolationError(f"all or nothing: {there} of {rows} were sent by parts, {done.codes}, now {after}")
        if not half and done.exit_code == 0 and after != rows:
            raise ViolationError(f"all or nothing: {there} of {rows} were there, exit 0, now {after}")
    whole.set_boundary(round.job, "limits")
    round.max_records(round.chance.choice((150, 2000)))


def raise_limits_late(round: Round) -> None:
    """One transaction may have too few records, or too few bytes, at first: runs are refused or killed, and nothing is sent."""
    rows = len(round.rows)
    if round.chance.random() < 0.7:
        most = round.chance.choice((1, 150, rows // 2, rows - 1))
        whole.limit(round.job, most)
        round.say(f"{most} of {rows} records")
    else:
        whole.limit(round.job, rows, "3KiB")
        round.say("3KiB")
    for _ in range(2):
        if round.chance.random() < 0.4:
            point = round.chance.choice(("task-after-begin", "task-after-produce", "task-after-commit"))
            run = round.start(f"{point}=group-kill")
            run.killed = True
            round.say(point)
            done = round.finish(run, {whole.TOO_LARGE[0]})
        else:
            done = round.run(allowed={whole.TOO_LARGE[0]})
        if done.exit_code != KILLED and done.codes != [whole.TOO_LARGE[1]]:
            raise ViolationError(f"P9: more than one transaction may have, and the run says {done.codes}")
        if there := _there(round):
            raise ViolationError(f"all or nothing: more than one transaction may have, and {there} of {rows} are sent")
    whole.limit(round.job, rows)


def mend_expression_late(round: Round) -> None:
    """The key's expression fails at some row, and Spark with it, when a task has rows before that one: nothing is sent."""
    text = round.job.spec.read_text()
    numbers = [line.number for line in round.rows if line.number not in round.job.bad]
    row = round.chance.choice(numbers[len(numbers) // 2 :])
    mended = f"{whole.KEY_BEGIN}CASE WHEN n = {row} THEN raise_error('{row}') ELSE "
    round.set(whole.KEY_BEGIN, mended)
    round.job.spec.write_text(re.sub(rf"({re.escape(mended)}.*)\"\n", r'\1 END"\n', round.job.spec.read_text()))
    round.say(f"fails at {row}")
    for _ in range(round.chance.choice((1, 2))):
        done = round.run(allowed={7})
        if done.codes != ["bad-data"]:
            raise ViolationError(f"P9: an expression fails, and the run says {done.codes}")
        if there := _there(round):
            raise ViolationError(f"all or nothing: {done.codes}, and {there} of {len(round.rows)} rows are sent")
    round.job.spec.write_text(text)


def _there(round: Round) -> int:
    """Return how many rows have come to the topics, as records or as letters."""
    return len(round.direct.records()) + len(round.direct.letters())
