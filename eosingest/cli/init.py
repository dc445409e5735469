"""`eosingest init [PATH]`: write a commented spec to start from, and its JSON Schema beside it for editors."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated

import typer

from eosingest.cli.options import Output, Verbose
from eosingest.cli.render import Renderer
from eosingest.cli.result import Action, Result
from eosingest.errors import FatalError, SpecError

DEFAULT_NAME = "eosingest.toml"
SCHEMA_NAME = "eosingest.schema.json"


def init(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="The file to write, or the folder to write it in.")] = (
        Path(DEFAULT_NAME)
    ),
    force: Annotated[
        bool, typer.Option("--force", envvar="EOSINGEST_FORCE", help="Overwrite files that are there already.")
    ] = False,
    output: Output = None,
    verbose: Verbose = False,
) -> Action:
    """Write a commented spec to start from. Beside it goes the JSON Schema that editors check it with."""

    def perform(renderer: Renderer) -> Result:
        from eosingest.spec import TEMPLATE, json_schema

        spec = path / DEFAULT_NAME if path.is_dir() else path
        schema = spec.parent / SCHEMA_NAME
        if not _write(spec, TEMPLATE, force=force):
            raise SpecError(
                f"{spec} is there already; it was left as it is",
                code="exists",
                hint="name another file, or overwrite it: eosingest init --force",
            )
        schema_text = json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
        wrote_schema = _write(schema, schema_text, force=force)
        notes = () if wrote_schema or _reads(schema, schema_text) else (_kept(schema),)
        wrote = [spec, schema] if wrote_schema else [spec]
        lines = [f"wrote {file}" for file in wrote]
        return Result(
            "init",
            data={"spec": str(spec), "schema": str(schema), "wrote": [str(file) for file in wrote]},
            lines=(*lines, f"Edit it, then: eosingest check {shlex.quote(str(spec))}"),
            notes=notes,
        )

    return Action("init", perform, output, verbose)


def _kept(schema: Path) -> str:
    return f"{schema} was there already and differs from this version's; it was left as it is (--force overwrites both)"


def _write(file: Path, text: str, *, force: bool) -> bool:
    """Write the file, and return whether it was written: one that is there is left alone without `force`."""
    try:
        with file.open("w" if force else "x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        return False
    except OSError as error:
        raise FatalError(
            f"{file} cannot be written: {error.strerror}", code="cannot-write", hint="name a file in another folder"
        ) from None
    return True


def _reads(file: Path, text: str) -> bool:
    try:
        return file.read_text(encoding="utf-8") == text
    except (OSError, UnicodeDecodeError):
        return False
