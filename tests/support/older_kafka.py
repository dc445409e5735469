"""Apache Kafka of other versions than the embedded one, as KAFKA_HOME names them: fetched once, for tests alone.

`python -m tests.support.older_kafka 3.9.1` prints the folder (Makefile, test-brokers).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from eosingest.broker.jars import dependencies
from eosingest.host.folder_lock import locked
from eosingest.host.ivy import ivy_command
from eosingest.host.paths import cache_directory

VERSIONS = ("3.3.2", "3.9.1", "4.3.1")
TOO_OLD = "2.8.2"
_PATIENCE_S = 600.0
_LOGGING = 'org="org.slf4j" name="slf4j-reload4j" rev="1.7.36"'


def kafka_home(version: str) -> Path:
    """Return the folder whose `libs` has the jars of a version, which is fetched where it is not there."""
    home = cache_directory() / f"kafka-{version}"
    home.mkdir(parents=True, exist_ok=True)
    with locked(home / "lock", time.monotonic() + _PATIENCE_S, what=f"the fetch of Kafka {version}"):
        if not (home / "libs").is_dir():
            _fetch(home, version)
    return home


def _fetch(home: Path, version: str) -> None:
    with tempfile.TemporaryDirectory(dir=home) as made:
        fresh = Path(made)
        command = ivy_command(fresh, fresh / "cache", dependencies(version, _LOGGING))
        subprocess.run(command, check=True, stdout=sys.stderr, timeout=_PATIENCE_S)
        (fresh / "libs").rename(home / "libs")


if __name__ == "__main__":
    print(kafka_home(sys.argv[1]))
