"""The process that a local Spark forks its Python workers from, with everything imported that a task needs.

Beside pyspark's own daemon, which imports nothing: there each worker of a run, which may last seconds, spends half a second
on imports of its own. Named in `spark.python.daemon.module` (jvm.py). No client is made here: librdkafka's threads
would not live on in a fork.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of malloc.h
_KEPT_BYTES = 64 << 20


def forget_archives() -> None:
    """Import pyspark from its folder instead of from the archives that Spark puts before it.

    A worker calls `importlib.invalidate_caches()` before each task, and a zipimporter then reads its archive's directory at
    once, for each package in it (python/cpython#103200): a tenth of a second a task. Archives of another Spark than the
    folder's stay.
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
    """Have glibc keep freed blocks for the next ones: given back to the kernel, their pages are faulted in again each time.

    What looks through text in pieces of 256 KiB spends half of its time on that (docs/performance.md). Another C library has
    no such function, or passes over it.
    """
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_M_MMAP_THRESHOLD, _KEPT_BYTES // 2)


if __name__ == "__main__":
    keep_freed_memory()
    forget_archives()

    from pyspark.daemon import manager

    import eosingest.spark.worker  # noqa: F401 - what it is for
    from eosingest.sources.registry import IN_TASKS

    for module in IN_TASKS:
        import_module(module)
    gc.freeze()  # what is imported lives as long as the workers: none of them need look through it behind each task
    manager()  # type: ignore[no-untyped-call]
