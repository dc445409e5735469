"""The command line as an application of Spark: `spark-submit [options] $(eosingest submit-script) run SPEC`."""

from __future__ import annotations

from collections.abc import Callable

from eosingest.cli.main import main
from eosingest.cli.signals import relay_by


def _relay(take: Callable[[int], None]) -> None:
    from eosingest.spark.submitted import relay_signals  # pyspark takes a while: not before a verb asks for signals

    relay_signals(take)


if __name__ == "__main__":
    relay_by(_relay)
    main()
