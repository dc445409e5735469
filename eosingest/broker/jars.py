"""Apache Kafka's jars: fetched once from Maven Central with the Ivy that pyspark ships, pinned by SHA-256, cached.

`KAFKA_HOME` is used instead where it is set; `EOSINGEST_IVY_SETTINGS` names an ivysettings.xml, for a mirror.
The folder `kafka-<version>/libs` is created by a rename, complete and checked: a killed download leaves no partial one.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from eosingest.broker.lock import locked
from eosingest.errors import FatalError, TemporaryError
from eosingest.host.java import find_java
from eosingest.host.paths import cache_directory

KAFKA_VERSION = "4.3.1"
_PINS = Path(__file__).parent.parent / "kafka_jars.sha256"
# Kafka's pom has no logging backend: without log4j-slf4j-impl the broker would log nothing.
_IVY_FILE = """\
<ivy-module version="2.0">
  <info organisation="eosingest" module="embedded-broker"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency org="org.apache.kafka" name="kafka_2.13" rev="{kafka}" conf="default->default"/>
    <dependency {backend} conf="default->default"/>
  </dependencies>
</ivy-module>
"""
_LOGGING = 'org="org.apache.logging.log4j" name="log4j-slf4j-impl" rev="2.25.4"'
_MIRROR_HINT = (
    "check the network; behind a mirror let EOSINGEST_IVY_SETTINGS name an ivysettings.xml, "
    "or let KAFKA_HOME name an unpacked Apache Kafka; then: eosingest broker up"
)
_log = logging.getLogger(__name__)


def kafka_libs(deadline: float) -> tuple[Path, str]:
    """Return the folder with Kafka's jars, and Kafka's version; fetch the jars if they are missing.

    `deadline` is in seconds of `time.monotonic()`. Raises TemporaryError if they cannot be fetched now, FatalError if their
    checksums are wrong or KAFKA_HOME is not a Kafka.
    """
    home = os.environ.get("KAFKA_HOME")
    if home:
        return _libs_of_kafka_home(Path(home).expanduser().absolute())
    folder = cache_directory() / f"kafka-{KAFKA_VERSION}"
    libs = folder / "libs"
    if not _is_complete(libs):
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / "lock", deadline, what="the fetch of Kafka's jars"):
            if not _is_complete(libs):
                _fetch(folder, libs, deadline)
    return _usable_in_class_path(libs), KAFKA_VERSION


def _libs_of_kafka_home(home: Path) -> tuple[Path, str]:
    names = [re.fullmatch(r"kafka_2\.\d+-(\d.*)\.jar", jar.name) for jar in (home / "libs").glob("kafka_2.*.jar")]
    versions = [match.group(1) for match in names if match]
    if not versions:
        raise FatalError(
            f"KAFKA_HOME is {home}, which has no libs/kafka_2.13-<version>.jar",
            code="kafka-home",
            hint="let KAFKA_HOME name an unpacked Apache Kafka, or unset it to have one fetched",
        )
    return _usable_in_class_path(home / "libs"), versions[0]


def _usable_in_class_path(libs: Path) -> Path:
    if os.pathsep in str(libs):
        raise FatalError(
            f"Java cannot load jars from {libs}: the path holds a {os.pathsep!r}",
            code="broker-folder",
            hint="let EOSINGEST_HOME (or KAFKA_HOME) name another folder",
        )
    return libs


def _pins() -> dict[str, str]:
    """Return the pinned SHA-256 of each jar, by its name."""
    lines = _PINS.read_text(encoding="ascii").splitlines()
    return {name: digest for digest, name in (line.split() for line in lines)}


def _is_complete(libs: Path) -> bool:
    return all((libs / name).is_file() for name in _pins())


def _fetch(folder: Path, libs: Path, deadline: float) -> None:
    """Download the jars into a temporary folder, check them, and rename it to `libs`."""
    for leftover in folder.glob("fetch-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    _log.info("fetching Apache Kafka %s (44 MB, once) into %s", KAFKA_VERSION, libs)
    downloads = folder / "ivy-cache"  # kept after a failure, so that the next download goes on from there
    fresh = Path(tempfile.mkdtemp(prefix="fetch-", dir=folder))
    try:
        _run_ivy(fresh, downloads, deadline)
        _check(fresh / "libs", downloads)
        shutil.rmtree(libs, ignore_errors=True)
        (fresh / "libs").rename(libs)
        shutil.rmtree(downloads, ignore_errors=True)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _run_ivy(fresh: Path, downloads: Path, deadline: float) -> None:
    try:
        result = subprocess.run(
            ivy_command(fresh, downloads, kafka=KAFKA_VERSION, backend=_LOGGING),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=max(1.0, deadline - time.monotonic()),
        )
    except subprocess.TimeoutExpired as error:
        raise TemporaryError(
            "Apache Kafka's jars (44 MB) did not arrive in time; what arrived is kept for the next fetch",
            code="kafka-fetch",
            hint=_MIRROR_HINT,
        ) from error
    if result.returncode != 0:
        lines = result.stdout.decode(errors="replace").splitlines()
        reasons = [line.strip() for line in lines if re.search(r"(?i)error|exception|not found|fail", line)]
        raise TemporaryError(
            f"Apache Kafka {KAFKA_VERSION} could not be fetched; Ivy says: " + "\n  ".join((reasons or lines)[-10:]),
            code="kafka-fetch",
            hint=_MIRROR_HINT,
        )


def ivy_command(fresh: Path, downloads: Path, *, kafka: str, backend: str) -> list[str]:
    """Return the command that downloads Kafka's jars into `fresh`/libs. `backend`: its logging backend, as in an ivy.xml."""
    ivy_file = fresh / "ivy.xml"
    ivy_file.write_text(_IVY_FILE.format(kafka=kafka, backend=backend), encoding="ascii")
    command = [str(find_java()), "-jar", str(_ivy_jar())]
    settings = os.environ.get("EOSINGEST_IVY_SETTINGS")
    command += ["-settings", settings] if settings else []
    command += ["-cache", str(downloads), "-ivy", str(ivy_file), "-confs", "default", "-novalidate"]
    return [*command, "-retrieve", f"{fresh}/libs/[artifact]-[revision].[ext]"]


def _ivy_jar() -> Path:
    """Return the Ivy jar that pyspark ships, found without importing pyspark."""
    spec = find_spec("pyspark")
    places = spec.submodule_search_locations if spec else None
    found = sorted(jar for place in places or [] for jar in Path(place).glob("jars/ivy-*.jar"))
    if not found:
        raise FatalError(
            "the embedded broker fetches Apache Kafka with the Ivy jar inside pyspark, and there is none",
            code="ivy-missing",
            hint="install pyspark with its jars, or let KAFKA_HOME name an unpacked Apache Kafka",
        )
    return found[-1]


def _check(libs: Path, downloads: Path) -> None:
    """Compare every jar with its pinned checksum; if one differs, the whole download is removed."""
    pins = _pins()
    present = {jar.name for jar in libs.glob("*.jar")}
    wrong = [name for name in sorted(present & pins.keys()) if _sha256(libs / name) != pins[name]]
    problems = [f"{name} is not the file that was pinned" for name in wrong]
    problems += [f"{name} is missing" for name in sorted(pins.keys() - present)]
    problems += [f"{name} is not known" for name in sorted(present - pins.keys())]
    if problems:
        shutil.rmtree(downloads, ignore_errors=True)
        raise FatalError(
            f"the jars fetched for Apache Kafka {KAFKA_VERSION} are not used: {'; '.join(problems)}",
            code="kafka-jars",
            hint="look at the mirror or proxy in between, or let KAFKA_HOME name an unpacked Apache Kafka",
        )


def _sha256(jar: Path) -> str:
    return hashlib.sha256(jar.read_bytes()).hexdigest()
