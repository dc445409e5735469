"""A job's whole life in one process: the production driver, launcher and tasks on a Kafka in memory and one warm Spark.

    spec ─▶ source ─▶ Driver ─▶ SparkLauncher, as far as its plan ─▶ its rows, collected ─▶ Task ─▶ Kafka in memory

What is left out is Spark's own scheduling: tasks run here, one after another, and a fail point kills all of the run at once
by an exception that nothing catches.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession, functions

from eosingest.app.encodings import resolved
from eosingest.app.settings import driver_settings, scan_of, source_of
from eosingest.audit.receipts import expected_of
from eosingest.audit.session import SparkAuditor
from eosingest.errors import EosingestError
from eosingest.host.interruption import Interruption, never
from eosingest.kafka.config import ClientSettings
from eosingest.kafka.ports import LogRecord
from eosingest.protocol.audited_source import audited_source
from eosingest.protocol.driver import Driver
from eosingest.protocol.driver_contract import Prepared, Proof
from eosingest.protocol.offsets import record
from eosingest.protocol.offsets.dead_letters import NO_DEAD_LETTERS
from eosingest.protocol.offsets.record import ControlRecord, OffsetRecord
from eosingest.protocol.offsets.state import JobState
from eosingest.protocol.plan import Plan, make_plan
from eosingest.protocol.source import Purpose, Snapshot, Source, Split
from eosingest.protocol.task import AttemptLostError, Task
from eosingest.protocol.task_contract import DeadLetterSettings, Inputs, Outcome, TaskSettings
from eosingest.protocol.verdict import JobResult
from eosingest.records.checksum import Totals, record_hash
from eosingest.records.encoding import Encoding, pinned
from eosingest.records.limits import topic_limits
from eosingest.report.model import RunReport
from eosingest.sources.files.reading.csv_scan import CsvScan
from eosingest.sources.files.reading.json_scan import JsonScan
from eosingest.spark import session
from eosingest.spark.direct import DirectInputs
from eosingest.spark.end_marker import with_end_row
from eosingest.spark.failures import FROM_THE_JVM
from eosingest.spark.job import SparkLauncher, SparkSettings
from eosingest.spark.reading import DirectReading, FrameReading
from eosingest.spark.settings import spark_settings
from eosingest.spark.worker import ArrowInputs, JsonFit
from eosingest.spec import Spec, load
from tests.support.builders import control_record, task_settings
from tests.support.memory_job import MemoryKafka, MemoryTaskKafka, Unheard, killed_at
from tests.support.sources.subject import SPLIT_SIZE, Subject, on_error, sink_creation, transaction

JOB, TOPIC, DEAD, OFFSETS = "job", "sink", "dead", "eosingest-offsets"
MAX_RECORDS = 10
_BATCH_ROWS = 7  # of what Spark gives: neither splits nor transactions end with a batch
_SPEC = f"""\
name = "{JOB}"
{{on_error}}{{tables}}
[sink]
bootstrap_servers = "memory:1"
topic = "{TOPIC}"
{{create}}[transaction]
{{ends}}[spark]
master = "local[2]"
"""


class Kafka(MemoryKafka):
    """Such a Kafka with the topics of a job, and one for rows that cannot be sent, where its configuration is given."""

    def __init__(self, dead_config: Mapping[str, str] | None = None) -> None:
        super().__init__(OFFSETS)
        if dead_config is not None:
            self.cluster.create_topic(DEAD, 1, dead_config)

    def written(self) -> list[int]:
        """Return where the logs of the topics of rows end: records that were aborted count, too."""
        logs = [
            log for topic in (TOPIC, DEAD) if topic in self.cluster.topics for log in self.cluster.topic(topic).logs
        ]
        return [log.end for log in logs]


_attempts = itertools.count(1)


def run_task(kafka: Kafka, settings: TaskSettings, number: int, inputs: Inputs) -> Any:
    """Run an attempt of a task here, to its outcome."""
    task = Task(
        settings,
        number,
        MemoryTaskKafka(kafka, settings, "eosingest."),
        attempt=next(_attempts),
        attempt_number=0,
        now=kafka.now,
        now_ms=lambda: int(kafka.time * 1000),
    )
    try:
        return task.run(inputs)
    finally:
        inputs.stop()


@dataclass(frozen=True)
class _WarmSpark(session.Spark):
    """The Spark of all tests as one that a run has started; made when somebody asks for rows of it."""

    warm: Callable[[], SparkSession] = field(kw_only=True)

    def sql(self) -> SparkSession:
        return self.warm()


class _Context:
    """What is asked of a context before any row is."""

    defaultParallelism = 2


@dataclass(frozen=True)
class _WarmSettings(SparkSettings):
    warm: Callable[[], SparkSession] = field(kw_only=True)

    def start(self) -> session.Spark:
        if isinstance(self.scan, CsvScan | JsonScan):  # Spark parses the schema
            self.warm()
        return _WarmSpark(
            _Context(),
            None,
            "local[2]",
            None,
            {},
            frozenset(),
            warm=self.warm,
        )


def _warm_settings(
    spec: Spec, warm: Callable[[], SparkSession], encodings: Mapping[str, Encoding] = MappingProxyType({})
) -> _WarmSettings:
    scan = scan_of(spec, encodings)
    settings = spark_settings(spec, ClientSettings("memory:1"), scan, never, None, encodings=encodings)
    return _WarmSettings(**vars(settings), warm=warm)


def sums_of(
    spec: Spec,
    spark: Callable[[], SparkSession],
    plan: Plan,
    schema: str | None,
    encodings: str,
) -> Mapping[Any, Totals]:
    """Read what was sent of the splits of a plan, as an audit does, and return the sums over their rows."""
    settings = _warm_settings(spec, spark, resolved(spec, encodings, unknown="refuse"))
    auditor = SparkAuditor(settings)
    started = settings.start()
    warm = started.sql()
    auditor._spark, auditor._session = replace(started, context=warm.sparkContext), warm
    return auditor.read_source(plan, schema)


class _Launcher(SparkLauncher):
    """Prepares as in production; its tasks run here."""

    def __init__(self, spec: Spec, warm: Callable[[], SparkSession], kafka: Kafka) -> None:
        super().__init__(_warm_settings(spec, warm))
        self._spec, self._warm = spec, warm
        self._kafka = kafka
        self._result = JobResult([])
        self._rows: Any = None

    def prepare(
        self,
        plan: Plan,
        schema: str | None,
        *,
        same_items: bool = False,
        encodings: str = "",
    ) -> Prepared:
        found = resolved(self._spec, encodings, unknown="register")
        self._settings = _warm_settings(self._spec, self._warm, found)
        return replace(super().prepare(plan, schema, same_items=same_items), encodings=pinned(found))

    def inputs(self) -> Iterator[tuple[int, Inputs]]:
        """Yield the input of each task, from its first row on; Spark computes its rows once."""
        reading, whole = self._reading, self._settings.whole
        if isinstance(reading, DirectReading):
            for number, splits in enumerate(reading.tasks):
                yield number, DirectInputs(reading.reader, splits, 1 << 20, whole=whole)
            return
        assert isinstance(reading, FrameReading), "prepare comes first"
        tasks = reading.prepared.tasks
        if self._rows is None:
            records = with_end_row(reading.records) if whole else reading.records.coalesce(tasks)
            self._rows = records.withColumn("part", functions.spark_partition_id()).toArrow()
        for number in range(tasks):
            mine = self._rows.filter(pc.equal(self._rows["part"], number)).drop(["part"])
            fitting = JsonFit(reading.json_schemas) if reading.json_schemas else None
            batches = mine.to_batches(max_chunksize=_BATCH_ROWS)
            yield number, ArrowInputs(batches, (), several=reading.several, fitting=fitting, whole=whole)

    def start(self, settings: TaskSettings) -> None:
        outcomes = list[Outcome]()
        try:
            outcomes += (run_task(self._kafka, settings, number, inputs) for number, inputs in self.inputs())
        except FROM_THE_JVM as error:
            self._result = JobResult(outcomes, self._explain(error))
        else:
            self._result = JobResult(outcomes)

    def poll(self, timeout_s: float) -> JobResult:
        return self._result

    def cancel(self) -> None:
        """Nothing is at work."""

    def prove(self, plan: Plan, schema: str | None, encodings: str) -> Proof:
        return Proof(sums_of(self._spec, self._warm, plan, schema, encodings), schema, encodings)


@dataclass(frozen=True)
class Ended:
    """How a run ended: a report, or an error before its job."""

    report: RunReport | None
    error: EosingestError | None = None
    launched: bool = False

    @property
    def exit_code(self) -> int:
        return self.error.exit_code if self.error is not None else self._report.exit_code

    @property
    def codes(self) -> list[str]:
        return [error.code for error in self.errors]

    @property
    def errors(self) -> list[EosingestError]:
        return [self.error] if self.error is not None else list(self._report.errors)

    @property
    def rows_sent(self) -> int:
        """Rows that the run sent, and those that went to the topic of dead letters."""
        return self._report.records_sent + self._report.dead_letters

    @property
    def _report(self) -> RunReport:
        assert self.report is not None
        return self.report


class Life:
    """A job over a subject, and its runs on one Kafka."""

    def __init__(self, subject: Subject, folder: Path, spark: Callable[[], SparkSession]) -> None:
        self.subject = subject
        self.kafka = Kafka(subject.dead_config)
        self._file = folder / "job.toml"
        self._spark = spark
        self.listed: list[bytes] | None = None  # what a run has to send, where the source is changed under it
        self.bound(MAX_RECORDS)

    def bound(self, max_records: int) -> None:
        """Let a transaction have so many records from now on, and another one follow; or all, where that is the kind's."""
        self.configure(transaction(self.subject, max_records))

    def configure(self, ends: str, max_letters: int = 1000) -> None:
        """Write the spec, with these lines of when a transaction ends."""
        subject = self.subject
        dead = on_error(subject, DEAD, max_letters)
        made = {"on_error": dead, "tables": subject.spec(), "create": sink_creation(subject, 2), "ends": ends}
        self._file.write_text(_SPEC.format(**made))
        self.spec = load(self._file)
        self.source = source_of(self.spec)

    # ---- the source by itself --------------------------------------------------------------------------------------

    def listing(self) -> Snapshot:
        return self.source.plan(purpose=Purpose.SHOW)

    def splits(self) -> dict[str, list[Split]]:
        """Return the splits of each item, in order."""
        return {file.name: list(self.source.splits.cut(file, SPLIT_SIZE)) for file in self.listing().items}

    def versions(self) -> dict[str, Any]:
        """Return what each item is now, by its content."""
        return dict(self.source.plan().versions)

    def changed_since(self, listing: Snapshot) -> list[str]:
        return self.source.changed(listing.items)

    # ---- runs ------------------------------------------------------------------------------------------------------

    def launcher(self) -> _Launcher:
        return _Launcher(self.spec, self._spark, self.kafka)

    def run(self) -> Ended:
        """Run the job once. Where everything goes in one transaction, all that it had to send is committed then, or nothing."""
        if self.spec.transaction.boundary != "job":
            return self._run()
        before = Counter(self.records())
        try:
            return self._run()
        finally:  # also where it is killed
            records = Counter(self.records())
            if records != before:
                rows = Counter(self.subject.rows() if self.listed is None else self.listed)
                assert not rows - records, "a part is committed of what the run had to send"

    def _run(self) -> Ended:
        interruption = Interruption(lambda: None)
        runtime = self.kafka.runtime(interruption)
        settings = driver_settings(self.spec, "memory:1")
        launcher = self.launcher()
        try:
            report = Driver(settings, self.kafka, self.source, launcher, Unheard(), runtime).run()
        except EosingestError as error:
            return Ended(None, error, launched=launcher._spark is not None)
        return Ended(report, launched=launcher._spark is not None)

    def run_killed_at(self, point: str, hit: int = 1) -> None:
        """Run until everything of it is killed at a fail point, which has to be reached."""
        with killed_at(point, hit):
            self.run()

    # ---- what came of it -------------------------------------------------------------------------------------------

    def records(self) -> list[bytes]:
        """Return the rows in the topic (of one key, and so of one partition and in order), and then those of dead letters."""
        return _rows(self.subject, self.kafka)

    def letters(self) -> list[bytes]:
        """Return the rows that went to the topic of dead letters."""
        return _letters(self.subject, self.kafka)

    def state(self) -> JobState:
        state = JobState(JOB)
        for log in self.kafka.cluster.topic(OFFSETS).logs:
            state.fold(log.fetch(log.start, committed=True)[0])
        return state

    def history(self) -> list[OffsetRecord]:
        """Return every offset record that was ever committed, in order."""
        return [
            OffsetRecord.decode(entry.value, split=record.split_id_of(JOB, entry.key))
            for entry in self.kafka.committed(OFFSETS)
            if entry.value and len(record.key_of(JOB, entry.key)) > 1
        ]

    def audit(self) -> list[str]:
        """Compare receipts, topic and source by the parts of `verify --against-source`; return what is unlike."""
        state = self.state()
        control = state.settled
        assert control is not None
        expected = expected_of(state.offsets.values(), control.audit)
        dead = sum((found.dead for found in state.offsets.values()), NO_DEAD_LETTERS)
        listing = self.source.plan(None, state.offsets.values(), Purpose.AUDIT)
        rows = audited_source(self.source, listing, state.offsets, control)
        unlike = ["the topic"] if replace(expected, metadata=0) != self._found(TOPIC) else []
        unlike += ["dead letters"] if Totals(dead.count, dead.checksum) != self._found(DEAD) else []
        return unlike + list(rows.unread) + [unit.name for unit in rows.unlike(self._sums(rows.plan, control))]

    def _found(self, topic: str) -> Totals:
        hashes = (record_hash(entry.key or None, entry.value) for entry in self.kafka.committed(topic))
        return sum((Totals(1, each) for each in hashes), Totals())

    def _sums(self, plan: Plan, control: ControlRecord) -> Mapping[Any, Totals]:
        return sums_of(self.spec, self._spark, plan, control.schema, control.encodings)

    # ---- tasks at a position ---------------------------------------------------------------------------------------

    def reading(self) -> Reading:
        """Plan the source as if nothing were sent, for tasks to be run on it again and again."""
        launcher, source = self.launcher(), source_of(self.spec)
        plan = make_plan(source, {}, SPLIT_SIZE, source.plan())
        return Reading(self.subject, launcher, launcher.prepare(plan, None), source)


@dataclass(frozen=True)
class Reading:
    """What Spark, or the tasks, read of a source; each call of `sent` is a job of another run on a Kafka of its own."""

    subject: Subject
    launcher: _Launcher
    prepared: Prepared
    source: Source  # kept alive: what it lists may be read in a snapshot that it holds

    def sent(self, committed: Iterable[OffsetRecord], cut: Callable[[Inputs], Inputs] | None = None) -> list[bytes]:
        """Return the rows that tasks send of all splits beyond what is committed of them, and then those of dead letters.

        No task may fail; but with `cut`, which makes of a task's input one that ends early, its attempt has to be lost.
        """
        subject = self.subject
        kafka = Kafka(subject.dead_config)
        kafka.cluster.create_topic(TOPIC, 1, subject.sink_config)
        kafka.cluster.create_topic(OFFSETS, 1, {})
        running = control_record(2, started="again", tasks_alive=self.prepared.tasks)
        known = [(found.key(JOB), found.encode()) for found in committed]
        records = [*known, (record.control_key(JOB), running.encode())]
        kafka.cluster.log(OFFSETS, 0).append_plain(LogRecord(-1, key, value, 0) for key, value in records)
        settings = task_settings(
            job=JOB,
            run=2,
            started="again",
            topic=TOPIC,
            offsets_topic=OFFSETS,
            offsets_topic_id=kafka.cluster.topic(OFFSETS).topic_id,
            offsets_partition=0,
            splits=self.prepared.splits,
            limits=topic_limits(subject.sink_config, 1),
            dead_letters=_dead_letters(subject),
            max_records=1000 if subject.whole else MAX_RECORDS,
            whole=subject.whole,
        )
        for number, inputs in self.launcher.inputs():
            if cut is not None:
                with pytest.raises(AttemptLostError):
                    run_task(kafka, settings, number, cut(inputs))
                continue
            outcome = run_task(kafka, settings, number, inputs)
            assert (outcome.exit_code, outcome.read_all) == (0, True), outcome
        return _rows(subject, kafka)


def _dead_letters(subject: Subject) -> DeadLetterSettings | None:
    if subject.dead_config is None:
        return None
    most = topic_limits(subject.dead_config, 1).max_message_bytes
    return DeadLetterSettings(DEAD, most, allowed=1000, left=1000)


def _rows(subject: Subject, kafka: Kafka) -> list[bytes]:
    """Return the rows of which the topic's records were made, in order, and then those of dead letters."""
    return [subject.row(entry.key, entry.value) for entry in kafka.committed(TOPIC)] + _letters(subject, kafka)


def _letters(subject: Subject, kafka: Kafka) -> list[bytes]:
    return [subject.row_of_letter(entry.key, entry.value) for entry in kafka.committed(DEAD)]
