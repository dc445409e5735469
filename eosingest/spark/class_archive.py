"""Manages Spark's class data archive (CDS, JEP 350): a JVM maps it into memory instead of loading and verifying classes.

It is written once for the installed Java and pyspark (prepare.py); jvm.py passes it to the JVM of every local Spark. Its name
contains a hash of Java and the jars, so that after a change of either no archive is found and a new one is written. If the JVM
finds the archive unfit for another reason, it says so in Spark's log and loads its classes as usual.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pyspark
import xxhash

from eosingest.host.java import find_java
from eosingest.host.paths import cache_directory
from eosingest.spark import spark_defaults

_WRITE = "-XX:ArchiveClassesAtExit="
_USE = "-XX:SharedArchiveFile="
_KEPT = 3  # archives, of 160 MiB each: one for each Python environment
_FAILURE_KEPT_S = 86_400.0


def find() -> Path | None:
    """Return the archive for this Java and this pyspark. None if there is none, or it is truncated: it would crash the JVM.

    Raises FatalError where Java is missing.
    """
    place, stem = _place()
    for archive in place.glob(f"{stem}-*.jsa"):
        with contextlib.suppress(FileNotFoundError):  # `prepare` has just replaced it
            if archive.stem == f"{stem}-{archive.stat().st_size}":
                return archive
    return None


def folder_on_class_path() -> Path | None:
    """Return Spark's configuration folder if it holds files; None if not.

    Spark puts it first on the class path, and a JVM with a folder of files there neither writes an archive nor uses one.
    """
    conf = spark_defaults.conf_folder(pip_only=True)
    with contextlib.suppress(OSError):
        if conf is not None and any(conf.iterdir()):
            return conf
    return None


def keep(fresh: Path) -> Path:
    """Rename a complete archive to its final name, which contains its length; return its path.

    Earlier archives for the same Java and pyspark are removed; of all others the most recently used ones are kept.
    """
    place, stem = _place()
    archive = place / f"{stem}-{fresh.stat().st_size}.jsa"
    fresh.replace(archive)
    _failure().unlink(missing_ok=True)
    others = [other for other in place.glob("*.jsa") if other != archive]
    earlier = [other for other in others if other.stem.rpartition("-")[0] == stem]
    by_use = sorted(set(others) - set(earlier), key=_used, reverse=True)
    for other in (*earlier, *by_use[_KEPT - 1 :]):
        with contextlib.suppress(OSError):  # another user's, in a shared cache
            other.unlink(missing_ok=True)
    return archive


def _used(archive: Path) -> float:
    """Return when an archive was used last: `option_to_use` sets it as the file's time."""
    try:
        return archive.stat().st_mtime
    except OSError:
        return 0.0


def folder() -> Path:
    """Return the folder of archives in the cache; it need not exist."""
    return cache_directory() / "spark"


def stem() -> str:
    """Return the beginning of the archive's name: it changes with Java, pyspark, and Spark's jars."""
    return _place()[1]


def failure() -> str | None:
    """Return why an attempt to write the archive failed within the last 24 hours; None if none failed."""
    file = _failure()
    try:
        text, age_s = file.read_text(encoding="utf-8").strip(), time.time() - file.stat().st_mtime
    except OSError:
        return None
    return text if 0 <= age_s < _FAILURE_KEPT_S else None


def remember_failure(reason: str) -> None:
    """Store why no archive was written, for `failure` to return. Raises OSError."""
    file = _failure()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{reason}\n", encoding="utf-8")


def _failure() -> Path:
    place, stem = _place()
    return place / f"{stem}.failed"


def _place() -> tuple[Path, str]:
    """Return the folder and the archive's name without its length: it changes with everything that the JVM validates."""
    named = _hash_of(Path(pyspark.__file__).parent / "jars", find_java().resolve())
    return folder(), f"pyspark-{pyspark.__version__}-{named}"


@cache  # a run needs it three times, and there are 300 jars
def _hash_of(jars: Path, java: Path) -> str:
    parts = [_version_of(java.parent.parent / "lib" / "modules"), *map(_version_of, sorted(jars.glob("*.jar")))]
    return xxhash.xxh3_64_hexdigest("\0".join([str(java), str(jars), *parts]).encode())


def _version_of(file: Path) -> str:
    """Return name, size and modification time of a file as the JVM compares them: whole seconds, as image layers keep them."""
    try:
        status = file.stat()
    except OSError:
        return file.name
    return f"{file.name} {status.st_size} {int(status.st_mtime)}"


def option_to_write(archive: Path) -> str:
    """Return the JVM option for writing the archive at exit."""
    return shlex.quote(f"{_WRITE}{archive}")


def option_to_use(given: Iterable[str]) -> str:
    """Return the JVM option for using the archive; "" if there is no archive, or the `given` options name one already."""
    archive = None if is_named(given) else find()
    if archive is None:
        return ""
    with contextlib.suppress(OSError):  # a read-only cache
        os.utime(archive)
    return shlex.quote(f"{_USE}{archive}")


def is_named(given: Iterable[str]) -> bool:
    """Say whether JVM options already name an archive to write or to use."""
    return any(option in text for text in given for option in (_WRITE, _USE))


def without(options: str) -> str:
    """Return JVM options without our archive."""
    ours = re.escape(f"{_USE}{folder()}{os.sep}")
    return re.sub(rf" ?(?:'{ours}[^']*'|{ours}\S*)", "", options)
