"""What its user does to a job whose rows are bad: dead letters are allowed late, and too few of them."""

from __future__ import annotations

from tests.chaos import letters
from tests.chaos.rounds import Round, ViolationError

_SPENT = "too-many-dead-letters"  # all tasks together, of which none had more than is allowed


def allow_letters_late(round: Round) -> None:
    """`on_error` allows too few letters at first, or comes only behind the first runs: they end with 7, and some are killed."""
    bad = round.job.bad
    most = round.chance.randint(0, (len(bad) - 1) // 2)
    letters.allow(round.job, most)
    round.say(f"{most} of {len(bad)} letters")
    for _ in range(2):  # the second one finds that they are spent
        if round.chance.random() < 0.4:
            _dies(round)
        # Tasks that write at the same time may have written more than is allowed, and all that there was.
        done = round.run(allowed={0, 7} if most and not round.whole else {7})
        there = len(round.direct.letters())
        wanted = 0 if round.whole else most
        if done.exit_code == 7 and (there < wanted or not set(done.codes) <= {*bad.values(), _SPENT}):
            raise ViolationError(f"P9: exit 7, {done.codes}: {there} letters of {most} that are allowed are written")
        if not most and there:
            raise ViolationError(f"P9: {there} letters, and the spec allows none")
    letters.allow(round.job, len(bad))


def _dies(round: Round) -> None:
    point = round.chance.choice(("task-after-commit", "task-before-commit", "task-after-produce"))
    run = round.start(f"{point}=group-kill@{round.hit(point, 5)}")
    run.killed = True
    round.say(point)
    round.finish(run, {0, 3, 5, 7})
