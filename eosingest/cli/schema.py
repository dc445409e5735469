"""Implements `eosingest schema`, which prints the JSON Schema of a spec, for editors."""

from __future__ import annotations

import json

from eosingest.cli.options import Output, Quiet, Verbose
from eosingest.cli.render import Renderer
from eosingest.cli.result import Action, Result


def schema(output: Output = None, verbose: Verbose = False, quiet: Quiet = False) -> Action:
    """Print the JSON Schema of a spec, for editors."""

    def perform(renderer: Renderer) -> Result:
        from eosingest.spec import json_schema

        document = json_schema()
        lines = json.dumps(document, indent=2, ensure_ascii=False).split("\n")
        return Result("schema", data=document, lines=tuple(lines))

    return Action("schema", perform, output, verbose, quiet)
