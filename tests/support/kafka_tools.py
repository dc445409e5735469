"""Kafka's command-line tools (kafka-topics and the like), so that tests run the commands that hints name."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from eosingest.broker.jars import KAFKA_VERSION, kafka_libs
from eosingest.host.folder_lock import locked
from eosingest.host.ivy import ivy_command
from eosingest.host.java import find_java
from eosingest.host.paths import cache_directory

_PATIENCE_S = 300.0
_CLASSES = {
    "kafka-topics": "TopicCommand",
    "kafka-configs": "ConfigCommand",
    "kafka-transactions": "TransactionsCommand",
}
_TOOLS = (f'<dependency org="org.apache.kafka" name="kafka-tools" rev="{KAFKA_VERSION}" transitive="false"/>',)
_WORD = r"(?:'[^']*'|[\w=.:-]+(?:,[\w=.:-]+)*)"
_COMMAND = re.compile(rf"(?:{'|'.join(_CLASSES)})(?: {_WORD})+")


def tools_jar() -> Path:
    """Return the jar of the tools, which is fetched where it is not there; the embedded broker's jars have the rest."""
    home = cache_directory() / f"kafka-tools-{KAFKA_VERSION}"
    home.mkdir(parents=True, exist_ok=True)
    with locked(home / "lock", time.monotonic() + _PATIENCE_S, what="the fetch of Kafka's tools"):
        if not (home / "libs").is_dir():
            with tempfile.TemporaryDirectory(dir=home) as made:
                command = ivy_command(Path(made), Path(made) / "cache", _TOOLS)
                subprocess.run(command, check=True, stdout=sys.stderr, timeout=_PATIENCE_S)
                (Path(made) / "libs").rename(home / "libs")
    return home / f"libs/kafka-tools-{KAFKA_VERSION}.jar"


def commands_in(hint: str) -> list[str]:
    """Return the commands of Kafka's tools in a hint, as they are written there."""
    return [found[0] for found in _COMMAND.finditer(hint)]


def run_command(command: str, servers: str) -> str:
    """Run a command of a hint on these brokers, whatever brokers it names; return its output. It must succeed."""
    tool, *arguments = shlex.split(command)
    arguments[arguments.index("--bootstrap-server") + 1] = servers
    libs, _ = kafka_libs(time.monotonic() + _PATIENCE_S)
    java = [str(find_java()), "-XX:TieredStopAtLevel=1", "-cp", f"{tools_jar()}:{libs}/*"]
    line = [*java, f"org.apache.kafka.tools.{_CLASSES[tool]}", *arguments]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout
