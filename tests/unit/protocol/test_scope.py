"""The scope of a source: kept in pieces, pinned from `running` until `complete`, and whole or refused (docs/protocol.md)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from random import Random

import pytest

from eosingest.errors import ChangedError, EosingestError, SpecError
from eosingest.protocol import scope
from eosingest.protocol.offsets import scope_piece
from eosingest.protocol.offsets.record import COMPLETE, FAILED
from eosingest.protocol.offsets.scope_piece import ScopePiece
from eosingest.protocol.offsets.state import TaskState
from eosingest.protocol.source import Json, Purpose, Recorded, Scope, Snapshot
from tests.support.builders import control_record, job_state, offset_record
from tests.support.frozen_table import FrozenTables, Tables
from tests.support.memory_job import MemoryKafka
from tests.support.simulated_source import template
from tests.support.table_job import TableJob, table_job

LARGE: Scope = {"uppers": [f'"{number:07}\\ä€\n' for number in range(60_000)]}


@pytest.fixture
def job() -> TableJob:
    """A job over several tables."""
    rows = next(made for made in map(template, range(24)) if len(made.files) > 1 and len(made.lengths) > 5)
    return table_job(MemoryKafka("offsets"), Tables(rows, Random("scope")))


def pieces(texts: tuple[str, ...]) -> dict[int, ScopePiece]:
    return dict(enumerate(map(ScopePiece, texts)))


# ---- its text ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("frozen", [{}, {"ends": {"orders-0": 900, "ä": [1.5, None, True]}}, LARGE])
def test_what_is_pinned_is_read_back(frozen: dict[str, Json]) -> None:
    pin, texts = scope.pinned(frozen)
    assert pin is not None
    written = pieces(texts)
    assert scope.whole(pin, written) == frozen
    assert max(len(piece.encode()) for piece in written.values()) < 256 << 10
    assert (pin.pieces, len(texts) > 1) == (len(texts), frozen is LARGE)


def test_nothing_frozen_is_nothing_pinned() -> None:
    assert scope.pinned(None) == (None, ())


@pytest.mark.parametrize("what", ["missing", "last one missing", "another", "other order", "other hash"])
def test_a_scope_that_is_not_whole_is_refused(what: str) -> None:
    pin, texts = scope.pinned(LARGE)
    assert pin is not None
    written = pieces(texts)
    if what == "missing":
        del written[0]
    elif what == "last one missing":
        del written[pin.pieces - 1]
    elif what == "another":
        written[1] = ScopePiece(texts[1].replace("1", "2", 1))
    elif what == "other order":
        written[0], written[1] = written[1], written[0]
    else:
        pin = replace(pin, hash=pin.hash[::-1])
    with pytest.raises(ChangedError) as caught:
        scope.whole(pin, written)
    assert (caught.value.exit_code, caught.value.code) == (12, "scope-lost")
    assert "nothing was sent" in caught.value.hint
    assert ("is missing" in caught.value.message) is ("missing" in what)


def test_the_size_has_a_limit() -> None:
    text = "x" * (scope.MOST_BYTES - len('{"a":""}'))
    assert scope.pinned({"a": text})[0] is not None
    with pytest.raises(SpecError) as caught:
        scope.pinned({"a": text + "x"})
    assert (caught.value.exit_code, caught.value.code) == (2, "scope-too-large")


# ---- which one is in force -----------------------------------------------------------------------------------------


class Asked(FrozenTables):
    """What it was asked is all that is of interest."""

    def __init__(self) -> None:
        super().__init__(Tables(template(0), Random("asked")))
        self.recorded: list[Recorded] = []

    def plan(
        self, scope: Scope | None = None, recorded: Collection[Recorded] = (), purpose: Purpose = Purpose.RUN
    ) -> Snapshot:
        self.recorded = [*recorded]
        return super().plan(scope)


FROZEN: Scope = {"file-0": [0, 100]}
PIN, TEXTS = scope.pinned(FROZEN)


@pytest.mark.parametrize(
    ("run", "pin_open", "given"),
    [(4, True, FROZEN), (5, True, FROZEN), (3, True, None), (4, False, None)],
)
def test_a_scope_is_in_force_once_anything_was_committed_under_it(run: int, pin_open: bool, given: object) -> None:
    """Breaks when a scope binds under which nothing was sent, or does not bind where something was."""
    source, state = Asked(), job_state(offset_record(run=run, rows=1))
    state.scope = pieces(TEXTS)
    listing = scope.snapshot(source, control_record(6, FAILED, pinned_since=4, pin_open=pin_open, scope=PIN), state)
    assert source.scopes == [given]
    assert given is None or listing.scope == given


def test_a_source_that_does_not_keep_to_the_scope_in_force_is_refused() -> None:
    """Nor does one freeze anything in the middle of a job that began without a scope."""
    state = job_state(offset_record(run=4, rows=1))
    with pytest.raises(ChangedError) as caught:
        scope.snapshot(Asked(), control_record(6, FAILED, pinned_since=4, pin_open=True), state)
    assert caught.value.code == "scope-lost"


def test_a_new_scope_is_given_what_is_recorded() -> None:
    source = Asked()
    state = job_state(offset_record("a", 0, 70, done=True), offset_record("a", 100, 30, rows=1))
    scope.snapshot(source, control_record(6, COMPLETE), state)
    assert source.recorded == [*state.offsets.values()]
    scope.snapshot(source, None, job_state())
    assert source.recorded == []


# ---- runs ----------------------------------------------------------------------------------------------------------


def test_a_rerun_cuts_the_same_and_a_new_scope_goes_on_behind(job: TableJob) -> None:
    job.run_killed_at("task-before-commit", 2)
    frozen = job.state()
    assert frozen.settled is not None
    assert frozen.settled.scope is not None
    pinned = scope.whole(frozen.settled.scope, frozen.scope)
    job.run_killed_at("driver-after-verdict")
    assert job.source is not None
    assert job.source.scopes == [pinned]
    written = [entry for entry in job.kafka.committed("offsets") if b'{"scope":' in entry.key and entry.value]
    assert len(written) == 1, "it is not written again"
    for _ in range(6):
        assert job.run().exit_code == 0
        assert job.values() == job.expected()
        done = job.state()
        assert done.scope == {}
        assert done.settled is not None
        assert (done.settled.state, done.settled.scope) == (COMPLETE, None)
    assert job.values() == sorted(value for rows in job.tables.rows.rows["one"].values() for value in rows.values)


def test_only_a_scope_in_force_is_read(job: TableJob) -> None:
    """Nothing was sent under it: whatever became of it, another one is frozen, and keeps no piece of the first."""
    job.run_killed_at("driver-after-running")
    job.write((scope_piece.key("job", 0), None), (scope_piece.key("job", 7), ScopePiece("left").encode()))
    job.run_killed_at("task-before-commit", 2)
    state = job.state()
    assert state.settled is not None
    assert state.settled.scope is not None
    assert list(state.scope) == list(range(state.settled.scope.pieces))
    assert job.run().exit_code == 0
    assert job.values() == job.expected()


@pytest.mark.parametrize("what", ["gone", "another"])
def test_no_new_cut_where_the_scope_in_force_is_lost(job: TableJob, what: str) -> None:
    """Breaks when a run freezes another one: rows that were sent would go again, or stay behind."""
    job.run_killed_at("task-before-commit", 2)
    before = job.values()
    piece = None if what == "gone" else ScopePiece('{"file-0":[0,100]}').encode()
    job.write((scope_piece.key("job", 0), piece))
    for _ in range(2):
        with pytest.raises(ChangedError) as caught:
            job.run()
        assert (caught.value.code, job.launched) == ("scope-lost", False)
    state = job.state()
    assert state.settled is not None
    assert (state.settled.state, state.settled.pin_open) == (FAILED, True)
    assert job.values() == before
    assert job.run(from_scratch=True).exit_code == 0, "which counts nothing as done"


def test_too_large_a_scope_is_refused_before_spark_is_asked(job: TableJob, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scope, "MOST_BYTES", 10)
    with pytest.raises(SpecError) as caught:
        job.run()
    assert (caught.value.code, job.launched, job.values()) == ("scope-too-large", False, [])


def test_pieces_of_a_scope_are_as_many_as_it_needs(job: TableJob, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when pieces of an earlier, larger scope stay, or a reader takes them for its own."""
    monkeypatch.setattr(scope, "PIECE_BYTES", 5)
    job.run_killed_at("driver-after-running")
    many = job.state()
    assert many.settled is not None
    assert many.settled.scope is not None
    assert len(many.scope) == many.settled.scope.pieces > 3
    monkeypatch.setattr(scope, "PIECE_BYTES", 30)
    job.run_killed_at("task-before-commit", 2)
    fewer = job.state()
    assert fewer.settled is not None
    assert fewer.settled.scope is not None
    assert len(fewer.scope) == fewer.settled.scope.pieces < len(many.scope)
    assert job.run().exit_code == 0
    assert job.values() == job.expected()


def test_what_the_source_refuses_at_once_claims_nothing(job: TableJob, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a run with a bad path, or without its database, fences a healthy one."""

    def refuse(source: object) -> None:
        raise EosingestError("no such table")

    job.run_killed_at("task-before-commit", 1)
    ends = job.state()
    with monkeypatch.context() as patched, pytest.raises(EosingestError, match="no such table"):
        patched.setattr(FrozenTables, "check", refuse)
        job.run()
    assert job.state() == ends


def test_a_source_is_listed_behind_the_read_back(job: TableJob, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it refuses there leaves a control record that says how the run ended."""

    def refuse(*_: object) -> None:
        raise EosingestError("the table is gone")

    monkeypatch.setattr(FrozenTables, "plan", refuse)
    with pytest.raises(EosingestError, match="the table is gone"):
        job.run()
    state = job.state()
    assert state.control is not None
    assert (state.control.run, state.control.state) == (1, FAILED)


def test_a_task_passes_pieces_over(job: TableJob) -> None:
    job.run_killed_at("driver-after-running")
    state = TaskState("job")
    state.fold(job.kafka.committed("offsets"))
    assert (state.scope, state.offsets) == ({}, {})
    assert job.state().scope != {}
