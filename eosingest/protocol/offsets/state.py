"""A job's state as its records in the offsets topic tell it: folded record by record, in log order.

The driver folds from the log start on, a task (`TaskState`) from the offset up to which the driver read for the plan, the
progress display from the offset that it has reached.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from eosingest.errors import FatalError
from eosingest.kafka.protocols import LogRecord
from eosingest.protocol.offsets import record
from eosingest.protocol.offsets.dead_letters import NO_DEAD_LETTERS, DeadLetterPin, DeadLetters
from eosingest.protocol.offsets.gap import GapRecord, decode_gap
from eosingest.protocol.source import SplitId


@dataclass
class JobState:
    """Latest control record, claims by task, and offset records by split; `end` is the next offset to read,
    `last_ms` the timestamp of the job's latest record.

    `settled` is the latest control record that is more than a claim: what it carries forward was read read_committed. It
    has a key of its own, or compaction would leave claims only, whose pins may come from an aborted record.
    `control_at` is the offset of `control`, -1 where there is none.
    `newest` is the one with the highest run number: another one than `control` only where uncommitted records were read.
    `newest_run` is the run record of the highest run number. `scope` has the encoded pieces of the source's scope, by number,
    `gaps` what was deleted from the source before it was read, by name.
    `forgotten` says that some claim has it set (see ControlRecord). Without `with_offsets` offset records are left out: a
    claim needs none, and those of 100,000 files take seconds.
    """

    job: str
    control: record.ControlRecord | None = None
    control_at: int = -1
    settled: record.ControlRecord | None = None
    newest: record.ControlRecord | None = None
    forgotten: bool = False
    newest_run: record.RunRecord | None = None
    claims: dict[int, record.Claim] = field(default_factory=dict)
    offsets: dict[SplitId, record.OffsetRecord] = field(default_factory=dict)
    scope: dict[int, bytes] = field(default_factory=dict)
    gaps: dict[str, GapRecord] = field(default_factory=dict)
    end: int = 0
    last_ms: int = 0
    with_offsets: bool = True

    def fold(self, records: Iterable[LogRecord]) -> None:
        """Take in records in log order. Raises FatalError where a split's sequence goes back (P5)."""
        prefix, others = record.key_prefix(self.job), record.other_key_prefixes(self.job)
        for entry in records:
            if entry.key.startswith(prefix):
                self.last_ms = max(self.last_ms, entry.timestamp_ms)
                if entry.key.startswith(others):
                    self._take(record.decode_key(entry.key), entry)
                elif self.with_offsets:
                    split = record.split_id_of(self.job, entry.key)
                    if record.is_split_id(split):  # else a kind of record that only a later release has
                        self._take_offset(split, entry)

    def _take(self, key: dict[str, object], entry: LogRecord) -> None:
        if key.get("control") == "settled":
            self.settled = record.decode_control(entry.value) if entry.value else None
        elif "control" in key:
            self._take_control(entry)
        elif "run" in key or "ended" in key:
            self._take_run(key, entry.value)
        elif "task" in key:
            self._take_claim(key, entry.value)
        elif "scope" in key:
            self._take_scope(key, entry.value)
        elif "gap" in key:
            self._take_gap(str(key["gap"]), entry.value)

    def _take_control(self, entry: LogRecord) -> None:
        self.control = record.decode_control(entry.value) if entry.value else None
        self.control_at = entry.offset if entry.value else -1
        if self.control is not None and self.control.state == record.CLAIMED:
            self.forgotten = self.forgotten or self.control.forgotten
        if self.control is not None and (self.newest is None or self.control.run >= self.newest.run):
            self.newest = self.control

    def _take_run(self, key: dict[str, object], value: bytes | None) -> None:
        new = record.decode_run(key, value) if value else None
        if new is not None:
            self.newest_run = max(self.newest_run or new, new, key=lambda found: (found.run, found.ended))

    def _take_claim(self, key: dict[str, object], value: bytes | None) -> None:
        task = int(str(key["task"]))
        if value is None:
            self.claims.pop(task, None)
        else:
            self.claims[task] = record.decode_claim(value)

    def _take_scope(self, key: dict[str, object], value: bytes | None) -> None:
        piece = int(str(key["scope"]))
        if value is None:
            self.scope.pop(piece, None)
        else:
            self.scope[piece] = value

    def _take_gap(self, name: str, value: bytes | None) -> None:
        if value is None:
            self.gaps.pop(name, None)
        else:
            self.gaps[name] = decode_gap(name, value)

    def _take_offset(self, split: SplitId, entry: LogRecord) -> None:
        if entry.value is None:
            self.offsets.pop(split, None)
            return
        new = record.decode_offset(split, entry.value)
        old = self.offsets.get(split)
        # That of a newer run may begin at 0 again, after a tombstone (`--from-scratch`, reingest) that was compacted away.
        if old is not None and new.sequence < old.sequence and new.run <= old.run:
            raise FatalError(
                f"the offset record of {split} went back from sequence {old.sequence} to"
                f" {new.sequence} (offset {entry.offset} of the offsets topic)",
                code="sequence-went-back",
                hint="something other than eosingest wrote to the offsets topic; nothing more was sent",
            )
        self.offsets[split] = new

    @property
    def records_total(self) -> int:
        """How many records the offset records account for."""
        return sum(offset.records for offset in self.offsets.values())

    def dead_letters(self, pin: DeadLetterPin | None) -> DeadLetters:
        """Return the sum of all letters of the job, whose control record has the pin; none without one."""
        return NO_DEAD_LETTERS if pin is None else pin.total(offset.dead for offset in self.offsets.values())

    def is_done(self, split: SplitId) -> bool:
        """Say whether a split is done."""
        found = self.offsets.get(split)
        return found is not None and found.done


@dataclass
class TaskState(JobState):
    """A job's state in a task: of a split that another task of the run wrote it keeps only which one wrote last.

    A million such records may follow the plan, each an object of nearly a KB in each Python worker of an executor. The task
    should read none of these splits; `elsewhere` tells if it was given one all the same. What the driver wrote is for any task.
    """

    run: int = 0
    task: int = 0
    writers: dict[int, int] = field(default_factory=dict)  # tasks by the hash of the split's key

    def _take_offset(self, split: SplitId, entry: LogRecord) -> None:
        writer = record.writer_of(entry.value) if entry.value is not None else None
        if writer is not None and self._is_of_another_task(*writer):
            self.writers[hash(entry.key)] = writer[1]
        else:
            super()._take_offset(split, entry)

    def _is_of_another_task(self, run: int, task: int) -> bool:
        return run == self.run and task not in (self.task, record.DRIVER)

    def _take_scope(self, key: dict[str, object], value: bytes | None) -> None:
        """Ignore it: a task gets its splits from the driver."""

    def elsewhere(self, split: SplitId) -> int | None:
        """Return which other task of the run wrote an offset record of the split, None where none did."""
        return self.writers.get(hash(record.split_key(self.job, split)))
