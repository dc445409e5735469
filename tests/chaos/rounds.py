"""One round: a fresh job, a fault while it runs, runs until it is complete, and then every promise checked.

    seed and number ─▶ job, sizes ─▶ the fault's own story (faults*.py) ─▶ runs until exit 0 ─▶ promises P1-P10 ─▶ verify

Faults are functions of a Round. They start runs, hurt processes, brokers or connections, and say what they did.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import random
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.chaos import checks, inputs, letters, whole
from tests.chaos.inputs import Servers
from tests.chaos.reader import Reader
from tests.chaos.runs import Run
from tests.support.commands import Done
from tests.support.harness import Job
from tests.support.job_checks import OFFSETS_TOPIC, Line, offsets_partition, source_lines
from tests.support.kafka_nodes import Cluster
from tests.support.spark_clusters import QUICK_EXECUTORS, Standalone, environment, on

RUN_BOUND_S = 100.0  # P10: a run that has not ended then never would; the longest wait of a run is 2 x timeout + 10 s
CLUSTER_BOUND_S = 300.0  # the same where eight more JVMs share two cores
RUNS_UNTIL_COMPLETE = 6
KILLED = -9
AGAIN = frozenset({0, 3, 5})  # exit codes after which a user runs again, or is done


class ViolationError(AssertionError):
    """A promise is broken."""


@dataclass
class Ended:
    """How one run of the round ended."""

    exit_code: int
    codes: list[str]
    seconds: float

    def __str__(self) -> str:
        return "kill" if self.exit_code == KILLED else f"{self.exit_code}"


@dataclass
class Round:
    """A round as the faults see it. `chance` is the round's own source of randomness: nothing else is random."""

    number: int
    seed: int
    folder: Path
    cluster: Cluster
    servers: Servers
    jvm: str = ""
    spark: Standalone | None = None  # where its runs have executors; None: in the driver's JVM
    reads: str = ""  # one of inputs.WEIGHTS; drawn where it is not given
    bad_rows: bool | None = None  # whether there are some; drawn where it is not given
    whole: bool | None = None  # whether everything goes in one transaction; drawn where it is not given
    chance: random.Random = field(init=False)
    ends: list[Ended] = field(default_factory=list)
    story: list[str] = field(default_factory=list)
    ends_otherwise: bool = False  # the job cannot be completed, and a run that says so has been seen
    runs: list[Run] = field(default_factory=list)
    answers: dict[int, Done] = field(default_factory=dict)  # of the runs that ended in order, by number
    _count: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        self.chance = random.Random(f"{self.seed}/{self.number}")
        self._holding = random.Random(f"{self.seed}/{self.number}/held")  # apart, so that others draw as ever
        name = f"chaos-{self.seed}-{self.number}-{self.chance.randrange(16**6):06x}"
        self.job = Job(self.folder / name, self.cluster.servers, name)
        (self.job.folder / "tmp").mkdir()
        offsets = (OFFSETS_TOPIC, offsets_partition(self.job))
        self.reader = Reader(self.cluster.direct, name, name, offsets, self.job.plain)

    def prepare(self) -> None:
        """Fill what is read, and write the spec."""
        chance, job = self.chance, self.job
        drawn = random.Random(f"{self.seed}/{self.number}/input")  # apart from what the faults draw
        self.reads = self.reads or drawn.choices(list(inputs.WEIGHTS), list(inputs.WEIGHTS.values()))[0]
        self.say(self.reads)
        files = chance.randint(1, 4)
        rows = chance.randint(5_000, 20_000) // files
        drawn = random.Random(f"{self.seed}/{self.number}/letters")  # apart from both
        share = drawn.random()
        if self.bad_rows or (self.bad_rows is None and share < letters.SHARE):
            job.bad = letters.draw(drawn, self.reads, files * rows)
        inputs.write(self.reads, job, self.servers, self.cluster.direct, files=files, rows=rows)
        if job.bad:
            letters.order(job, self.cluster.direct, drawn)
            self.say(f"{len(job.bad)} bad rows")
            self.reader.read_letters(job.dead, job.plain_letter)
        self.max_records(chance.choice((150, 300, 600, 2000)))
        drawn = random.Random(f"{self.seed}/{self.number}/whole")  # apart from all of these
        share = drawn.random()
        self.whole = share < whole.SHARE if self.whole is None else self.whole
        if self.whole:
            whole.order(job, drawn, files * rows)
            self.say("in one transaction")
            self.reader.in_one = True
        self.timeout(chance.choice((5, 8, 10)))
        self.conf({"spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={job.folder}/tmp {self.jvm}"})

        if self.spark is not None:
            on(self.job, self.spark.master, conf=QUICK_EXECUTORS)
        self.direct = copy.copy(self.job)  # the same job, as a reader sees it that no proxy disturbs
        self.direct.servers = self.cluster.direct

    # ---- what faults use -------------------------------------------------------------------------------------------

    @property
    def bound_s(self) -> float:
        """How long a run of the round may take, in seconds (P10)."""
        return RUN_BOUND_S if self.spark is None else CLUSTER_BOUND_S

    def conf(self, settings: Mapping[str, str]) -> None:
        """Put settings of Spark into the spec."""
        self.set("conf = {", "conf = {" + "".join(f' "{key}" = "{value}",' for key, value in settings.items()))

    def executor_wait(self, text: str) -> None:
        """Set how long a run waits for executors."""
        self.set("[spark]\n", f'[spark]\nexecutor_wait = "{text}"\n')

    def set(self, old: str, new: str) -> None:
        """Replace text of the spec."""
        self.job.edit_spec(old, new)

    def timeout(self, seconds: int) -> None:
        """Set the transaction timeout. Where everything goes in one there is more time for it."""
        more_s = whole.MORE_TIME_S if self.whole else 0
        self._put(r'timeout = "\d+s"', f'timeout = "{seconds + more_s}s"')

    def max_records(self, records: int) -> None:
        """Set how many records a transaction holds; not where it must hold all."""
        if not self.whole:
            self._put(r"max_records = \d+", f"max_records = {records}")

    def _put(self, pattern: str, text: str) -> None:
        self.job.spec.write_text(re.sub(pattern, text, self.job.spec.read_text()))

    def hit(self, point: str, most: int) -> int:
        """Draw at which of the first `most` times that a process passes a point. In one transaction most come but once."""
        drawn = self.chance.randint(1, most)
        return 1 if self.whole and point != whole.ONCE_AND_AGAIN else drawn

    @property
    def rows(self) -> list[Line]:
        """Return the rows of the source."""
        return source_lines(self.job)

    def say(self, text: str) -> None:
        """Note what was done, for the round's line."""
        self.story.append(text)

    def start(self, points: str = "", *arguments: str, verb: str = "run") -> Run:
        """Start a run, with fail points if asked: "task-before-commit=sleep:20@2". The number of tasks changes at random.

        Where everything goes in one transaction a run waits in the middle of it when no points are asked for.
        """
        env = {
            "EOSINGEST_HOME": str(self.folder / inputs.HOME),
            "EOSINGEST_PREPARE": "off",
            "SPARK_LOCAL_DIRS": str(self.job.folder / "tmp"),
            **inputs.ENVIRONMENT,
        }
        if self.spark is not None:
            env.update(environment(self.spark.home))
        elif verb == "run":
            points = points or (whole.held_points(self._holding) if self.whole else "")
            arguments = (f"--set=spark.master=local[{self.chance.choice((1, 2, 2, 2, 3))}]", *arguments)
        run = Run(self.job, next(self._count), verb, arguments, env, points)
        self.runs.append(run)
        return run

    def wait_until(self, condition: Callable[[], object], run: Run | None = None, timeout_s: float = 60) -> bool:
        """Wait for a condition; return whether it came true before the run ended or time was up."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if condition():
                return True
            if run is not None and run.ended:
                return bool(condition())
            time.sleep(0.02)
        return False

    def wait_for_records(self, run: Run, more: int = 1, timeout_s: float = 60) -> bool:
        """Wait until the run has committed so many more records, as the concurrent reader sees it."""
        wanted = len(self.reader.seen) + more
        return self.wait_until(lambda: len(self.reader.seen) >= wanted, run, timeout_s)

    def wait_for_moment(self, run: Run) -> None:
        """Wait for a random moment: mostly while it sends, else anywhere between its start and its likely end."""
        if self.chance.random() < 0.75:
            self.wait_for_sending(run)
            delay_s = self.chance.random() * 1.5
        else:
            delay_s = 0.3 + self.chance.random() * 7
        self.wait_until(lambda: False, run, delay_s)

    def wait_for_sending(self, run: Run) -> None:
        """Wait until it has committed something; where all is committed at once, until it waits in the middle of that."""
        wanted = len(self.reader.seen) + 1
        self.wait_until(lambda: len(self.reader.seen) >= wanted or (self.whole and run.reached()), run)

    def finish(
        self, run: Run, allowed: Iterable[int] = AGAIN, *, alone: bool = True, bound_s: float | None = None
    ) -> Done:
        """Wait for a run's end and judge it. `alone`: no other run of the job is alive, so the log must agree now."""
        bound_s = bound_s or self.bound_s
        done = run.wait(bound_s)
        if done is None:
            raise ViolationError(f"P10: run {run.number} did not end within {bound_s:.0f} s")
        self.ends.append(Ended(done.exit_code, done.codes, time.monotonic() - run.began))
        if run.killed and done.exit_code == KILLED:
            self._see_all_or_nothing(alone=alone)
            return done
        allowed = frozenset(allowed)
        too_slow = {whole.TOO_LARGE[0]} if self.whole else set()
        checks.check_answer(done, allowed | too_slow, run.number)
        if done.exit_code not in allowed:
            checks.check_too_slow(done)
        self.answers[run.number] = done
        if alone:
            self.cluster.heal()
            later = [answer for number, answer in self.answers.items() if number > run.number]
            checks.check_agrees(self.direct, run, done, later)
            if self.whole and not self.ends_otherwise:
                checks.check_all_or_nothing(self.direct, done)
        self._see_all_or_nothing(alone=alone)
        return done

    def _see_all_or_nothing(self, *, alone: bool) -> None:
        """Where everything goes in one transaction: the concurrent reader, if it can read, sees all of it or nothing."""
        readable = alone or all(node.pid is not None for node in self.cluster.nodes)
        if self.whole and readable and not self.ends_otherwise:
            self.reader.check_all_or_nothing(len(self.rows))

    def run(self, *arguments: str, allowed: Iterable[int] = AGAIN) -> Done:
        """Run to its end."""
        return self.finish(self.start("", *arguments), allowed)

    def complete(self, allowed: Iterable[int] = AGAIN) -> None:
        """Run again, as a user would, until the job is complete."""
        for _ in range(RUNS_UNTIL_COMPLETE):
            if self.run(allowed=allowed).exit_code == 0:
                return
        raise ViolationError(f"P10: not complete after {RUNS_UNTIL_COMPLETE} more runs: {self.ends}")

    # ---- the round's own way ---------------------------------------------------------------------------------------

    def go(self, fault: Callable[[Round], None]) -> None:
        """Play the round. Raises AssertionError (ViolationError among them) where a promise is broken."""
        self.reader.start()
        try:
            self.cluster.heal()
            self.prepare()
            fault(self)
            self.cluster.heal()
            if not self.ends_otherwise:
                if not self.ends or self.ends[-1].exit_code != 0:
                    self.complete()
                self._check_complete()
        finally:
            self.end()
        if self.reader.wrongs:
            raise ViolationError("; ".join(self.reader.wrongs[:10]))

    def _check_complete(self) -> None:
        checks.check_log(self.direct)
        self.compare()
        checks.check_nothing_left(self.direct, lambda: self.run(allowed={0}))
        checks.check_verified(self.finish(self.start("", "--against-source", verb="verify"), {0}, alone=False))

    def compare(self) -> None:
        """Hold what the concurrent reader has seen to what is in the topics now."""
        self.reader.compare(self.direct.records(), self.direct.letters())

    def end(self) -> None:
        """Leave no process and no thread behind."""
        self.reader.stop()
        for run in self.runs:
            run.clear_away()

    def forget(self) -> None:
        """Delete what was read, and the round's topics, so that brokers do not have to recover them after the next kill."""
        admin = AdminClient({"bootstrap.servers": self.cluster.direct, "log_level": 0})
        for topic in (self.job.name, *([self.job.dead] if self.job.bad else [])):
            with contextlib.suppress(KafkaException):  # it never was, or the fault took it
                admin.delete_topics([topic])[topic].result(10)
        inputs.forget(self.reads, self.job, self.servers, self.cluster.direct)
