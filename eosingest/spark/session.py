"""A Spark session with the settings that the protocol needs, and quiet: Spark's own output goes to a log file.

Started by the launcher (job.py) only when something is pending. The settings are set last, over the user's and the
cluster's, and read back from the live session.
"""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

import eosingest
from eosingest.errors import EosingestError, FatalError, IncompleteError
from eosingest.java import find_java
from eosingest.paths import unusable

MAX_ATTEMPTS = 4
# What a call of the JVM raises; py4j lets the last one through where no connection is left.
FROM_THE_JVM = (Py4JError, PySparkException, ConnectionError)
_STOP_S = 3.0
_END_KNOWN_S = 2.0  # a JVM that was lost over py4j has ended, or is about to
_AT_START = ("spark.driver.", "spark.jars", "spark.files", "spark.archives", "spark.master", "spark.submit.")


def required_settings(split_size: int) -> dict[str, str]:
    """Return the settings that the guarantee rests on; `split_size` in bytes."""
    return {
        # One attempt of a task at a time, in a partitioning that stays as planned.
        "spark.speculation": "false",
        "spark.sql.adaptive.enabled": "false",
        "spark.task.maxFailures": str(MAX_ATTEMPTS),
        # With at least one partition wanted and a fixed size, the cuts inside a file depend on that file alone.
        "spark.sql.files.maxPartitionBytes": str(split_size),
        "spark.sql.files.minPartitionNum": "1",
        "spark.sql.files.ignoreCorruptFiles": "false",
        "spark.sql.files.ignoreMissingFiles": "false",
        "spark.sql.sources.useV1SourceList": "csv,json,orc,parquet,text",
        # One listing by us; a job of thousands of tasks to list it again would take longer than the run.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": str(2**31 - 1),
        # The same rows give the same bytes everywhere, and a bad value is an error.
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.jsonGenerator.ignoreNullFields": "false",
        "spark.sql.csv.parser.columnPruning.enabled": "false",
        "spark.sql.variable.substitute": "false",
        # Hadoop's line reader drops longer lines without a word, wherever this is set lower.
        "spark.hadoop.mapreduce.input.linerecordreader.line.maxlength": str(2**31 - 1),
        "spark.ui.showConsoleProgress": "false",
    }


def start(
    *, job: str, master: str, conf: Mapping[str, str], split_size: int, log_file: Path | None
) -> tuple[SparkSession, Any]:
    """Start Spark and return the session and its JVM process. `log_file` takes all of its output; None: stderr.

    Not for the main thread: there pyspark would replace the SIGINT handler. Raises FatalError where Java is missing, the
    JVM does not start, or a required setting does not hold; IncompleteError where a signal ended the JVM.
    """
    find_java()
    # pyspark prints every analysis error with its Java stack through a logger of its own; our SpecError says it once.
    logging.getLogger("SQLQueryContextLogger").disabled = True
    # As does py4j every call that a lost JVM leaves unanswered, through its own loggers and through the root logger.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_not_of_py4j)
    required = required_settings(split_size)
    spark_conf = SparkConf(loadDefaults=False)
    settings = {"spark.ui.enabled": "false", **_local_settings(master), **conf, **required, **_utc_jvms(conf)}
    for key, value in {**settings, "spark.master": master, "spark.app.name": f"eosingest {job}"}.items():
        spark_conf.set(key, value)
    _prepare_environment(master)
    gateway = None
    with _output(log_file) as output:
        try:
            gateway = launch_gateway(  # type: ignore[no-untyped-call]
                _for_the_command_line(spark_conf),
                popen_kwargs={"stdout": output, "stderr": output, "cwd": _folder_that_exists()},
            )
            context = SparkContext(conf=spark_conf, gateway=gateway)
            # A JVM that is killed tears its connection to this server; what that means is said once, by us.
            context._accumulatorServer.handle_error = _say_nothing  # type: ignore[assignment]
            session = SparkSession(context)
            _check_settings(session, required)
        except FatalError:
            raise
        except Exception as error:
            raise _not_started(master, log_file, error, gateway.proc if gateway is not None else None) from error
    return session, gateway.proc


def _not_of_py4j(entry: logging.LogRecord) -> bool:
    """Say whether something that is logged comes from elsewhere than py4j."""
    return "py4j" not in Path(entry.pathname).parts


def _say_nothing(*_: object) -> None:
    """Take the place of socketserver's handler, which prints a traceback."""


def _not_started(master: str, log_file: Path | None, error: Exception, process: Any) -> EosingestError:
    """Make the error for a Spark that did not start: a JVM that a signal ended (no memory left, say) may start next time."""
    log = f"; Spark's own words are in {log_file}" if log_file else ""
    with contextlib.suppress(subprocess.TimeoutExpired):
        if process is not None and process.wait(_END_KNOWN_S) < 0:
            return IncompleteError(
                f"Spark's JVM ended while it started (status {process.returncode})",
                code="jvm-ended",
                hint=f"nothing was sent; run again{log}",
            )
    return FatalError(
        f"Spark did not start with master {master}: {first_line(str(error))}",
        code="spark-start",
        hint=f"nothing was sent{log}",
    )


def _folder_that_exists() -> str:
    """Return the working folder, or the root where it was deleted: the JVM could not start in it."""
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return "/"


def _for_the_command_line(conf: SparkConf) -> SparkConf:
    """Return what the JVM must know when it starts. The rest, which may hold secrets, goes over py4j: `ps` shows arguments."""
    boot = SparkConf(loadDefaults=False)
    for key, value in conf.getAll():
        if key.startswith(_AT_START):
            boot.set(key, value)
    return boot


def stop(session: SparkSession, process: Any) -> None:
    """Stop Spark within a few seconds, by force where it does not answer."""
    stopping = threading.Thread(target=_stop_quietly, args=(session,), daemon=True)
    stopping.start()
    stopping.join(_STOP_S)
    if stopping.is_alive() and process is not None:
        process.kill()


def _stop_quietly(session: SparkSession) -> None:
    with contextlib.suppress(Exception):  # the JVM may be gone: then there is nothing to stop
        session.stop()


def _utc_jvms(conf: Mapping[str, str]) -> dict[str, str]:
    """ORC's timestamps without a zone are read by the JVM's zone, not the session's (measured): it is UTC everywhere."""
    keys = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")
    return {key: f"{conf.get(key, '')} -Duser.timezone=UTC".strip() for key in keys}


def _local_settings(master: str) -> dict[str, str]:
    """A local Spark talks to itself only: it needs no host name that resolves."""
    if not master.startswith("local["):
        return {}
    return {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def _prepare_environment(master: str) -> None:
    """Workers of a local Spark run this interpreter and this package, wherever both were started from.

    A C locale would hide every file with a non-ASCII name from Java.
    """
    if master.startswith("local["):
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        os.environ.pop("SPARK_HOME", None)  # pyspark's own jars are the ones that were tested with it
        package_folder = str(Path(eosingest.__file__).parent.parent)
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (package_folder, os.environ.get("PYTHONPATH"))))
    locale = next((os.environ[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if os.environ.get(name)), "")
    if locale and "utf" not in locale.lower():
        os.environ["LC_ALL"] = "C.UTF-8"


@contextlib.contextmanager
def _output(log_file: Path | None) -> Iterator[Any]:
    if log_file is None:
        yield sys.stderr.fileno() if sys.stderr is not None else subprocess.DEVNULL
        return
    try:
        log_file.parent.mkdir(parents=True, exist_ok=True)
        output = log_file.open("wb")
    except OSError as error:
        raise unusable(log_file.parent, error) from error
    with output:
        yield output


def _check_settings(session: SparkSession, required: Mapping[str, str]) -> None:
    for key, value in required.items():
        live = session.conf.get(key, session.sparkContext.getConf().get(key))
        if live != value:
            raise FatalError(
                f"Spark runs with {key} = {live}, and exactly-once needs {value}",
                code="spark-setting",
                hint="nothing was sent; look for it in spark-defaults.conf and in the environment",
            )


def first_line(text: str) -> str:
    """Return the line of an error that says why: of py4j's, the one behind "An error occurred while calling …"."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        return lines[1].removeprefix(": ")
    return lines[0] if lines else "no reason given"
