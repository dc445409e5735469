"""Provides Apache Kafka's jars for the embedded broker: fetched once (host/ivy.py), or those of `KAFKA_HOME`, if it is set."""

from __future__ import annotations

import os
import re
from pathlib import Path

from eosingest.errors import FatalError
from eosingest.host import ivy
from eosingest.host.paths import cache_directory

KAFKA_VERSION = "4.4.0"
_PINS = Path(__file__).parent.parent / "kafka_jars.sha256"
# Kafka's pom has no logging backend: without log4j-slf4j-impl the broker would log nothing.
_LOGGING = 'org="org.apache.logging.log4j" name="log4j-slf4j-impl" rev="2.25.5"'


def kafka_libs(deadline: float) -> tuple[Path, str]:
    """Return the folder with Kafka's jars, and Kafka's version; fetch the jars if they are missing.

    `deadline` is in seconds of `time.monotonic()`. Raises TemporaryError if they cannot be fetched now, FatalError if their
    checksums are wrong or KAFKA_HOME is not a Kafka.
    """
    home = os.environ.get("KAFKA_HOME")
    if home:
        return _libs_of_kafka_home(Path(home).expanduser().absolute())
    libs = ivy.fetched(_jars(), cache_directory() / f"kafka-{KAFKA_VERSION}", deadline)
    return _usable_in_class_path(libs), KAFKA_VERSION


def dependencies(kafka: str, backend: str) -> tuple[str, str]:
    """Return the dependencies of a version of Kafka, as in an ivy.xml. `backend`: its logging backend, in the same form."""
    return (
        f'<dependency org="org.apache.kafka" name="kafka_2.13" rev="{kafka}" conf="default->default"/>',
        f'<dependency {backend} conf="default->default"/>',
    )


def _jars() -> ivy.Jars:
    lines = _PINS.read_text(encoding="ascii").splitlines()
    return ivy.Jars(
        what=f"Apache Kafka {KAFKA_VERSION}",
        size="44 MB",
        dependencies=dependencies(KAFKA_VERSION, _LOGGING),
        pins={name: digest for digest, name in (line.split() for line in lines)},
        code="kafka",
        hint="check the network; with a mirror let EOSINGEST_IVY_SETTINGS name an ivysettings.xml, "
        "or let KAFKA_HOME name an unpacked Apache Kafka; then: eosingest broker up",
        instead="let KAFKA_HOME name an unpacked Apache Kafka",
    )


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
