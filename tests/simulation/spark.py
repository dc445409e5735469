"""A run as the simulation has it: the production Driver in one process, its Spark job, attempts of the production Task.

Spark itself is a model, with what it was measured to do: an attempt that fails is tried again up to four times, an
input may end early and look like any other end, outcomes of failed attempts are dropped, and attempts may go on when
their job, their JVM or their driver is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from eosingest.errors import ChangedError, EosingestError, IncompleteError
from eosingest.host.interruption import Interruption
from eosingest.kafka.ports import LARGEST_RECORD_BYTES, OffsetsReader, Producer, Records
from eosingest.protocol.driver import Driver
from eosingest.protocol.driver_contract import DeadLetterOrder, DriverSettings, Prepared, Proof, Runtime, TopicCreation
from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.protocol.plan import Plan, PlannedSplit
from eosingest.protocol.source import Item
from eosingest.protocol.task import AttemptLostError, Task
from eosingest.protocol.task_contract import Batch, Outcome, Signal, SplitEnd, TaskSettings
from eosingest.protocol.transactional_ids import task_id
from eosingest.protocol.verdict import JobResult
from eosingest.records.checksum import Totals
from eosingest.report.model import RunReport
from eosingest.sources.files.positions import BytePositions
from eosingest.spark.direct import DirectInputs
from eosingest.spark.positions import OffsetPositions
from tests.simulation.network import SimulatedNetwork
from tests.simulation.scheduler import Actor, Process
from tests.support.builders import Place, driver_settings, place
from tests.support.changing_files import ChangingFiles
from tests.support.expiring_table import ExpiringTables, first_unread, gone_in, source_row
from tests.support.frozen_table import FrozenTables, KeyRange
from tests.support.memory_job import Unheard
from tests.support.memory_kafka.clients import MemoryAdmin, MemoryProducer, MemoryReader
from tests.support.simulated_source import SimulatedSource

if TYPE_CHECKING:
    from tests.simulation.schedule import World

JOB, TOPIC, OFFSETS, DEAD = "job", "sink", "offsets", "dead"
PREFIXES = ("p.", "q.")  # those of transactional ids: mostly the first alone
MAX_FAILURES = 4
ROW_BYTES = 10  # each row, where positions are in bytes
_LONGEST_POLL_S = 60.0


class Run:
    """One `eosingest run`: what is asked of it, its processes, and how it ended."""

    def __init__(
        self,
        world: World,
        index: int,
        version: str,
        prefix: str = PREFIXES[0],
        from_scratch: bool = False,
        accept_change: bool = False,
        accept_gap: bool = False,
    ) -> None:
        self.world = world
        self.prefix = prefix
        self.accept_change = accept_change
        self.accept_gap = accept_gap
        self.index = index
        self.version = version
        self.from_scratch = from_scratch
        self.reads_bytes = (
            world.reads_bytes and index % 3 != 2
        )  # now and then one goes on with rows where bytes were counted
        self.process = Process(f"driver-{index}")
        self.source = _source_of(world)
        self.signal: int | None = None
        self.number = 0  # its run number, once it has claimed
        self.life = 0  # and in which life of the offsets topic that was
        self.looked_at = 0.0  # when it had fenced, and was about to look whether all is well
        self.whole = False  # it sends everything in one transaction
        self.most_letters = 1_000_000
        self.job: Job | None = None
        self.report: RunReport | None = None
        self.error: EosingestError | None = None
        self.actor: Actor | None = None

    @property
    def going_on(self) -> bool:
        """Whether its driver is alive and at work."""
        return not self.process.dead and self.report is None and self.error is None

    @property
    def exit_code(self) -> int | None:
        """The exit code of the command, None where it was killed or goes on."""
        if self.error is not None:
            return self.error.exit_code
        return self.report.exit_code if self.report is not None else None

    @property
    def codes(self) -> list[str]:
        errors = [self.error] if self.error is not None else list(self.report.errors) if self.report else []
        return [error.code for error in errors]

    def covers(self, split: Place) -> bool:
        """Say whether the rows of a split were the run's to send: of what was there when it listed."""
        if isinstance(self.source, FrozenTables):
            return split[1] < self.source.listed.get(split[0], 0)
        return not isinstance(self.source, ChangingFiles) or split[0] in self.source.listed

    @property
    def started(self) -> str:
        """What tells this run from another one of the same number."""
        return f"start-{self.index}"

    def body(self) -> None:
        """Do what run.py does."""
        world = self.world
        network = SimulatedNetwork(world, self.process)
        clients = DriverClients(world, network)
        runtime = Runtime(
            now=network.now,
            sleep=network.wait,
            now_ms=lambda: int(world.scheduler.now * 1000),
            utc=lambda: "now",
            interruption=Interruption(lambda: self.signal),
        )
        driver = Driver(self._settings(), clients, self.source, Launcher(self), Unheard(), runtime)
        try:
            self.report = driver.run()
        except EosingestError as error:
            self.error = error
        world.run_ended(self)

    def _settings(self) -> DriverSettings:
        world = self.world
        return driver_settings(
            job=JOB,
            started=self.started,
            topic=TOPIC,
            create=TopicCreation(world.sink_partitions, 1, {}),
            offsets_topic=OFFSETS,
            prefix=self.prefix,
            digest={"record.value": self.version},
            transaction_timeout_s=world.timeout_s,
            max_records=1_000_000 if self.whole else world.max_records,
            whole=self.whole,
            from_scratch=self.from_scratch,
            accept_change=self.accept_change,
            accept_gap=self.accept_gap,
            pid=self.index,
            dead_letters=DeadLetterOrder(DEAD, self.most_letters) if world.letters else None,
        )


def _source_of(world: World) -> SimulatedSource | FrozenTables | ChangingFiles:
    if world.tables is not None:
        return ExpiringTables(world.tables) if world.expires else FrozenTables(world.tables)
    return ChangingFiles(world.files) if world.files is not None else world.source


class DriverClients:
    """Makes the driver's clients (`control.DriverKafka`)."""

    def __init__(self, world: World, network: SimulatedNetwork) -> None:
        self.world = world
        self.network = network
        self.admin = MemoryAdmin(world.cluster, network)

    def control_producer(self, transactional_id: str) -> Producer:
        return MemoryProducer(transactional_id, self.world.cluster, self.network, timeout_s=self.world.timeout_s)

    def reader(self, partition: int) -> OffsetsReader:
        return MemoryReader(OFFSETS, partition, self.world.cluster, self.network)


class Launcher:
    """Spark as the driver sees it (`driver_contract.Launcher`)."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.world = run.world
        self.parts: list[list[PlannedSplit]] = []
        self.items: list[Item] = []
        self.poll_s = 0.1

    def prepare(self, plan: Plan, schema: str | None, *, same_items: bool, encodings: str) -> Prepared:
        """Cut what is to be read into tasks, anew in each run: their number is Spark's choice."""
        random, hashes = self.world.random, self.world.source.hashes
        splits = sorted(
            (split for file in plan.pending_items for split in (*file.pending, *file.skipped)),
            key=place,
        )
        self.items = [entry.item for entry in plan.pending_items]
        tasks = 1 if self.run.whole else random.randint(1, self.world.most_tasks)
        cuts = sorted(random.randint(0, len(splits)) for _ in range(tasks - 1))
        self.parts = [splits[a:b] for a, b in zip([0, *cuts], [*cuts, len(splits)], strict=True)]
        by_hash = {hashes[place(planned)]: planned for planned in splits}
        self.world.scheduler.pause(self.world.latency())
        return Prepared(tasks, schema or "schema", by_hash)

    def prove(self, plan: Plan, schema: str | None, encodings: str) -> Proof:
        """Add up what is sent of the splits, as whoever reads them now finds their rows."""
        sums = {}
        for planned in plan.pending:
            receipt = planned.committed
            assert receipt is not None
            rows = self.world.rows_of(planned.split, self.run.version)
            count = len(rows.values) if receipt.done else min(receipt.rows, len(rows.values))
            sums[planned.id] = Totals(count, rows.checksums[count])
        self.world.scheduler.pause(self.world.latency())
        refuse_changed(self.run, [entry.item for entry in plan.items])
        return Proof(sums, "schema")

    def start(self, settings: TaskSettings) -> None:
        self.run.job = Job(self.run, settings, self.parts, self.items)
        self.run.job.start()

    def poll(self, timeout_s: float) -> JobResult | None:
        """Return the job's result. A poll may take longer and longer: a process is not always given the time it asks for."""
        job = self.run.job
        assert job is not None
        if not job.finished:
            self.world.scheduler.pause(self.poll_s)
            self.poll_s = min(self.poll_s * 2, _LONGEST_POLL_S)
        if not job.finished:
            return None
        return JobResult([*job.outcomes.values(), *self._late_outcomes()], job.error)

    def _late_outcomes(self) -> list[Outcome]:
        """Return the outcomes of all earlier runs' tasks: those of zombies arrive when a later driver listens.

        Accumulators have the same ids in each driver, and drivers of one JVM the same token.
        """
        earlier = self.world.runs[: self.run.index]
        return [outcome for run in earlier if run.job is not None for outcome in run.job.outcomes.values()]

    def cancel(self) -> None:
        job = self.run.job
        assert job is not None
        job.stop()
        self.world.scheduler.pause(self.world.latency())


def refuse_changed(run: Run, items: list[Item]) -> None:
    """Raise ChangedError of an item that is not as listed any more."""
    changed = run.source.changed(items)  # type: ignore[arg-type]
    if changed:
        raise ChangedError(f"{changed}: changed after it was listed", code="changed-while-read", item=changed[0])


class Job:
    """A Spark job: its tasks, each tried up to four times."""

    def __init__(self, run: Run, settings: TaskSettings, parts: list[list[PlannedSplit]], items: list[Item]) -> None:
        self.items = items
        self.run = run
        self.world = run.world
        self.settings = settings
        self.parts = parts
        self.attempts: list[Attempt] = []
        self.failures = [0] * len(parts)
        self.outcomes: dict[int, Outcome] = {}
        self.error: EosingestError | None = None
        self.finished = False
        self.gone = False  # the JVM is dead: nobody tries again, nobody is told

    def start(self) -> None:
        for task in range(len(self.parts)):
            self.attempt(task)

    def attempt(self, task: int) -> None:
        """Start an attempt; a second one of the same task is a zombie's rival."""
        if self.gone or self.run.process.dead:
            return
        number = sum(1 for attempt in self.attempts if attempt.task == task)
        attempt = Attempt(self, task, number)
        self.attempts.append(attempt)
        attempt.process.on_kill = lambda: self.world.scheduler.later(
            self.world.latency(), lambda: self.ended(attempt, None)
        )
        self.world.scheduler.start(attempt.process, attempt.body, self.world.start_latency())

    def ended(self, attempt: Attempt, outcome: Outcome | None) -> None:
        """Take an attempt's end: an outcome counts if Spark saw all of its input."""
        attempt.over = True
        if self.gone or self.finished or attempt.task in self.outcomes:
            return
        if outcome is not None and not attempt.truncated:
            self.outcomes[attempt.task] = outcome
            if len(self.outcomes) == len(self.parts):
                self.finished = True
            return
        self.failures[attempt.task] += 1
        if self.failures[attempt.task] >= MAX_FAILURES or (attempt.truncated and self.world.random.random() < 0.5):
            self.fail()
        elif not any(other.task == attempt.task and not other.over for other in self.attempts):
            self.world.scheduler.later(self.world.latency(), lambda: self.attempt(attempt.task))

    def fail(self) -> None:
        """The job failed: what still runs sees its input end, and is killed some time later, or never."""
        self.error = IncompleteError("the job failed", code="spark-job")
        self.stop()

    def stop(self) -> None:
        """No attempt gets more input, or another try; one may have been on its way to an executor."""
        self.finished = True
        if self.world.random.random() < 0.3:
            self.attempt(self.world.random.randrange(len(self.parts)))
        for attempt in self.attempts:
            if not attempt.over:
                attempt.truncated = True
                if self.world.random.random() < 0.5:
                    self.world.scheduler.later(
                        self.world.latency(), lambda process=attempt.process: self.world.scheduler.kill(process)
                    )


class Attempt:
    """One attempt of one task, in a worker process of its own: the task's clients, and its input."""

    def __init__(self, job: Job, task: int, number: int) -> None:
        self.job = job
        self.world = job.world
        self.task = task
        self.number = number
        self.identity = self.world.next_attempt()
        self.process = Process(f"task-{job.run.index}.{task}#{self.identity}")
        self.network = SimulatedNetwork(self.world, self.process)
        self.over = False
        self.truncated = False  # its input ended, or is going to end, before its rows did
        self.began_at_stable = 0  # what anybody could have read when it began, or began anew with another producer
        self.reads_bytes = job.run.reads_bytes
        batches, self.fails = (
            ([], False) if self.reads_bytes else _batches(self.world, job.parts[task], job.run.version)
        )
        proof = [Signal.ALL] if job.run.whole and not self.fails else []
        self.items: Iterator[Batch | SplitEnd | Signal] = iter([*batches, *proof])
        self.waiting_s: float | None = None

    def body(self) -> None:
        world = self.world
        self.began_at_stable = world.last_stable()
        task = Task(
            self.job.settings,
            self.task,
            self,
            attempt=self.identity,
            attempt_number=self.number,
            now=self.network.now,
            now_ms=lambda: int(world.scheduler.now * 1000),
        )
        outcome = None
        try:
            outcome = task.run(self)
        except AttemptLostError as lost:
            world.scheduler.tell(f"attempt lost: {lost.message}")
        if world.scheduler.traced and outcome is not None:
            world.scheduler.tell(f"outcome: {outcome}")
        self.job.ended(self, outcome)

    # task_contract.TaskKafka

    def producer(self, task: int) -> Producer:
        self.world.witness.about_to_init(self)
        return _TaskProducer(self, task_id(self.job.run.prefix, JOB, task))

    def reader(self) -> OffsetsReader:
        return MemoryReader(OFFSETS, self.job.settings.offsets_partition, self.world.cluster, self.network)

    # task_contract.Inputs

    def begin(self, committed: Callable[[PlannedSplit], OffsetRecord | None]) -> None:
        """Begin where bytes are read, without the thread that reads ahead; Spark reads on its own."""
        if self.reads_bytes:
            hashes, run = self.world.source.hashes, self.job.run
            splits = [_LineSplit(hashes[place(planned)], planned) for planned in self.job.parts[self.task]]
            inputs = DirectInputs(_LineReader(self.world, run.version), splits, LARGEST_RECORD_BYTES, whole=run.whole)
            self.items = inputs._items(committed)

    def confirm(self) -> None:
        """See that the files are as listed."""
        self.world.scheduler.pause(self.world.latency())
        refuse_changed(self.job.run, self.job.items)

    def stop(self) -> None:
        """Nothing: nothing reads on."""

    def get(self, timeout_s: float) -> Batch | SplitEnd | Signal:
        truncated = self.truncated and not self.reads_bytes  # bytes do not end with Spark's job
        if self.waiting_s is None:
            self.waiting_s = self.world.input_latency()
        if self.waiting_s > timeout_s:
            self.waiting_s -= timeout_s
            self.world.scheduler.pause(timeout_s)
            return Signal.END if truncated else Signal.TICK
        self.world.scheduler.pause(self.waiting_s)
        self.waiting_s = None
        found = Signal.END if truncated else next(self.items, Signal.END)
        self.truncated = self.truncated or (self.fails and found is Signal.END)
        return found


class _TaskProducer(MemoryProducer):
    """An attempt's producer: when it is closed, the attempt looks at the log anew before it makes another one."""

    def __init__(self, attempt: Attempt, transactional_id: str) -> None:
        world = self._world = attempt.world
        self._attempt = attempt
        super().__init__(
            transactional_id,
            world.cluster,
            attempt.network,
            timeout_s=world.timeout_s,
            batch_records=world.batch_records,
        )

    def init_transactions(self) -> None:
        super().init_transactions()
        assert self._who is not None
        self._world.witness.inited(self._attempt, self._who)

    def close(self) -> None:
        super().close()
        self._attempt.began_at_stable = self._world.last_stable()


def _batches(world: World, splits: list[PlannedSplit], version: str) -> tuple[list[Batch], bool]:
    """Cut the rows of a task into batches, of one split or of several; and say whether Spark fails at a file that is gone."""
    random = world.random
    pieces: list[Batch] = []
    fails = False
    for planned in splits:
        try:
            whole = world.judged(world.rows_of(planned.split, version).batch)
        except ChangedError:
            fails = True
            break
        count, at = len(whole.splits), 0
        if world.explodes:
            whole = replace(
                whole,
                positions=OffsetPositions(
                    np.array([source_row(row)[0] for row in range(count)], dtype=np.int64), shared=True
                ),
            )
            at = first_unread(planned.committed.committed_position if planned.committed is not None else None)
            if world.expires and isinstance(planned.split, KeyRange) and gone_in(world.tables, planned.split) > at:
                fails = True
                break
        while at < count:
            end = min(count, at + random.choice((1, 2, 3, 10)))
            pieces.append(whole.slice(at, end) if end - at < count else whole)
            at = end
    if len(pieces) > 1 and random.random() < 0.2:
        at = random.randrange(len(pieces) - 1)
        pieces[at : at + 2] = [_joined(pieces[at], pieces[at + 1])]
    return pieces, fails


class _LineSplit(NamedTuple):
    """A planned split with its hash (`direct.DirectSplit`)."""

    key: int
    planned: PlannedSplit


@dataclass(frozen=True)
class _LineReader:
    """Reads splits in bytes, from their first row on (`direct.DirectReader`)."""

    world: World
    version: str

    def read(self, split: _LineSplit, committed: OffsetRecord | None, longest: int) -> Iterator[Batch]:
        whole = self.world.judged(self.world.rows_of(split.planned.split, self.version).batch)
        at, count = 0, len(whole.splits)
        while at < count:
            end = min(count, at + self.world.random.choice((1, 2, 3, 10)))
            positions = BytePositions(np.arange(at + 1, end + 1, dtype=np.int64) * ROW_BYTES)
            yield replace(whole.slice(at, end), first_row=at, positions=positions)
            at = end


def _joined(first: Batch, second: Batch) -> Batch:
    return Batch(
        np.concatenate((first.splits, second.splits)),
        Records([*first.records.keys, *second.records.keys], [*first.records.values, *second.records.values]),
        np.concatenate((first.hashes, second.hashes)),
        np.concatenate((first.sizes, second.sizes)),
        corrupt=[*first.corrupt, *second.corrupt] if first.corrupt is not None and second.corrupt is not None else None,
        positions=_joined_offsets(first.positions, second.positions) if first.positions and second.positions else None,
    )


def _joined_offsets(first: OffsetPositions, second: OffsetPositions) -> OffsetPositions:
    """Put those of two batches into one. Between splits they may go back: nobody asks beyond a split."""
    return OffsetPositions(np.concatenate((first.offsets, second.offsets)), first.shared)
