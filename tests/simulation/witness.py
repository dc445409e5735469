"""Checks the promises P1 to P11 of docs/protocol.md, at every transaction that is decided and at every end of a run.

Independent of what is checked: it reads what the broker decided, not what anybody says of it.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from eosingest.errors import EXIT_CHANGED, EXIT_DONE, EXIT_FATAL, EXIT_FENCED, EXIT_INCOMPLETE, EXIT_TEMPORARY
from eosingest.protocol.transactional_ids import task_id
from tests.simulation.spark import DEAD, JOB, OFFSETS, PREFIXES, ROW_BYTES, TOPIC, Attempt, Run
from tests.support.builders import Place
from tests.support.changing_files import edited_at
from tests.support.expiring_table import gone_in, rows_up_to, source_row
from tests.support.frozen_table import KeyRange
from tests.support.memory_kafka.cluster import State
from tests.support.memory_kafka.log import Entry, Identity
from tests.support.simulated_source import EDITED, Rows

if TYPE_CHECKING:
    from tests.simulation.schedule import World

_DECODED = 10_000  # keys and values whose parsed form is kept

Partitions = Mapping[tuple[str, int], list[Entry]]


class ViolationError(Exception):
    """A promise was broken. `promise` is "P1" … "P11", or "bug"."""

    def __init__(self, promise: str, text: str) -> None:
        super().__init__(f"{promise}: {text}")
        self.promise = promise


class NotCoveredError(Exception):
    """What no promise covers has happened (docs/verification.md, What is not covered): nothing can be said of the rest."""


class Witness:
    """What is committed, as the decisions of the coordinator tell it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.rows: dict[Place, int] = dict.fromkeys(world.source.lengths, 0)  # committed rows of each split
        self.dead: dict[Place, set[int]] = {}  # those of them that are dead letters
        self.version: str | None = (
            None  # of the spec that the committed records were made by, since the last `complete`
        )
        self.sent = False  # whether a row was committed under it; a split without any has a record, too
        # What a run accepted while nothing was sent: it is pinned where gaps are recorded.
        self.accepted: str | None = None
        self.versions: dict[Place, str] = {}  # and of each split
        self.missing: dict[
            Place, list[int]
        ] = {}  # rows that were gone before they were read, and are counted in `rows`
        self.edited: dict[Place, bool] = {}  # whether the committed rows are those of the split as somebody edited it
        self.offsets: dict[Place, dict[str, Any]] = {}
        self.control: dict[str, Any] = {}  # the last one committed
        self.control_offset = -1
        self.claims: dict[int, tuple[dict[str, Any], int]] = {}  # by task: the claim, and its Kafka offset
        self.fenced_below = 0  # runs of a lower number must not commit anything any more
        self.anew = 0  # the run that last began to send everything again
        self.begun: set[str] = set()  # what runs call themselves that were about to send
        self.begun_as: str | None = None  # the spec of the last of them, which may be pinned though it sent nothing
        self.ended: set[int] = set()  # numbers of runs that ended in order
        self.numbers: dict[str, int] = {}  # run numbers by what the runs call themselves
        self.told_before: dict[Place, Any] = {}  # offset records of a lost offsets topic
        self.by_an_orphan = False  # what is looked at is of a run that began before that
        self.lives = 1  # of the offsets topic: in each of them run numbers begin anew
        self.fenced_at = 0.0  # when the last run fenced in this life of the offsets topic
        self.writers: dict[Identity, Attempt] = {}  # whom the coordinator gave a producer id and epoch
        self.by_parts = False  # since the job was last complete a run committed something that sends by parts
        self.completed: set[Place] = set()  # some run said 0: from here on nothing is to be sent of these

    # ---- a transaction is decided ----------------------------------------------------------------------------------

    def decided(self, name: str, committed: bool, partitions: Partitions) -> None:
        """Look at a transaction of ours: what it commits is all that read_committed readers will ever see of it."""
        if not committed or not name.startswith(PREFIXES) or not any(partitions.values()):
            return
        if self._outlived(name):
            raise NotCoveredError(f"{name}: an orphan of the lost offsets topic commits what it had open")
        sent = [entries for (topic, _), entries in partitions.items() if topic == TOPIC]
        found = _rows_of(sent, recreated=self.world.lost == TOPIC)
        letters = _rows_of([entries for (topic, _), entries in partitions.items() if topic == DEAD], recreated=False)
        for split, rows in letters.items():
            self.dead.setdefault(split, set()).update(row for row, _ in rows)
            found[split] = sorted([*found.get(split, []), *rows])
        for split, rows in found.items():
            if split in self.completed:
                raise ViolationError("P6", f"{split}: rows {rows} were committed after the job had been complete")
            self._take_rows(split, rows)
        told = set[Place]()
        for (topic, _), entries in partitions.items():
            if topic == OFFSETS:
                self._last_in_transaction(entries, partitions)
                self.by_an_orphan = self._is_by_an_orphan(entries)
                before = dict(self.offsets)
                for entry in _running_first(entries):
                    told.update(self._take(entry))
                if self._went_with_the_topic(entries):
                    self.told_before, self.offsets = self.told_before | self.offsets, before
                self._check_gaps(entries)
                self._check_overlaps()
        self._check_whole(name, found, told)
        untold = found.keys() - told
        if untold:
            raise ViolationError("P4", f"rows of {min(untold)} were committed without an offset record")

    def _check_whole(self, name: str, found: Mapping[Place, Any], told: set[Place]) -> None:
        """A task of a run that sends everything in one transaction commits all that the run has to send, or nothing."""
        writer = self._writer_of(name)
        if writer is None or not told or self.world.lost:
            return
        run = writer.job.run
        if not run.whole:
            self.by_parts = self.by_parts or bool(found)
            return
        if self.by_parts and found:
            raise ViolationError("P11", f"run {run.number} sends at once what an earlier run has sent in part")
        for split, length in self.world.source.lengths.items():
            if run.covers(split) and self.rows[split] != length:
                raise ViolationError(
                    "P11", f"{self.rows[split]} of {length} rows of {split} are committed by run {run.number}"
                )

    def _writer_of(self, name: str) -> Attempt | None:
        """Return the attempt whose transaction an id has: an attempt that only asks for the id has written nothing yet."""
        transaction = self.world.cluster.transactions[name]
        return self.writers.get(Identity(name, transaction.producer_id, transaction.epoch))

    def _went_with_the_topic(self, entries: list[Entry]) -> bool:
        """Say whether these records were written to an offsets topic that was lost before their transaction was decided."""
        if self.world.lost != OFFSETS or not entries:
            return False
        topic = self.world.cluster.topics.get(OFFSETS)
        return topic is None or not any(found is entries[-1] for log in topic.logs for found in log.entries)

    def _outlived(self, name: str) -> bool:
        """Say whether a transaction was open when a run fenced that could not know of it: that went with the offsets topic."""
        writer = self._writer_of(name)
        if writer is None or self.world.lost != OFFSETS or writer.job.run.life == self.lives:
            return False
        return self.world.cluster.transactions[name].started < self.fenced_at

    def _take_rows(self, split: Place, rows: list[tuple[int, str]]) -> None:
        before = self.rows[split]
        numbers = sorted(row for row, _ in rows)
        if numbers[0] < before or len(set(numbers)) < len(numbers):
            raise ViolationError("P3", f"{split}: rows {numbers} were committed, and {before} had been before")
        if numbers != list(range(before, before + len(numbers))):
            raise ViolationError("P1", f"{split}: rows {numbers} were committed behind {before} rows: some are missing")
        for _, told in rows:
            version, edited = told.removesuffix(EDITED), told.endswith(EDITED)
            if self.version not in (None, version) and any(self.rows.values()):
                raise ViolationError("P1", f"records of two versions of the spec: {self.version} and {version}")
            if before and self.edited.get(split, edited) != edited:
                raise ViolationError(
                    "P1", f"{split}: rows {numbers} are of another content than the {before} before them"
                )
            self.version, self.sent = version, True
            self.versions[split] = version
            self.edited[split] = edited
        self.rows[split] = before + len(numbers)

    @staticmethod
    def _last_in_transaction(entries: list[Entry], partitions: Partitions) -> None:
        """Offset records come after the flush: the offsets partition is pinned for milliseconds."""
        kinds = (TOPIC, DEAD)
        data = [entry.timestamp_ms for (topic, _), found in partitions.items() if topic in kinds for entry in found]
        if data and entries and min(entry.timestamp_ms for entry in entries) < max(data):
            raise ViolationError("order", "a record was sent after the offset records of its transaction")

    def _take(self, entry: Entry) -> list[Place]:
        """Take a record of the offsets topic; return the splits that it speaks of: of a table's range, all its parts."""
        key, value = _key_of(entry), _value_of(entry)
        if key.get("control") == "run":
            self._take_control(value, entry.offset)
        if "task" in key:
            self.claims[int(key["task"])] = (value, entry.offset)
        if "file" not in key:
            return []
        split = (str(key["file"]), int(key["start"]))
        if entry.value is None:
            self.offsets.pop(split, None)
            return [split]
        parts = KeyRange(*split, value["bounds"]["end"]).parts if "end" in value["bounds"] else [split]
        if self._is_fold(split, value):
            self._take_fold(KeyRange(*split, value["bounds"]["end"]), value)
            return parts
        if _moves(value):
            self._go_behind_gap(KeyRange(*split, value["bounds"]["end"]), value)
        self._take_offset(split, parts, value)
        return parts

    def _is_fold(self, split: Place, new: dict[str, Any]) -> bool:
        old = self._ever_told().get(split)
        return old is not None and "end" in new["bounds"] and new["bounds"] != old["bounds"]

    def _ever_told(self) -> dict[Place, Any]:
        """Return the offset records, for a run that began before the offsets topic was lost also those: it may fold them."""
        return {**self.told_before, **self.offsets} if self.by_an_orphan else self.offsets

    def _is_by_an_orphan(self, entries: list[Entry]) -> bool:
        """Say whether a driver wrote this that claimed the job in an offsets topic that is lost."""
        controls = [_value_of(entry) for entry in entries if "control" in _key_of(entry)]
        return any(self.run_of(control).life < self.lives for control in controls if "started" in control)

    def _take_fold(self, whole: KeyRange, new: dict[str, Any]) -> None:
        """Take one record for several: they are done, lie side by side, and what it says is the sum of what they said."""
        known = self._ever_told()
        ends = {old["bounds"]["end"]: start for (table, start), old in known.items() if table == whole.table}
        at = whole.end
        parts = []
        while at != whole.start:
            if at not in ends:
                raise ViolationError("P4", f"{whole.label}: folded, and nothing that ends at {at} is among it")
            parts.append(known[whole.table, ends[at]])
            at = ends[at]
        same = all(new[name] == sum(part[name] for part in parts) for name in ("rows", "records"))
        same = same and _letters_in(new) == sum(map(_letters_in, parts))
        checksum = sum(int(part["checksum"], 16) for part in parts) % (1 << 64)
        if (
            not new["done"]
            or not all(part["done"] for part in parts)
            or not same
            or int(new["checksum"], 16) != checksum
        ):
            raise ViolationError("P4", f"{whole.label}: {new} was folded of {parts}")
        if new["sequence"] <= max(part["sequence"] for part in parts):
            raise ViolationError("P5", f"{whole.label}: {new} was folded of {parts}")
        self.offsets[whole.table, whole.start] = new

    def _check_overlaps(self) -> None:
        """Of a table no two offset records speak of the same rows: what is folded is gone with it."""
        if self.world.tables is None or not self.world.tables.folds:
            return
        ranges = sorted((table, start, told["bounds"]["end"]) for (table, start), told in self.offsets.items())
        for (table, start, end), (other, begin, _) in itertools.pairwise(ranges):
            if table == other and begin < end:
                raise ViolationError("P4", f"{table}: keys {begin} to {end} are told twice, also from {start} on")

    def _go_behind_gap(self, split: KeyRange, new: dict[str, Any]) -> None:
        """Count rows as passed that are gone: only such ones, and only of a run that was told to."""
        assert self.world.tables is not None
        behind, before = rows_up_to(new["position"]), sum(map(self.rows.__getitem__, split.parts))
        run = next(run for run in reversed(self.world.runs) if run.number == new["run"])
        if not run.accept_gap or not before <= behind <= gone_in(self.world.tables, split):
            raise ViolationError("P1", f"{split.label}: rows {before} to {behind} were left out by run {run.number}")
        for part in split.parts:
            rows = min(behind, self.world.source.lengths[part])
            self.missing.setdefault(part, []).extend(range(self.rows[part], rows))
            self.rows[part], behind = rows, behind - rows

    def _check_gaps(self, entries: list[Entry]) -> None:
        """Every position that is moved has the record of a gap beside it."""
        values = map(_value_of, entries)
        moved = sum(map(_moves, values))
        told = sum("gap" in _key_of(entry) and entry.value is not None for entry in entries)
        if moved != told:
            raise ViolationError("P1", f"{moved} positions were moved behind gaps, and {told} gaps are recorded")

    def _take_control(self, value: dict[str, Any], offset: int) -> None:
        self.control, self.control_offset = value, offset
        self.numbers[value["started"]] = value["run"]
        run = self.run_of(value)
        begins = value["state"] in ("running", "complete") and value["started"] not in self.begun
        if begins:  # where nothing is there to send, a run says `complete` at once
            self.begun.add(value["started"])
            self.begun_as = run.version
        if begins and run.from_scratch:
            # everything is sent again, in whatever version
            self.anew = value["run"]
            self.rows = dict.fromkeys(self.rows, 0)
            self.dead.clear()
            self.version, self.sent, self.accepted, self.completed = None, False, None, set()
            self.edited.clear()
            self.missing.clear()
            self.by_parts = False
        if value["state"] == "complete":
            self.by_parts = False
        if begins and run.accept_change and not self.sent:
            self.version = None  # another spec was accepted by a proof over nothing, and any is while nothing is sent
        if run.accept_change and not self.sent and value["digest"].get("record.value") == run.version:
            self.accepted = run.version  # also by a run that failed behind the proof
        if value["state"] == "complete" and (self.world.tables is not None or self.world.files is not None):
            # what comes now is other rows, and may be another spec's
            self.version, self.sent, self.accepted = None, False, None

    def _take_offset(self, split: Place, parts: list[Place], new: dict[str, Any]) -> None:
        lengths = self.world.source.lengths
        old, rows, length = (
            self.offsets.get(split),
            sum(map(self.rows.__getitem__, parts)),
            sum(map(lengths.get, parts)),
        )
        for part, later in itertools.pairwise(parts):
            if self.rows[later] and self.rows[part] < lengths[part]:
                raise ViolationError("P1", f"rows of {later} were committed, and not all of {part} before them")
        if new["run"] < self.fenced_below:
            raise ViolationError("P7", f"run {new['run']} committed {split} after run {self.fenced_below} had fenced")
        if new["run"] in self.ended:
            raise ViolationError("P8", f"run {new['run']} committed {split} after its orderly end")
        taken = rows - sum(len(self.missing.get(part, ())) for part in parts)
        dead = sum(len(self.dead.get(part, ())) for part in parts)
        sent = taken - dead
        if (new["rows"], new["records"], _letters_in(new)) != (taken, sent, dead) or not _agrees(new, rows):
            raise ViolationError("P4", f"{split}: {new}, and {rows} rows are committed or missing, {sent} committed")
        letters = sum(map(self._letters_checksum, parts)) % (1 << 64)
        if dead and (int(new["dead"]["rows"], 16), int(new["dead"]["checksum"], 16)) != (letters, letters):
            raise ViolationError("P4", f"{split}: the checksum of the {dead} dead letters is another one")
        if int(new["checksum"], 16) != sum(map(self._checksum, parts)) % (1 << 64):
            raise ViolationError("P4", f"{split}: the checksum is not that of the {sent} rows committed")
        if (
            old is not None
            and self.world.lost != OFFSETS
            and (new["rows"] < old["rows"] or new["sequence"] != old["sequence"] + 1)
        ):
            raise ViolationError("P5", f"{split}: {old} was followed by {new}")
        if old is not None and old["version"] != new["version"]:
            self._check_corrected(split, new)
        if new["done"] and rows < length:
            raise ViolationError("P4", f"{split} is done after {rows} of {length} rows")
        if self.version is None:  # that a split has no row is what the writer's spec says of it, not a newer run's
            self.version = next(run.version for run in reversed(self.world.runs) if run.number == new["run"])
        self.offsets[split] = new

    def _check_corrected(self, split: Place, new: dict[str, Any]) -> None:
        """The rows that were sent of a split are those of the version that its offset record names now."""
        if self.world.files is None or self.world.faults.struck["edit"] or not self.rows[split]:
            return
        if edited_at(new["version"]["content"], split) != self.edited[split]:
            raise ViolationError("P4", f"{split}: {new} names a version whose rows were not sent")

    def _checksum(self, split: Place) -> int:
        """Return the checksum of what is committed of a split."""
        sums = self._sent_rows(split).checksums
        left_out = {*self.missing.get(split, ()), *self.dead.get(split, ())}
        return sums[self.rows[split]] - sum(sums[row + 1] - sums[row] for row in left_out)

    def _letters_checksum(self, split: Place) -> int:
        """Return the checksum of the dead letters of a split: each has the row's key and value."""
        sums = self._sent_rows(split).checksums
        return sum(sums[row + 1] - sums[row] for row in self.dead.get(split, ()))

    def _sent_rows(self, split: Place) -> Rows:
        """Return the rows of a split as those that are committed of it were read."""
        version = self.versions.get(split, "one")
        return self.world.source.rows[version + EDITED if self.edited.get(split) else version][split]

    # ---- what processes do -----------------------------------------------------------------------------------------

    def about_to_init(self, attempt: Attempt) -> None:
        """An attempt that began when anybody could read of a newer run must not even init its producer (The task, step 0)."""
        if self.world.lost == OFFSETS:
            return  # what it could have read is gone, or was written to another topic of that name
        number = attempt.job.settings.run
        if self.control.get("run", 0) > number and self.control_offset < attempt.began_at_stable:
            raise ViolationError("P7", f"{attempt.process} of run {number} disturbs run {self.control['run']}")
        claim, offset = self.claims.get(attempt.task, ({}, 0))
        if claim.get("started") == attempt.job.settings.started and offset < attempt.began_at_stable:
            if claim["attempt"] > attempt.identity:
                raise ViolationError("P7", f"{attempt.process} disturbs the newer attempt {claim['attempt']}")

    def inited(self, attempt: Attempt, who: Identity) -> None:
        """The coordinator gave an attempt this producer id and epoch: what is committed with them is the attempt's."""
        self.writers[who] = attempt

    def claimed(self, run: Run) -> None:
        """The run passed its claim, perhaps a while ago."""
        run.number, run.life = self.numbers.get(run.started, 0), self.lives

    def fenced(self, run: Run) -> None:
        """The run fenced everything before it."""
        if run.life == self.lives:
            self.fenced_at = self.world.scheduler.now
        if self.world.lost != OFFSETS:
            self.fenced_below = max(self.fenced_below, run.number)

    def run_of(self, control: dict[str, Any]) -> Run:
        """Return the run that a control record names."""
        return self.world.run_started(control["started"])

    def offsets_lost(self) -> None:
        """The offsets topic was deleted: run numbers and sequences begin anew, what was sent stays."""
        self.fenced_below, self.fenced_at, self.ended, self.anew = 0, 0.0, set(), 0
        self.lives += 1
        self.told_before |= self.offsets
        self.offsets.clear()

    def run_ended(self, run: Run) -> None:
        """An orderly end: the exit code must be what the log says (P9), and nothing of ours may be open (P8)."""
        code = run.exit_code
        self.world.scheduler.tell(f"exit {code} {run.codes}")
        if code == EXIT_DONE:
            if run.life == self.lives and run.number < self.anew:
                return  # it was complete when it said so; another run sends everything again
            self.check_complete(run, "P9", "exit 0")
            if self.world.lost != TOPIC or self.world.lost_at <= run.looked_at:
                self._check_topic()
            if self.control["started"] == run.started and self.control["state"] != "complete":
                raise ViolationError("P9", f"exit 0, and the run's control record says {self.control['state']}")
            self.completed |= {split for split in self.rows if run.covers(split)}
        elif code == EXIT_FENCED:
            if self.control.get("started") == run.started:
                raise ViolationError("P9", "exit 6, and the control record is still the run's own")
        elif code == EXIT_CHANGED:
            self._check_changed(run)
        elif code == EXIT_FATAL:
            self._check_fatal(run)
        elif code not in (EXIT_INCOMPLETE, EXIT_TEMPORARY, 128 + 15):
            raise ViolationError("P9", f"exit {code}: {run.error}")
        if run.report is not None and run.number:
            if run.life == self.lives:
                self.ended.add(run.number)
            self._check_nothing_open(run)

    def _check_changed(self, run: Run) -> None:
        taken_over = self.control.get("started") != run.started  # what it read was true before
        refused = run.codes in (["spec-changed"], ["change-not-proven"])
        accepted = self.accepted if self.offsets and not self.sent else None
        versions = {self.version, accepted} - {None, run.version}
        other_spec = refused and (taken_over or bool(versions))
        edited = self._changed_rows() & set(run.codes)
        moved = run.codes == ["pinned"] and self.world.moves
        expired = self.world.faults.struck["expire"] and run.codes == ["source-records-deleted"] and not run.accept_gap
        half_sent = run.codes == ["half-sent"] and run.whole and (taken_over or self.by_parts)
        if not (self.world.lost or other_spec or edited or moved or expired or half_sent):
            raise ViolationError("P9", f"exit 12 {run.codes}, and nothing was changed")

    def _changed_rows(self) -> set[str]:
        """Return what a run may say of files that somebody changed."""
        struck = self.world.faults.struck
        seen = ("source-changed", "source-vanished", "changed-while-read")
        return {
            *(["prefix-changed"] if struck["edit"] or struck["save-file"] else []),
            *(seen if struck["save-file"] or struck["take-file"] else []),
        }

    def _check_fatal(self, run: Run) -> None:
        struck = self.world.faults.struck
        # A driver that was cut off in its takeover fences, again and again, until it reads that the job is another run's.
        fencing = struck["foreign-init"] + struck["late-request"] + struck["second-attempt"] + struck["disconnect"]
        beside = {"fenced-again-and-again", "superseded", *self._changed_rows()}
        fenced = "fenced-again-and-again" in run.codes and set(run.codes) <= beside
        bad_row = run.whole and run.most_letters < 3 and "corrupt-row" in run.codes
        too_long = run.whole and "too-large-for-one-transaction" in run.codes
        if not (self.world.lost or (fencing and fenced) or bad_row or too_long):
            raise ViolationError("P9", f"exit 7 {run.codes}: {run.error or run.report}")

    def _check_nothing_open(self, run: Run) -> None:
        """P8, unless a newer run is at work under the same ids."""
        if self.control.get("started") != run.started:
            return
        tasks = self.world.most_tasks
        if self.world.lost == OFFSETS:  # with it went how many tasks an earlier run had
            tasks = len(run.job.parts) if run.job is not None else 1
        for task in range(tasks):
            for prefix in PREFIXES:
                found = self.world.cluster.transactions.get(task_id(prefix, JOB, task))
                if found is not None and found.state is State.ONGOING:
                    raise ViolationError("P8", f"a transaction of task {task} is open after exit {run.exit_code}")

    def check_complete(self, run: Run, promise: str, when: str) -> None:
        """Everything is there that the run was to send."""
        for split, length in self.world.source.lengths.items():
            if run.covers(split) and self.rows[split] != length:
                raise ViolationError(
                    promise, f"{when}, and {self.rows[split]} of {length} rows of {split} are committed"
                )

    def _check_topic(self) -> None:
        """The topic that is there now holds every record once: as read, not as decided."""
        topics = self.world.cluster.topics
        found = {
            topic: {
                record.value or b"" for log in topics[topic].logs for record in log.fetch(log.start, committed=False)[0]
            }
            for topic in (TOPIC, DEAD)
            if topic in topics
        }
        for split, count in self.rows.items():
            dead, gone = self.dead.get(split, ()), self.missing.get(split, ())
            for row, value in enumerate(self._sent_rows(split).values[:count]):
                if row not in gone and value not in found[DEAD if row in dead else TOPIC]:
                    raise ViolationError("P9", f"exit 0, and {value.decode()} is not in the topic")


@lru_cache(_DECODED)
def _loaded(text: bytes) -> Any:
    """Parse a key or a value of the offsets topic. Nobody changes what is returned."""
    return json.loads(text.decode())


def _key_of(entry: Entry) -> dict[str, Any]:
    return _loaded(entry.key or b"")[1]  # type: ignore[no-any-return]


def _value_of(entry: Entry) -> dict[str, Any]:
    return _loaded(entry.value or b"{}")  # type: ignore[no-any-return]


def _agrees(told: dict[str, Any], rows: int) -> bool:
    """Say whether the position of an offset record is that behind so many rows."""
    if told["position_kind"] == "offset":
        offset, number = source_row(rows - 1)
        return (told["position"], told.get("row_records")) in ((offset, number + 1), (offset, None))
    return told["position"] == rows * (ROW_BYTES if told["position_kind"] == "bytes" else 1)


def _letters_in(offset: dict[str, Any]) -> int:
    """Return how many dead letters an offset record tells of."""
    return int(offset["dead"]["count"]) if offset.get("dead") else 0


def _moves(offset: dict[str, Any]) -> bool:
    """Say whether an offset record is one by which a driver moves a position behind a gap: of a table, no corrected file's."""
    return offset.get("task") == -1 and not offset["done"] and "end" in offset["bounds"]


def _running_first(entries: list[Entry]) -> list[Entry]:
    """Return the entries of a transaction, a control record `running` first: from scratch it says that all begins anew."""
    return sorted(entries, key=lambda entry: b'"state":"running"' not in (entry.value or b""))


def _rows_of(logs: Iterable[list[Entry]], *, recreated: bool) -> dict[Place, list[tuple[int, str]]]:
    """Return (row, version) by split of a transaction's records; in each partition the rows of a split keep their order.

    `recreated`: of a batch that was sent again, since its answer was lost, the first copy may have gone with the deleted topic.
    """
    found: dict[Place, list[tuple[int, str]]] = {}
    for entries in logs:
        last: dict[Place, int] = {}
        for entry in entries:
            file, start, row, version = (entry.value or b"").decode().split("|")
            split = (file, int(start))
            if recreated and int(row) <= last.get(split, -1):
                continue
            if int(row) <= last.get(split, -1):
                raise ViolationError("P2", f"{split}: row {row} came after row {last[split]}")
            last[split] = int(row)
            found.setdefault(split, []).append((int(row), version))
    return found
