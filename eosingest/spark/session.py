"""A Spark with the settings that the protocol needs, and quiet: its own output goes to a log file.

Started by the launcher (job.py), previews, audits and trainings. The session beside the context, which takes another second
and a half, only where the JVM reads rows. The settings (required_settings.py) are set last, over the user's and the
cluster's, and read back.

    jvm.py: options, environment ─▶ start: JVM, context ─▶ Spark ─▶ sql: session ─▶ stop
                                        └─ required_settings.py: set, read back; failures.py: what is said where it fails
"""

from __future__ import annotations

import contextlib
import logging
import zipfile
from collections.abc import Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

import eosingest
from eosingest.errors import FatalError
from eosingest.host.java import find_java
from eosingest.host.waiting import begin
from eosingest.spark import cluster, failures, jvm, required_settings, site
from eosingest.spec.masters import is_local

_START_S = 60.0  # a JVM starts on a busy machine, and a standalone cluster's masters are asked three times, 20 s apart
_STOP_S = 3.0


@dataclass(frozen=True)
class Spark:
    """A Spark that runs: its context, the process of its JVM, and what was required of it."""

    context: SparkContext
    process: Any
    master: str
    log_file: Path | None
    required: Mapping[str, str]
    ours: frozenset[str]  # the keys of all settings that it was started with, those of the spec among them
    zips: list[Path] = field(default_factory=list)
    stopping: list[Future[None]] = field(default_factory=list)  # none, or one

    def sql(self) -> SparkSession:
        """Make the session. Raises as `start` does."""
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
        """Send the package to executors on other machines, which have the libraries but not us."""
        self.zips.append(package_zip(Path(self.context._temp_dir)))
        self.context.addPyFile(str(self.zips[-1]))

    def begin_to_stop(self) -> None:
        """Begin to stop Spark, which takes half a second, in a thread of its own."""
        if not self.stopping:
            self.stopping.append(begin(self._stop_quietly, "spark-stop"))

    def stop(self) -> None:
        """Stop Spark within a few seconds, by force where it does not answer."""
        self.begin_to_stop()
        if not wait(self.stopping, timeout=_STOP_S).done and self.process is not None:
            self.process.kill()
        for file in self.zips:
            file.unlink(missing_ok=True)

    def _stop_quietly(self) -> None:
        context: Any = self.context
        with contextlib.suppress(Exception):  # the JVM may be gone: then there is nothing to stop
            # It looks up once a second whether it is to end, and nobody has to wait for that.
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
) -> Spark:
    """Start Spark, without a session. `log_file` takes all of its output; None: stderr.

    `of_source` are the settings that reading the source rests on (`scan.Scan.spark_conf`).
    Not for the main thread: there pyspark would replace the SIGINT handler. Raises FatalError where Java is missing, the
    JVM does not start, or a required setting does not hold; IncompleteError where a signal ended the JVM; TemporaryError
    where a cluster does not take us within `wait_s` seconds, beside those that a start takes.
    """
    find_java()
    cluster.refuse_unready(master)
    # pyspark prints every analysis error with its Java stack through loggers of its own; our SpecError says it once.
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).disabled = True
    # As does py4j every call that a lost JVM leaves unanswered, through its own loggers and through the root logger.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_not_of_py4j)
    required = {**required_settings.REQUIRED, **of_source}
    spark_conf = SparkConf(loadDefaults=False)
    jvm.prepare_environment(master, conf)
    settings = {
        **required_settings.DEFAULTS,
        **jvm.local_settings(master),
        **conf,
        **required,
        **jvm.java_options(master, conf, site.spark_defaults(pip_only=is_local(master))),
    }
    for key, value in {**settings, "spark.master": master, "spark.app.name": f"eosingest {job}"}.items():
        spark_conf.set(key, value)
    gateway, bound = None, None
    with jvm.output(log_file) as output:
        try:
            gateway = launch_gateway(  # type: ignore[no-untyped-call]
                jvm.for_the_command_line(spark_conf),
                popen_kwargs={"stdout": output, "stderr": output, "cwd": jvm.folder_that_exists()},
            )
            if gateway.proc is None:  # spark-submit's JVM, which was there before us
                jvm.same_everywhere(gateway.jvm)
            bound = cluster.Bound(None if is_local(master) else gateway.proc, _START_S + wait_s)
            with bound.running():
                context = SparkContext(conf=spark_conf, gateway=gateway)
            # A JVM that is killed tears its connection to this server; what that means is said once, by us.
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


def submitted_master() -> str | None:
    """Return the master that spark-submit was given, or took from its own defaults; None where we were started without it."""
    if not site.is_submitted():
        return None
    master = launch_gateway().jvm.System.getProperty("spark.master")  # type: ignore[no-untyped-call]
    return str(master) if master else None


def package_zip(folder: Path) -> Path:
    """Zip the package into a folder; return the file."""
    package = Path(eosingest.__file__).parent
    file = folder / "eosingest.zip"
    with zipfile.ZipFile(file, "w") as archive:
        for path in sorted(package.rglob("*.py")):
            archive.write(path, path.relative_to(package.parent))
    return file


def _not_of_py4j(entry: logging.LogRecord) -> bool:
    """Say whether something that is logged comes from elsewhere than py4j."""
    return "py4j" not in Path(entry.pathname).parts


def _say_nothing(*_: object) -> None:
    """Take the place of socketserver's handler, which prints a traceback."""
