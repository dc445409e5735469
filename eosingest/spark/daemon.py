"""The process that a local Spark forks its Python workers from, with everything imported that a task needs.

Beside pyspark's own daemon, which imports nothing: there each worker of a run, which may last seconds, spends half a second
on imports of its own. Named in `spark.python.daemon.module` (session.py). No client is made here: librdkafka's threads
would not live on in a fork.
"""

from __future__ import annotations

import gc
import sys
from importlib.machinery import PathFinder
from pathlib import Path


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


if __name__ == "__main__":
    forget_archives()

    from pyspark.daemon import manager

    import eosingest.spark.worker  # noqa: F401 - what it is for

    gc.freeze()  # what is imported lives as long as the workers: none of them need look through it behind each task
    manager()  # type: ignore[no-untyped-call]
