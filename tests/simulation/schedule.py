"""One schedule: a world made from a seed, run to its end, and checked.

An operator starts runs, some at the same time; faults strike; then they stop, and the operator goes on until a run says
0, runs once more, and waits for whatever is still frozen or late. Every end of the world must find the promises kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from eosingest.errors import EXIT_CHANGED, EXIT_DONE, EXIT_FATAL, ChangedError
from eosingest.host.failpoints import handle_with
from eosingest.protocol.offsets import record
from eosingest.protocol.offsets import topic as offsets_topic
from eosingest.protocol.source import Split
from eosingest.protocol.task_contract import Batch
from eosingest.sources.files.listing.fingerprint import Fingerprint
from tests.simulation.faults import Faults
from tests.simulation.scheduler import DoesNotEndError, Killed, Process, Scheduler
from tests.simulation.spark import DEAD, JOB, OFFSETS, PREFIXES, Run
from tests.simulation.themes import CLAIM_IN_ANOTHER_TOPIC, MIXED_THEMES, NO_THEME, OTHER_OFFSETS_TOPIC, THEMES
from tests.simulation.witness import NotCoveredError, ViolationError, Witness
from tests.support.builders import Place, place
from tests.support.changing_files import Files
from tests.support.frozen_table import KeyRange, Tables
from tests.support.memory_kafka.cluster import Cluster
from tests.support.simulated_source import EDITED, TEMPLATES, Rows, template

_MOST_STEPS = 60_000
_MOST_RUNS = 12
_RUN_S = 20_000.0
_EDITS = 0.1  # part of the schedules in which somebody edits a file and keeps its length and modification time
_CHANGING = 0.15  # part of the schedules in which somebody edits files as a listing tells, or takes them away
_CORRECTING = 0.5  # part of these in which an edit changes only some splits of its file
_FREEZING = 0.2  # part of the schedules whose source grows, and freezes how it is cut
_MOVES = 0.1  # part of the schedules in which runs from scratch have another prefix of transactional ids, or plain ones try to
_READING_BYTES = 0.3  # part of the schedules in which tasks read the bytes of their splits themselves
_EXPIRING = 0.5  # part of these in which rows also go by themselves, read or not, and one makes several records
_EXPLODING = 0.1  # part of the schedules in which several records are made of one source row, and found by its position
# Every seventh schedule has rows that cannot be sent. By number: the seeds that miss rare rules are none of these.
_LETTERS_EVERY, _LETTERS = 7, 1
# In every eighth, by number as well, most runs send everything in one transaction.
_WHOLE_EVERY, _WHOLE = 8, 2
_BY_PARTS = 0.2  # part of the runs of such a schedule that send by parts all the same
# In every nineteenth each run does one or the other with even odds, and sources grow. No kept seed is one of these.
_MIXED_EVERY, _MIXED = 19, 15
_MIXED_FREEZING = 0.4  # in place of _FREEZING
_MIXED_APPEARING = 0.9  # part of the others in which files appear between runs
_MIXED_RUNS = 6
_MIXED_THEMED = 0.75  # part of them that have one of their own themes
_REFUSED = {"half-sent", "too-large-for-one-transaction"}  # where an operator who reads goes on by parts
_THEMED = 0.4  # part of the schedules that have a theme
_OTHER_TOPIC = 0.04  # part of the schedules that have one of these themes, which are drawn apart
_OTHER_TOPICS = (OTHER_OFFSETS_TOPIC, CLAIM_IN_ANOTHER_TOPIC)
# The last ones take most chances to come to something.
_THEMES = (*(name for name in THEMES if name not in _OTHER_TOPICS), "late-orphans", "late-looks", "late-looks")


@dataclass(frozen=True)
class Result:
    """How a schedule ended: what was broken, None where nothing was; runs, faults by kind, records, steps."""

    seed: int
    violation: str | None
    runs: int
    faults: dict[str, int]
    records: int
    steps: int
    covered: bool = True  # False: it came to what no promise covers, and ended there


class World:
    """Everything that one schedule shares."""

    def __init__(self, seed: int, trace: list[str] | None = None) -> None:
        random = self.random = Random(seed)
        self.scheduler = Scheduler(random, most_steps=_MOST_STEPS, trace=trace)
        self.source = template(random.randrange(TEMPLATES))
        self.timeout_s = random.choice((5.0, 10.0, 60.0))
        self.max_records = random.choice((1, 2, 3, 5, 100))
        self.batch_records = random.choice((1, 1, 3, 100))
        self.most_tasks = random.choice((1, 2, 2, 3, 4))
        self.sink_partitions = random.choice((1, 2, 3))
        self.theme = THEMES[random.choice(_THEMES)] if random.random() < _THEMED else NO_THEME
        other_topic = Random(f"other topic {seed}")
        if other_topic.random() < _OTHER_TOPIC:
            self.theme = THEMES[other_topic.choice(_OTHER_TOPICS)]
        self.mixed = seed % _MIXED_EVERY == _MIXED
        mixing = Random(f"mixed {seed}")
        if self.mixed and mixing.random() < _MIXED_THEMED:
            self.theme = mixing.choice(MIXED_THEMES)
        if self.mixed:
            several = [made for made in map(template, range(TEMPLATES)) if len(made.files) > 1]
            self.source = mixing.choice(several)
        self.slow_input = random.random() < self.theme.slow_input
        # Drawn apart: what is drawn of the other schedules stays as it is.
        self.reads_bytes = Random(f"bytes {seed}").random() < _READING_BYTES
        self.explodes = not self.reads_bytes and Random(f"explodes {seed}").random() < _EXPLODING
        freezes = Random(f"scope {seed}").random() < (_MIXED_FREEZING if self.mixed else _FREEZING)
        freezes = freezes and not (self.mixed and self.theme.in_order)
        self._expiring = Random(f"expiring {seed}")
        self.expires = freezes and not self.theme.in_order and self._expiring.random() < _EXPIRING
        if self.expires:
            self.reads_bytes, self.explodes = False, True
        # When rows go, in points that are passed.
        self.expirations = [
            self._expiring.randint(1, 120) for _ in range(self._expiring.randint(2, 6) if self.expires else 0)
        ]
        self.tables = Tables(self.source, Random(f"tables {seed}")) if freezes else None
        if self.tables is not None:
            self.tables.folds = self._expiring.random() < 0.5
        edits = Random(f"edits {seed}")
        self.edit_after = edits.randint(1, 200) if edits.random() < _EDITS else 0  # points that are passed; 0: never
        if freezes or self.explodes:  # what lies before a position is not read again, and not proven
            self.edit_after = 0
        self.edited: set[Place] = set()
        changing = Random(f"files {seed}")
        changes = changing.random() < _CHANGING and not (freezes or self.explodes or self.theme.in_order)
        appear = self.mixed and mixing.random() < _MIXED_APPEARING and not (freezes or self.explodes)
        correcting = Random(f"corrections {seed}")
        corrects = correcting if correcting.random() < _CORRECTING else None
        self.files = (
            Files(self.source, self.edited, mixing if appear else None, corrects) if changes or appear else None
        )
        # When, in points that are passed, and whether a file is saved with other content, or is not there (any more).
        self.file_changes = [
            (changing.randint(1, 300), changing.choice(("save-file", "take-file")))
            for _ in range(changing.randint(1, 4) if changes else 0)
        ]
        self._prefixes = Random(f"prefixes {seed}")
        self.moves = self._prefixes.random() < _MOVES
        self._accepting = Random(f"accepting {seed}")
        self._accepts = self._accepting.choice((0.0, 0.0, 0.0, 0.5))
        self._judging = Random(f"letters {seed}")
        self.letters = seed % _LETTERS_EVERY == _LETTERS
        self.whole = self.mixed or seed % _WHOLE_EVERY == _WHOLE
        self._bounding = Random(f"whole {seed}")
        self.disconnected: set[Process] = set()
        self.runs: list[Run] = []
        self.last: Run  # that said 0 with no faults any more
        self.covered = True
        self.lost = ""  # what somebody deleted: the job can never be complete again
        self.lost_at = 0.0
        self.offsets_partition = offsets_topic.partition_of(JOB, offsets_topic.PARTITIONS)
        self._attempts = 0
        self.faults = Faults(self)
        self.moves = self.moves and not self.faults.loses_offsets  # a new prefix hides what a lost offsets topic knew
        self.witness = Witness(self)
        self.cluster = Cluster(
            lambda: self.scheduler.now,
            defer=lambda action: self.scheduler.later(self.latency(), action),
            decided=self.witness.decided,
            max_epoch=random.choice((4, 32_767)),
            expiration_s=random.choice((5.0, 100.0)),
        )
        if self.letters:
            self.cluster.create_topic(DEAD, self._judging.choice((1, 2)), {})

    # ---- for everybody ---------------------------------------------------------------------------------------------

    def latency(self) -> float:
        """Return how long something takes: mostly a millisecond, now and then seconds."""
        return 0.001 + 3.0 * self.random.random() ** 40  # type: ignore[no-any-return]

    def start_latency(self) -> float:
        """Return how long a worker takes to start: it may begin when its job is over, or after a later attempt."""
        if self.random.random() < self.theme.prompt_starts:
            return self.latency()
        return self.random.choice((0.1, 1.0, 5.0))

    def input_latency(self) -> float:
        """Return how long Spark takes for the next batch."""
        if self.slow_input and self.random.random() < 0.2:
            return self.random.choice((0.1, 0.6, 2.0)) * self.timeout_s
        return self.latency()

    def next_attempt(self) -> int:
        """Return an id for a task attempt; Spark's are unique in a run, and so grow."""
        self._attempts += 1
        return self._attempts

    def last_stable(self) -> int:
        """Return the last stable offset of the job's partition of the offsets topic."""
        topic = self.cluster.topics.get(OFFSETS)
        return topic.logs[self.offsets_partition].last_stable if topic is not None else 0

    def passed(self, name: str) -> None:
        """Pass a fail point of the production code."""
        actor = self.scheduler.current
        assert actor is not None
        if actor.process.dead:
            raise Killed
        run = next((run for run in self.runs if run.process is actor.process), None)
        if run is not None and name == "driver-after-claim":
            self.witness.claimed(run)
        elif run is not None and name == "driver-after-fence":
            self.witness.fenced(run)
        if run is not None and name in ("driver-after-fence", "driver-after-settling"):
            run.looked_at = self.scheduler.now
        if self.scheduler.traced:
            self.scheduler.tell(f"at {name}")
        self.faults.point(actor.process, name=name)

    def rows_of(self, split: Split, version: str) -> Rows:
        """Return the rows of a split as whoever begins to read it now finds them."""
        if isinstance(split, KeyRange):
            assert self.tables is not None
            return self.tables.rows_of(split, version)
        at = place(split)
        if self.files is not None and at[0] in self.files.gone:
            raise ChangedError(f"{at[0]}: is gone", code="changed-while-read", item=at[0])
        return self.source.rows[version + EDITED if at in self.edited else version][at]

    def judged(self, rows: Batch) -> Batch:
        """Return the rows as an attempt judges them: what cannot be sent depends on limits, and on the clock of that time."""
        if not self.letters:
            return rows
        worst = self._judging.choice((0.0, 0.2, 0.5, 1.0))
        corrupt = [value if self._judging.random() < worst else None for value in rows.records.values]
        return replace(rows, corrupt=corrupt)

    # ---- the operator ----------------------------------------------------------------------------------------------

    def start_run(self, version: str = "one", *, from_scratch: bool = False, by_parts: bool = False) -> Run:
        """Start a run. `by_parts`: not in one transaction, whatever most runs of the schedule do."""
        accept_change = self._accepting.random() < self._accepts
        accept_gap = self.expires and (not self.faults.going_on or self._expiring.random() < 0.5)
        run = Run(self, len(self.runs), version, self._prefix(from_scratch), from_scratch, accept_change, accept_gap)
        if self.whole:
            run.whole = not (by_parts or self._bounding.random() < (0.5 if self.mixed else _BY_PARTS))
            if run.whole and self.faults.going_on:
                run.most_letters = self._bounding.choice((1, 2, run.most_letters))
        self.runs.append(run)
        run.actor = self.scheduler.start(run.process, run.body)
        return run

    def _prefix(self, from_scratch: bool) -> str:
        """Return the prefix that a run is given: the recorded one, another one from scratch, or one that is refused.

        It is changed as protocol.md says: when no run under the old one is before its claim, and none starts meanwhile.
        """
        if not self.moves:
            return PREFIXES[0]
        recorded, moving = self._recorded_prefix(), self._moving()
        if moving:
            return moving[-1].prefix
        begun = self.witness.control and all(run.number or not run.going_on for run in self.runs)
        if not begun or not (from_scratch or self.faults.going_on):
            return recorded
        return self._prefixes.choice(PREFIXES) if from_scratch or self._prefixes.random() < 0.2 else recorded

    def _moving(self) -> list[Run]:
        """Return the runs at work under another prefix than the recorded one."""
        if not self.moves:  # spares a look at the whole log
            return []
        recorded = self._recorded_prefix()
        return [run for run in self.runs if run.going_on and run.prefix != recorded]

    def _recorded_prefix(self) -> str:
        """Return the prefix of the last control record: of an aborted one too, which may tell of ids that are alive."""
        topic, found = self.cluster.topics.get(OFFSETS), PREFIXES[0]
        log = topic.logs[self.offsets_partition] if topic is not None else None
        for entry in log.fetch(log.start, committed=False)[0] if log is not None else ():
            if entry.key == record.control_key(JOB) and entry.value:
                found = record.ControlRecord.decode(entry.value).pinned.prefix
        return found

    def run_started(self, started: str) -> Run:
        """Return the run that calls itself so."""
        return next(run for run in self.runs if run.started == started)

    def run_ended(self, run: Run) -> None:
        """Look at an orderly end."""
        self.witness.run_ended(run)

    def operate(self) -> None:
        """Start runs as people and cron lines do: one after another, or before the last one has ended."""
        random = self.random
        restarts = self.theme.restarts
        runs = 4 if restarts or self.theme.many_runs else random.choice((1, 1, 2, 2, 3))
        for _ in range(_MIXED_RUNS if self.mixed else runs):
            version = random.choice(("one", "two") if restarts else ("one", "one", "one", "two"))
            scratch = 0.4 if self.moves else 0.3 if restarts else 0.1
            run = self.start_run(version, from_scratch=random.random() < scratch)
            assert run.actor is not None
            self.scheduler.wait_for(run.actor, random.choice((0.5, 30.0, _RUN_S)))
        self.faults.stop()
        self.disconnected.clear()
        self._until_complete()
        self._until_complete()
        self._after_late_runs()

    def _after_late_runs(self) -> None:
        """Go on where a run from scratch that woke up late began anew, and ended before it had sent everything at once."""
        for run in [run for run in self.runs if run.whole and run.from_scratch and run.going_on]:
            assert run.actor is not None
            self.scheduler.wait_for(run.actor, _RUN_S)
            if run.exit_code not in (EXIT_DONE, None) and self.witness.anew == run.number:
                self._until_complete()

    def _until_complete(self) -> None:
        by_parts = False
        for _ in range(_MOST_RUNS):
            run = self._run_to_end(by_parts)
            by_parts = by_parts or bool(_REFUSED & set(run.codes))
            if run.exit_code == EXIT_DONE or (self.lost and run.exit_code in (EXIT_CHANGED, EXIT_FATAL)):
                self.last = run
                return
        raise ViolationError("P10", f"not complete after {_MOST_RUNS} runs without faults; the last: {run.codes}")

    def _restore(self) -> None:
        """Let every file be there as it was when it was sent, as an operator does who was told that it is another one."""
        self.edited.clear()
        self.edited.update(split for split, edited in self.witness.edited.items() if edited)
        if self.files is not None:
            self.files.gone.clear()
            for (name, _), offset in self.witness.offsets.items():
                self.files.mtimes_ms[name] = Fingerprint.from_json(offset["version"]).mtime_ms

    def _run_to_end(self, by_parts: bool) -> Run:
        self._restore()
        for mover in self._moving():
            assert mover.actor is not None
            self.scheduler.wait_for(mover.actor, _RUN_S)
        version = self.witness.version or self.witness.begun_as or self.random.choice(("one", "two"))
        run = self.start_run(version, by_parts=by_parts)
        assert run.actor is not None
        if not self.scheduler.wait_for(run.actor, _RUN_S):
            raise ViolationError("P10", f"{run.process} does not end")
        return run

    def run(self) -> str | None:
        """Run the schedule; return what was violated."""
        handle_with(self.passed)
        try:
            self.scheduler.start(Process("operator"), self.operate)
            self.scheduler.run()
            if not self.lost:
                self.witness.check_complete(self.last, "P1", "everything has ended")
        except ViolationError as violation:
            return str(violation)
        except NotCoveredError:
            self.covered = False
            return None
        except DoesNotEndError as error:
            return f"P10: {error}"
        except Exception as error:
            return f"bug: {type(error).__name__}: {error}"
        finally:
            handle_with(None)
        return None


def run_schedule(seed: int, trace: list[str] | None = None) -> Result:
    """Run the schedule of a seed."""
    world = World(seed, trace)
    violation = world.run()
    return Result(
        seed,
        violation,
        len(world.runs),
        dict(world.faults.struck),
        sum(world.witness.rows.values()),
        world.scheduler.steps,
        world.covered,
    )
