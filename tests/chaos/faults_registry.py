"""Faults of the schema registry, which the driver alone asks: frozen, and killed. It keeps what it has in memory only."""

from __future__ import annotations

import itertools
import json

from tests.chaos import inputs
from tests.chaos.rounds import Round, ViolationError
from tests.support.job_checks import committed_state

_DIES = "task-after-commit=sleep:2@1,task-before-commit=group-kill@3"


def freeze_registry(round: Round) -> None:
    """SIGSTOP of the schema registry in mid-run: who has asked goes on, who asks ends with 5 or gets its answer late."""
    registry = round.servers.registry()
    run = round.start()
    round.wait_for_moment(run)
    has_asked = bool(round.reader.seen)
    registry.freeze()
    if round.chance.random() < 0.4:
        seconds = round.chance.uniform(1, 7)
        round.say(f"for {seconds:.1f} s")
        round.wait_until(lambda: False, None, seconds)
        registry.heal()
        round.finish(run, {0})
        return
    if round.chance.random() < 0.5:
        run.kill_everybody()
    round.finish(run, {0} if has_asked else {0, 5})
    _ends_with(round, 5, "registry-unreachable")
    registry.heal()


def kill_registry(round: Round) -> None:
    """kill -9 of the schema registry in mid-run, and of the run when it has gone on: by the empty one none sends anything."""
    registry = round.servers.registry()
    run = round.start(_DIES)
    if not round.wait_for_records(run):
        raise ViolationError(f"the run ended before it came to {_DIES}")
    schema = json.loads((round.job.folder / inputs.SCHEMA).read_text())
    number = registry.register(f"{round.job.name}-value", schema)  # once more: its id
    registry.kill()
    run.killed = True
    round.finish(run, ())
    _ends_with(round, 5, "registry-unreachable")
    registry.start()
    if round.chance.random() < 0.5:
        _ends_with(round, 12, "schema-changed")
    round.say("others have come")
    others = ({**schema, "name": f"other{count}"} for count in itertools.count())  # the rows would fit
    while registry.register("others", next(others)) < number:
        pass
    _ends_with(round, 12, "schema-changed")
    round.ends_otherwise = True
    round.compare()


def _ends_with(round: Round, exit_code: int, code: str) -> None:
    """Run once: it must say so, and commit nothing; where it could not even ask, it must not have claimed the job."""
    before, control = round.direct.numbers(), committed_state(round.direct).control
    done = round.run(allowed={exit_code})
    if done.codes != [code]:
        raise ViolationError(f"P9: the run ends with {done.codes}, and not with {code}")
    if (after := round.direct.numbers()) != before:
        raise ViolationError(f"P9: {code}, and of {len(before)} records there are {len(after)} now, or others")
    if exit_code == 5 and committed_state(round.direct).control != control:
        raise ViolationError(f"P9: {code}, and the control record is another one than {control}")
