"""Folds a job's records in the offsets topic into the job's state, one by one, in log order.

The driver begins at the log start, a task (`TaskState`) at the offset up to which the driver read for the plan, the progress
display at the offset that it has reached.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from eosingest.errors import FatalError
from eosingest.kafka.ports import LogRecord
from eosingest.protocol.offsets import record, wire
from eosingest.protocol.offsets.dead_letters import NO_DEAD_LETTERS, DeadLetterPin, DeadLetters
from eosingest.protocol.offsets.gap import GapRecord
from eosingest.protocol.offsets.record import Claim, ControlRecord, OffsetRecord, RunRecord
from eosingest.protocol.offsets.scope_piece import ScopePiece
from eosingest.protocol.source import SplitId

_Kind = TypeVar("_Kind", bound=wire.Record)
_Name = TypeVar("_Name", int, str)
_NO_SPLIT = re.compile(rb'\{"(control|run|ended|task|scope|gap)":')  # starts of keys other than a split's


@dataclass
class JobState:
    """Latest control record, claims by task, and offset records by split; `end` is the next offset to read,
    `last_ms` the timestamp of the job's latest record.

    `settled` is the latest control record that is not a claim: its pins were read read_committed. It has a separate key:
    otherwise compaction would leave only claims, whose pins may come from an aborted record.
    `control_at` is the offset of `control`, -1 where there is none.
    `newest` is the control record with the highest run number: it differs from `control` only in uncommitted reads.
    `newest_run` is the run record of the highest run number. `scope` has the pieces of the source's scope, by number,
    `gaps` the records of gaps, by name.
    `forgotten` says that some claim has it set (see ControlRecord). Without `with_offsets` only the version of offset records
    is checked: a claim needs none, and those of 100,000 files take seconds.
    """

    job: str
    control: ControlRecord | None = None
    control_at: int = -1
    settled: ControlRecord | None = None
    newest: ControlRecord | None = None
    forgotten: bool = False
    newest_run: RunRecord | None = None
    claims: dict[int, Claim] = field(default_factory=dict)
    offsets: dict[SplitId, OffsetRecord] = field(default_factory=dict)
    scope: dict[int, ScopePiece] = field(default_factory=dict)
    gaps: dict[str, GapRecord] = field(default_factory=dict)
    end: int = 0
    last_ms: int = 0
    with_offsets: bool = True

    def fold(self, records: Iterable[LogRecord], place: str = "the offsets topic") -> None:
        """Fold records in log order, of a partition that errors call `place`. Records not of the job are ignored.

        Raises FatalError for a record of the job, of any kind, that is damaged or of another format version, and where a
        split's sequence goes back (P5).
        """
        prefix = record.key_prefix(self.job)
        for entry in records:
            if entry.key.startswith(prefix):
                self.last_ms = max(self.last_ms, entry.timestamp_ms)
                try:
                    self._take(entry)
                except wire.RecordError as error:
                    key = entry.key.decode(errors="backslashreplace")
                    what = f"{place}, offset {entry.offset}, key {key:.300}: this record cannot be read: {error}"
                    raise FatalError(what, code=error.code, hint=error.hint) from None

    def _take(self, entry: LogRecord) -> None:
        if entry.value is not None:
            wire.check_version(entry.value)
        if not (self.with_offsets or _NO_SPLIT.match(entry.key, len(record.key_prefix(self.job)))):
            return
        key = record.key_of(self.job, entry.key)
        if len(key) > 1:
            self._take_offset(entry)
            return
        match key:
            case {"control": "run"}:
                self._take_control(entry)
            case {"control": "settled"}:
                self.settled = _decoded(ControlRecord, entry)
            case {"run": int(run)} | {"ended": int(run)}:
                self._take_run(_decoded(RunRecord, entry, run=run, ended="ended" in key))
            case {"task": int(task)}:
                _keep(self.claims, task, _decoded(Claim, entry))
            case {"scope": int(piece)}:
                self._take_scope(piece, _decoded(ScopePiece, entry))
            case {"gap": str(name)}:
                _keep(self.gaps, name, _decoded(GapRecord, entry, name=name))
            case _ if entry.value is not None:
                raise wire.RecordError("its key is of a kind that this eosingest does not know")

    def _take_control(self, entry: LogRecord) -> None:
        self.control = _decoded(ControlRecord, entry)
        self.control_at = entry.offset if self.control is not None else -1
        if self.control is not None and self.control.state == record.CLAIMED:
            self.forgotten = self.forgotten or self.control.forgotten
        if self.control is not None and (self.newest is None or self.control.run >= self.newest.run):
            self.newest = self.control

    def _take_run(self, new: RunRecord | None) -> None:
        if new is not None:
            self.newest_run = max(self.newest_run or new, new, key=lambda found: (found.run, found.ended))

    def _take_scope(self, piece: int, new: ScopePiece | None) -> None:
        _keep(self.scope, piece, new)

    def _take_offset(self, entry: LogRecord) -> None:
        split = record.split_id_of(self.job, entry.key)
        if entry.value is None:
            self.offsets.pop(split, None)
        else:
            self._keep_offset(entry, OffsetRecord.decode(entry.value, split=split))

    def _keep_offset(self, entry: LogRecord, new: OffsetRecord) -> None:
        old = self.offsets.get(new.split)
        # A newer run may restart at 0, after a tombstone (`--from-scratch`, reingest) that was compacted away.
        if old is not None and new.sequence < old.sequence and new.run <= old.run:
            raise FatalError(
                f"the offset record of {new.split} went back from sequence {old.sequence} to"
                f" {new.sequence} (offset {entry.offset} of the offsets topic)",
                code="sequence-went-back",
                hint="something other than eosingest wrote to the offsets topic; nothing more was sent",
            )
        self.offsets[new.split] = new

    @property
    def records_total(self) -> int:
        """How many records the offset records account for."""
        return sum(offset.records for offset in self.offsets.values())

    @property
    def dead_letter_pin(self) -> DeadLetterPin | None:
        """The pin of the job's dead letters that is in force, None for none."""
        return self.settled.dead_letters if self.settled is not None else None

    def dead_letters(self, pin: DeadLetterPin | None) -> DeadLetters:
        """Return the sum of all dead letters of the job, whose control record has the pin; none without one."""
        return NO_DEAD_LETTERS if pin is None else pin.total(offset.dead for offset in self.offsets.values())

    def is_done(self, split: SplitId) -> bool:
        """Say whether a split is done."""
        found = self.offsets.get(split)
        return found is not None and found.done


@dataclass
class TaskState(JobState):
    """A job's state in a task: of splits that other tasks of the run wrote it keeps only the task that wrote last.

    A million such records may follow the plan, each an object of nearly a KB in each Python worker of an executor. The task
    should read none of these splits; `elsewhere` detects one that it was given. Records that the driver wrote are for any task.
    """

    run: int = 0
    task: int = 0
    writers: dict[int, int] = field(default_factory=dict)  # tasks by the hash of the split's key

    def _keep_offset(self, entry: LogRecord, new: OffsetRecord) -> None:
        if self._is_of_another_task(new.run, new.task):
            self.writers[hash(entry.key)] = new.task
        else:
            super()._keep_offset(entry, new)

    def _is_of_another_task(self, run: int, task: int) -> bool:
        return run == self.run and task not in (self.task, record.DRIVER)

    def _take_scope(self, piece: int, new: ScopePiece | None) -> None:
        """Ignore it: a task gets its splits from the driver."""

    def elsewhere(self, split: SplitId) -> int | None:
        """Return the other task of the run that wrote an offset record of the split last, None where none did."""
        return self.writers.get(hash(record.split_key(self.job, split)))


def _decoded(kind: type[_Kind], entry: LogRecord, **key: Any) -> _Kind | None:
    """Return the record of an entry, None for a tombstone. Raises RecordError."""
    return kind.decode(entry.value, **key) if entry.value is not None else None


def _keep(kept: dict[_Name, _Kind], name: _Name, new: _Kind | None) -> None:
    if new is None:
        kept.pop(name, None)
    else:
        kept[name] = new
