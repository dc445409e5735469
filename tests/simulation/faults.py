"""What breaks, and when: faults strike at points that the actors pass (a request, its answer, a fail point).

Each schedule draws the kinds that it knows and how many strike, then the points; so some schedules are quiet, some have
one kind of fault again and again, and some have everything at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from eosingest.kafka.ports import LogRecord
from eosingest.protocol.offsets import topic as offsets_topic
from eosingest.protocol.transactional_ids import control_id, task_id
from tests.simulation.network import LATE_COMMIT, LATE_REQUEST, LOSE_ANSWER, LOSE_COMMIT_ANSWER, LOSE_REQUEST
from tests.simulation.scheduler import Killed, Process
from tests.simulation.spark import JOB, OFFSETS, PREFIXES, TOPIC, Attempt, Run
from tests.simulation.themes import KILL_BEFORE_COMMIT, OFFSETS_TOPIC_LOST, Theme
from tests.support.memory_kafka.log import BrokerError

if TYPE_CHECKING:
    from tests.simulation.schedule import World

_MOST_FAULTS = 8
_FARTHEST_POINT = 400
_LOSSES = 0.06  # part of the schedules in which somebody may delete a topic


class Faults:
    """The faults of one schedule. `struck` counts them by kind."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._kinds: dict[str, Callable[[Process], None]] = {
            "kill": self._kill,
            "kill-driver": self._kill_driver,
            KILL_BEFORE_COMMIT: self._kill_at_work,
            "freeze": self._freeze,
            "freeze-all": self._freeze_all,
            "disconnect": self._disconnect,
            "second-driver": lambda process: world.start_run(),
            "second-attempt": self._second_attempt,
            "input-ends": self._input_ends,
            "job-fails": self._job_fails,
            "signal": self._signal,
            "foreign-init": self._foreign_init,
            "foreign-transaction": self._foreign_transaction,
            "compaction": self._compaction,
            "expired-ids": lambda process: world.cluster.expire_ids(),
        }
        self.going_on = True
        loss = self._draw_loss(world.theme)
        self.loses_offsets = loss == OFFSETS_TOPIC_LOST
        due = self._with_changed_files(self._with_edit(self._draw(world.theme, loss)))
        self._due = self._with_expirations(due)[::-1]
        self._next = self._due[-1][0] if self._due else 0
        self._passed = 0
        self._aimed = False  # at whoever passes a certain place
        self.struck: Counter[str] = Counter()

    def _draw_loss(self, theme: Theme) -> str | None:
        """Draw whether somebody may delete a topic, and which."""
        random = self.world.random
        losses = {OFFSETS_TOPIC_LOST: self._lose_offsets_topic, "sink-made-again": self._make_sink_again}
        loss = random.choice(list(losses)) if random.random() < _LOSSES else None
        if theme.loses_offsets:
            loss = OFFSETS_TOPIC_LOST
        if loss is not None:
            self._kinds[loss] = losses[loss]
            del self._kinds["expired-ids"]  # what tells a lost offsets topic from a new job is that the ids are known
        return loss

    def _draw(self, theme: Theme, loss: str | None) -> list[tuple[int, str, str]]:
        """Draw the faults, in their order: each is due from a number of points on, is of a kind, and has a place."""
        random = self.world.random
        names = [*self._kinds, LOSE_REQUEST, LOSE_ANSWER, LATE_REQUEST, LOSE_COMMIT_ANSWER, LATE_COMMIT]
        known = [(name, "") for name in names if random.random() < 0.4] or [(random.choice(names), "")]
        count = random.choice((0, 1, 1, 2, 2, 3, 4, 6, _MOST_FAULTS))
        if theme.strikes:
            known, count = list(theme.strikes), random.choice((3, 5, _MOST_FAULTS))
        reach = random.choice((40, 120, _FARTHEST_POINT))
        strikes = [random.choice(known) for _ in range(count)] + ([(loss, "")] if loss is not None else [])
        points = sorted(random.randint(1, reach) for _ in strikes)
        if theme.in_order:
            return [(1, kind, place) for kind, place in theme.strikes]
        random.shuffle(strikes)
        return [(point, kind, place) for point, (kind, place) in zip(points, strikes, strict=True)]

    def _with_edit(self, due: list[tuple[int, str, str]]) -> list[tuple[int, str, str]]:
        """Put in that somebody edits a file, where the schedule has it: apart, so that the others stay as they were."""
        if not self.world.edit_after:
            return due
        self._kinds["edit"] = self._edit
        if self.world.theme.in_order:
            return [*due, (1, "edit", "")]
        return sorted([*due, (self.world.edit_after, "edit", "")], key=lambda fault: fault[0])

    def _edit(self, process: Process) -> None:
        """Edit a split so that nobody sees it by length or time: whoever begins to read it finds other rows."""
        split = self.world.random.choice([split for split, rows in self.world.source.lengths.items() if rows])
        self.world.edited ^= {split}
        self.world.scheduler.tell(f"{split} is edited")

    def _with_changed_files(self, due: list[tuple[int, str, str]]) -> list[tuple[int, str, str]]:
        """Put in that somebody edits files as a listing tells, or takes them away, where the schedule has it: apart, too."""
        if not self.world.file_changes:
            return due
        self._kinds |= {"save-file": self._save_file, "take-file": self._take_file}
        changes = [(point, kind, "") for point, kind in self.world.file_changes]
        return sorted([*due, *changes], key=lambda fault: fault[0])

    def _save_file(self, process: Process) -> None:
        """Save a file with other rows, all of them or those of some splits; or, the next time, as it was, with its time."""
        files = self.world.files
        assert files is not None
        name = self.world.random.choice(files.names)
        files.save(name)
        self.world.edited ^= files.rewritten(name)
        self.world.scheduler.tell(f"{name} is saved, {files.mtimes_ms[name]} ms")

    def _take_file(self, process: Process) -> None:
        """Take a file away, or put it back."""
        files = self.world.files
        assert files is not None
        name = self.world.random.choice(files.names)
        files.gone ^= {name}
        self.world.scheduler.tell(f"{name} is {'gone' if name in files.gone else 'there again'}")

    def _with_expirations(self, due: list[tuple[int, str, str]]) -> list[tuple[int, str, str]]:
        """Put in that rows of tables go by themselves, where the schedule has it: apart, too."""
        if not self.world.expirations:
            return due
        self._kinds["expire"] = self._expire
        return sorted([*due, *((point, "expire", "") for point in self.world.expirations)], key=lambda fault: fault[0])

    def _expire(self, process: Process) -> None:
        """Let the first rows of a table go: some of those that are left, or what is committed and some more."""
        tables, random = self.world.tables, self.world.random
        assert tables is not None
        table = random.choice(list(tables.gone))
        committed = sum(rows for (name, _), rows in self.world.witness.rows.items() if name == table)
        tables.expire(table, random.choice((tables.gone[table], committed)) + random.choice((1, 2, 4)))
        self.world.scheduler.tell(f"the first {tables.gone[table]} rows of {table} are gone")

    def stop(self) -> None:
        """No more faults: from here on everything has to come right."""
        self._next = 0
        self.going_on = False

    def point(self, process: Process, *, request: str = "", answer: str = "", name: str = "") -> str | None:
        """Pass a point: a request that is about to be carried out, an answer on its way, or a fail point by name.

        Return what becomes of the request or the answer.

        Raises Killed where the fault ended the process that passes.
        """
        self._passed += 1
        if not self._next or self._passed < self._next:
            return None
        _, kind, place = self._due[-1]
        if not _meets(kind, request, answer) or (place and place not in _places(process, request, answer, name)):
            return None  # waits for what it can strike
        self._due.pop()
        self._aimed = bool(place)
        self._next = self._due[-1][0] if self._due else 0
        self.struck[kind] += 1
        if kind not in self._kinds:
            return kind
        self.world.scheduler.tell(f"FAULT {kind}")
        self._kinds[kind](process)
        if process.dead:
            raise Killed
        if process.frozen_until > self.world.scheduler.now:
            self.world.scheduler.pause(0)
        return None

    # ---- processes -------------------------------------------------------------------------------------------------

    def _kill(self, process: Process) -> None:
        """Kill a process: mostly the one at work, sometimes another one."""
        victims = self._alive()
        self._kill_at_work(
            process if self.world.random.random() < 0.6 or not victims else self.world.random.choice(victims)
        )

    def _kill_at_work(self, process: Process) -> None:
        for run in self.world.runs:
            if run.process is process:
                self._kill_run(run)
                return
        self.world.scheduler.kill(process)

    def _kill_driver(self, process: Process) -> None:
        runs = [run for run in self.world.runs if run.going_on]
        if runs:
            self._kill_run(self.world.random.choice(runs))

    def _kill_run(self, run: Run) -> None:
        """Kill a driver: with its whole process group, or alone, so that its JVM or its workers live on as orphans."""
        scheduler, random = self.world.scheduler, self.world.random
        scheduler.kill(run.process)
        if run.job is not None:
            alone = random.choice(("group", "jvm", "orphans"))
            if alone != "jvm":
                run.job.gone = True
            if alone == "group":
                for attempt in run.job.attempts:
                    scheduler.kill(attempt.process)

    def _freeze(self, process: Process) -> None:
        victims = self._alive()
        here = self._aimed or self.world.random.random() < 0.6 or not victims
        self.world.scheduler.freeze(process if here else self.world.random.choice(victims), self._long())

    def _freeze_all(self, process: Process) -> None:
        """Freeze a driver with all its workers, as a suspended laptop does."""
        runs = [run for run in self.world.runs if run.going_on]
        if runs:
            run, seconds = self.world.random.choice(runs), self._long()
            self.world.scheduler.freeze(run.process, seconds)
            for attempt in run.job.attempts if run.job else ():
                self.world.scheduler.freeze(attempt.process, seconds)

    def _long(self) -> float:
        return self.world.random.choice((0.5, 3.0, 0.7 * self.world.timeout_s, 3 * self.world.timeout_s, 3600.0))

    def _disconnect(self, process: Process) -> None:
        """Cut a process off from Kafka for a time."""
        world = self.world
        world.disconnected.add(process)
        seconds = world.random.choice((1.0, world.timeout_s, 3 * world.timeout_s))
        world.scheduler.tell(f"{process} is cut off for {seconds} s")
        world.scheduler.later(seconds, lambda: world.disconnected.discard(process))

    def _alive(self) -> list[Process]:
        alive = [run.process for run in self.world.runs if run.going_on]
        return alive + [attempt.process for attempt in self._attempts()]

    def _attempts(self) -> list[Attempt]:
        jobs = [run.job for run in self.world.runs if run.job is not None]
        return [attempt for job in jobs for attempt in job.attempts if not attempt.over and not attempt.process.dead]

    # ---- Spark -----------------------------------------------------------------------------------------------------

    def _second_attempt(self, process: Process) -> None:
        """Start another attempt of a task: while the first goes on (speculation), or after it ended (a lost executor)."""
        jobs = [run.job for run in self.world.runs if run.job is not None and not run.job.gone]
        if jobs:
            job = self.world.random.choice(jobs)
            job.attempt(self.world.random.randrange(len(job.parts)))

    def _input_ends(self, process: Process) -> None:
        attempts = self._attempts()
        if attempts:
            attempt = self.world.random.choice(attempts)
            attempt.truncated = True
            self.world.scheduler.tell(f"the input of {attempt.process} ends early")

    def _job_fails(self, process: Process) -> None:
        jobs = [run.job for run in self.world.runs if run.job is not None and not run.job.finished]
        if jobs:
            self.world.random.choice(jobs).fail()

    def _signal(self, process: Process) -> None:
        runs = [run for run in self.world.runs if run.going_on]
        if runs:
            self.world.random.choice(runs).signal = 15

    # ---- strangers and the broker ----------------------------------------------------------------------------------

    def _foreign_init(self, process: Process) -> None:
        """Somebody initialises one of our ids, and again until it is done; before a job's first run that is refused."""
        random = self.world.random
        if not self.world.witness.control:
            return
        prefix = PREFIXES[0]
        ids = [control_id(prefix, JOB), *(task_id(prefix, JOB, task) for task in range(self.world.most_tasks))]
        name = random.choice(ids)
        self.world.scheduler.tell(f"foreign init of {name}")
        self._init(name, 20)

    def _init(self, name: str, times: int) -> None:
        try:
            self.world.cluster.init_producer_id(name, 60.0)
        except BrokerError:
            if times:
                self.world.scheduler.later(0.05, lambda: self._init(name, times - 1))

    def _foreign_transaction(self, process: Process) -> None:
        """A transaction of another job is open in our partition of the offsets topic, until its time-out."""
        world = self.world
        if OFFSETS not in world.cluster.topics:
            return
        name, timeout_s = f"foreign-{world.random.randrange(1 << 30)}", world.random.choice((2.0, 20.0, 60.0))
        who = world.cluster.init_producer_id(name, timeout_s)
        world.cluster.produce(who, OFFSETS, world.offsets_partition, 0, [LogRecord(-1, b'["other",{"task":0}]', b"{}")])

    def _lose_offsets_topic(self, process: Process) -> None:
        """Somebody deletes the offsets topic, and the next run makes a new one, or somebody does."""
        world = self.world
        world.lost = OFFSETS
        world.witness.offsets_lost()
        world.cluster.delete_topic(OFFSETS)
        if world.random.random() < 0.5:
            world.cluster.create_topic(OFFSETS, offsets_topic.PARTITIONS, {"cleanup.policy": "compact"})

    def _make_sink_again(self, process: Process) -> None:
        """Somebody deletes the sink topic; it is made again at once, or by a run."""
        world = self.world
        if TOPIC in world.cluster.topics:
            world.lost, world.lost_at = TOPIC, world.scheduler.now
            world.cluster.delete_topic(TOPIC)
            if world.random.random() < 0.5:
                world.cluster.create_topic(TOPIC, world.sink_partitions, {})

    def _compaction(self, process: Process) -> None:
        """The cleaner takes a turn, and further ones from time to time."""
        self._compact(self.world.random.choice((1, 10, 30)))

    def _compact(self, times: int) -> None:
        topic, random = self.world.cluster.topics.get(OFFSETS), self.world.random
        if topic is not None:
            log = topic.logs[self.world.offsets_partition]
            log.compact(random.choice((log.end, random.randint(0, log.end))))
        if times > 1:
            self.world.scheduler.later(random.choice((0.002, 0.02, 0.2)), lambda: self._compact(times - 1))


def _places(process: Process, request: str, answer: str, name: str) -> tuple[str, str]:
    """Return what a theme may call this point: without and with the process ("driver", "task") that passes it."""
    what = name or request or f"answer to {answer}"
    return what, f"{process.name.partition('-')[0]}: {what}"


def _meets(kind: str, request: str, answer: str) -> bool:
    """Say whether a fault can strike here: those of the network wait for a request or an answer, some for EndTxn."""
    if kind in (LOSE_REQUEST, LATE_REQUEST):
        return bool(request)
    if kind in (LATE_COMMIT, KILL_BEFORE_COMMIT):
        return request == "EndTxn"
    if kind == LOSE_COMMIT_ANSWER:
        return answer == "EndTxn"
    return kind != LOSE_ANSWER or bool(answer)
