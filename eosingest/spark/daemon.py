"""Runs the daemon from which a local Spark forks its Python workers, with all imports of a task already done.

pyspark's own daemon imports nothing, so each worker would spend half a second on imports, in a run that may last seconds.
jvm.py sets it as `spark.python.daemon.module`. It creates no Kafka client: librdkafka's threads do not survive a fork.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import sys
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of malloc.h
_KEPT_BYTES = 64 << 20
WORKING_FOLDER = "EOSINGEST_WORKING_FOLDER"  # the driver's, if the JVM was started in another one


def forget_archives() -> None:
    """Import pyspark from its installed folder, not from the zip archives that Spark puts before it on the path.

    A worker calls `importlib.invalidate_caches()` before each task; each zipimporter then reads its archive's directory
    again, once per package (python/cpython#103200): 0.1 s per task. Archives of a Spark other than the installed one stay.
    """
    found = PathFinder.find_spec("pyspark", [entry for entry in sys.path if not Path(entry).is_file()])
    if found is None or not found.origin:
        return
    home = Path(found.origin).parent
    archives = [entry for entry in sys.path if Path(entry).is_file() and Path(entry).is_relative_to(home)]
    sys.path[:] = [entry for entry in sys.path if entry not in archives]
    for cached in [entry for entry in sys.path_importer_cache if entry.startswith(tuple(archives))]:
        del sys.path_importer_cache[cached]


def keep_freed_memory() -> None:
    """Have glibc reuse freed memory instead of returning it to the kernel, which costs page faults at the next allocation.

    Code that scans text in pieces of 256 KiB spends half of its time on these (docs/performance.md). Other C libraries lack
    `mallopt`, or ignore it.
    """
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_M_MMAP_THRESHOLD, _KEPT_BYTES // 2)


def enter_working_folder() -> None:
    """Change to the driver's working folder, which relative paths of Kafka's settings refer to."""
    if (folder := os.environ.get(WORKING_FOLDER)) is not None:
        with contextlib.suppress(OSError):  # it was deleted meanwhile
            os.chdir(folder)


if __name__ == "__main__":
    enter_working_folder()
    keep_freed_memory()
    forget_archives()

    from pyspark.daemon import manager

    import eosingest.spark.worker  # noqa: F401 - imported for the workers
    from eosingest.sources.registry import IN_TASKS

    for module in IN_TASKS:
        import_module(module)
    gc.freeze()  # imported modules live as long as the workers: keep them out of every garbage collection
    manager()
