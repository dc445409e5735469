"""What the tests against real Kafka and Spark share: a job in a folder, the command run on it, an independent reader."""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from eosingest.cli.main import exit_code_of
from eosingest.kafka.config import ClientSettings
from eosingest.kafka.offsets_reader import LibrdkafkaOffsetsReader
from eosingest.protocol.offsets import topic as offsets_topic
from eosingest.protocol.offsets.state import JobState
from tests.support import suite_jvm
from tests.support.commands import Done, finish, start

# For a command whose time is measured, or whose JVM or Python workers the test kills or counts.
COLD = {"EOSINGEST_SPARK": "off"}

SPEC = """\
name = "{name}"
[source]
format = "json"
path = "data/*.jsonl"
schema = "n BIGINT, pad STRING"
split_size = "64KiB"
[record]
key = "CAST(n % 100 AS STRING)"
value = "CAST(n AS STRING)"
[sink]
bootstrap_servers = "{servers}"
topic = "{name}"
create = {{ partitions = 3 }}
[transaction]
timeout = "10s"
max_records = 2000
[spark]
master = "local[2]"
conf = {{ "spark.sql.shuffle.partitions" = "2" }}
"""
LINES_SPEC = SPEC.replace(
    """format = "json"
path = "data/*.jsonl"
schema = "n BIGINT, pad STRING"
""",
    """format = "text"
path = "data/*.jsonl"
""",
).replace(
    """key = "CAST(n % 100 AS STRING)"
value = "CAST(n AS STRING)"
""",
    """value = "value"
""",
)
# For `job`: tests of the protocol hold for both inputs of a task.
BOTH_INPUTS = pytest.mark.parametrize("job", ["rows", "lines"], indirect=True)


class Record(NamedTuple):
    """A record as a read_committed consumer sees it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    timestamp_ms: int


class Job:
    """A job in a folder of its own: spec.toml and data/. Name and topic are the folder's.

    `lines` are the rows of a source that is not data/*.jsonl, as job_checks.py has them; `decode` reads values that are not
    text, as text. `bad` are the numbers whose rows cannot be sent, each with the code that its letter in the topic `dead` has.
    """

    lines: Sequence[Any] | None = None
    decode: Callable[[bytes | None], bytes | None] | None = None

    def __init__(self, folder: Path, servers: str, name: str) -> None:
        self.folder = folder
        self.servers = servers
        self.name = name
        self.bad: dict[int, str] = {}
        self.dead = f"{name}-dead"
        self.spec = folder / "spec.toml"
        self.data = folder / "data"
        self.data.mkdir(parents=True, exist_ok=True)
        self.write_spec(SPEC)

    def write_spec(self, text: str) -> None:
        """Write the spec; {name} and {servers} are filled in."""
        self.spec.write_text(text.format(name=self.name, servers=self.servers))

    def _write_plain_spec(self, file: Path) -> None:
        file.write_text(SPEC.format(name="plain", servers=self.servers))

    def edit_spec(self, old: str, new: str) -> None:
        text = self.spec.read_text()
        assert old in text, f"{old!r} is not in the spec"
        self.spec.write_text(text.replace(old, new))

    def write_numbers(self, file: str, numbers: Iterable[int], pad: int = 20) -> None:
        """Write one JSON line a number."""
        lines = (json.dumps({"n": number, "pad": "x" * pad}) for number in numbers)
        (self.data / file).write_text("".join(line + "\n" for line in lines))

    def popen(self, verb: str = "run", *arguments: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """Start `eosingest VERB spec.toml --output json` in a process group of its own."""
        return start(verb, str(self.spec), "--output", "json", *arguments, env=env, cwd=self.folder)

    def start(self, verb: str = "run", *arguments: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """Start the command, on the warm JVM of the test process if `env` does not forbid it."""
        warm = suite_jvm.environment_for(verb, env or {}, self._write_plain_spec)
        return self.popen(verb, *arguments, env={**warm, **(env or {})})

    def run(self, verb: str = "run", *arguments: str, env: Mapping[str, str] | None = None) -> Done:
        """Run the command to its end, whatever that is.

        A verb that starts no Spark and gets no variables runs in this process: imports are most of its time.
        """
        if env is None and verb in ("check", "plan", "status"):
            return self._run_here(verb, *arguments)
        return finish(self.start(verb, *arguments, env=env))

    def _run_here(self, verb: str, *arguments: str) -> Done:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            exit_code = exit_code_of([verb, str(self.spec), "--output", "json", *arguments])
        return Done.of(exit_code, out.getvalue(), err.getvalue())

    def run_until_complete(self, *arguments: str, runs: int = 6, env: Mapping[str, str] | None = None) -> Done:
        """Run again, as its users would, until it says 0."""
        for _ in range(runs):
            done = self.run("run", *arguments, env=env)
            if done.exit_code == 0:
                return done
            assert done.exit_code in (3, 5), done
        raise AssertionError(f"not complete after {runs} runs: {done}")

    def numbers(self) -> list[int]:
        """Return the values in the topic as numbers, in log order of each partition, partition by partition."""
        return [number_of(record.value) for record in self.records()]

    def records(self) -> list[Record]:
        return [record._replace(value=self.plain(record.value)) for record in read_committed(self.servers, self.name)]

    def letters(self) -> list[Record]:
        """Return the dead letters, where there are bad rows, with values that `number_of` reads."""
        found = read_committed(self.servers, self.dead) if self.bad else []
        return [record._replace(value=self.plain_letter(record.value)) for record in found]

    def plain(self, value: bytes | None) -> bytes | None:
        """Return a record's value as text."""
        return value if self.decode is None else self.decode(value)

    def plain_letter(self, value: bytes | None) -> bytes | None:
        """Return the number that a letter begins with: of a row, which may be cut or not be JSON, or of a record."""
        if not value or value[:1] == b"\0":  # of values in Avro
            return self.plain(value)
        found = re.match(rb'(?:{"n": ?)?(\d+)', value)
        return found[1] if found else value


def number_of(value: bytes | None) -> int:
    """Return the number of a record of these specs: it is the value, or in the line that the value is."""
    found = json.loads(value or b"-1")
    return int(found["n"] if isinstance(found, dict) else found)


def wait_for(condition: Callable[[], Any], timeout_s: float = 60, every_s: float = 0.05) -> Any:
    """Wait until the condition holds, and return its value."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(every_s)
    raise AssertionError("it did not happen in time")


def topic_exists(servers: str, topic: str) -> bool:
    return topic in AdminClient({"bootstrap.servers": servers}).list_topics(timeout=10).topics


def read_committed(servers: str, topic: str, *, timeout_s: float = 60) -> list[Record]:
    """Read a topic from its start to the high watermark, read_committed; shares no code with eosingest."""
    uncommitted = Consumer({**_reader(servers), "isolation.level": "read_uncommitted"})
    consumer = Consumer({**_reader(servers), "isolation.level": "read_committed"})
    try:
        metadata = consumer.list_topics(topic, timeout=20).topics[topic]
        assert metadata.error is None, metadata.error
        ends = {}
        for partition in metadata.partitions:
            low, high = watermarks(uncommitted, topic, partition)
            if high > low:
                ends[partition] = high
        consumer.assign([TopicPartition(topic, partition, 0) for partition in ends])
        found: list[Record] = []
        left, deadline = set(ends), time.monotonic() + timeout_s
        while left:
            assert time.monotonic() < deadline, f"an open transaction holds {topic} up: {left}"
            for message in consumer.consume(5000, timeout=0.2):
                if message.error():
                    assert message.error().name() == "_PARTITION_EOF", message.error()
                    continue
                found.append(
                    Record(
                        message.partition(),
                        message.offset(),
                        message.key(),
                        message.value(),
                        list(message.headers() or []),
                        message.timestamp()[1],
                    )
                )
            for position in consumer.position([TopicPartition(topic, partition) for partition in left]):
                if position.offset >= ends[position.partition]:
                    left.discard(position.partition)
        return sorted(found, key=lambda record: (record.partition, record.offset))
    finally:
        consumer.close()
        uncommitted.close()


def watermarks(consumer: Consumer, topic: str, partition: int) -> tuple[int, int]:
    """Return low and high watermark; brokers that were just started move their leaders for a second."""
    deadline = time.monotonic() + 20
    while True:
        try:
            found: tuple[int, int] = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=20)
            return found
        except KafkaException:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
            consumer.list_topics(topic, timeout=20)


def _reader(servers: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": servers,
        "group.id": "independent-reader",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "enable.partition.eof": True,
        "allow.auto.create.topics": False,
    }


def assert_verified(job: Job) -> None:
    """The audit of the job, against its source, finds nothing wrong."""
    audit = job.run("verify", "--against-source")
    assert (audit.exit_code, audit.data["verdict"]) == (0, "verified"), audit


# ---- a spec from its tables, and what an answer must look like -------------------------------------------------------


def write_tables(
    job: Job,
    *,
    source: str,
    transform: str = "",
    record: str = "",
    sink: str = "",
    create: str = "{ partitions = 3 }",
    topic: str = "",
    head: str = "",
    transaction: str = 'timeout = "10s"',
) -> None:
    """Write a job's spec from the text of its tables, taken as they are: no braces are doubled."""
    job.spec.write_text(
        f'name = "{job.name}"\n{head}\n'
        f"[source]\n{source}\n[transform]\n{transform}\n[record]\n{record}\n"
        f'[sink]\nbootstrap_servers = "{job.servers}"\ntopic = "{topic or job.name}"\n'
        f"{f'create = {create}' if create else ''}\n{sink}\n"
        f"[transaction]\n{transaction}\n"
        f'[spark]\nmaster = "local[2]"\nconf = {{ "spark.sql.shuffle.partitions" = "2" }}\n'
    )


@contextlib.contextmanager
def edited(path: Path, old: str, new: str) -> Iterator[None]:
    """Replace text of a file inside the context, and put the file back after it."""
    text = path.read_text()
    assert old in text, f"{old!r} is not in {path.name}"
    path.write_text(text.replace(old, new))
    try:
        yield
    finally:
        path.write_text(text)


def run_text(job: Job, verb: str = "run", *arguments: str, env: Mapping[str, str] | None = None) -> Done:
    """Run the command as a person would: text on both streams."""
    return finish(start(verb, str(job.spec), *arguments, env=env, cwd=job.folder))


_NOISE = (
    "Traceback",
    " WARN ",
    "Warning:",
    "\tat ",
    "Py4J",
    "py4j",
    "org.apache.spark",
    "java.lang",
    "java.io",
    "Exception:",
)


def assert_quiet(done: Done) -> None:
    """No stack trace and none of Spark's own words on either stream; stdout is one line of JSON, or text."""
    found = [noise for noise in _NOISE if noise in done.text]
    assert not found, f"{found} in\n{done.stdout[:2000]}\n{done.stderr[:2000]}"
    if done.envelope:
        assert done.stdout.count("\n") == 1, done.stdout


def assert_refused(done: Done, exit_code: int, code: str, *words: str) -> None:
    """Exactly one clear error: the documented exit code, its code, the words in it or its hint, and a hint."""
    assert_quiet(done)
    assert done.exit_code == exit_code, done
    assert done.envelope["exit_code"] == exit_code
    assert done.codes == [code], done
    (error,) = done.envelope["errors"]
    assert error["hint"], error
    said = f"{error['message']}\n{error['hint']}"
    missing = [word for word in words if word not in said]
    assert not missing, f"{missing} not in: {said}"


def assert_done(done: Done, records_sent: int | None = None) -> None:
    """Exit 0, nothing said that is an error; so many records sent by this run."""
    assert_quiet(done)
    assert done.exit_code == 0, done
    assert done.envelope["errors"] == []
    assert done.data["complete"] is True
    if records_sent is not None:
        assert done.data["records_sent"] == records_sent, done.data


def end_offsets(servers: str, topic: str) -> dict[int, int]:
    """Return the high watermark of each partition: unchanged means that nothing at all was written, open or aborted."""
    consumer = Consumer({**_reader(servers), "isolation.level": "read_uncommitted"})
    try:
        partitions = consumer.list_topics(topic, timeout=20).topics[topic].partitions
        return {partition: watermarks(consumer, topic, partition)[1] for partition in partitions}
    finally:
        consumer.close()


def job_state(job: Job, topic: str = "eosingest-offsets") -> JobState:
    """Return what the offsets topic says of a job, by eosingest's own reader and codecs."""
    state = JobState(job.name)
    partition = offsets_topic.partition_of(job.name, offsets_topic.PARTITIONS)
    reader = LibrdkafkaOffsetsReader(topic, partition, ClientSettings(job.servers, {}))
    try:
        offsets_topic.read_to_last_stable_offset(reader, state, deadline_s=30)
    finally:
        reader.close()
    return state


def wait_for_state(job: Job, state: str, run: int, timeout_s: float = 60) -> None:
    """Wait until the job's control record says so, of this run number."""

    def reached() -> bool:
        if not topic_exists(job.servers, "eosingest-offsets"):
            return False
        control = job_state(job).control
        return control is not None and (control.run, control.state) == (run, state)

    wait_for(reached, timeout_s)


def create_topic(
    servers: str,
    topic: str,
    *,
    partitions: int = 1,
    config: Mapping[str, str] | None = None,
    replication_factor: int = 1,
) -> None:
    """Create a topic, by librdkafka."""
    admin = AdminClient({"bootstrap.servers": servers})
    made = NewTopic(topic, partitions, replication_factor, config=dict(config or {}))
    admin.create_topics([made])[topic].result(20)
    wait_for(lambda: topic_exists(servers, topic))
