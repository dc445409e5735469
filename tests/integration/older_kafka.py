"""Apache Kafka of other versions than the embedded one, as KAFKA_HOME names them: fetched once, for tests alone.

`python -m tests.integration.older_kafka 3.9.1` prints the folder (Makefile, test-brokers).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from eosingest.broker.jars import ivy_jar
from eosingest.broker.lock import locked
from eosingest.java import find_java
from eosingest.paths import cache_directory

VERSIONS = ("3.3.2", "3.9.1")
_PATIENCE_S = 600.0
_IVY_FILE = """\
<ivy-module version="2.0">
  <info organisation="eosingest" module="older-broker"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency org="org.apache.kafka" name="kafka_2.13" rev="{version}" conf="default->default"/>
    <dependency org="org.slf4j" name="slf4j-reload4j" rev="1.7.36" conf="default->default"/>
  </dependencies>
</ivy-module>
"""


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
        ivy_file = fresh / "ivy.xml"
        ivy_file.write_text(_IVY_FILE.format(version=version))
        settings = os.environ.get("EOSINGEST_IVY_SETTINGS")
        command = [str(find_java()), "-jar", str(ivy_jar()), *(["-settings", settings] if settings else [])]
        command += ["-cache", str(fresh / "cache"), "-ivy", str(ivy_file), "-confs", "default", "-novalidate"]
        command += ["-retrieve", f"{fresh}/libs/[artifact]-[revision].[ext]"]
        subprocess.run(command, check=True, stdout=sys.stderr, timeout=_PATIENCE_S)
        (fresh / "libs").rename(home / "libs")


if __name__ == "__main__":
    print(kafka_home(sys.argv[1]))
