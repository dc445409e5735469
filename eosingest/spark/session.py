"""A Spark with the settings that the protocol needs, and quiet: its own output goes to a log file.

Started by the launcher (job.py) only when something is pending; the session beside the context, which takes another second
and a half, only where the JVM reads rows. The settings are set last, over the user's and the cluster's, and read back.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pyspark
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

import eosingest
from eosingest.errors import EosingestError, FatalError, IncompleteError, TemporaryError
from eosingest.host.java import find_java, java_major_version
from eosingest.host.paths import unusable
from eosingest.spark import class_archive, cluster, site
from eosingest.spec.masters import is_local
from eosingest.spec.options import protects

MAX_ATTEMPTS = 4
# What a call of the JVM raises; py4j lets the last one through where no connection is left.
FROM_THE_JVM = (Py4JError, PySparkException, ConnectionError)
# What the user may set otherwise.
DEFAULTS = {
    "spark.ui.enabled": "false",
    # Else a column of `k=v` folders is a number or a text by which folders are pending, and 02 becomes 2.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    # Else Spark 4 reads no encoding but Latin-1, ASCII and UTF; which may be named is for spec/options.py to say.
    "spark.sql.legacy.javaCharsets": "true",
}
_PYTHON = "spark.pyspark.python"
_DRIVER_OPTIONS, _EXECUTOR_OPTIONS = "spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"
_START_S = 60.0  # a JVM starts on a busy machine, and a standalone cluster's masters are asked three times, 20 s apart
_TICK_S = 0.1
_STOP_S = 3.0
_END_KNOWN_S = 2.0  # a JVM that was lost over py4j has ended, or is about to
_CLASSES_AT_FIRST = "-XX:MetaspaceSize="
_COLLECTOR = re.compile(r"-XX:[+-]Use\w*GC\b")
SAME_EVERYWHERE = "-Duser.timezone=UTC -Duser.language=en -Duser.country=US -Dfile.encoding=UTF-8"
# What the JVM has in truth: _JAVA_OPTIONS go over what the command line says, and spark-submit's JVM was there before us.
_LOCALE, _LANGUAGE = "en_US", "the JVM's language"
_CHARSET, _ENCODING = "UTF-8", "the JVM's encoding"
_ZONE = "the JVM's time zone"
_ZONES = ("UTC", "Etc/UTC", "Z", "GMT", "Etc/GMT", "Etc/UCT", "UCT", "Zulu", "Etc/Zulu", "Universal", "Etc/Universal")
# The same of executors: these functions are called where the rows are.
_OF_EXECUTORS = {
    _LANGUAGE: "java_method('java.util.Locale', 'getDefault')",
    _ENCODING: "java_method('java.nio.charset.Charset', 'defaultCharset')",
    _ZONE: "java_method('java.time.ZoneId', 'systemDefault')",
}
_LAUNCHER_OPTIONS, _SPLIT_BY_SHELL = "SPARK_LAUNCHER_OPTS", re.compile(r"[\s:*?\[\]\\]")
_OPTIONS_OF_EVERY_JVM = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
_AT_START = ("spark.driver.", "spark.jars", "spark.files", "spark.archives", "spark.master", "spark.submit.")
_TOO_NEW = "getSubject is not supported"  # by Java 23 and newer; the Hadoop in pyspark 4.0 needs it (HADOOP-19212)
# Settings of Spark SQL that no record depends on: how it plans, caches, lists tables and speaks of itself.
_HARMLESS = re.compile(
    r"spark\.sql\.(?:adaptive\.|artifact\.|autoBroadcastJoinThreshold|broadcastTimeout|catalog\.|catalogImplementation|cbo\.|codegen\.|debug"
    r"|defaultCatalog|event|exchange\.|execution\.|extensions|hive\.|inMemory|join\.|maxPlanStringLength|metadataCache"
    r"|objectHashAggregate\.|optimizer\.|orc\.compression|orc\.filterPushdown|parquet\.compression|parquet\.filterPushdown"
    r"|planChangeLog\.|queryExecutionListeners|redaction\.|shuffle|sources\.default$|statistics\.|streaming\.|thriftserver\."
    r"|thriftServer\.|ui\.|warehouse\.dir)"
)
# Of Hadoop's settings those by which Spark's readers may find other rows, columns or bytes in a file of this machine. Not among
# them: textinputformat.record.delimiter, which is for Hadoop's own jobs, and file systems that no source lies on, such as s3a.
_OF_READERS = (
    r"^(io\.compression\.codecs|fs\.file\.impl|fs\.AbstractFileSystem\.file\.impl|parquet\.(read|private|strings)\..*"
    r"|(hive\.exec\.)?orc\.(skip|tolerate|force|schema|include|kryo|sarg|filter|proleptic|mapred\.input)\..*)$"
)
_HADOOP_DEFAULTS = {
    "io.compression.codecs": "",
    "fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.LocalFs",
}
_T = TypeVar("_T")


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
        # A flipped bit in a page that carries a checksum would be sent as it is.
        "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
        "spark.sql.csv.parser.columnPruning.enabled": "false",
        "spark.sql.variable.substitute": "false",
        # Hadoop's line reader drops longer lines without a word, wherever this is set lower.
        "spark.hadoop.mapreduce.input.linerecordreader.line.maxlength": str(2**31 - 1),
        "spark.ui.showConsoleProgress": "false",
    }


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
            _check_settings({key: made.conf.get(key, None) for key in self.required}, self.required)
            self._refuse_settings_of_others(made)
        except FatalError:
            raise
        except Exception as error:
            raise _not_started(self.master, self.log_file, error, self.process) from error
        if not is_local(self.master):
            self._check_executors(made)
        return made

    def _refuse_settings_of_others(self, made: SparkSession) -> None:
        """Raise FatalError for a setting of spark-defaults.conf or spark-submit that may change records: it is not pinned."""
        jvm: Any = self.context._jvm
        jvm_conf: Any = self.context._conf._jconf
        texts = str(jvm_conf.toDebugString()).splitlines()  # in one call; getAll() is three for each
        keys = {text.partition("=")[0] for text in texts if text.startswith("spark.sql.")}
        for key in sorted(keys - self.ours):
            if _HARMLESS.match(key):
                continue
            value = made.conf.get(key, None)
            try:
                default = jvm.org.apache.spark.sql.internal.SQLConf().getConfString(key)
            except Py4JJavaError:  # no setting of Spark's own: none of the readers looks at it
                continue
            if value != default:
                raise _not_pinned(key, value)
        self._refuse_hadoop_settings_of_others()

    def _refuse_hadoop_settings_of_others(self) -> None:
        """As above, for Hadoop's settings: core-site.xml may hold them as well."""
        found: Any = self.context._jsc.hadoopConfiguration().getValByRegex(_OF_READERS)
        for key in sorted(found):
            name, value = f"spark.hadoop.{key}", str(found[key])
            if name not in self.ours and value != _HADOOP_DEFAULTS.get(key):
                raise _not_pinned(name, value)

    def _check_executors(self, made: SparkSession) -> None:
        """Read back zone, language and encoding of the JVMs in which the rows are made."""
        slots = max(1, cluster.registered(self.context).slots)
        rows = made.range(0, slots, 1, slots).selectExpr(*_OF_EXECUTORS.values()).collect()
        for row in set(rows):  # here: Spark would take 200 tasks to find out
            _check_jvm(*row, where="an executor's ")

    def send_package(self) -> None:
        """Send the package to executors on other machines, which have the libraries but not us."""
        self.zips.append(package_zip(Path(self.context._temp_dir)))
        self.context.addPyFile(str(self.zips[-1]))

    def check_core_settings(self) -> None:
        """Read back what holds without a session. Raises FatalError where a setting does not hold."""
        core = {key: value for key, value in self.required.items() if not key.startswith("spark.sql.")}
        live = self.context._conf  # the JVM's own; getConf() would copy it, in hundreds of calls
        _check_settings({key: live.get(key) for key in core}, core)
        jvm: Any = self.context._jvm
        _check_jvm(
            str(jvm.java.util.Locale.getDefault().toString()),
            str(jvm.java.nio.charset.Charset.defaultCharset().name()),
            str(jvm.java.time.ZoneId.systemDefault().getId()),
        )

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
    split_size: int,
    log_file: Path | None,
    wait_s: float = 120.0,
) -> Spark:
    """Start Spark, without a session. `log_file` takes all of its output; None: stderr.

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
    required = required_settings(split_size)
    spark_conf = SparkConf(loadDefaults=False)
    _prepare_environment(master, conf)
    settings = {
        **DEFAULTS,
        **_local_settings(master),
        **conf,
        **required,
        **_java_options(master, conf, site.spark_defaults(pip_only=is_local(master))),
    }
    for key, value in {**settings, "spark.master": master, "spark.app.name": f"eosingest {job}"}.items():
        spark_conf.set(key, value)
    gateway, bound = None, None
    with _output(log_file) as output:
        try:
            gateway = launch_gateway(  # type: ignore[no-untyped-call]
                _for_the_command_line(spark_conf),
                popen_kwargs={"stdout": output, "stderr": output, "cwd": _folder_that_exists()},
            )
            if gateway.proc is None:  # spark-submit's JVM, which was there before us
                _same_everywhere(gateway.jvm)
            bound = cluster.Bound(None if is_local(master) else gateway.proc, _START_S + wait_s)
            with bound.running():
                context = SparkContext(conf=spark_conf, gateway=gateway)
            # A JVM that is killed tears its connection to this server; what that means is said once, by us.
            context._accumulatorServer.handle_error = _say_nothing  # type: ignore[assignment]
            spark = Spark(context, gateway.proc, master, log_file, required, frozenset(settings))
            spark.check_core_settings()
            return spark
        except FatalError:
            raise
        except Exception as error:
            if bound is not None and bound.expired:
                raise _not_taken(master, log_file, _START_S + wait_s) from error
            raise _not_started(master, log_file, error, gateway.proc if gateway is not None else None) from error


def submitted_master() -> str | None:
    """Return the master that spark-submit was given, or took from its own defaults; None where we were started without it."""
    if not site.is_submitted():
        return None
    master = launch_gateway().jvm.System.getProperty("spark.master")  # type: ignore[no-untyped-call]
    return str(master) if master else None


def _same_everywhere(jvm: Any) -> None:
    """Give a JVM that runs already our zone and language; its encoding cannot be changed, and is checked."""
    jvm.java.util.TimeZone.setDefault(jvm.java.util.TimeZone.getTimeZone("UTC"))
    jvm.java.util.Locale.setDefault(jvm.java.util.Locale("en", "US"))


def _not_of_py4j(entry: logging.LogRecord) -> bool:
    """Say whether something that is logged comes from elsewhere than py4j."""
    return "py4j" not in Path(entry.pathname).parts


def _say_nothing(*_: object) -> None:
    """Take the place of socketserver's handler, which prints a traceback."""


def _not_started(master: str, log_file: Path | None, error: Exception, process: Any) -> EosingestError:
    """Make the error for a Spark that did not start: a JVM that a signal ended (no memory left, say) may start next time."""
    log = log_hint(log_file)
    with contextlib.suppress(subprocess.TimeoutExpired):
        if process is not None and process.wait(_END_KNOWN_S) < 0:
            return IncompleteError(
                f"Spark's JVM ended while it started (status {process.returncode})",
                code="jvm-ended",
                hint=f"nothing was sent; run again{log}",
            )
    if _TOO_NEW in str(error):
        java = find_java()
        return FatalError(
            f"Spark {pyspark.__version__} does not run on Java {java_major_version(java)} ({java})",
            code="java-too-new",
            hint="nothing was sent; point JAVA_HOME at Java 17 or 21",
        )
    reason = cluster.reason_in(log_file)
    if reason == cluster.UNRESPONSIVE:
        return cluster.unresponsive(master, reason)
    silent = cluster.silent_api_server(master, str(error))
    if silent is not None:
        return silent
    return FatalError(
        f"Spark did not start with master {master}: {reason or first_line(str(error))}",
        code="spark-start",
        hint=f"nothing was sent{log}",
    )


def _not_taken(master: str, log_file: Path | None, seconds: float) -> TemporaryError:
    reason = cluster.reason_in(log_file) or cluster.starved_in(log_file)
    return TemporaryError(
        f"{master} did not take the application within {seconds:.0f} s" + (f": {reason}" if reason else ""),
        code="spark-master",
        hint=f"nothing was sent; look whether the cluster is up, and run again{log_hint(log_file)}",
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


def _java_options(master: str, conf: Mapping[str, str], defaults: Mapping[str, str]) -> dict[str, str]:
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


def _local_settings(master: str) -> dict[str, str]:
    """A local Spark talks to itself only: it needs no host name that resolves. Its workers are forked ready to go."""
    if not is_local(master):
        return {}
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.python.daemon.module": "eosingest.spark.daemon",
    }


def _prepare_environment(master: str, conf: Mapping[str, str]) -> None:
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


def _check_settings(live: Mapping[str, str | None], required: Mapping[str, str]) -> None:
    for key, value in required.items():
        if live[key] != value:
            raise FatalError(
                f"Spark runs with {key} = {live[key]}, and exactly-once needs {value}",
                code="spark-setting",
                hint="nothing was sent; look for it in spark-defaults.conf and in the environment",
            )


def _check_jvm(language: str, encoding: str, zone: str, *, where: str = "") -> None:
    of = f"{where}JVM" if where else "the JVM"
    names = {key: key.replace("the JVM", of) for key in (_LANGUAGE, _ENCODING, _ZONE)}
    _check_settings({names[_LANGUAGE]: language}, {names[_LANGUAGE]: _LOCALE})
    _check_settings({names[_ENCODING]: encoding}, {names[_ENCODING]: _CHARSET})
    if zone not in _ZONES:
        _check_settings({names[_ZONE]: zone}, {names[_ZONE]: _ZONES[0]})


def _not_pinned(key: str, value: object) -> FatalError:
    or_site = "in core-site.xml or " if key.startswith("spark.hadoop.") else "or "
    takes = f'name it in the spec, [spark] conf = {{ "{key}" = "{value}" }}, where it is pinned with the job'
    return FatalError(
        f"{key} = {value} is set outside of the spec, in spark-defaults.conf, {or_site}by spark-submit, and may"
        " change records",
        code="spark-setting",
        hint=f"nothing was sent; {'take it out there' if protects(key) else takes}",
    )


def package_zip(folder: Path) -> Path:
    """Zip the package into a folder; return the file."""
    package = Path(eosingest.__file__).parent
    file = folder / "eosingest.zip"
    with zipfile.ZipFile(file, "w") as archive:
        for path in sorted(package.rglob("*.py")):
            archive.write(path, path.relative_to(package.parent))
    return file


def in_thread(step: Callable[[], _T], check: Callable[[], None], name: str) -> _T:
    """Return what a step returns, and raise what it raises, having asked `check` all the while, which raises to end the wait.

    A JVM that starts or works listens to nobody. The thread is a daemon, and the JVM ends with its standard input, when we do.
    """
    future = begin(step, name)
    while not wait([future], timeout=_TICK_S).done:
        check()
    return future.result()


def begin(step: Callable[[], _T], name: str) -> Future[_T]:
    """Begin a step in a thread of its own; what it returns or raises is the future's result."""
    future: Future[_T] = Future()
    threading.Thread(target=_into, args=(future, step), name=name, daemon=True).start()
    return future


def _into(future: Future[_T], step: Callable[[], _T]) -> None:
    try:
        future.set_result(step())
    except BaseException as error:  # raised again where the result is asked for
        future.set_exception(error)


def log_hint(log_file: Path | None) -> str:
    """Return the end of a hint that says where Spark's own output is; nothing where it went to stderr."""
    return f"; Spark's own words are in {log_file}" if log_file else ""


def first_line(text: str) -> str:
    """Return the line of an error that says why: of py4j's, the one behind "An error occurred while calling …"."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        return lines[1].removeprefix(": ")
    return lines[0] if lines else "no reason given"
