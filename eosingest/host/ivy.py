"""Fetches jars from Maven Central: once, with the Ivy that pyspark ships, pinned by SHA-256, cached.

`EOSINGEST_IVY_SETTINGS` names an ivysettings.xml, for a mirror. The folder `libs` is created by a rename, complete and checked:
a killed download leaves no partial one. Used for the jars of the embedded broker, Hadoop's client of S3 and spark-avro.
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
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from eosingest.errors import FatalError, TemporaryError
from eosingest.host.folder_lock import locked
from eosingest.host.java import find_java

_IVY_FILE = """\
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="eosingest" module="fetched"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    {dependencies}
  </dependencies>
</ivy-module>
"""
_PIECE_BYTES = 1 << 20
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Jars:
    """The jars to fetch: a name (`what`) and `size` in words; `dependencies` as in an ivy.xml; `pins`: the SHA-256 of each jar.

    `code` begins the codes of errors (`-fetch`, `-jars`); `hint` is the remedy if they cannot be fetched, `instead` the way
    without them.
    """

    what: str
    size: str
    dependencies: tuple[str, ...]
    pins: Mapping[str, str]
    code: str
    hint: str
    instead: str

    def is_complete(self, libs: Path) -> bool:
        """Say whether a folder has all of them."""
        return all((libs / name).is_file() for name in self.pins)


def fetched(jars: Jars, folder: Path, deadline: float) -> Path:
    """Return `folder`/libs, which has the jars; fetch them if they are missing.

    `deadline` is in seconds of `time.monotonic()`. Raises TemporaryError if they cannot be fetched now, FatalError if their
    checksums are wrong.
    """
    libs = folder / "libs"
    if not jars.is_complete(libs):
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / "lock", deadline, what=f"the fetch of {jars.what}"):
            if not jars.is_complete(libs):
                _fetch(jars, folder, libs, deadline)
    return libs


def _fetch(jars: Jars, folder: Path, libs: Path, deadline: float) -> None:
    """Download the jars into a temporary folder, check them, and rename it to `libs`."""
    for leftover in folder.glob("fetch-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    _log.info("fetching %s (%s, once) into %s", jars.what, jars.size, libs)
    downloads = folder / "ivy-cache"  # kept after a failure, so that the next download resumes from there
    fresh = Path(tempfile.mkdtemp(prefix="fetch-", dir=folder))
    try:
        _run_ivy(jars, fresh, downloads, deadline)
        _check(jars, fresh / "libs", downloads)
        shutil.rmtree(libs, ignore_errors=True)
        (fresh / "libs").rename(libs)
        shutil.rmtree(downloads, ignore_errors=True)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _run_ivy(jars: Jars, fresh: Path, downloads: Path, deadline: float) -> None:
    try:
        result = subprocess.run(
            ivy_command(fresh, downloads, jars.dependencies),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=max(1.0, deadline - time.monotonic()),
        )
    except subprocess.TimeoutExpired as error:
        raise TemporaryError(
            f"{jars.what} ({jars.size}) did not arrive in time; the downloaded files are kept for the next fetch",
            code=f"{jars.code}-fetch",
            hint=jars.hint,
        ) from error
    if result.returncode != 0:
        lines = result.stdout.decode(errors="replace").splitlines()
        reasons = [line.strip() for line in lines if re.search(r"(?i)error|exception|not found|fail", line)]
        raise TemporaryError(
            f"{jars.what} could not be fetched; Ivy says: " + "\n  ".join((reasons or lines)[-10:]),
            code=f"{jars.code}-fetch",
            hint=jars.hint,
        )


def ivy_command(fresh: Path, downloads: Path, dependencies: tuple[str, ...]) -> list[str]:
    """Return the command that downloads `dependencies`, as in an ivy.xml, into `fresh`/libs."""
    ivy_file = fresh / "ivy.xml"
    ivy_file.write_text(_IVY_FILE.format(dependencies="\n    ".join(dependencies)), encoding="ascii")
    command = [str(find_java()), "-jar", str(ivy_jar())]
    settings = os.environ.get("EOSINGEST_IVY_SETTINGS")
    command += ["-settings", settings] if settings else []
    command += ["-cache", str(downloads), "-ivy", str(ivy_file), "-confs", "default", "-novalidate"]
    return [*command, "-retrieve", f"{fresh}/libs/[artifact]-[revision].[ext]"]


def ivy_jar() -> Path:
    """Return the Ivy jar that pyspark ships, found without importing pyspark. Raises FatalError if there is none."""
    found = sorted(spark_jars("ivy-*.jar"))
    if not found:
        raise FatalError(
            "jars are fetched with the Ivy jar inside pyspark, and there is none",
            code="ivy-missing",
            hint="install pyspark with its jars, or let KAFKA_HOME name an unpacked Apache Kafka",
        )
    return found[-1]


def spark_jars(pattern: str) -> list[Path]:
    """Return pyspark's own jars whose names match a pattern, found without importing pyspark."""
    spec = find_spec("pyspark")
    places = spec.submodule_search_locations if spec else None
    return [jar for place in places or [] for jar in Path(place).glob(f"jars/{pattern}")]


def _check(jars: Jars, libs: Path, downloads: Path) -> None:
    """Compare every jar with its pinned checksum; if one differs, the whole download is removed."""
    present = {jar.name for jar in libs.glob("*.jar")}
    wrong = [name for name in sorted(present & jars.pins.keys()) if _sha256(libs / name) != jars.pins[name]]
    problems = [f"{name} is not the file that was pinned" for name in wrong]
    problems += [f"{name} is missing" for name in sorted(jars.pins.keys() - present)]
    problems += [f"{name} is not known" for name in sorted(present - jars.pins.keys())]
    if problems:
        shutil.rmtree(downloads, ignore_errors=True)
        raise FatalError(
            f"the files fetched for {jars.what} are not used: {'; '.join(problems)}",
            code=f"{jars.code}-jars",
            hint=f"check the mirror or proxy in between, or {jars.instead}",
        )


def _sha256(jar: Path) -> str:
    digest = hashlib.sha256()
    with jar.open("rb") as opened:
        while piece := opened.read(_PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest()
