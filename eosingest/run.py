"""Puts the parts together: from a Spec to a run, a plan or a status. The only module that knows all of them.

`run` makes the clients, the source, the Spark launcher and the driver, and lets the driver go its way. `plan` and
`status` look at the same offsets topic and disturb nobody. pyspark is imported only when a run has something to send.
"""

from __future__ import annotations

import contextlib
import os
import platform
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import xxhash

from eosingest import __version__, broker, pins
from eosingest.control import ControlLog
from eosingest.driver import Driver, DriverSettings, Observer, Prepared, Surroundings, TopicCreation
from eosingest.errors import ActiveRunError, EosingestError, FatalError, NoSuchJobError, SpecError
from eosingest.host_lock import HostLock
from eosingest.interruption import Interruption, never
from eosingest.java import find_java, java_major_version
from eosingest.kafka.config import ClientSettings, refuse_one_sided
from eosingest.kafka.kafka_python import KafkaPythonAdmin
from eosingest.kafka.librdkafka import LibrdkafkaOffsetsReader, LibrdkafkaProducer, ProducerSettings, check_properties
from eosingest.kafka.protocols import Admin, OffsetsReader, Producer
from eosingest.names import control_id, task_id
from eosingest.offsets import topic
from eosingest.offsets.state import JobState
from eosingest.paths import cache_directory
from eosingest.plan import Plan, PlannedFile, half_done_files, make_plan
from eosingest.report import PlanReport, Progress, RunReport, StatusReport
from eosingest.sources.files import FileSource
from eosingest.spec import Spec, digest_parts, resolve_properties, spark_master
from eosingest.task import TaskSettings
from eosingest.verdict import JobResult

EMBEDDED = "embedded"
_LOGS_KEPT_S = 7 * 86_400


@dataclass(frozen=True)
class RunOptions:
    """What the command line says of a run beside the spec. `if_running` None: as the spec says."""

    from_scratch: bool = False
    if_running: str | None = None
    verbose: bool = False


class _Noting:
    """Keeps the notes for the report, and passes all on (`driver.Observer`)."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)
        self._observer.note(text)

    def progress(self, progress: Progress) -> None:
        self._observer.progress(progress)


@dataclass
class _Kafka:
    """The driver's clients (`control.DriverKafka`)."""

    client: ClientSettings
    admin: Admin
    offsets_topic: str
    transaction_timeout_s: float
    check: Callable[[], None]

    def control_producer(self, transactional_id: str) -> Producer:
        settings = ProducerSettings(self.client, self.transaction_timeout_s)
        return LibrdkafkaProducer(transactional_id, settings, self.check)

    def reader(self, partition: int) -> OffsetsReader:
        return LibrdkafkaOffsetsReader(self.offsets_topic, partition, self.client, self.check)


def check(spec: Spec) -> list[str]:
    """Check what can be checked without a broker, and return notes. Raises SpecError, and FatalError without Java."""
    properties = resolve_properties(spec)
    problems = refuse_one_sided(properties)
    complaint = check_properties(ClientSettings("", properties))
    if complaint:
        problems.append(f"{spec.file}: sink.properties: librdkafka says: {complaint}")
    if problems:
        raise SpecError("\n".join(problems), code="bad-property", problems=problems)
    java = find_java()
    return [f"Java {java_major_version(java)} at {java}"]


def run(spec: Spec, options: RunOptions, observer: Observer, interrupted: Callable[[], int | None]) -> RunReport | None:
    """Run the job; None where another run is active on this host and `if_running` is "skip".

    Raises the errors of errors.py for what ends a run before its job; what keeps a job from being complete is in the
    report's errors.
    """
    check_without_java(spec)
    interruption = Interruption(interrupted)
    noting = _Noting(observer)
    with _connected(spec, noting, interruption.check) as kafka, HostLock(kafka.admin.cluster_id(), spec.name) as lock:
        if not lock.acquired:
            if_running = options.if_running or spec.if_running
            if if_running == "skip":
                return None
            if if_running == "fail":
                raise ActiveRunError(
                    f"another run of {spec.name} is active on this host",
                    hint="nothing was done; wait for it, or run with --if-running fence to take the job over",
                )
        source = _source(spec, interruption.check)
        launcher = _LazyLauncher(spec, kafka.client, source, options.verbose, interruption.check)
        around = Surroundings(
            now=time.monotonic,
            sleep=time.sleep,
            now_ms=lambda: int(time.time() * 1000),
            utc=_utc,
            interruption=interruption,
        )
        settings = _driver_settings(spec, kafka.client.bootstrap_servers, source, from_scratch=options.from_scratch)
        try:
            report = Driver(settings, kafka, source, launcher, noting, around).run()
        finally:
            launcher.close()
        return replace(report, notes=tuple(noting.notes))


def plan(spec: Spec, observer: Observer) -> PlanReport:
    """Look at what a run would do. What it would end with is in the report's errors."""
    check_without_java(spec)
    source = _source(spec)
    listing = source.list()
    noting = _Noting(observer)
    with _connected(spec, noting) as kafka:
        state = _look(spec, kafka, noting)
        settings = _driver_settings(spec, kafka.client.bootstrap_servers, source, from_scratch=False)
        errors = _pinned_errors(spec, kafka.admin, state, settings)
        control = state.settled
        in_force = control is not None and pins.in_force(control, state.offsets)
        split_size = control.split_size if control is not None and in_force else spec.source.split_size
        made = make_plan(source, state.offsets, split_size, listing)
        with _collected(errors):
            made.refuse_changes(spec.source.on_change)
        report = _plan_report(spec, kafka.client.bootstrap_servers, made, errors)
    return replace(report, notes=tuple(noting.notes))


def status(spec: Spec, observer: Observer) -> StatusReport:
    """Say what the offsets topic knows of the job. Raises NoSuchJobError where that is nothing."""
    check_without_java(spec)
    with _connected(spec, observer) as kafka:
        state = _look(spec, kafka, observer)
        control = state.control
        if control is None:
            raise NoSuchJobError(
                f"{spec.sink.offsets_topic} on {kafka.client.bootstrap_servers} holds nothing about job {spec.name}",
                hint="it has not run there yet: eosingest run SPEC",
            )
        ours = {control_id(control.pinned.prefix, spec.name)} | {
            task_id(control.pinned.prefix, spec.name, task) for task in range(control.tasks_alive)
        }
        description = kafka.admin.describe_topic(spec.sink.offsets_topic)
        partition = topic.partition_of(spec.name, description.partitions if description else topic.PARTITIONS)
        open_now = kafka.admin.open_transactions(spec.sink.offsets_topic, partition)
        files = {file for file, _ in state.offsets}
        return StatusReport(
            job=spec.name,
            topic=control.pinned.topic,
            bootstrap_servers=kafka.client.bootstrap_servers,
            state=control.state,
            run=control.run,
            host=control.host,
            pid=control.pid,
            time=control.time,
            files=len(files),
            files_done=len(files) - len(half_done_files(state.offsets)),
            splits=len(state.offsets),
            splits_done=sum(1 for offset in state.offsets.values() if offset.done),
            records_total=state.records_total,
            open_transactions=tuple(
                {**entry._asdict(), "of_this_job": entry.transactional_id in ours} for entry in open_now
            ),
            versions=dict(control.versions),
        )


def check_without_java(spec: Spec) -> None:
    """Raise SpecError for client properties that cannot be used; cheaper than `check`."""
    problems = refuse_one_sided(resolve_properties(spec))
    if problems:
        raise SpecError("\n".join(problems), code="bad-property", problems=problems)


# ---- the parts -----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _connected(spec: Spec, observer: Observer, check: Callable[[], None] = never) -> Iterator[_Kafka]:
    servers = spec.sink.bootstrap_servers
    if servers == EMBEDDED:
        status_now = broker.up()
        servers = status_now.bootstrap_servers
        if status_now.started_now:
            observer.note(f"started the embedded broker at {servers}; it stays up until: eosingest broker down")
    client = ClientSettings(servers, resolve_properties(spec))
    admin = KafkaPythonAdmin(client, check)
    try:
        yield _Kafka(client, admin, spec.sink.offsets_topic, spec.transaction.timeout, check)
    finally:
        admin.close()


def _source(spec: Spec, check: Callable[[], None] = never) -> FileSource:
    return FileSource(
        format=spec.source.format,
        paths=spec.source.path,
        directory=spec.directory,
        root=spec.source.root,
        min_age_s=spec.source.min_age,
        check=check,
    )


def _utc() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _driver_settings(spec: Spec, bootstrap_servers: str, source: FileSource, *, from_scratch: bool) -> DriverSettings:
    create = spec.sink.create
    versions = _versions()
    digest = {name: xxhash.xxh3_64_hexdigest(text.encode()) for name, text in digest_parts(spec).items()}
    spark_minor = ".".join(versions["spark"].split(".")[:2])
    return DriverSettings(
        job=spec.name,
        started=f"{_utc()} {secrets.token_hex(4)}",
        format=spec.source.format,
        root=spec.root_as_written or source.root_as_written,
        bootstrap_servers=bootstrap_servers,
        topic=spec.sink.topic,
        create=TopicCreation(create.partitions, create.replication_factor, create.config) if create else None,
        offsets_topic=spec.sink.offsets_topic,
        prefix=spec.sink.transactional_id_prefix,
        digest={**digest, "version.spark": spark_minor, "version.java": versions["java"]},
        split_size=spec.source.split_size,
        on_change=spec.source.on_change,
        transaction_timeout_s=spec.transaction.timeout,
        max_records=spec.transaction.max_records,
        max_bytes=spec.transaction.max_bytes,
        from_scratch=from_scratch,
        host=socket.gethostname(),
        pid=os.getpid(),
        versions=versions,
    )


def _versions() -> dict[str, str]:
    """Return the versions that go into the control record; Java is looked up without starting a JVM where possible."""
    try:
        java = str(java_major_version(find_java()))
    except FatalError:
        java = "none"  # matters, and is said, only when Spark is to be started
    return {"eosingest": __version__, "spark": version("pyspark"), "python": platform.python_version(), "java": java}


class _LazyLauncher:
    """A SparkLauncher that imports pyspark when it is first asked to prepare: a run with nothing to do never is."""

    def __init__(
        self, spec: Spec, client: ClientSettings, source: FileSource, verbose: bool, check: Callable[[], None]
    ) -> None:
        self._check = check
        self._spec = spec
        self._client = client
        self._source = source
        self._verbose = verbose
        self._launcher: Any = None

    def prepare(self, plan: Plan, schema: str | None) -> Prepared:
        self._launcher = self._make()
        prepared: Prepared = self._launcher.prepare(plan, schema)
        return prepared

    def start(self, settings: TaskSettings) -> None:
        self._launcher.start(settings)

    def poll(self, timeout_s: float) -> JobResult | None:
        result: JobResult | None = self._launcher.poll(timeout_s)
        return result

    def cancel(self) -> None:
        self._launcher.cancel()

    def close(self) -> None:
        if self._launcher is not None:
            self._launcher.close()

    def _make(self) -> Any:
        from eosingest.spark.job import SparkLauncher, SparkSettings
        from eosingest.spark.read import ReadSettings

        spec = self._spec
        read = ReadSettings(
            format=spec.source.format,
            options=spec.source.reader_options(),
            schema=spec.source.ddl,
            where=spec.transform.where,
            select=spec.transform.select,
            key=spec.record.key,
            value=spec.record.value,
            headers=dict(spec.record.headers),
            timestamp=spec.record.timestamp,
        )
        return SparkLauncher(
            SparkSettings(
                job=spec.name,
                master=spark_master(spec),
                conf=spec.spark.conf,
                read=read,
                base_path=lambda plan: self._source.partition_base(entry.file for entry in plan.files),
                client=self._client,
                partitioner=spec.sink.partitioner,
                prefix=spec.sink.transactional_id_prefix,
                check=self._check,
                log_file=None if self._verbose else _log_file(spec.name),
            )
        )


def _log_file(job: str) -> Path:
    """Return where this run's Spark writes, and clear away what is older than a week."""
    folder = cache_directory() / "logs"
    for old in folder.glob("*.log"):
        with contextlib.suppress(OSError):
            if time.time() - old.stat().st_mtime > _LOGS_KEPT_S:
                old.unlink()
    return folder / f"{job}-{os.getpid()}.log"


# ---- looking -------------------------------------------------------------------------------------------------------


def _look(spec: Spec, kafka: _Kafka, observer: Observer) -> JobState:
    """Read what is decided of the job, without a claim, a fence, or a topic made."""
    state = JobState(spec.name)
    found = kafka.admin.describe_topic(spec.sink.offsets_topic)
    if found is None:
        return state
    log = ControlLog(
        spec.name,
        kafka,
        offsets_topic=spec.sink.offsets_topic,
        partition=topic.partition_of(spec.name, found.partitions),
        deadline_s=lambda: topic.read_deadline_s(spec.transaction.timeout),
        now=time.monotonic,
        sleep=time.sleep,
    )
    try:
        with log.kafka_errors("reading the offsets topic"):
            topic.read_decided(log.reader, state, deadline_s=topic.read_deadline_s(spec.transaction.timeout))
            if log.reader.high_watermark() > state.end:
                observer.note("a transaction is open in the offsets topic: newer progress may be hidden behind it")
    finally:
        log.close()
    return state


@contextlib.contextmanager
def _collected(errors: list[EosingestError]) -> Iterator[None]:
    try:
        yield
    except EosingestError as error:
        errors.append(error)


def _pinned_errors(spec: Spec, admin: Admin, state: JobState, settings: DriverSettings) -> list[EosingestError]:
    """Return what a run would refuse, as far as looking tells."""
    errors: list[EosingestError] = []
    control, sink = state.settled, admin.describe_topic(spec.sink.topic)
    if control is None or not state.offsets:
        if sink is None and settings.create is None:
            errors.append(FatalError(f"topic {spec.sink.topic} does not exist", code="topic-missing"))
        return errors
    now = replace(
        control.pinned,
        format=settings.format,
        root=settings.root,
        topic=settings.topic,
        prefix=settings.prefix,
        cluster_id=admin.cluster_id(),
    )
    with _collected(errors):
        pins.refuse_other_life(control.pinned, now)
        if sink is None or sink.topic_id != control.pinned.topic_id:
            raise pins.topic_made_again(spec.sink.topic)
    with _collected(errors):
        pins.refuse_lost_progress(state, control)
    if pins.in_force(control, state.offsets):
        with _collected(errors):
            pins.refuse_other_digest(control, settings.digest)
    return errors


def _plan_report(spec: Spec, servers: str, made: Plan, errors: list[EosingestError]) -> PlanReport:
    return PlanReport(
        job=spec.name,
        topic=spec.sink.topic,
        bootstrap_servers=servers,
        files=tuple(_file_line(entry, made) for entry in made.files),
        splits=sum(entry.splits for entry in made.files),
        splits_pending=len(made.pending),
        bytes_total=sum(entry.file.length for entry in made.files),
        bytes_to_read=made.bytes_to_read,
        bytes_to_send=made.bytes_to_send,
        split_size=made.split_size,
        records_committed=made.committed_records,
        hidden=made.hidden,
        too_young=made.too_young,
        empty=made.empty,
        vanished=made.vanished,
        errors=tuple(errors),
    )


def _file_line(entry: PlannedFile, made: Plan) -> dict[str, Any]:
    if entry.file.name in made.changed:
        state = "changed"
    elif entry.half_done:
        state = "half done"
    else:
        state = "done" if entry.done else "new"
    return {
        "name": entry.file.name,
        "length": entry.file.length,
        "splits": entry.splits,
        "splits_pending": len(entry.pending),
        "state": state,
    }
