"""Implements `eosingest submit-script`, which prints the path of the script that spark-submit runs (docs/clusters.md)."""

from __future__ import annotations

from importlib.util import find_spec

from eosingest.cli.options import Output, Quiet, Verbose
from eosingest.cli.render import Renderer
from eosingest.cli.result import Action, Result


def submit_script(output: Output = None, verbose: Verbose = False, quiet: Quiet = False) -> Action:
    """Print the path of the script for spark-submit; eosingest's own arguments follow it."""

    def perform(renderer: Renderer) -> Result:
        found = find_spec("eosingest.spark_submit.application")
        assert found is not None and found.origin is not None, "it is in the package"
        return Result("submit-script", data={"script": found.origin}, lines=(found.origin,))

    return Action("submit-script", perform, output, verbose, quiet)
