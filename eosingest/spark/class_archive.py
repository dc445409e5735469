"""A class data archive of Spark: its classes as the JVM keeps them in memory, mapped by a run instead of loaded and verified.

It is written once for the Java and the pyspark that are here (prepare.py); jvm.py names it to the JVM of every local
Spark where it is there. Its name says what it was written for, so that another Java or another jar finds none and a new one
is written; what else makes it unfit the JVM finds by itself, notes it in Spark's log, and loads its classes as ever (JEP 350).
"""

from __future__ import annotations

import contextlib
import os
import shlex
import time
from collections.abc import Iterable
from pathlib import Path

import pyspark
import xxhash

from eosingest.host.java import find_java
from eosingest.host.paths import cache_directory

_WRITE = "-XX:ArchiveClassesAtExit="
_USE = "-XX:SharedArchiveFile="
_KEPT = 3  # archives, of 160 MiB each: every environment of Python has one of its own
_FAILURE_KEPT_S = 86_400.0


def find() -> Path | None:
    """Return the archive for this Java and this pyspark; None where there is none, or not all of it: such a JVM crashes.

    Raises FatalError where Java is missing.
    """
    place, stem = _place()
    for archive in place.glob(f"{stem}-*.jsa"):
        with contextlib.suppress(FileNotFoundError):  # `prepare` has just put another one in its place
            if archive.stem == f"{stem}-{archive.stat().st_size}":
                return archive
    return None


def keep(fresh: Path) -> Path:
    """Give a complete archive its name, which says how long it is; return its path.

    Earlier ones for the same are removed, and of others all but those that were used last.
    """
    place, stem = _place()
    archive = place / f"{stem}-{fresh.stat().st_size}.jsa"
    fresh.replace(archive)
    _failure().unlink(missing_ok=True)
    others = [other for other in place.glob("*.jsa") if other != archive]
    earlier = [other for other in others if other.stem.rpartition("-")[0] == stem]
    by_use = sorted(set(others) - set(earlier), key=_used, reverse=True)
    for other in (*earlier, *by_use[_KEPT - 1 :]):
        with contextlib.suppress(OSError):  # somebody else's, in a cache that is shared
            other.unlink(missing_ok=True)
    return archive


def _used(archive: Path) -> float:
    """Return when an archive was used last: `option_to_use` notes it as the file's time."""
    try:
        return archive.stat().st_mtime
    except OSError:
        return 0.0


def folder() -> Path:
    """Return the folder of archives in the cache; it need not exist."""
    return cache_directory() / "spark"


def failure() -> str | None:
    """Return why an attempt of the last 24 hours has given no archive; None where there was no such attempt."""
    file = _failure()
    try:
        text, age_s = file.read_text(encoding="utf-8").strip(), time.time() - file.stat().st_mtime
    except OSError:
        return None
    return text if 0 <= age_s < _FAILURE_KEPT_S else None


def remember_failure(reason: str) -> None:
    """Keep why there is no archive, for `failure`. Raises OSError."""
    file = _failure()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{reason}\n", encoding="utf-8")


def _failure() -> Path:
    place, stem = _place()
    return place / f"{stem}.failed"


def _place() -> tuple[Path, str]:
    """Return the folder, and how the archive's name begins: it changes with all that the JVM holds an archive against."""
    jars, java = Path(pyspark.__file__).parent / "jars", find_java().resolve()
    parts = [_version_of(java.parent.parent / "lib" / "modules"), *map(_version_of, sorted(jars.glob("*.jar")))]
    named = xxhash.xxh3_64_hexdigest("\0".join([str(java), str(jars), *parts]).encode())
    return folder(), f"pyspark-{pyspark.__version__}-{named}"


def _version_of(file: Path) -> str:
    """Return name, size and time of a file, as the JVM notes them: in whole seconds, which an image's layers keep."""
    try:
        status = file.stat()
    except OSError:
        return file.name
    return f"{file.name} {status.st_size} {int(status.st_mtime)}"


def option_to_write(archive: Path) -> str:
    """Return the JVM's option that has it write the archive when it ends."""
    return shlex.quote(f"{_WRITE}{archive}")


def option_to_use(given: Iterable[str]) -> str:
    """Return the JVM's option that has it use the archive; nothing where there is none, or where `given` options name one."""
    archive = None if is_named(given) else find()
    if archive is None:
        return ""
    with contextlib.suppress(OSError):  # a cache that is for reading only
        os.utime(archive)
    return shlex.quote(f"{_USE}{archive}")


def is_named(given: Iterable[str]) -> bool:
    """Say whether options of a JVM name an archive to write or to use."""
    return any(option in text for text in given for option in (_WRITE, _USE))
