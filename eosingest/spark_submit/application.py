"""Runs the command line as a Spark application: `spark-submit [options] $(eosingest submit-script) run SPEC`."""

from __future__ import annotations

import sys
from collections.abc import Callable

try:
    from eosingest.host.garbage import collect_rarely
    from eosingest.host.library_warnings import keep_off_the_terminal

    keep_off_the_terminal()  # before the command line imports libraries
    collect_rarely()

    from eosingest.cli.main import main
    from eosingest.cli.signals import relay_by
except ModuleNotFoundError as error:
    # Exit 7 of the README; errors.py, which has the number, may be the missing one.
    sys.stderr.write(
        f"error: spark-submit started {sys.executable}, which has no module {error.name}\n"
        "hint: nothing was sent; name the Python that has eosingest: PYSPARK_DRIVER_PYTHON=/path/venv/bin/python\n"
    )
    sys.exit(7)


def _relay(take: Callable[[int], None]) -> None:
    from eosingest.spark.spark_submit_signals import (
        relay_signals,  # pyspark takes a while: only if a verb needs signals
    )

    relay_signals(take)


if __name__ == "__main__":
    relay_by(_relay)
    main()
