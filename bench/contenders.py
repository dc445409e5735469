"""Who is measured: each contender is one or more processes that are started once, and told round by round what to send.

An order is a line of JSON on a process's stdin, its answer a line of JSON on its stdout with the seconds it took.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.environments import jars, python_with
from bench.works import Work

ROOT = Path(__file__).parent.parent
KAFKA = "4.4.0"
FLINK = "2.0.1"
SPARK = "4.0.0"  # the newest one that Spark's Kafka sink resolves for
# The same for every producer that has the property; the rest is each one's own default.
PROPERTIES = {"linger.ms": "20", "batch.size": "1000000"}

SINK = """\
[sink]
bootstrap_servers = "{servers}"
topic = "{topic}"
properties = {{ {properties} }}
[spark]
master = "local[2]"
"""
SPEC = (
    """\
name = "{topic}"
[source]
format = "{format}"
path = "{path}/*"
{schema}
{options}
[transform]
{where}
[record]
{key}
value = "{value}"
"""
    + SINK
)


def as_toml(properties: Mapping[str, str]) -> str:
    """Return properties as the inside of an inline table."""
    return ", ".join(f'"{name}" = "{value}"' for name, value in properties.items())


@dataclass(frozen=True)
class Order:
    """One round's order: which work, where its files lie, and where to."""

    work: Work
    path: Path
    servers: str
    topic: str
    rows: int

    @property
    def properties(self) -> dict[str, str]:
        """Producer properties, by Kafka's names."""
        return {**PROPERTIES, "compression.type": self.work.compression}

    def spec(self) -> Path:
        """Write the spec for eosingest, beside the files' folder."""
        work = self.work
        spec = self.path.parent / f"{self.topic}.toml"
        spec.write_text(
            SPEC.format(
                topic=self.topic,
                servers=self.servers,
                path=self.path,
                format=work.format,
                value=work.value,
                schema=f'schema = "{work.schema}"' if work.schema else "",
                options="options = { header = false }" if work.format == "csv" else "",
                where=f'where = "{work.where}"' if work.where else "",
                key=f'key = "{work.key}"' if work.key else "",
                properties=as_toml(self.properties),
            )
        )
        return spec


@dataclass
class Contender:
    """A contender by name; `takes` says of which works; `tell` makes the order that its processes read."""

    name: str
    commands: Callable[[], list[list[str]]]
    tell: Callable[[Order], dict[str, Any]]
    takes: Callable[[Work], bool] = lambda work: True
    environment: dict[str, str] = field(default_factory=dict)
    _processes: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def pids(self) -> list[int]:
        """The processes that were started; those that they start themselves are below them."""
        return [process.pid for process in self._processes]

    def go(self, order: Order) -> float:
        """Send the work; return the seconds of the slowest process."""
        if not self._processes:
            environment = {**os.environ, "PYTHONPATH": str(ROOT), **self.environment}
            self._processes = [
                subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT
                )
                for command in self.commands()
            ]
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write(json.dumps(self.tell(order)) + "\n")
            process.stdin.flush()
        return max(float(self._answer(process)["seconds"]) for process in self._processes)

    def _answer(self, process: subprocess.Popen[str]) -> dict[str, Any]:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended with {process.wait(10)}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def stop(self) -> None:
        """End the processes; they end with their input."""
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.close()
        for process in self._processes:
            process.wait(60)
        self._processes = []


def as_spark(order: Order) -> dict[str, Any]:
    """Return the order as bench/spark_rounds.py reads it."""
    work = asdict(order.work, dict_factory=lambda pairs: {k: v for k, v in pairs if not callable(v)})
    properties = {"bootstrap.servers": order.servers, "buffer.memory": str(64 << 20), **order.properties}
    return {**work, "path": str(order.path), "topic": order.topic, "properties": properties}


def _as_plain(order: Order) -> dict[str, Any]:
    return {
        "work": order.work.name,
        "rows": order.rows,
        "path": str(order.path),
        "servers": order.servers,
        "topic": order.topic,
        "properties": order.properties,
    }


def _eosingest(way: str) -> Callable[[], list[list[str]]]:
    return lambda: [[sys.executable, "-m", "bench.eosingest_rounds", way]]


def spark_sink() -> list[list[str]]:
    """Return the command of the Spark job, which ends with its input."""
    python = python_with(f"pyspark=={SPARK}")
    libs = jars(f"org.apache.spark:spark-sql-kafka-0-10_2.13:{SPARK}")
    return [[str(python), str(ROOT / "bench/spark_rounds.py"), str(libs)]]


LOG4J = "org.apache.logging.log4j:log4j-slf4j-impl:2.25.5"


def _connect(boundary: str) -> Callable[[], list[list[str]]]:
    def commands() -> list[list[str]]:
        libs = jars(f"org.apache.kafka:connect-runtime:{KAFKA}", f"org.apache.kafka:connect-file:{KAFKA}", LOG4J)
        return [[sys.executable, "-m", "bench.connect_rounds", str(libs), boundary]]

    return commands


def _flink() -> list[list[str]]:
    python = python_with(f"apache-flink=={FLINK}")
    (jar,) = jars(f"org.apache.flink:flink-sql-connector-kafka:4.0.1-{FLINK[:3]}").glob("flink-*.jar")
    return [[str(python), str(ROOT / "bench/flink_rounds.py"), str(jar)]]


def _performance() -> list[list[str]]:
    libs = jars(f"org.apache.kafka:kafka-tools:{KAFKA}", LOG4J)
    return [[sys.executable, "-m", "bench.performance_rounds", str(libs), str(part), "2"] for part in range(2)]


def is_lines(work: Work) -> bool:
    """Say whether the work's records are lines as they are."""
    return work.format == "text" and work.key is None


CONTENDERS = [
    Contender("eosingest, lines", _eosingest("as-it-is"), lambda order: {"spec": str(order.spec())}, is_lines),
    Contender("eosingest, Arrow", _eosingest("arrow"), lambda order: {"spec": str(order.spec())}),
    Contender("eosingest, each", _eosingest("each"), lambda order: {"spec": str(order.spec())}),
    Contender("Spark's sink", spark_sink, as_spark, environment={"PYTHONPATH": ""}),
    Contender("Flink, exactly once", _flink, as_spark, is_lines, environment={"PYTHONPATH": ""}),
    Contender("Connect, exactly once by poll", _connect("poll"), _as_plain, is_lines),
    Contender("Connect, exactly once by interval", _connect("interval"), _as_plain, is_lines),
    Contender("ProducerPerformance", _performance, _as_plain, is_lines),
    Contender(
        "librdkafka alone",
        lambda: [[sys.executable, "-m", "bench.bare_rounds", str(part), "2"] for part in range(2)],
        _as_plain,
        is_lines,
    ),
]
