"""The process that a local Spark forks its Python workers from, with everything imported that a task needs.

Beside pyspark's own daemon, which imports nothing: there each worker of a run, which may last seconds, spends half a second
on imports of its own. Named in `spark.python.daemon.module` (session.py). No client is made here: librdkafka's threads
would not live on in a fork.
"""

from __future__ import annotations

from pyspark.daemon import manager

import eosingest.spark.worker  # noqa: F401 - what it is for

if __name__ == "__main__":
    manager()  # type: ignore[no-untyped-call]
