"""Kafka's command-line tools (kafka-topics and the like), so that tests run the commands that hints name."""

from __future__ import annotations

import re
import shlex
import subprocess
import time
from pathlib import Path

import pytest

from eosingest.broker.jars import KAFKA_VERSION, kafka_libs
from eosingest.host import ivy
from eosingest.host.java import find_java
from eosingest.host.paths import cache_directory

_PATIENCE_S = 300.0
_CLASSES = {
    "kafka-topics": "TopicCommand",
    "kafka-configs": "ConfigCommand",
    "kafka-transactions": "TransactionsCommand",
}
_JAR = f"kafka-tools-{KAFKA_VERSION}.jar"
_JARS = ivy.Jars(
    what=f"Kafka's tools {KAFKA_VERSION}",
    size="1 MB",
    dependencies=(
        f'<dependency org="org.apache.kafka" name="kafka-tools" rev="{KAFKA_VERSION}" transitive="false"'
        ' conf="default->default"/>',
    ),
    pins={_JAR: "4eb9a7fbfd63badfd8d1a677aa2d54b47b2b2d442ff7d68fd223972afea1954c"},
    code="kafka-tools",
    hint="check the network",
    instead="put the jar there by hand",
)
_WORD = r"(?:'[^']*'|[\w=.:-]+(?:,[\w=.:-]+)*)"
_COMMAND = re.compile(rf"(?:{'|'.join(_CLASSES)})(?: {_WORD})+")


def tools_jar() -> Path:
    """Return the jar of the tools, which is fetched where it is not there; the embedded broker's jars have the rest."""
    return ivy.fetched(_JARS, cache_directory() / f"kafka-tools-{KAFKA_VERSION}", time.monotonic() + _PATIENCE_S) / _JAR


def commands_in(hint: str) -> list[str]:
    """Return the commands of Kafka's tools in a hint, as they are written there."""
    return [found[0] for found in _COMMAND.finditer(hint)]


def run_command(command: str, servers: str) -> str:
    """Run a command of a hint on these brokers, whatever brokers it names; return its output. It must succeed."""
    tool, *arguments = shlex.split(command)
    arguments[arguments.index("--bootstrap-server") + 1] = servers
    with pytest.MonkeyPatch.context() as patch:  # the tools need the jars of their own version
        patch.delenv("KAFKA_HOME", raising=False)
        libs, _ = kafka_libs(time.monotonic() + _PATIENCE_S)
    java = [str(find_java()), "-XX:TieredStopAtLevel=1", "-cp", f"{tools_jar()}:{libs}/*"]
    line = [*java, f"org.apache.kafka.tools.{_CLASSES[tool]}", *arguments]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout
