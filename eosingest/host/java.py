"""Finds the Java for Spark and for the embedded broker, and its version, without starting a JVM if possible.

Order: `$JAVA_HOME/bin/java`, as in Spark, then `java` on the PATH. Spark 4 and Kafka 4 need Java 17 (KIP-1013). A Java that is
too new for Spark is reported when Spark starts (spark/failures.py).
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from eosingest.errors import FatalError

MINIMUM_JAVA = 17


def find_java() -> Path:
    """Return the path of the `java` program to use, version 17 or newer.

    Raises FatalError: `java-missing` if there is none that works, `java-too-old`.
    """
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if found is None:
        where = f"JAVA_HOME is {home}, which has no bin/java" if home else "there is no java on the PATH"
        raise FatalError(
            f"Java {MINIMUM_JAVA} or newer is needed and {where}",
            code="java-missing",
            hint=f"{'correct or unset JAVA_HOME, or ' if home else ''}{_install_command()}",
        )
    java = Path(found)
    major = java_major_version(java)
    if major < MINIMUM_JAVA:
        raise FatalError(
            f"{java} is Java {major}; Spark and Kafka need Java {MINIMUM_JAVA} or newer",
            code="java-too-old",
            hint=f"{_install_command()}, then point JAVA_HOME at it",
        )
    return java


@cache
def java_major_version(java: Path) -> int:
    """Return the feature version of a `java` program: 8 for 1.8.0_392, 17 for 17.0.15.

    Read from the JDK's `release` file; a JVM is started (`java -version`) only if there is none.
    Raises FatalError (`java-missing`) if the program prints no version: the /usr/bin/java of macOS is only a stub.
    """
    text = _release_file(java) or _java_version_output(java)
    # `release` says JAVA_VERSION="17.0.15"; `java -version` says: openjdk version "17.0.15".
    match = re.search(r'(?:JAVA_VERSION=|version )"(?:1\.)?(\d+)', text)
    if match is None:
        raise FatalError(
            f"{java} does not report its version; its output: {text.strip()[:500] or 'nothing'}",
            code="java-missing",
            hint=_install_command(),
        )
    return int(match.group(1))


def _release_file(java: Path) -> str:
    """Return the text of the JDK's `release` file, or "" (in JDK 8 it is one folder above the jre folder)."""
    home = java.resolve().parent.parent
    for release in (home / "release", home.parent / "release"):
        try:
            text = release.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if "JAVA_VERSION=" in text:
            return text
    return ""


def _java_version_output(java: Path) -> str:
    try:
        result = subprocess.run(
            [java, "-version"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return result.stdout.decode(errors="replace")


def _install_command() -> str:
    """Return the command that installs a Java, for this machine's package manager."""
    if platform.system() == "Darwin":
        return f"brew install openjdk@{MINIMUM_JAVA}"
    if shutil.which("dnf"):
        return f"dnf install java-{MINIMUM_JAVA}-openjdk-headless"
    return f"apt-get install openjdk-{MINIMUM_JAVA}-jre-headless"
