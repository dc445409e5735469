"""Faults between clients and broker, made by the proxy: answers lost, requests delayed or late, connections held."""

from __future__ import annotations

import signal

from tests.chaos.rounds import Round
from tests.support.kafka_proxy import ADD_PARTITIONS, END_TXN, FETCH, INIT_PRODUCER_ID, NAMES, PRODUCE, Rule, Spoil
from tests.support.processes import signal_all


def lose_commit_answers(round: Round) -> None:
    """The broker commits, and the client never learns it: the answer to EndTxn is lost, or the connection closed before it."""
    _quick_sockets(round)
    spoil = round.chance.choice((Spoil.LOSE_ANSWER, Spoil.CUT_ANSWER, Spoil.CUT_ANSWER))
    _spoilt(round, Rule(END_TXN, spoil, times=1 if spoil is Spoil.LOSE_ANSWER else 4))


def delay_commits(round: Round) -> None:
    """EndTxn reaches the broker late, on its own connection: in some rounds after the transaction timeout."""
    round.timeout(4)
    _spoilt(round, Rule(END_TXN, Spoil.DELAY, round.chance.choice((0.3, 1.2, 6.0)), times=2))


def late_commits(round: Round) -> None:
    """The connection is lost while EndTxn is on its way: the client repeats it, goes on, and then the first one arrives."""
    round.max_records(150)
    seconds = round.chance.choice((0.05, 0.12, 0.2, 0.4, 0.8, 1.0, 1.5, 3.0)) * round.chance.uniform(0.8, 1.2)
    _spoilt(round, Rule(END_TXN, Spoil.LATE, seconds, times=8))


def spoil_requests(round: Round) -> None:
    """InitProducerId, AddPartitionsToTxn, Produce or Fetch: answers lost, requests delayed or late."""
    _quick_sockets(round)
    api = round.chance.choice((INIT_PRODUCER_ID, ADD_PARTITIONS, PRODUCE, FETCH))
    spoil = round.chance.choice((Spoil.LOSE_ANSWER, Spoil.CUT_ANSWER, Spoil.DELAY, Spoil.LATE))
    seconds = round.chance.choice((0.1, 0.5, 1.0, 2.5))
    _spoilt(round, Rule(api, spoil, seconds, times=1 if spoil is Spoil.LOSE_ANSWER else 4))


def hold_connections(round: Round) -> None:
    """No byte moves in either direction for some seconds; then all of them arrive."""
    run = round.start()
    for _ in range(round.chance.choice((1, 2))):
        round.wait_for_moment(run)
        seconds = round.chance.uniform(0.5, 8)
        round.cluster.proxies[0].hold()
        round.say(f"{seconds:.1f}s")
        round.wait_until(lambda: False, run, seconds)
        round.cluster.proxies[0].clear()
    round.finish(run)


def lose_commit_answer_and_kill(round: Round) -> None:
    """The answer to EndTxn is held back and the worker, or everybody, is killed: only the log knows what was committed."""
    rule = _rule(round, Rule(END_TXN, Spoil.LOSE_ANSWER))
    run = round.start()
    round.wait_until(lambda: rule.acted, run)
    if round.chance.random() < 0.5:
        run.kill_everybody()
    else:
        signal_all(run.workers(), signal.SIGKILL)
    round.say(f"acted {rule.acted}")
    round.finish(run)


def late_commits_and_two_runs(round: Round) -> None:
    """A second run takes over while EndTxn requests of the first are still on their way to the broker."""
    _rule(round, Rule(END_TXN, Spoil.LATE, round.chance.uniform(0.5, 5), times=20))
    first = round.start()
    round.wait_for_moment(first)
    second = round.start()
    round.finish(second, alone=False)
    round.finish(first, {0, 3, 5, 6}, alone=False)


def _quick_sockets(round: Round) -> None:
    """A client that waits for a lost answer gives up after 2.5 s instead of a minute."""
    round.set("[transaction]", "[sink.properties]\nsocket.timeout.ms = 2500\n[transaction]")


def _rule(round: Round, rule: Rule) -> Rule:
    """Aim a rule at the job's first task, at its driver or at all of them, at a random place, and put it into force."""
    whose = round.chance.choice(("0", "0", "", "", "control"))
    rule.needle = b"" if rule.api == FETCH else f"eosingest.{round.job.name}.{whose}".encode()
    rule.skip = round.chance.randint(0, 1 if whose == "control" or rule.api == INIT_PRODUCER_ID else 5)
    if round.whole and whose == "0" and rule.api == END_TXN:  # there is one only
        rule.skip = 0
    rule.every = round.chance.choice((1, 2, 4))
    round.say(
        f"{NAMES[rule.api]} {whose or 'any'}: {rule.spoil.value} {rule.seconds:.2f}s, skip {rule.skip}/{rule.every}"
    )
    return round.cluster.proxies[0].add(rule)


def _spoilt(round: Round, rule: Rule) -> None:
    """Run with the rule in force."""
    _rule(round, rule)
    round.finish(round.start())
    answers = f", answered {rule.late_answers}" if rule.late_answers else ""
    round.say(f"acted {rule.acted}{answers}")
