"""Implements `eosingest prepare`, which archives Spark's classes so that runs begin sooner on this machine or image."""

from __future__ import annotations

from eosingest.cli import formatting
from eosingest.cli.options import Output, Quiet, Verbose
from eosingest.cli.render import Renderer
from eosingest.cli.result import Action, Result
from eosingest.cli.signals import Signals


def prepare(output: Output = None, verbose: Verbose = False, quiet: Quiet = False) -> Action:
    """Have Spark start sooner: archive its classes, once.

    The archive is stored in the cache (160 MiB). It takes a minute or two, and saves each local run that starts
    Spark one to three seconds. The first command that starts Spark has it written in the background where it is not there.
    Java archives nothing while Spark's configuration folder (SPARK_CONF_DIR) has files.
    """

    def perform(renderer: Renderer) -> Result:
        signals = Signals(renderer.line_from_signal_handler)
        signals.install()
        from eosingest.app.prepare import prepare as write_archive

        archive, written = write_archive(verbose=verbose, interrupted=signals.received)
        size = archive.stat().st_size
        are = "are archived" if written else "were archived already"
        line = f"Spark's classes {are}; local runs begin with them, until Java or pyspark change."
        rows = formatting.table([("archive", str(archive)), ("size", formatting.size(size))])
        data = {"archive": str(archive), "bytes": size, "written": written}
        return Result("prepare", data=data, lines=(line, *rows))

    return Action("prepare", perform, output, verbose, quiet)
