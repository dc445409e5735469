"""Defines how Spark's JVM starts: its options, its environment, and the destination of its output.

Used by session.py, which starts it, by warm/, and by prepare.py, which checks whether it uses the class data archive. Time
zone, locale and encoding are fixed, since this JVM computes the records.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyspark

import eosingest
from eosingest.host.paths import unusable
from eosingest.spark import class_archive, spark_defaults
from eosingest.spec.masters import is_local

_PYTHON = "spark.pyspark.python"
_DRIVER_OPTIONS, _EXECUTOR_OPTIONS = "spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"
JARS, _CLASS_PATH = "spark.jars", "spark.driver.extraClassPath"
_CLASSES_AT_FIRST = "-XX:MetaspaceSize="
_COLLECTOR = re.compile(r"-XX:[+-]Use\w*GC\b")
SAME_EVERYWHERE = "-Duser.timezone=UTC -Duser.language=en -Duser.country=US -Dfile.encoding=UTF-8"
_LAUNCHER_OPTIONS, _SPLIT_BY_SHELL = "SPARK_LAUNCHER_OPTS", re.compile(r"[\s:*?\[\]\\]")
_OPTIONS_OF_EVERY_JVM = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
_AT_START = ("spark.driver.", "spark.jars", "spark.files", "spark.archives", "spark.master", "spark.submit.")


def java_options(master: str, conf: Mapping[str, str], defaults: Mapping[str, str]) -> dict[str, str]:
    """Return the extraJavaOptions of driver and executors, which fix the JVM's time zone, locale and encoding.

    Our options follow those of the spec, or of the site's spark-defaults.conf (`defaults`), which they would replace otherwise.

    upper() follows the JVM's locale.

    A local Spark that runs for seconds in a heap of 1 GiB takes a tenth less time with the parallel collector than with the
    default, G1 (docs/performance.md). A collector that the user chose stays: a JVM with two collectors does not start.
    Without an initial metaspace size the JVM runs a full collection while Spark starts, to make room for more classes.
    """
    told = {**defaults, **conf}
    options = {key: f"{told.get(key, '')} {SAME_EVERYWHERE}".strip() for key in (_DRIVER_OPTIONS, _EXECUTOR_OPTIONS)}
    if is_local(master):
        given = _given_to_the_driver(told)
        if not any(_COLLECTOR.search(text) for text in given):
            options[_DRIVER_OPTIONS] += " -XX:+UseParallelGC"
        if not any(_CLASSES_AT_FIRST in text for text in given):
            options[_DRIVER_OPTIONS] += f" {_CLASSES_AT_FIRST}256m"
        # spark-submit's JVM runs already, and its pyspark is a zip without jars.
        archive = "" if spark_defaults.is_submitted() else class_archive.option_to_use(given)
        options[_DRIVER_OPTIONS] = f"{options[_DRIVER_OPTIONS]} {archive}".rstrip()
    return options


def _given_to_the_driver(told: Mapping[str, str]) -> tuple[str, ...]:
    """Return the driver's JVM options that are not ours."""
    settings = ("spark.driver.defaultJavaOptions", _DRIVER_OPTIONS)
    return (
        *(told.get(key, "") for key in settings),
        *(os.environ.get(name, "") for name in _OPTIONS_OF_EVERY_JVM),
    )


def takes_archive(master: str, conf: Mapping[str, str]) -> bool:
    """Say whether a JVM started with these settings would use our class data archive (class_archive.py), if there is one."""
    if not is_local(master) or spark_defaults.is_submitted() or class_archive.folder_on_class_path() is not None:
        return False
    return not class_archive.is_named(_given_to_the_driver({**spark_defaults.spark_defaults(pip_only=True), **conf}))


def local_settings(master: str) -> dict[str, str]:
    """Return the settings for a local Spark only: the loopback address, so that no host name must resolve, and our daemon."""
    if not is_local(master):
        return {}
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.python.daemon.module": "eosingest.spark.daemon",
    }


def with_jars(master: str, conf: Mapping[str, str], large: str, small: Sequence[str]) -> dict[str, str]:
    """Return the settings for jars in addition to the spec's: `large` ones, as paths joined by commas, and `small` ones.

    A local Spark has the large jars on its class path, since `spark.jars` are copied for each run. With them on it,
    the archive of Spark's classes does not fit (class_archive.py).
    """
    made, copied = dict[str, str](), [*small]
    if large and is_local(master):
        made[_CLASS_PATH] = os.pathsep.join(filter(None, (conf.get(_CLASS_PATH), *large.split(","))))
    elif large:
        copied.insert(0, large)
    if copied:
        made[JARS] = ",".join(filter(None, (conf.get(JARS), *copied)))
    return made


def prepare_environment(master: str, conf: Mapping[str, str]) -> None:
    """Set the environment variables of Spark's JVM and its Python workers.

    Workers of a local Spark run this interpreter and this package, in any working folder. Those of a cluster run
    spark.pyspark.python, which overrides PYSPARK_PYTHON as with spark-submit: pyspark itself reads only the environment.

    In a C locale Java would not see files with non-ASCII names.
    """
    if is_local(master):
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        os.environ.pop("SPARK_HOME", None)  # pyspark's own jars are the ones that were tested with it
        package_folder = str(Path(eosingest.__file__).parent.parent)
        path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        if path[0] != package_folder:
            os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (package_folder, *path)))
        os.environ.setdefault(_LAUNCHER_OPTIONS, _launcher_options())
    else:
        python = {**spark_defaults.spark_defaults(), **conf}.get(_PYTHON)
        if python:
            os.environ["PYSPARK_PYTHON"] = python
    locale = next((os.environ[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if os.environ.get(name)), "")
    if locale and "utf" not in locale.lower():
        os.environ["LC_ALL"] = "C.UTF-8"


def _launcher_options() -> str:
    """Return the option that puts the launcher's jar on the boot class path of the JVM that composes Spark's command.

    Without it that JVM opens all 290 jars: 0.17 s of CPU instead of 0.06 s. "" if the path has characters at which Spark's
    script, a shell or the JVM would split it.
    """
    jars = [str(jar) for jar in (Path(pyspark.__file__).parent / "jars").glob("spark-launcher_*.jar")]
    fits = len(jars) == 1 and not _SPLIT_BY_SHELL.search(jars[0])
    return f"-Xbootclasspath/a:{jars[0]}" if fits else ""


def for_the_command_line(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that must be on the JVM's command line, which `ps` shows. The others, secrets too, go over py4j."""
    return {key: value for key, value in settings.items() if key.startswith(_AT_START)}


def folder_that_exists() -> str:
    """Return the working folder, or `/` if it was deleted, since the JVM could not start in it."""
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return "/"


@contextlib.contextmanager
def output(log_file: Path | None) -> Iterator[Any]:
    """Open the file for Spark's output; None: stderr. Raises FatalError if the file cannot be written."""
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
    """Set time zone and locale of a running JVM. Its encoding cannot be changed; required_settings.py checks it."""
    jvm.java.util.TimeZone.setDefault(jvm.java.util.TimeZone.getTimeZone("UTC"))
    jvm.java.util.Locale.setDefault(jvm.java.util.Locale("en", "US"))
