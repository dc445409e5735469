"""How Spark's JVM is started: its options, its environment, and where its output goes.

Under session.py, which starts it, and training.py and prepare.py, which ask whether it takes the class data archive. Zone,
language and encoding are the same on every machine, since records are computed in this JVM.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyspark
from pyspark import SparkConf

import eosingest
from eosingest.host.paths import unusable
from eosingest.spark import class_archive, site
from eosingest.spec.masters import is_local

_PYTHON = "spark.pyspark.python"
_DRIVER_OPTIONS, _EXECUTOR_OPTIONS = "spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"
_CLASSES_AT_FIRST = "-XX:MetaspaceSize="
_COLLECTOR = re.compile(r"-XX:[+-]Use\w*GC\b")
SAME_EVERYWHERE = "-Duser.timezone=UTC -Duser.language=en -Duser.country=US -Dfile.encoding=UTF-8"
_LAUNCHER_OPTIONS, _SPLIT_BY_SHELL = "SPARK_LAUNCHER_OPTS", re.compile(r"[\s:*?\[\]\\]")
_OPTIONS_OF_EVERY_JVM = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
_AT_START = ("spark.driver.", "spark.jars", "spark.files", "spark.archives", "spark.master", "spark.submit.")


def java_options(master: str, conf: Mapping[str, str], defaults: Mapping[str, str]) -> dict[str, str]:
    """Zone, language and encoding of the JVM are the same everywhere, whatever the machine's are: ours come last.

    Before them those of the spec, or of the site's spark-defaults.conf (`defaults`), which ours would else replace.

    ORC's timestamps without a zone are read by the JVM's zone, not the session's (measured); upper() follows its language.

    A local Spark that runs for seconds in a heap of a gigabyte takes a tenth less time with the parallel collector than with
    G1, the JVM's choice (docs/performance.md). The user's choice stays: a JVM that is told two collectors does not start.
    Without a word about the room for classes it collects its whole heap while Spark starts, to make room for some more.
    """
    told = {**defaults, **conf}
    options = {key: f"{told.get(key, '')} {SAME_EVERYWHERE}".strip() for key in (_DRIVER_OPTIONS, _EXECUTOR_OPTIONS)}
    if is_local(master):
        given = _given_to_the_driver(told)
        if not any(_COLLECTOR.search(text) for text in given):
            options[_DRIVER_OPTIONS] += " -XX:+UseParallelGC"
        if not any(_CLASSES_AT_FIRST in text for text in given):
            options[_DRIVER_OPTIONS] += f" {_CLASSES_AT_FIRST}256m"
        # spark-submit's JVM is there already, and its pyspark is a zip without jars.
        archive = "" if site.is_submitted() else class_archive.option_to_use(given)
        options[_DRIVER_OPTIONS] = f"{options[_DRIVER_OPTIONS]} {archive}".rstrip()
    return options


def _given_to_the_driver(told: Mapping[str, str]) -> tuple[str, ...]:
    """Return what others than we say to the driver's JVM."""
    settings = ("spark.driver.defaultJavaOptions", _DRIVER_OPTIONS)
    return (
        *(told.get(key, "") for key in settings),
        *(os.environ.get(name, "") for name in _OPTIONS_OF_EVERY_JVM),
    )


def takes_archive(master: str, conf: Mapping[str, str]) -> bool:
    """Say whether a JVM that we start with these settings uses our class data archive (class_archive.py) where there is one."""
    if not is_local(master) or site.is_submitted():
        return False
    return not class_archive.is_named(_given_to_the_driver({**site.spark_defaults(pip_only=True), **conf}))


def local_settings(master: str) -> dict[str, str]:
    """Return what only a local Spark is told. It talks to itself: no host name must resolve; its workers are forked ready."""
    if not is_local(master):
        return {}
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.python.daemon.module": "eosingest.spark.daemon",
    }


def prepare_environment(master: str, conf: Mapping[str, str]) -> None:
    """Workers of a local Spark run this interpreter and this package, wherever both were started from.

    Those of a cluster run what spark.pyspark.python names, which goes over PYSPARK_PYTHON as with spark-submit: pyspark itself
    looks at the environment alone.

    A C locale would hide every file with a non-ASCII name from Java.
    """
    if is_local(master):
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        os.environ.pop("SPARK_HOME", None)  # pyspark's own jars are the ones that were tested with it
        package_folder = str(Path(eosingest.__file__).parent.parent)
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (package_folder, os.environ.get("PYTHONPATH"))))
        os.environ.setdefault(_LAUNCHER_OPTIONS, _launcher_options())
    else:
        python = {**site.spark_defaults(), **conf}.get(_PYTHON)
        if python:
            os.environ["PYSPARK_PYTHON"] = python
    locale = next((os.environ[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if os.environ.get(name)), "")
    if locale and "utf" not in locale.lower():
        os.environ["LC_ALL"] = "C.UTF-8"


def _launcher_options() -> str:
    """Return the option with which the JVM that composes Spark's command finds its classes in the first jar it opens.

    By itself it opens all of 290: 0.17 s of CPU instead of 0.06 s. Spark's script splits options at spaces.
    """
    jars = [str(jar) for jar in (Path(pyspark.__file__).parent / "jars").glob("spark-launcher_*.jar")]
    fits = len(jars) == 1 and not _SPLIT_BY_SHELL.search(jars[0])
    return f"-Xbootclasspath/a:{jars[0]}" if fits else ""


def for_the_command_line(conf: SparkConf) -> SparkConf:
    """Return what the JVM must know when it starts. The rest, which may hold secrets, goes over py4j: `ps` shows arguments."""
    boot = SparkConf(loadDefaults=False)
    for key, value in conf.getAll():
        if key.startswith(_AT_START):
            boot.set(key, value)
    return boot


def folder_that_exists() -> str:
    """Return the working folder, or the root where it was deleted: the JVM could not start in it."""
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return "/"


@contextlib.contextmanager
def output(log_file: Path | None) -> Iterator[Any]:
    """Open the file that takes Spark's output, stderr where it is None. Raises FatalError where it cannot be written."""
    if log_file is None:
        yield sys.stderr.fileno() if sys.stderr is not None else subprocess.DEVNULL
        return
    try:
        log_file.parent.mkdir(parents=True, exist_ok=True)
        opened = log_file.open("wb")
    except OSError as error:
        raise unusable(log_file.parent, error) from error
    with opened:
        yield opened


def same_everywhere(jvm: Any) -> None:
    """Give a JVM that runs already our zone and language; its encoding cannot be changed, and is checked."""
    jvm.java.util.TimeZone.setDefault(jvm.java.util.TimeZone.getTimeZone("UTC"))
    jvm.java.util.Locale.setDefault(jvm.java.util.Locale("en", "US"))
