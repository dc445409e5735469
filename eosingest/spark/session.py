"""Starts and stops Spark with the settings that the protocol needs; Spark's own output goes to a log file.

Used by the launcher (job.py), previews, audits and trainings. `start` creates only the SparkContext: a SparkSession takes
another 1.5 s, and is created only where the JVM reads rows. The required settings (required_settings.py) override those of
user and cluster, and are checked in the running Spark.

    jvm.py: options, environment ─▶ start: JVM, context ─▶ Spark ─▶ sql: session ─▶ stop
                                        └─ required_settings.py: set, checked; failures.py: the error if it fails
"""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

import eosingest
from eosingest.errors import FatalError
from eosingest.host.interruptible import begin
from eosingest.host.java import find_java
from eosingest.host.other_process import OtherProcess
from eosingest.spark import cluster, failures, jvm, required_settings, spark_defaults
from eosingest.spark.warm import attach
from eosingest.spark.warm import key as warm_key
from eosingest.spark.warm.channel import UnusableError
from eosingest.spark.without_pandas import keep_converters_from_pandas
from eosingest.spec.masters import is_local

_START_S = 60.0  # for a JVM on a busy machine, and three attempts, 20 s apart, to reach a standalone cluster's masters
_STOP_S = 3.0
_started: list[subprocess.Popen[bytes]] = []  # the JVM of this process, one entry per start of Spark


@dataclass(frozen=True)
class Spark:
    """A running Spark: its context, the process of its JVM (None if spark-submit started it), and the required settings."""

    context: SparkContext
    process: Any
    master: str
    log_file: Path | None
    required: Mapping[str, str]
    ours: frozenset[str]  # the keys of all settings that we started it with, including the spec's
    zips: list[Path] = field(default_factory=list)
    stopping: list[Future[None]] = field(default_factory=list)  # at most one

    def sql(self) -> SparkSession:
        """Make the session and check the required settings in it. Raises what `start` raises."""
        try:
            made = SparkSession(self.context)
            required_settings.check_with_session(made, self.required)
            required_settings.refuse_settings_of_others(self.context, made, self.ours)
        except FatalError:
            raise
        except Exception as error:
            raise failures.not_started(self.master, self.log_file, error, self.process) from error
        if not is_local(self.master):
            required_settings.check_executors(made, max(1, cluster.registered(self.context).slots))
        return made

    def send_package(self) -> None:
        """Send our package to executors on other machines, which have the libraries but not eosingest."""
        self.zips.append(package_zip(Path(self.context._temp_dir)))
        self.context.addPyFile(str(self.zips[-1]))

    def begin_to_stop(self) -> None:
        """Start stopping Spark, in a separate thread; it takes half a second."""
        if not self.stopping:
            self.stopping.append(begin(self._stop_quietly, "spark-stop"))

    def stop(self) -> None:
        """Stop Spark within a few seconds; a JVM that does not answer is killed, a warm one by its holder."""
        self.begin_to_stop()
        if not wait(self.stopping, timeout=_STOP_S).done and isinstance(self.process, subprocess.Popen):
            self.process.kill()
        for file in self.zips:
            file.unlink(missing_ok=True)

    def _stop_quietly(self) -> None:
        context: Any = self.context
        with contextlib.suppress(Exception):  # the JVM may have ended: then there is nothing to stop
            # This server checks once a second whether to end: do not wait for it.
            accumulators, context._accumulatorServer = context._accumulatorServer, None
            begin(accumulators.shutdown, "spark-accumulators")
            context.stop()


def start(
    *,
    job: str,
    master: str,
    conf: Mapping[str, str],
    of_source: Mapping[str, str],
    log_file: Path | None,
    wait_s: float = 120.0,
    jars: Sequence[str] = (),
    note: Callable[[str], None] = lambda line: None,
    gateway: Any = None,
) -> Spark:
    """Start Spark, without a session. Its output goes to `log_file`; None: stderr.

    `of_source` are the settings that reading the source requires (`scan.Scan.spark_conf`); its jars, and `jars` (small ones),
    are added to the user's. A local Spark starts in the warm JVM (warm/) if a fitting one runs; `note` receives the reason if
    that JVM is not used. A second Spark of the process starts in the JVM of the first one. `gateway` is that of a warm JVM that
    is already attached. Do not call this in the main thread, where pyspark would replace the SIGINT handler. Raises FatalError
    if Java is missing, the JVM does not start, or a required setting has another value; IncompleteError if a signal ended it;
    TemporaryError if a cluster does not accept the application within `wait_s` seconds, plus the time that a start takes.
    """
    find_java()
    cluster.refuse_unready(master)
    _prepare_process()
    required = _required(of_source)
    jvm.prepare_environment(master, conf)
    settings = settings_of(master, conf, of_source, jars)
    named = {**settings, "spark.master": master, "spark.app.name": f"eosingest {job}"}
    spark_conf, boot = conf_of(named), jvm.for_the_command_line(named)
    bound = None
    with jvm.output(log_file) as output:
        try:
            # pyspark makes all contexts of a process in its first JVM.
            gateway = gateway or pyspark.SparkContext._gateway or _warm_gateway(master, boot, conf, log_file, note)
            if gateway is None:
                gateway = launch_gateway(  # type: ignore[no-untyped-call]
                    conf_of(boot), popen_kwargs={"stdout": output, "stderr": output, "cwd": jvm.folder_that_exists()}
                )
            if isinstance(gateway.proc, subprocess.Popen):
                _started.append(gateway.proc)
            elif isinstance(gateway.proc, OtherProcess):
                spark_conf.setAll([*warm_key.for_workers().items()])
            elif gateway.proc is None:  # spark-submit's JVM, not started by us
                jvm.same_everywhere(gateway.jvm)
            bound = cluster.Bound(None if is_local(master) else gateway.proc, _START_S + wait_s)
            with bound.running():
                context = SparkContext(conf=spark_conf, gateway=gateway)
            # A killed JVM breaks its connection to this server: our own error reports it, without a traceback.
            context._accumulatorServer.handle_error = _say_nothing  # type: ignore[assignment]
            spark = Spark(context, gateway.proc, master, log_file, required, frozenset(settings))
            required_settings.check_without_session(context, required)
            return spark
        except FatalError:
            raise
        except Exception as error:
            if bound is not None and bound.expired:
                raise failures.not_taken(master, log_file, _START_S + wait_s) from error
            raise failures.not_started(
                master, log_file, error, gateway.proc if gateway is not None else None
            ) from error


def _prepare_process() -> None:
    """Keep py4j from importing pandas, and silence the loggers of pyspark and py4j, which repeat errors that we report."""
    keep_converters_from_pandas()
    # pyspark logs every analysis error with its Java stack trace through these loggers; our SpecError reports it already.
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).disabled = True
    # py4j logs every call that a lost JVM leaves unanswered, through its own loggers and through the root logger.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_not_of_py4j)


def _required(of_source: Mapping[str, str]) -> dict[str, str]:
    """Return the settings without which records could differ: ours, and those that reading the source requires."""
    return {**required_settings.REQUIRED, **{key: value for key, value in of_source.items() if key != jvm.JARS}}


def conf_of(settings: Mapping[str, str]) -> SparkConf:
    """Return the settings as a SparkConf, which needs no JVM yet."""
    conf = SparkConf(loadDefaults=False)
    return conf.setAll([*settings.items()])


def settings_of(
    master: str, conf: Mapping[str, str], of_source: Mapping[str, str], jars: Sequence[str] = ()
) -> dict[str, str]:
    """Return the settings that `start` starts Spark with; its arguments are those of `start`."""
    return {
        **required_settings.DEFAULTS,
        **jvm.local_settings(master),
        **conf,
        **_required(of_source),
        **jvm.with_jars(master, conf, of_source.get(jvm.JARS, ""), jars),
        **jvm.java_options(master, conf, spark_defaults.spark_defaults(pip_only=is_local(master))),
    }


def _warm_gateway(
    master: str, boot: Mapping[str, str], conf: Mapping[str, str], log_file: Path | None, note: Callable[[str], None]
) -> Any:
    """Return the gateway of the warm JVM; None if there is no warm JVM that fits."""
    if (
        not is_local(master)
        or spark_defaults.is_submitted()
        or os.environ.get("PYSPARK_PIN_THREAD", "true").lower() != "true"
    ):
        return None
    try:
        return attach.attach(lambda: warm_key.key(boot, conf), log_file)
    except UnusableError as error:
        note(f"starting a JVM for this command; the warm one is not used: {error}")
        return None


def end_jvms(within_s: float) -> None:
    """End the JVMs that this process has started, and wait for them; after `within_s` seconds they are killed.

    pyspark lets them run until the process ends, and then does not wait for them. No Spark can start after this.
    """
    deadline = time.monotonic() + within_s
    for process in _started:
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()  # the JVM waits for this
    for process in _started:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def submitted_master() -> str | None:
    """Return spark-submit's master, from its arguments or its defaults; None if spark-submit did not start this process."""
    if not spark_defaults.is_submitted():
        return None
    master = launch_gateway().jvm.System.getProperty("spark.master")  # type: ignore[no-untyped-call]
    return str(master) if master else None


def package_zip(folder: Path) -> Path:
    """Write a zip of our package into the folder; return its path."""
    package = Path(eosingest.__file__).parent
    file = folder / "eosingest.zip"
    with zipfile.ZipFile(file, "w") as archive:
        for path in sorted(package.rglob("*.py")):
            archive.write(path, path.relative_to(package.parent))
    return file


def _not_of_py4j(entry: logging.LogRecord) -> bool:
    """Say whether a log record comes from anything but py4j."""
    return "py4j" not in Path(entry.pathname).parts


def _say_nothing(*_: object) -> None:
    """Replace socketserver's error handler, which prints a traceback."""
