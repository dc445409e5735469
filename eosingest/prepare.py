"""What can be done before any run, so that runs begin sooner: the class data archive of Spark (spark/class_archive.py)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from eosingest.interruption import Interruption
from eosingest.settings import spark_log_file


def prepare(*, verbose: bool, interrupted: Callable[[], int | None]) -> Path:
    """Write the archive; return its path. Raises the errors of errors.py."""
    from eosingest.spark.training import Training

    log_file = None if verbose else spark_log_file("prepare")
    return Training(log_file, Interruption(interrupted).check).write_archive()
