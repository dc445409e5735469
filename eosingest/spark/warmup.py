"""Runs Spark once over a few rows, so that its JVM writes the class data archive (class_archive.py) at exit.

It does the same as a run, without Kafka: the same session, DataFrame and checks, and tasks in Python workers.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession

from eosingest.errors import FatalError
from eosingest.host import interruptible
from eosingest.host.paths import unusable
from eosingest.spark import causes, class_archive, failures, session, spark_defaults
from eosingest.spark.without_pandas import map_in_arrow
from eosingest.spark.worker import OUTPUT_SCHEMA

_MASTER = "local[2]"
_WRITTEN_S = 1_800.0  # takes seconds on an idle machine, up to this at the lowest priority on a busy one
_PATIENCE = {"spark.python.authenticate.socketTimeout": "600s"}  # JVM and Python may wait for the CPU
_FOLDERS = "training-"
_LEFT_BEHIND_S = 7_200.0  # longer than a training runs
_ROOM = 512 << 20  # the archive takes 160 MiB


class Rehearsal(Protocol):
    """A kind's source for a training: writes a few rows, reads them as a run does."""

    def records(self, spark: SparkSession, folder: Path) -> Iterator[DataFrame]:
        """Write sources into the folder, and yield the record columns of each."""


class Training:
    """One training run, used once."""

    def __init__(self, read: Rehearsal, log_file: Path | None, check: Callable[[], None]) -> None:
        """Start nothing yet. Spark's output goes to `log_file`, None: stderr; `check` raises to end the run."""
        self._read = read
        self._log_file = log_file
        self._check = check
        self._spark: session.Spark | None = None

    def write_archive(self) -> Path:
        """Write the archive, which replaces an earlier one when it is complete; return its path.

        Raises FatalError if Java is missing, Spark does not start, or the JVM writes no archive.
        """
        _refuse_folder_on_class_path()
        folder = class_archive.folder()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _clear_away(folder)
            _refuse_full_disk(folder)
            with tempfile.TemporaryDirectory(prefix=_FOLDERS, dir=folder) as name:
                fresh = Path(name) / "fresh.jsa"
                self._in_thread(Path(name), fresh)
                # A truncated archive, after a killed JVM or a full disk, would crash every run.
                status = self._spark.process.poll() if self._spark is not None else None
                if status != 0 or not fresh.is_file():
                    raise self._no_archive(f"the JVM wrote none (status {status})")
                return class_archive.keep(fresh)
        except OSError as error:
            raise unusable(folder, error) from error

    def _no_archive(self, reason: str) -> FatalError:
        return FatalError(
            f"there is no new class data archive: {reason}",
            code="no-archive",
            hint=f"runs work without one{failures.log_hint(self._log_file)}",
        )

    def _in_thread(self, folder: Path, fresh: Path) -> None:
        try:
            interruptible.in_thread(lambda: self._train(folder, fresh), self._check, "spark-training")
        except failures.FROM_THE_JVM as error:
            raise self._no_archive(causes.first_line(str(error))) from error
        finally:
            if self._spark is not None:
                self._spark.process.kill()  # if it has not ended yet
                self._spark.process.wait()

    def _train(self, folder: Path, fresh: Path) -> None:
        for name in (
            spark_defaults.HADOOP_FOLDERS
        ):  # they come last on the class path: runs with them can still use the archive
            os.environ.pop(name, None)
        conf = {"spark.driver.extraJavaOptions": class_archive.option_to_write(fresh), **_PATIENCE}
        self._spark = spark = session.start(
            job="prepare",
            master=_MASTER,
            conf=conf,
            of_source={},
            log_file=self._log_file,
        )
        exercise(spark, self._read, folder)
        spark.stop()
        spark.process.stdin.close()  # makes it exit; the archive is written at exit
        with contextlib.suppress(subprocess.TimeoutExpired):
            spark.process.wait(_WRITTEN_S)


def exercise(spark: session.Spark, read: Rehearsal, folder: Path) -> None:
    """Do the same as a run, over a few rows, which are written into the folder."""
    spark.context.parallelize(range(2), 2).mapPartitions(_no_outcome).collect()
    for records in read.records(spark.sql(), folder):
        map_in_arrow(records.coalesce(2), _no_outcome, OUTPUT_SCHEMA).collect()


def _clear_away(folder: Path) -> None:
    """Remove the folders that killed trainings left."""
    for left in folder.glob(f"{_FOLDERS}*"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > _LEFT_BEHIND_S:
                shutil.rmtree(left, ignore_errors=True)


def _refuse_folder_on_class_path() -> None:
    conf = class_archive.folder_on_class_path()
    if conf is not None:
        raise FatalError(
            f"there is no archive of Spark's classes: {conf}, Spark's configuration folder, is not empty and is on the JVM's"
            " class path, and Java archives no classes then",
            code="no-archive",
            hint="runs work without one; to have one, put the folder's settings into [spark] conf and unset SPARK_CONF_DIR",
        )


def _refuse_full_disk(folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < _ROOM:
        raise FatalError(
            f"there is no archive of Spark's classes: {folder} has room for {free >> 20} MiB, writing one takes {_ROOM >> 20}",
            code="no-archive",
            hint="runs work without one; let EOSINGEST_HOME name a folder on a disk with room",
        )


def _no_outcome(inputs: Iterable[Any]) -> Iterator[Any]:
    """Consume the input as a task does, and return no outcome."""
    for _ in inputs:
        pass
    return iter(())
