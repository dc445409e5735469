"""Implements `eosingest package`, which packs a Python for the executors of a cluster into one archive."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from eosingest.cli import formatting
from eosingest.cli.options import Output, Quiet, Verbose
from eosingest.cli.render import Renderer
from eosingest.cli.result import Action, Result
from eosingest.cli.signals import Signals

_File = Annotated[
    Path | None,
    typer.Argument(metavar="[FILE]", help="The archive to write; by default eosingest-python….tar.gz here."),
]


def package(file: _File = None, output: Output = None, verbose: Verbose = False, quiet: Quiet = False) -> Action:
    """Pack this Python and the libraries that tasks import, for executors that have none that fits."""

    def perform(renderer: Renderer) -> Result:
        signals = Signals(renderer.line_from_signal_handler)
        signals.install()
        from eosingest.app.executor_python import default_name, pack
        from eosingest.host.interruption import Interruption

        packed = pack(Path(os.path.abspath(file or default_name())), Interruption(signals.received).check)
        conf = {"spark.archives": f"{packed.file}#env", "spark.pyspark.python": "./env/bin/python"}
        rows = formatting.table(
            [
                ("archive", str(packed.file)),
                ("size", formatting.size(packed.bytes)),
                ("python", packed.python),
                ("libraries", ", ".join(f"{name} {version}" for name, version in packed.packages.items())),
                ("runs on", packed.runs_on),
            ]
        )
        pairs = ", ".join(f'"{key}" = "{value}"' for key, value in conf.items())
        lines = ("The archive was unpacked and tried.", *rows, "", "[spark]", f"conf = {{ {pairs} }}")
        data = {
            "archive": str(packed.file),
            "bytes": packed.bytes,
            "python": packed.python,
            "packages": packed.packages,
            "runs_on": packed.runs_on,
            "conf": conf,
        }
        return Result("package", data=data, lines=lines)

    return Action("package", perform, output, verbose, quiet)
