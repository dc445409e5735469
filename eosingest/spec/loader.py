"""Loads a frozen Spec from TOML: overrides, references, validation. Reports all problems at once, with file, line and key.

    read_document (TOML, --set) ─▶ references ─▶ rules over the tables ─▶ pydantic ─▶ Spec
                                       └──────────────┴── problems ──────────┴─▶ one SpecError

No problem text holds a value of the spec, except expressions.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from eosingest.errors import SpecError
from eosingest.spec import restricted
from eosingest.spec.document import (
    Document,
    KeyPath,
    Problem,
    Table,
    document_of,
    dotted,
    get,
    override,
    parsed_document,
    read_document,
)
from eosingest.spec.masters import embedded_problem, master_problem
from eosingest.spec.model import Spec
from eosingest.spec.options import refused_conf, refused_properties
from eosingest.spec.references import References, UnresolvedError
from eosingest.spec.secrets import LATE
from eosingest.spec.sources import source_table
from eosingest.spec.tables import SourceTable
from eosingest.spec.units import parse_duration
from eosingest.spec.values import TAGS

_Model = TypeVar("_Model", bound=BaseModel)
_NOTHING: Mapping[str, str] = MappingProxyType({})


def load(
    path: Path,
    *,
    params: Mapping[str, str] = _NOTHING,
    overrides: Sequence[str] = (),
    more: Callable[[Table], Iterable[Problem]] | None = None,
) -> Spec:
    """Return the spec in a file. `params` are the values of `${param:…}`, `overrides` are `key=value` of `--set`.

    `more` yields further problems of the tables, whose references are resolved (for `check`).
    Raises SpecError with all problems, one line each; exit 2.
    """
    return spec_of(read_document(path, overrides), params=params, more=more)


def spec_of(
    document: Document,
    *,
    params: Mapping[str, str] = _NOTHING,
    more: Callable[[Table], Iterable[Problem]] | None = None,
) -> Spec:
    """Return the spec of a document. Parameters and errors as for `load`."""
    path = document.file
    references = References(params, path.absolute().parent)
    problems = list(document.problems)
    forbidden = list(restricted.problems(document.tables, os.environ, document.is_overridden))
    if forbidden:  # files and references that the spec names are not read
        raise _all_problems(document, problems + forbidden, {})
    root_as_written = get(document.tables, "source", "root")
    table = _source_table(document.tables)
    problems += table.problems_as_written(_source(document.tables))
    resolved = _resolve(document.tables, (), references, problems)
    unused = sorted(set(params) - references.used_params)
    problems += [Problem((), f'--param {name}: the spec has no "${{param:{name}}}"') for name in unused]
    table = _source_table(resolved)
    problems += table.problems(_source(resolved))
    problems += _refusals(resolved)
    spec, invalid = _validate(_keep_late(document.tables, resolved), table)
    seen = {problem.path for problem in problems}
    problems += [problem for problem in invalid if problem.path not in seen or not problem.path]
    if more is not None:
        seen = {problem.path for problem in problems}
        problems += [problem for problem in more(resolved) if problem.path not in seen]
    if problems or spec is None:
        raise _all_problems(document, problems, table.hints)
    return spec.attach(path, params, root_as_written, document.lines_by_key()).with_defaults()


def spec_in_python(
    file: Path,
    params: Mapping[str, str] | None,
    overrides: Mapping[str, Any] | None,
    given: str | Mapping[str, Any] | None = None,
) -> Spec:
    """Return the spec of a file, or that of `given`, a TOML text or tables; then `file` is only a name in the spec's folder.

    For `Spec.load`, `from_toml` and `from_dict`. Raises as `load` does.
    """
    if given is None:
        # The command line alone reads standard input.
        document = read_document(file if str(file) != "-" else Path("./-").absolute())
    elif isinstance(given, str):
        document = parsed_document(given, file)
    else:
        document = document_of(given, file)
    override(document, overrides or {})
    return spec_of(document, params=params or {})


def _all_problems(document: Document, problems: list[Problem], hints: Mapping[str, str]) -> SpecError:
    details = list(dict.fromkeys(map(document.detail, sorted(problems, key=document.position))))
    lines = [f"{each.message}; {each.hint}" if each.hint else each.message for each in details]
    count = f"{document.file}: {len(lines)} problems\n" if len(lines) > 1 else ""
    codes = {problem.code for problem in problems}
    code = codes.pop() if len(codes) == 1 else "spec-invalid"
    return SpecError(count + "\n".join(lines), code=code, hint=hints.get(code, ""), problems=lines, details=details)


def _source(tables: Table) -> dict[str, Any]:
    """Return the table [source]; an empty one if it is not a table."""
    source = tables.get("source")
    return source if isinstance(source, dict) else {}


def _source_table(tables: Table) -> type[SourceTable]:
    return source_table(_source(tables))


def _resolve(value: Any, path: KeyPath, references: References, problems: list[Problem]) -> Any:
    """Return the value with the references in every string resolved; add a problem for each string that cannot be resolved."""
    if isinstance(value, dict):
        return {key: _resolve(inner, (*path, key), references, problems) for key, inner in value.items()}
    if isinstance(value, list):
        return [_resolve(inner, (*path, index), references, problems) for index, inner in enumerate(value)]
    if not isinstance(value, str):
        return value
    try:
        return references.resolve(value)
    except UnresolvedError as error:
        problems.append(Problem(path, str(error)))
        return value


def _keep_late(tables: Table, resolved: Table) -> Table:
    """Restore the unresolved text of keys that may hold secrets, which are resolved when they are used."""
    for path in LATE:
        late = get(tables, *path)
        if late is not None:
            resolved = _with(resolved, path, late)
    return resolved


def _with(tables: Table, path: Sequence[str], value: Any) -> Table:
    """Return a copy in which the key has this value."""
    name, *rest = path
    return {**tables, name: _with(tables[name], rest, value) if rest else value}


def _refusals(tables: Table) -> Iterator[Problem]:
    """Yield the problems that types cannot express. Tables of a wrong type are ignored here: pydantic reports them."""
    properties, conf = get(tables, "sink", "properties"), get(tables, "spark", "conf")
    if isinstance(properties, dict):
        for key, text in refused_properties(properties, _timeout(tables)):
            yield Problem(("sink", "properties", key), text)
    if isinstance(conf, dict):
        for key, text in refused_conf(conf):
            yield Problem(("spark", "conf", key), text)
    master, servers = get(tables, "spark", "master"), get(tables, "sink", "bootstrap_servers")
    if isinstance(master, str) and isinstance(servers, str) and master_problem(master) is None:
        problem = embedded_problem(master, servers)
        if problem is not None:
            yield Problem(("sink", "bootstrap_servers"), problem, code="embedded-elsewhere")
    topic, dead = get(tables, "sink", "topic"), get(tables, "on_error", "topic")
    offsets = get(tables, "sink", "offsets_topic") or "eosingest-offsets"
    if topic is not None and topic == offsets:
        yield Problem(("sink", "offsets_topic"), "must not be the topic that records are written to")
    for known, what in ((topic, "sink.topic"), (offsets, "sink.offsets_topic")):
        if dead is not None and dead == known:
            yield Problem(("on_error", "topic"), f"must not be {what}", "name a separate topic for dead letters")


def _timeout(tables: Table) -> float:
    try:
        return parse_duration(get(tables, "transaction", "timeout") or 60)
    except ValueError:
        return 60.0


def _validate(tables: Table, table: type[SourceTable]) -> tuple[Spec | None, list[Problem]]:
    """Return the Spec, or None, and its problems. `table` is the class of [source] for its kind."""
    problems: list[Problem] = []
    if isinstance(tables.get("source"), dict):
        source, problems = _validated(table, tables["source"], table, ("source",))
        tables = {**tables, "source": source or table.model_construct()}
    spec, others = _validated(Spec, tables, table)
    return (spec, others) if not problems else (None, problems + others)


def _validated(
    model: type[_Model], values: Table, table: type[SourceTable], path: KeyPath = ()
) -> tuple[_Model | None, list[Problem]]:
    try:
        return model.model_validate(values), []
    except ValidationError as error:
        # include_input=False: by default the whole table around a missing key is printed, with passwords.
        details = error.errors(include_input=False, include_url=False)
        return None, [_problem(detail, path, table) for detail in details]


def _problem(detail: ErrorDetails, above: KeyPath, table: type[SourceTable]) -> Problem:
    path = above + _path(detail)
    return Problem(path, _text(detail, path, table))


def _path(detail: ErrorDetails) -> KeyPath:
    """Return the key path of an error, without the parts that pydantic adds for dict keys and for tags."""
    return tuple(part for part in detail["loc"] if part not in ("[key]", *TAGS))


_SENTENCES = {
    "string_type": "must be a string in quotes",
    "tuple_type": "must be a list of strings",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "model_attributes_type": "must be a table",
    "too_short": "must not be empty",
}


def _text(detail: ErrorDetails, path: KeyPath, table: type[SourceTable]) -> str:
    kind = detail["type"]
    if kind == "extra_forbidden":
        return f"unknown key{_did_you_mean(path, table)}"
    if kind == "missing":
        is_table = len(path) == 1 and path[0] in ("source", "sink")
        return f"missing; add the table [{path[0]}]" if is_table else "missing"
    if kind == "value_error":
        return str(detail["ctx"]["error"])
    return _SENTENCES.get(kind, detail["msg"].replace("Input should be", "must be"))


def _did_you_mean(path: KeyPath, table: type[SourceTable]) -> str:
    """Return the hint for an unknown key: a similar key of its table, or the table that it belongs to."""
    key, known = str(path[-1]), {**_keys(), **_keys(table, ("source",))}
    here = known.get(path[:-1], [])
    close = difflib.get_close_matches(key.lower(), here, n=1)
    if close:
        return f'; did you mean "{close[0]}"?'
    elsewhere = [dotted((*table, key)) for table, keys in known.items() if key in keys]
    if elsewhere:
        return f'; did you mean "{elsewhere[0]}"?'
    return f"; known are {', '.join(sorted(here))}" if here else ""


def _keys(model: type[BaseModel] = Spec, path: KeyPath = ()) -> dict[KeyPath, list[str]]:
    """Return the keys of every table of the model, by TOML name."""
    found: dict[KeyPath, list[str]] = {path: []}
    for name, field in model.model_fields.items():
        key = field.alias or name
        found[path].append(key)
        for table in _tables_in(field.annotation):
            found |= _keys(table, (*path, key))
    return found


def _tables_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the tables that a value may be, as in `Annotated[Table, …] | str`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _tables_in(part)
