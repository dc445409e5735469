"""The promises P1-P10 as checks on a round's job. Each raises AssertionError and says which promise is broken.

The log is read by readers of tests/support that share no code with eosingest (harness.read_committed, job_checks). P3, P5
and P7 are seen by the concurrent reader (reader.py), P10 by the round, which bounds every run.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence

from tests.chaos.runs import Run
from tests.chaos.whole import TOO_LARGE
from tests.support.commands import Done
from tests.support.harness import Job, Record, number_of, topic_exists
from tests.support.job_checks import (
    Line,
    assert_in_order,
    assert_positions,
    at_one_moment,
    committed_state,
    high_watermarks,
    open_transactions,
    source_lines,
    told,
)

_MARKERS_S = 5.0  # a committed transaction is over for its producer before its markers are in the log
_NOT_SETTLED = (5,)  # "temporary": the brokers did not answer, so nothing is said of the log


def check_answer(done: Done, allowed: frozenset[int], number: int) -> None:
    """P9: the exit code is one that the fault explains, the answer says the same, and it is no bug of ours."""
    where = f"run {number}: exit {done.exit_code}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
    assert "Traceback" not in done.stderr, f"P9: a bug: {where}"
    assert done.exit_code in allowed, f"P9: not among {sorted(allowed)}: {where}"
    assert done.stdout.count("\n") == 1 and done.envelope, f"P9: not one line of JSON: {where}"
    assert done.envelope["exit_code"] == done.exit_code, f"P9: answer and exit code differ: {where}"
    assert bool(done.envelope["errors"]) == (done.exit_code != 0), f"P9: exit code and errors disagree: {where}"


def check_agrees(job: Job, run: Run, done: Done, later: Sequence[Done] = ()) -> None:
    """P8 and P9, right after an orderly run and with no other alive: the log says what the exit code says.

    `later` are the answers of runs that were started after it and have ended before it. Where they found nothing left to
    send, the job was complete, and a run that was frozen behind its verdict is right to say so.
    """
    if done.exit_code in _NOT_SETTLED:
        return
    control = committed_state(job).control
    ours = control is not None and control.pid == run.pid
    if done.exit_code == 0:
        nothing_left = bool(later) and all(answer.data.get("splits_planned") == 0 for answer in later)
        complete = control is not None and control.state == "complete"
        assert complete and (ours or nothing_left), f"P9: exit 0, and the log says {control}"
        there = len(job.records())
        assert done.data["records_total"] == there, f"P9: {done.data['records_total']} reported, {there} in the topic"
        letters, dead = done.data.get("dead_letters_total", 0), len(job.letters())
        assert letters == dead, f"P9: {letters} dead letters reported, {dead} in their topic"
    elif done.exit_code == 6:
        assert control is not None and not ours, f"P9: exit 6, and the last control record is its own: {control}"
    elif ours and control is not None:
        interrupted = done.exit_code > 128 and control.state == "claimed"  # before it had fenced and read
        assert control.state == "failed" or interrupted, f"P9: exit {done.exit_code}, and the log says {control.state}"
    if topic_exists(job.servers, job.name):
        check_nothing_open(job)


def check_too_slow(done: Done) -> None:
    """P9: a run that sends everything in one transaction may say that it did not come to the end of it in time."""
    messages = [error["message"] for error in done.envelope["errors"]]
    assert (done.exit_code, *done.codes) == TOO_LARGE, f"P9: exit {done.exit_code}, {done.codes}: {messages}"
    assert "time out" in messages[0], f"P9: not for its time, and the limits are large enough: {messages}"


def check_all_or_nothing(job: Job, done: Done) -> None:
    """Everything goes in one transaction: all rows are in the topics, at one moment, or none is, and the run says the same."""
    rows, bad = len(source_lines(job)), len(job.bad)
    everything = (rows - bad, bad)
    sent = (done.data.get("records_sent", 0), done.data.get("dead_letters", 0))
    assert sent in ((0, 0), everything), f"all or nothing: {sent} records and dead letters sent of {everything}"
    if not topic_exists(job.servers, job.name):
        assert not any(sent), f"all or nothing: {sent} records and dead letters sent, and there is no topic"
        return
    _, records, letters = at_one_moment(job)
    there = (len(records), len(letters))
    assert there in ((0, 0), everything), f"all or nothing: {there} records and dead letters of {everything} are there"
    assert there == everything or not any(sent), f"all or nothing: {sent} are told, and {there} are there"


def check_nothing_open(job: Job) -> None:
    """P8: no transaction of the job is open."""
    deadline = time.monotonic() + _MARKERS_S
    while names := open_transactions(job):
        assert time.monotonic() < deadline, f"P8: still open: {names}"
        time.sleep(0.1)


def check_log(job: Job) -> list[Record]:
    """P1, P2 and P4 of a complete job: each row is a record, or a dead letter where it is bad.

    Returns the records, as read from the first to the high watermark.
    """
    lines, records, letters = source_lines(job), job.records(), job.letters()
    both = {number_of(record.value) for record in records} & {number_of(letter.value) for letter in letters}
    assert not both, f"P1: {len(both)} rows are in both topics (as {sorted(both)[:5]})"
    _check_each_once("records", records, [line for line in lines if line.number not in job.bad])
    _check_each_once("dead letters", letters, [line for line in lines if line.number in job.bad])
    _check_headers(job, letters, lines)
    try:
        assert_in_order(records, lines)
        assert_in_order(letters, lines)
    except AssertionError as error:
        raise AssertionError(f"P2: {error}") from error
    try:
        assert_positions(job)
    except AssertionError as error:
        raise AssertionError(f"P4: {str(error)[:2000]}") from error
    return records


def _check_each_once(what: str, records: Sequence[Record], lines: Sequence[Line]) -> None:
    found, wanted = Counter(number_of(record.value) for record in records), Counter(line.number for line in lines)
    missing, extra = wanted - found, found - wanted
    assert not missing and not extra, (
        f"P1: {missing.total()} {what} missing (as {sorted(missing)[:5]}), "
        f"{extra.total()} too many (as {sorted(extra)[:5]})"
    )


def _check_headers(job: Job, letters: Sequence[Record], lines: Sequence[Line]) -> None:
    """P1: each letter says which row it is of, and why; a split has one name, which no other split has."""
    lines_of, names = {line.number: line for line in lines}, set()
    for letter in letters:
        line, headers = lines_of[number_of(letter.value)], told(letter)
        wanted = {"job": job.name, "topic": job.name, "row": str(line.row), "code": job.bad[line.number]}
        found = {name: headers.get(name) for name in wanted}
        assert found == wanted, f"P1: the letter of {line.number} says {found}, and not {wanted}"
        names.add((headers["split"], (line.file, line.start)))
    for each in zip(*names, strict=True):
        assert len(set(each)) == len(names), f"P1: names of splits in letters are mixed up: {names}"


def check_nothing_left(job: Job, again: Callable[[], Done]) -> None:
    """P6: the complete job run again sends nothing and writes nothing to its topic, nor to that of its dead letters."""
    before = _ends(job)
    done = again()
    assert done.data["records_sent"] == 0, f"P6: the complete job sent {done.data['records_sent']} records"
    letters = done.data.get("dead_letters", 0)
    assert letters == 0, f"P6: the complete job wrote {letters} dead letters"
    after = _ends(job)
    assert after == before, f"P6: high watermarks of the complete job went from {before} to {after}"


def _ends(job: Job) -> list[list[int]]:
    return [high_watermarks(job.servers, name) for name in (job.name, *([job.dead] if job.bad else []))]


def check_verified(done: Done) -> None:
    """The product's own audit says the same."""
    assert done.data["verdict"] == "verified", f"verify says {done.data['verdict']}: {done.data}"
