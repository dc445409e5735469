"""Each check of a round can fail: every violation is planted once, in what the readers see or in a real log."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.chaos import checks
from tests.chaos.reader import Progress, Reader, Seen
from tests.chaos.rounds import Round, ViolationError
from tests.chaos.session import Session
from tests.support.avro_values import avro_decoder
from tests.support.commands import Done
from tests.support.harness import Job, Record, read_committed
from tests.support.job_checks import OFFSETS_TOPIC, committed_state, offsets_partition, source_lines
from tests.support.registry import SchemaRegistry

pytestmark = pytest.mark.slow

# ---- the concurrent reader -----------------------------------------------------------------------------------------


def reader() -> Reader:
    return Reader("nobody:1", "job", "topic", (OFFSETS_TOPIC, 0))


def record(partition: int, offset: int, number: int) -> Record:
    return Record(partition, offset, None, str(number).encode(), [], 0)


def test_p3_a_record_read_twice() -> None:
    one = reader()
    one._take_record(Seen(0, 5, 1))
    one._take_record(Seen(1, 9, 1))
    assert one.wrongs == ["P3: 1 was read twice, again at 1:9"]


def test_p3_a_record_that_is_gone_or_never_came() -> None:
    one = reader()
    one._take_record(Seen(0, 5, 1))
    one._take_record(Seen(0, 6, 2))
    one.compare([record(0, 5, 1), record(0, 7, 2)])
    assert [wrong[:30] for wrong in one.wrongs] == ["P3: 1 records were read and ar", "P3: 1 records never reached th"]


def test_p3_a_row_in_both_topics_and_letters_that_are_gone_or_never_came() -> None:
    one = reader()
    for seen in (Seen(0, 5, 1), Seen(0, 5, 1, letter=True), Seen(0, 6, 2, letter=True)):
        one._take_record(seen)
    assert one.wrongs == ["P3: 1 was read twice, again at letter 0:5"]
    one.wrongs.clear()
    one.compare([record(0, 5, 1)], [record(0, 5, 1), record(0, 7, 2)])
    assert [wrong[:30] for wrong in one.wrongs] == ["P3: 1 records were read and ar", "P3: 1 records never reached th"]


def test_records_of_two_transactions_where_all_go_in_one() -> None:
    one = reader()
    one.in_one = True
    for seen in (Seen(0, 5, 1), Seen(0, 6, 2), Seen(1, 9, 3), Seen(0, 6, 4, letter=True), Seen(0, 7, 5, letter=True)):
        one._take_record(seen)
    assert one.wrongs == []
    one._take_record(Seen(0, 8, 6))  # behind a marker
    one._take_record(Seen(0, 9, 7, letter=True))
    assert [wrong[:30] for wrong in one.wrongs] == ["all or nothing: 0:8 is of anot", "all or nothing: letter 0:9 is "]


def test_a_part_that_no_more_comes_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.chaos.reader._CATCH_UP_S", 0.05)
    one = reader()
    one.check_all_or_nothing(2)
    one._take_record(Seen(0, 5, 1))
    with pytest.raises(AssertionError, match="all or nothing: 1 of 2 rows were read"):
        one.check_all_or_nothing(2)
    one._take_record(Seen(1, 5, 2))
    one.check_all_or_nothing(2)


_AVRO = {"type": "record", "name": "one", "fields": [{"name": "n", "type": "long"}]}


class _Schemas(SchemaRegistry):
    """A registry that has two schemas, and no server."""

    def schema(self, number: int) -> Any:
        return {7: _AVRO, 8: {**_AVRO, "name": "another"}}.get(number)


def test_a_value_in_avro_is_read_by_its_own_schema() -> None:
    assert avro_decoder(_Schemas(0, Path()), _AVRO)(b"\0\0\0\0\x07\x54") == b'{"n": 42}'


@pytest.mark.parametrize(
    "value",
    [
        b"\0\0\0\0\x08\x54",  # another schema's id
        b"\0\0\0\0\x09\x54",  # an id that nothing has
        b"\x01\0\0\0\x07\x54",
        b"\0\0\0\0\x07\x54\x54",
        b"\0\0\0\0\x07\xd4",
        b"42",
    ],
)
def test_a_value_that_is_not(value: bytes) -> None:
    with pytest.raises((AssertionError, EOFError, IndexError)):
        avro_decoder(_Schemas(0, Path()), _AVRO)(value)


def progress(*entries: tuple[dict[str, Any], dict[str, Any]], in_one: bool = False) -> list[str]:
    wrongs: list[str] = []
    watched = Progress("job", wrongs)
    for offset, (place, value) in enumerate(entries):
        watched.take(offset, json.dumps(["job", place]).encode(), json.dumps(value).encode(), in_one=in_one)
    return wrongs


SPLIT = {"file": "data/a", "start": 0}
CONTROL = {"control": "run"}


def split(run: int, sequence: int, rows: int, done: bool = False) -> tuple[dict[str, Any], dict[str, Any]]:
    return SPLIT, {"run": run, "sequence": sequence, "rows": rows, "done": done}


def control(run: int, state: str) -> tuple[dict[str, Any], dict[str, Any]]:
    return CONTROL, {"run": run, "state": state}


def test_p5_and_p7_hold_where_nothing_is_wrong() -> None:
    first = [control(1, "claimed"), control(1, "running"), split(1, 0, 10)]
    taken_over = [control(2, "claimed"), split(1, 1, 20), control(2, "running"), split(2, 2, 30, done=True)]
    assert progress(*first, *taken_over, control(2, "settling"), control(2, "complete")) == []


@pytest.mark.parametrize("second", [split(1, 1, 9), split(1, 0, 11), split(1, 1, 10, done=False)])
def test_p5_progress_that_goes_back(second: tuple[dict[str, Any], dict[str, Any]]) -> None:
    (wrong,) = progress(split(1, 0, 10, done=True), second)
    assert wrong.startswith("P5: data/a:0 went from")


@pytest.mark.parametrize(
    "last", [split(1, 0, 10), control(1, "complete"), ({"task": 0}, {"run": 1}), ({"run": 1}, {"ended": True})]
)
def test_p7_an_older_run_that_commits(last: tuple[dict[str, Any], dict[str, Any]]) -> None:
    (wrong,) = progress(control(1, "running"), control(2, "claimed"), control(2, "running"), last)
    assert wrong.startswith("P7: run 1")


def test_progress_of_one_transaction() -> None:
    other = {"file": "data/b", "start": 0}
    sent = [split(1, 0, 10), (other, split(1, 0, 7)[1])]
    assert progress(*sent, split(2, 1, 10, done=True), in_one=True) == []
    (wrong,) = progress(split(1, 0, 10), split(1, 1, 12), in_one=True)
    assert wrong.startswith("all or nothing: data/a:0 went on from row 10 to 12")
    (wrong,) = progress(split(1, 0, 10), (other, split(2, 0, 7)[1]), in_one=True)
    assert wrong.startswith("all or nothing: runs [1, 2] sent rows")


# ---- the log -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def complete(session: Session) -> Iterator[Round]:
    """A round whose job is complete, and all promises kept."""
    yield from completed(session, 1_000, bad_rows=False)


@pytest.fixture(scope="module")
def lettered(session: Session) -> Iterator[Round]:
    """The same of a round with bad rows."""
    yield from completed(session, 1_001, bad_rows=True)


def completed(session: Session, number: int, *, bad_rows: bool) -> Iterator[Round]:
    round = Round(
        number,
        session.seed,
        session.folder / f"planted-{number}",
        session.clusters.get("one"),
        session.servers,
        session.jvm,
        reads="json",
        bad_rows=bad_rows,
        whole=False,
    )
    round.prepare()
    round.reader.start()
    try:
        round.complete()
        checks.check_log(round.direct)
        yield round
    finally:
        round.end()
        round.forget()


def foreign(round: Round, transactional_id: str) -> Producer:
    made = Producer({"bootstrap.servers": round.job.servers, "transactional.id": transactional_id, "log_level": 0})
    made.init_transactions(20)
    made.begin_transaction()
    return made


def last_control(round: Round) -> tuple[bytes, dict[str, Any]]:
    found = committed_state(round.direct).control
    assert found is not None
    return json.dumps([round.job.name, CONTROL], separators=(",", ":")).encode(), json.loads(found.encode())


def plant(round: Round, key: bytes, value: dict[str, Any]) -> None:
    """Write a record into the job's partition of the offsets topic."""
    made = foreign(round, "foreign")
    made.produce(OFFSETS_TOPIC, json.dumps(value).encode(), key, partition=offsets_partition(round.job))
    made.commit_transaction(20)


def test_p4_a_position_that_is_not_what_was_written(complete: Round) -> None:
    offset = next(iter(committed_state(complete.direct).offsets.values()))
    key, value = offset.key(complete.job.name), json.loads(offset.encode())
    plant(complete, key, {**value, "rows": value["rows"] - 1, "sequence": value["sequence"] + 1})
    with pytest.raises(AssertionError, match=r"P4: .* is committed up to"):
        checks.check_log(complete.direct)
    plant(complete, key, {**value, "sequence": value["sequence"] + 2})
    checks.check_log(complete.direct)


def test_p6_a_complete_job_that_writes(complete: Round) -> None:
    def writes() -> Done:
        made = foreign(complete, f"eosingest.{complete.job.name}.7")  # a stranger would make verify inconclusive later
        made.produce(complete.job.name, b"1")
        made.flush(20)
        made.abort_transaction(20)
        return Done(0, "", "", {"data": {"records_sent": 0}})

    with pytest.raises(AssertionError, match="P6: high watermarks"):
        checks.check_nothing_left(complete.direct, writes)
    with pytest.raises(AssertionError, match="P6: the complete job sent 7"):
        checks.check_nothing_left(complete.direct, lambda: Done(0, "", "", {"data": {"records_sent": 7}}))


def test_p6_a_complete_job_that_writes_letters(lettered: Round) -> None:
    def writes() -> Done:
        made = foreign(lettered, f"eosingest.{lettered.job.name}.7")
        made.produce(lettered.job.dead, b"1")
        made.flush(20)
        made.abort_transaction(20)
        return answer(0, data={"records_sent": 0, "dead_letters": 0})

    with pytest.raises(AssertionError, match="P6: high watermarks"):
        checks.check_nothing_left(lettered.direct, writes)
    with pytest.raises(AssertionError, match="P6: the complete job wrote 7 dead letters"):
        checks.check_nothing_left(lettered.direct, lambda: answer(0, data={"records_sent": 0, "dead_letters": 7}))


def test_p8_a_transaction_of_letters_left_open(lettered: Round) -> None:
    assert_open_is_told(lettered, lettered.job.dead)


def test_p8_a_transaction_left_open(complete: Round) -> None:
    assert_open_is_told(complete, complete.job.name)


def assert_open_is_told(round: Round, topic: str) -> None:
    made = foreign(round, f"eosingest.{round.job.name}.7")
    made.produce(topic, b"1")
    made.flush(20)
    with pytest.raises(AssertionError, match=r"P8: still open: .*\.7"):
        checks.check_nothing_open(round.direct)
    made.abort_transaction(20)
    checks.check_nothing_open(round.direct)


def answer(exit_code: int, codes: tuple[str, ...] = (), data: dict[str, Any] | None = None) -> Done:
    errors = [{"code": code, "message": "", "hint": ""} for code in codes]
    envelope = {"exit_code": exit_code, "errors": errors, "data": data}
    return Done(exit_code, json.dumps(envelope) + "\n", "", envelope)


def test_p9_an_exit_code_that_the_log_does_not_bear_out(complete: Round) -> None:
    (run,), total = complete.runs, len(complete.job.records())
    checks.check_agrees(complete.direct, run, answer(0, data={"records_total": total}))
    with pytest.raises(AssertionError, match=r"P9: .* reported"):
        checks.check_agrees(complete.direct, run, answer(0, data={"records_total": total - 1}))
    with pytest.raises(AssertionError, match="P9: exit 3, and the log says complete"):
        checks.check_agrees(complete.direct, run, answer(3, ("incomplete",)))
    with pytest.raises(AssertionError, match="P9: exit 6, and the last control record is its own"):
        checks.check_agrees(complete.direct, run, answer(6, ("fenced",)))
    key, value = last_control(complete)
    plant(complete, key, {**value, "state": "failed"})
    with pytest.raises(AssertionError, match="P9: exit 0, and the log says"):
        checks.check_agrees(complete.direct, run, answer(0, data={"records_total": total}))
    plant(complete, key, value)


def test_p9_letters_that_are_not_there(lettered: Round) -> None:
    (run,), total, letters = lettered.runs, len(lettered.job.records()), len(lettered.job.bad)
    checks.check_agrees(lettered.direct, run, answer(0, data={"records_total": total, "dead_letters_total": letters}))
    with pytest.raises(AssertionError, match=r"P9: \d+ dead letters reported"):
        data = {"records_total": total, "dead_letters_total": letters + 1}
        checks.check_agrees(lettered.direct, run, answer(0, data=data))


def test_an_audit_that_finds_something() -> None:
    checks.check_verified(answer(0, data={"verdict": "verified"}))
    with pytest.raises(AssertionError, match="verify says mismatch"):
        checks.check_verified(answer(0, data={"verdict": "mismatch"}))


def test_p9_a_run_that_was_frozen_behind_its_verdict(complete: Round) -> None:
    """Breaks when its exit 0 is called wrong because a later run has looked since, or right though that one had to send."""
    (run,), total = complete.runs, len(complete.job.records())
    key, value = last_control(complete)
    plant(complete, key, {**value, "pid": 1})  # another run is the last to have claimed the job
    done = answer(0, data={"records_total": total})
    checks.check_agrees(complete.direct, run, done, [answer(0, data={"splits_planned": 0})])
    for later in ([], [answer(0, data={"splits_planned": 3}), answer(0, data={"splits_planned": 0})]):
        with pytest.raises(AssertionError, match="P9: exit 0, and the log says"):
            checks.check_agrees(complete.direct, run, done, later)
    plant(complete, key, value)


@pytest.mark.parametrize(
    ("done", "wrong"),
    [
        (answer(7, ("bad-data",)), "not among"),
        (answer(0, ("incomplete",)), "exit code and errors disagree"),
        (answer(3), "exit code and errors disagree"),
        (Done(0, "", "", {}), "not one line of JSON"),
        (Done(3, answer(0).stdout, "", answer(0).envelope), "answer and exit code differ"),
        (Done(1, answer(1).stdout, "Traceback (most recent call last)", answer(1).envelope), "a bug"),
    ],
)
def test_p9_an_answer_that_is_wrong_in_itself(done: Done, wrong: str) -> None:
    with pytest.raises(AssertionError, match=wrong):
        checks.check_answer(done, frozenset({0, 3, 5}), 1)


def seen_with(round: Round, **changed: Any) -> Job:
    """The round's job, of which something else is expected."""
    job = copy.copy(round.direct)
    vars(job).update(changed)
    return job


def test_p1_a_letter_that_says_something_else(lettered: Round) -> None:
    bad, lines, letters = lettered.job.bad, source_lines(lettered.direct), lettered.direct.letters()
    number = max(bad)

    one_split = [letter._replace(headers=[*letter.headers, ("eosingest.split", b"the same")]) for letter in letters]
    (line,) = (line for line in lines if line.number == number)
    others = [each for each in lines if each != line]
    for wrong, expected in (
        (r"letter of \d+ says .*'code': ", {"bad": {**bad, number: "null-key"}}),
        (r"letter of \d+ says .*'row': ", {"lines": [*others, line._replace(row=line.row + 1)]}),
        ("names of splits in letters", {"letters": lambda: one_split}),
        ("names of splits in letters", {"lines": [each._replace(file="the same", start=0) for each in lines]}),
        (r"0 dead letters missing .* 1 too many", {"lines": others}),
        (r"1 dead letters missing", {"lines": [*lines, line._replace(number=-5)], "bad": {**bad, -5: ""}}),
    ):
        with pytest.raises(AssertionError, match=f"P1: .*{wrong}"):
            checks.check_log(seen_with(lettered, **expected))
    checks.check_log(lettered.direct)


def test_p2_letters_out_of_order(lettered: Round) -> None:
    letters = lettered.direct.letters()
    with pytest.raises(AssertionError, match=r"P2: \d+ comes after"):
        checks.check_log(seen_with(lettered, letters=lambda: letters[::-1]))


def test_p4_letters_that_the_offset_record_does_not_count(lettered: Round) -> None:
    offset = next(one for one in committed_state(lettered.direct).offsets.values() if one.dead.count)
    key, value = offset.key(lettered.job.name), json.loads(offset.encode())
    dead, sequence = value["dead"], value["sequence"]
    more, fewer = ({**value, "dead": {**dead, "count": dead["count"] + by}} for by in (1, -1))
    for count, wrong in enumerate((more, fewer, {**value, "records": value["records"] + dead["count"]}), 1):
        plant(lettered, key, {**wrong, "sequence": sequence + count})
        with pytest.raises(AssertionError, match="P4: "):
            checks.check_log(lettered.direct)
    plant(lettered, key, {**value, "sequence": sequence + 4})
    checks.check_log(lettered.direct)


def test_a_part_of_what_goes_in_one_transaction(lettered: Round) -> None:
    records, letters = lettered.direct.records(), lettered.direct.letters()
    everything = {"records_sent": len(records), "dead_letters": len(letters)}
    told, untold = answer(0, data=everything), answer(3, ("incomplete",))
    nothing = seen_with(lettered, records=list, letters=list)
    for job, done in ((lettered.direct, told), (lettered.direct, untold), (nothing, untold)):
        checks.check_all_or_nothing(job, done)
    for wrong in ((records[1:], letters), (records, letters[1:]), (records, []), ([], letters)):
        part = seen_with(lettered, records=lambda wrong=wrong: wrong[0], letters=lambda wrong=wrong: wrong[1])
        with pytest.raises(AssertionError, match=r"all or nothing: .* are there"):
            checks.check_all_or_nothing(part, untold)
    with pytest.raises(AssertionError, match="are told, and"):
        checks.check_all_or_nothing(nothing, told)
    for name, count in everything.items():
        with pytest.raises(AssertionError, match=r"all or nothing: .* sent of"):
            checks.check_all_or_nothing(lettered.direct, answer(3, ("incomplete",), {**everything, name: count - 1}))


def test_what_each_run_of_one_transaction_is_asked(complete: Round, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a round of runs that send all or nothing does not hold them to it, in the log and by its reader."""
    monkeypatch.setattr("tests.chaos.reader._CATCH_UP_S", 0.05)
    monkeypatch.setattr(complete, "whole", True)
    complete.run()
    last = complete.reader.seen.pop()
    with pytest.raises(AssertionError, match=r"all or nothing: .* rows were read"):
        complete.run()
    complete.reader.seen.append(last)
    monkeypatch.setattr("tests.chaos.checks.at_one_moment", lambda job: (None, job.records()[1:], []))
    with pytest.raises(AssertionError, match=r"all or nothing: .* are there"):
        complete.run()


@pytest.mark.parametrize(
    ("code", "message", "wrong"),
    [
        ("too-large-for-one-transaction", "more than the 1,000 records", "the limits are large enough"),
        ("bad-data", "it would time out", "P9: exit 7"),
    ],
)
def test_p9_a_run_that_was_too_slow_for_its_transaction(code: str, message: str, wrong: str) -> None:
    done = answer(7, ("too-large-for-one-transaction",))
    done.envelope["errors"][0]["message"] = "not before its transaction would time out"
    checks.check_too_slow(done)
    done.envelope["errors"][0].update(code=code, message=message)
    with pytest.raises(AssertionError, match=wrong):
        checks.check_too_slow(done)


def test_p1_a_row_in_both_topics_and_a_letter_too_many(lettered: Round) -> None:
    """The last one of these, since it spoils the topics. The concurrent reader and verify see it too."""
    letter = next(iter(read_committed(lettered.direct.servers, lettered.job.dead)))
    made = foreign(lettered, f"eosingest.{lettered.job.name}.0")
    made.produce(lettered.job.dead, letter.value, letter.key, headers=letter.headers)
    made.commit_transaction(20)
    with pytest.raises(AssertionError, match=r"P1: 0 dead letters missing .* 1 too many"):
        checks.check_log(lettered.direct)
    lettered.compare()
    assert [wrong for wrong in lettered.reader.wrongs if "was read twice, again at letter" in wrong]
    audit = lettered.finish(lettered.start("", "--against-source", verb="verify"), {4}, alone=False)
    with pytest.raises(AssertionError, match="verify says mismatch"):
        checks.check_verified(audit)
    made.begin_transaction()
    made.produce(lettered.job.name, str(min(lettered.job.bad)))
    made.commit_transaction(20)
    with pytest.raises(AssertionError, match="P1: 1 rows are in both topics"):
        checks.check_log(lettered.direct)


def test_p10_a_run_that_does_not_end(session: Session, complete: Round) -> None:
    run = complete.start()
    with pytest.raises(ViolationError, match=r"P10: run .* did not end"):
        complete.finish(run, bound_s=0.1)
    run.clear_away()


def test_p1_a_record_too_many_and_one_that_is_missing(complete: Round) -> None:
    """The last one, since it spoils the topic. The concurrent reader and verify see it too."""
    made = foreign(complete, f"eosingest.{complete.job.name}.0")
    first = next(record for record in complete.direct.records() if record.value == b"1")
    made.produce(complete.job.name, first.value, first.key, partition=first.partition)
    made.commit_transaction(20)
    with pytest.raises(AssertionError, match=r"P1: 0 records missing .* 1 too many"):
        checks.check_log(complete.direct)
    complete.reader.compare(complete.direct.records())
    assert [wrong for wrong in complete.reader.wrongs if "P3: 1 was read twice" in wrong]
    assert complete.finish(complete.start("", "--against-source", verb="verify"), {4}, alone=False).exit_code == 4
    with (complete.job.data / "part-0.jsonl").open("a") as more:
        more.write('{"n": 999999, "pad": ""}\n')
    with pytest.raises(AssertionError, match="P1: 1 records missing"):
        checks.check_log(complete.direct)
