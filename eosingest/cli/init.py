"""Implements `eosingest init [PATH]`, which writes a commented spec and, in the same folder, its JSON Schema for editors."""

from __future__ import annotations

import itertools
import json
import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

from eosingest.cli.options import Output, Quiet, Verbose
from eosingest.cli.render import Renderer
from eosingest.cli.result import Action, Result
from eosingest.errors import FatalError, SpecError
from eosingest.sniff.result import Found

DEFAULT_NAME = "eosingest.toml"
SCHEMA_NAME = "eosingest.schema.json"
_NOT_WHOLE = (
    "only the beginning of the file was read: a later row that does not fit the types ends the run, and DOUBLE rounds a later"
    " number of more digits; see preview"
)
_LATE_FIELDS = "; a later row with another field ends a run before it sends anything (source.unknown_fields)"


def init(
    path: Annotated[str, typer.Argument(metavar="PATH", help="The file to write, or the folder to write it in.")] = (
        DEFAULT_NAME
    ),
    from_: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FILE",
            envvar="EOSINGEST_FROM",
            help="A data file, s3://bucket/key, or hdfs://namenode:8020/path (csv, tsv, json lines, xml, text, parquet,"
            " orc, avro; text formats also as .gz, .bz2, .zst, .lz4): the spec is written for it, with format, options and"
            " schema found out. Or kafka://host:port,…/topic, or postgresql://user@host/database/table.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", envvar="EOSINGEST_FORCE", help="Overwrite files that are there already.")
    ] = False,
    output: Output = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> Action:
    """Write a commented spec to start from, and next to it the JSON Schema that editors check it with."""

    def perform(renderer: Renderer) -> Result:
        from eosingest.spec import TEMPLATE, json_schema

        spec = _spec_file(path)
        schema = spec.parent / SCHEMA_NAME
        text, found = (TEMPLATE, ()) if from_ is None else _spec_text(from_, spec)
        if not _write(spec, text, force=force):
            raise SpecError(
                f"{spec} is there already; it was left as it is",
                code="exists",
                hint=f"name another file: eosingest init{_from_option(from_)} {shlex.quote(str(_unused(spec)))};"
                " or give --force, which overwrites it",
            )
        schema_text = json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
        wrote_schema = _write(schema, schema_text, force=force)
        notes = () if wrote_schema or _reads(schema, schema_text) else (_kept(schema),)
        wrote = [spec, schema] if wrote_schema else [spec]
        lines = [f"wrote {file}" for file in wrote]
        named = shlex.quote(str(spec))
        if from_ is None:
            lines.append(f"Edit it, then: eosingest check {named}")
        else:
            lines.append(f"Show the records that would be sent: eosingest preview {named}; then: eosingest run {named}")
            lines.append(f"Compare the topic with the source: eosingest verify {named} --against-source")
        return Result(
            "init",
            data={
                "spec": str(spec), "schema": str(schema), "wrote": [str(file) for file in wrote], "notes": [*found, *notes],
            },
            lines=tuple(lines),
            notes=(*found, *notes),
        )  # fmt: skip

    return Action("init", perform, output, verbose, quiet)


def _from_option(named: str | None) -> str:
    return "" if named is None else f" --from {shlex.quote(named)}"


def _unused(spec: Path) -> Path:
    """Return a file next to the spec that does not exist."""
    others = (spec.with_name(f"{spec.stem}-{number}{spec.suffix}") for number in itertools.count(2))
    return next(other for other in others if not other.exists())


def _spec_file(path: str) -> Path:
    """Return the file to write: the path, or a file in it if it is a folder or ends with a slash (then it is created)."""
    if path.endswith(os.sep):
        try:
            Path(path).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FatalError(
                f"the folder {path} cannot be made: {error.strerror}", code="cannot-write", hint="name another folder"
            ) from None
    return Path(path) / DEFAULT_NAME if Path(path).is_dir() else Path(path)


def _spec_text(named: str, spec: Path) -> tuple[str, tuple[str, ...]]:
    """Return the text of a spec for a topic, a table or a data file, and notes about it."""
    from eosingest.app.discover import data_file, spec_of_address
    from eosingest.sniff import sniff
    from eosingest.spec import job_name, spec_for

    of_address = spec_of_address(named)
    if of_address is not None:
        return of_address
    data = data_file(named)
    found = sniff(data)
    is_local = isinstance(data, Path)
    notes = list(found.notes)
    unknown = _unknown_fields(found)
    if not found.whole:
        notes.append(_NOT_WHOLE + (_LATE_FIELDS if unknown == "error" else ""))
    name = job_name(data.name.split(".")[0])
    text = spec_for(
        data=str(data),
        name=name,
        path=_path_from(data, spec.parent) if is_local else str(data),
        format_=found.format,
        options=found.options,
        compression=found.compression,
        schema=found.schema,
        key=found.key,
        conf=found.conf,
        unknown_fields=unknown,
        notes=notes,
    )
    return text, tuple(notes)


def _unknown_fields(found: Found) -> str | None:
    """Return the value of the key, None for a format or a spec that cannot have it."""
    if found.format not in ("json", "xml") or found.schema is None:
        return None
    return "ignore" if found.drops_fields else "error"


def _path_from(data: Path, folder: Path) -> str:
    """Return the data file's path for a spec in the folder: relative if the file is below it, else absolute."""
    absolute, base = os.path.abspath(data), os.path.abspath(folder)
    return os.path.relpath(absolute, base) if absolute.startswith(base.rstrip("/") + "/") else absolute


def _kept(schema: Path) -> str:
    return f"{schema} was there already and differs from this version's; it was left as it is (--force overwrites both)"


def _write(file: Path, text: str, *, force: bool) -> bool:
    """Write the file; return whether it was written. Without `force` an existing file is not overwritten."""
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
