"""The command line as an application of Spark: `spark-submit [options] $(eosingest submit-script) run SPEC`."""

from __future__ import annotations

from eosingest.cli.main import main

if __name__ == "__main__":
    main()
