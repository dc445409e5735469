"""Probes executors in the first job of a run on a cluster: returns their Python and the versions of its libraries.

executors.py sends the probe. It imports modules that may be missing only when called, to report all missing ones at once, as a
value.
"""

from __future__ import annotations

import platform
import socket
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

from eosingest.sources.registry import IN_TASKS

# The imports of tasks (runs, audits), in addition to pyspark: import name to package name.
MODULES = {
    "confluent_kafka": "confluent-kafka",
    "fastavro": "fastavro",
    "lz4.frame": "lz4",
    "msgspec": "msgspec",
    "numpy": "numpy",
    "pyarrow": "pyarrow",
    "xxhash": "xxhash",
    "zstandard": "zstandard",
}
OURS = ("eosingest.spark.worker", "eosingest.audit.scan", *IN_TASKS)


@dataclass(frozen=True)
class Found:
    """The report of one Python worker. `missing` maps packages and modules to why they cannot be imported."""

    host: str
    program: str
    python: str
    versions: dict[str, str]
    missing: dict[str, str]


def probe(_: Iterable[object]) -> Iterator[Found]:
    """Report this worker's Python and libraries. The function for `mapPartitions`."""
    versions, missing = {}, {}
    for name, package in MODULES.items():
        try:
            module = import_module(name)
        except Exception as error:  # an ImportError, or any error of a library that does not suit the machine
            missing[package] = f"{type(error).__name__}: {error}"
            continue
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = str(getattr(module, "__version__", ""))
    if not missing:
        for name in OURS:
            try:
                import_module(name)
            except ImportError as error:
                missing[error.name or name] = f"{type(error).__name__}: {error}"
    yield Found(socket.gethostname(), sys.executable, platform.python_version(), versions, missing)
