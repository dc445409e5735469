"""A class data archive of Spark: its classes as the JVM keeps them in memory, mapped by a run instead of loaded and verified.

`eosingest prepare` writes it once for the Java and the pyspark that are here; session.py names it to the JVM of every local
Spark where it is there. What makes it unfit (another Java, other jars in front on the class path) the JVM finds by itself,
notes it in Spark's log, and loads its classes as ever (JEP 350).
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterable
from pathlib import Path

import pyspark
import xxhash

from eosingest.java import find_java
from eosingest.paths import cache_directory

_WRITE = "-XX:ArchiveClassesAtExit="
_USE = "-XX:SharedArchiveFile="


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
    """Give a complete archive its name, which says how long it is, and remove an earlier one; return its path."""
    place, stem = _place()
    archive = place / f"{stem}-{fresh.stat().st_size}.jsa"
    fresh.replace(archive)
    for earlier in place.glob(f"{stem}-*.jsa"):
        if earlier != archive:
            earlier.unlink(missing_ok=True)
    return archive


def folder() -> Path:
    """Return the folder of archives in the cache; it need not exist."""
    return cache_directory() / "spark"


def _place() -> tuple[Path, str]:
    jars = Path(pyspark.__file__).parent / "jars"
    named = xxhash.xxh3_64_hexdigest(f"{find_java().resolve()}\0{jars}".encode())
    return folder(), f"pyspark-{pyspark.__version__}-{named}"


def option_to_write(archive: Path) -> str:
    """Return the JVM's option that has it write the archive when it ends."""
    return shlex.quote(f"{_WRITE}{archive}")


def option_to_use(given: Iterable[str]) -> str:
    """Return the JVM's option that has it use the archive; nothing where there is none, or where `given` options name one."""
    archive = find()
    if archive is None or any(option in text for text in given for option in (_WRITE, _USE)):
        return ""
    return shlex.quote(f"{_USE}{archive}")
