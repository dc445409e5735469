"""Defines the arguments and flags that verbs share, and loads a Spec from them.

Every flag has an environment variable, `EOSINGEST_` and its name; the flag takes precedence. `--param` and `--set` are added to
their variables instead, which hold one NAME=VALUE per line, since values may contain spaces and commas.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from eosingest.errors import SpecError

if TYPE_CHECKING:
    from eosingest.spec import Spec
    from eosingest.spec.document import Problem, Table

OUTPUT_VARIABLE = "EOSINGEST_OUTPUT"
PARAM_VARIABLE = "EOSINGEST_PARAM"
SET_VARIABLE = "EOSINGEST_SET"

_DATA = frozenset(
    [
        ".csv",
        ".tsv",
        ".json",
        ".jsonl",
        ".ndjson",
        ".parquet",
        ".orc",
        ".txt",
        ".log",
        ".gz",
        ".bz2",
        ".zst",
        ".lz4",
        ".avro",
        ".xlsx",
    ]
)

DEFAULT_SPEC = "eosingest.toml"

SpecFile = Annotated[
    Path | None,
    typer.Argument(
        metavar="SPEC",
        help=f"The job's TOML file: by default {DEFAULT_SPEC} in this folder; - for standard input.",
        show_default=False,
    ),
]
Params = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        metavar="NAME=VALUE",
        help="Value of ${param:NAME} in the spec; may be repeated.  "
        f"[env var: {PARAM_VARIABLE}, one NAME=VALUE a line; flags come after it and win]",
        show_default=False,
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override a key of the spec, as in sink.topic=orders-dev; may be repeated.  "
        f"[env var: {SET_VARIABLE}, one KEY=VALUE a line; flags come after it and win]",
        show_default=False,
    ),
]
Output = Annotated[
    Literal["text", "json"] | None,
    typer.Option(
        "--output",
        envvar=OUTPUT_VARIABLE,
        metavar="text|json",
        help="How to write the result: text (the default) or one line of JSON.",
        show_default=False,
    ),
]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose",
        "-v",
        envvar="EOSINGEST_VERBOSE",
        help="Report more: log records (on stderr); plan lists every item, verify every finding, run names Spark's log.",
    ),
]

Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", envvar="EOSINGEST_QUIET", help="Report errors only; --output json still writes the result."
    ),
]
_BEFORE_A_VERB = ("-v", "--verbose", "-q", "--quiet")


def behind_the_verb(arguments: Sequence[str]) -> list[str]:
    """Return the arguments, with `-v` and `-q`, which all verbs have, moved from before the verb to after it."""
    moved, rest = list[str](), list(arguments)
    at = 0
    while at < len(rest) and rest[at].startswith("-") and rest[at] != "--":
        if rest[at] in _BEFORE_A_VERB:
            moved.append(rest.pop(at))
        else:
            at += 2 if rest[at] == "--output" else 1
    if at >= len(rest):  # no verb
        return list(arguments)
    end = rest.index("--") if "--" in rest else len(rest)
    return [*rest[:end], *moved, *rest[end:]]


def output_asked_for(arguments: Sequence[str]) -> str:
    """Return the value of `--output`, read before the arguments are parsed, so that a usage error is rendered as JSON too."""
    asked = os.environ.get(OUTPUT_VARIABLE, "")
    for at, argument in enumerate(arguments):
        if argument == "--":
            break
        if argument == "--output":
            asked = arguments[at + 1] if at + 1 < len(arguments) else ""
        elif argument.startswith("--output="):
            asked = argument.partition("=")[2]
    return "json" if asked == "json" else "text"


def spec_file(file: Path | None) -> Path:
    """Return the spec's file: the given one, or the one with the default name. Raises SpecError if there is neither."""
    if file is None and not Path(DEFAULT_SPEC).is_file():
        raise SpecError(
            f"Missing argument 'SPEC': there is no {DEFAULT_SPEC} in this folder either",
            code="usage",
            hint="name the job's TOML file, or write one: eosingest init (for a data file: eosingest init --from FILE)",
        )
    return file or Path(DEFAULT_SPEC)


def load_spec(
    file: Path | None, params: Sequence[str] | None, overrides: Sequence[str] | None, *, thorough: bool = False
) -> Spec:
    """Load the spec with the parameters and overrides of the command line and the environment. Raises SpecError.

    `thorough` also finds mistakes that would make a run fail later.
    """
    from eosingest.spec import load
    from eosingest.spec.secrets import keep_from_children

    file = spec_file(file)
    _refuse_data(file)
    more: Callable[[Table], Iterable[Problem]] | None = None
    if thorough:
        from eosingest.app.lint import further_problems

        more = partial(further_problems, spec=file)

    spec = load(
        file,
        params=_pairs([*_lines(PARAM_VARIABLE), *(params or ())]),
        overrides=[*_lines(SET_VARIABLE), *(overrides or ())],
        more=more,
    )
    keep_from_children(spec, os.environ)
    return spec


def _refuse_data(file: Path) -> None:
    """Raise SpecError if the file is a data file, not a spec."""
    if file.suffix.lower() in _DATA and file.is_file():
        raise SpecError(
            f"{file} is data, not a spec",
            code="not-a-spec",
            hint=f"write a spec for it: eosingest init --from {shlex.quote(str(file))}",
        )


def _lines(variable: str) -> list[str]:
    return [line.strip() for line in os.environ.get(variable, "").splitlines() if line.strip()]


def _pairs(params: Sequence[str]) -> dict[str, str]:
    """Return the parameters by name. Raises SpecError, whose message shows no value: it may be a secret."""
    pairs = {}
    for number, param in enumerate(params, start=1):
        name, equals, value = param.partition("=")
        if not equals or not name.strip():
            which = f" (number {number} of {len(params)})" if len(params) > 1 else ""
            raise SpecError(f"--param takes NAME=VALUE{which}", code="usage", hint="as in --param date=2026-11-20")
        pairs[name.strip()] = value
    return pairs
