"""Parses a spec's TOML text to a dict, applies `--set`, flattens tables, and finds the line number of each key.

tomli gives no line numbers, so the text is cut into statements, each parsed by tomli, to find them.
"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomli

from eosingest.errors import SpecError, SpecProblem

KeyPath = tuple[str | int, ...]
Table = dict[str, Any]

# Tables whose keys are settings of Spark, Kafka or readers. TOML parses their dots as nested tables; these are flattened.
FLAT_TABLES: tuple[KeyPath, ...] = (
    ("source", "options"),
    ("source", "properties"),
    ("sink", "create", "config"),
    ("sink", "properties"),
    ("spark", "conf"),
)


@dataclass(frozen=True)
class Problem:
    """A problem with the value at a key path. `text` shows no value, which may be a secret, except expressions.

    `code` becomes the error's code if all problems have the same one.
    """

    path: KeyPath
    text: str
    hint: str = ""
    code: str = "spec-invalid"


@dataclass
class Document:
    """A parsed spec: `tables` after the overrides, and the origin of every key. Messages name overrides by `flag`."""

    file: Path
    tables: Table
    lines: dict[KeyPath, int]
    overridden: set[KeyPath] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)
    flag: str = "--set"

    def describe(self, problem: Problem) -> str:
        """Return `orders.toml:12: sink.topci: …`, or `--set sink.topci: …` for a key of the command line."""
        line = self._line(problem.path)
        where = f"{self.file}:{line}: " if line else f"{self.file}: "
        if self.is_overridden(problem.path):
            where = f"{self.flag} "
        return f"{where}{dotted(problem.path)}: {problem.text}" if problem.path else f"{where}{problem.text}"

    def detail(self, problem: Problem) -> SpecProblem:
        """Return the problem as a SpecProblem, with its file and line."""
        overridden = self.is_overridden(problem.path)
        return SpecProblem(
            message=self.describe(problem),
            code=problem.code,
            file=None if overridden else str(self.file),
            line=None if overridden else self._line(problem.path) or None,
            key=dotted(problem.path) or None,
            hint=problem.hint,
        )

    def lines_by_key(self) -> dict[str, int]:
        """Return the line numbers of the keys in the file, by dotted name; keys that `--set` overrides are left out."""
        return {dotted(path): line for path, line in self.lines.items() if not self.is_overridden(path)}

    def position(self, problem: Problem) -> tuple[bool, int]:
        """Return a sort key: the file's problems by line, those of the command line last."""
        return self.is_overridden(problem.path), self._line(problem.path)

    def is_overridden(self, path: KeyPath) -> bool:
        """Say whether the command line has set the key, or a table that contains it."""
        return any(prefix in self.overridden for prefix in _prefixes(path))

    def _line(self, path: KeyPath) -> int:
        """Return the line number of the key, or else of the nearest enclosing table; 0 if there is none."""
        return next((self.lines[prefix] for prefix in _prefixes(path) if prefix in self.lines), 0)


def _prefixes(path: KeyPath) -> Iterator[KeyPath]:
    return (path[:length] for length in range(len(path), 0, -1))


def dotted(path: KeyPath) -> str:
    """Return a key path as text: `source.path[1]`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def get(tables: Mapping[str, Any], *path: str) -> Any:
    """Return the value at a path, or None if it or an enclosing table is absent."""
    value: Any = tables
    for part in path:
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def read_document(file: Path, overrides: Sequence[str] = ()) -> Document:
    """Read the file and apply the overrides. Raises SpecError for a file that cannot be read or is not TOML."""
    try:
        raw = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        document = parsed_document(raw.decode("utf-8-sig"), file)
    except OSError as error:
        reason = (error.strerror or "it cannot be read").lower()
        hint = "eosingest init writes a spec to start from" if isinstance(error, FileNotFoundError) else ""
        raise _unreadable(f"{file}: {reason}", "spec-unreadable", hint) from None
    except UnicodeDecodeError:
        raise _unreadable(f"{file}: not UTF-8 text", "spec-unreadable", "save the file as UTF-8") from None
    for override in overrides:
        _apply(document, override)
    return document


def parsed_document(text: str, file: Path) -> Document:
    """Return the document of a TOML text. Raises SpecError if it is not TOML; `file` is named in messages."""
    text = text.replace("\r\n", "\n")
    try:
        tables = tomli.loads(text)
    except tomli.TOMLDecodeError as error:
        line, column = getattr(error, "lineno", 1), getattr(error, "colno", 1)
        reason = getattr(error, "msg", "not valid TOML")
        raise _unreadable(f"{file}:{line}: not valid TOML: {reason} (column {column})", "spec-syntax", "") from None
    return _flattened(Document(file, tables, lines_of_keys(text)))


def document_of(tables: Mapping[str, Any], file: Path) -> Document:
    """Return the document of tables that Python code gives: paths and tuples are converted to text and lists."""
    return _flattened(Document(file, {str(key): _plain(value) for key, value in tables.items()}, {}))


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return str(value) if isinstance(value, Path) else value


def _flattened(document: Document) -> Document:
    for path in FLAT_TABLES:
        _flatten_in_place(document, path)
    return document


def _unreadable(message: str, code: str, hint: str) -> SpecError:
    return SpecError(message, code=code, hint=hint, problems=[message])


def lines_of_keys(text: str) -> dict[KeyPath, int]:
    """Return the line number of every key and table of a valid TOML text; all keys of a statement have its first line."""
    found: dict[KeyPath, int] = {}
    header: KeyPath = ()
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        start, statement = at, lines[at]
        at += 1
        if not statement.strip() or statement.lstrip().startswith("#"):
            continue
        while (parsed := _parse(statement)) is None and at < len(lines):
            statement += "\n" + lines[at]
            at += 1
        paths = list(_paths(parsed or {}))
        if statement.lstrip().startswith("["):
            header = paths[-1] if paths else ()
            found.setdefault(header, start + 1)
        else:
            for path in paths:
                found.setdefault(header + path, start + 1)
    return found


def _parse(text: str) -> Table | None:
    try:
        return tomli.loads(text)
    except tomli.TOMLDecodeError:
        return None


def _paths(table: Mapping[str, Any]) -> Iterator[KeyPath]:
    for key, value in table.items():
        yield (key,)
        if isinstance(value, Mapping):
            for path in _paths(value):
                yield (key, *path)


def _flatten_in_place(document: Document, path: KeyPath) -> None:
    """Flatten the table at `path`: `{linger: {ms: 5}}` becomes `{"linger.ms": "5"}`."""
    parent = get(document.tables, *map(str, path[:-1]))
    if isinstance(parent, dict) and isinstance(parent.get(str(path[-1])), dict):
        parent[str(path[-1])] = _flat(document, path, parent[str(path[-1])])


def _flat(document: Document, path: KeyPath, table: Table) -> dict[str, str]:
    flat: dict[str, str] = {}
    for keys, value in _leaves(table):
        name = ".".join(keys)
        if name in flat:
            document.problems.append(Problem((*path, name), "given twice, once with dots and once in quotes"))
        text = as_text(value)
        if text is None:
            document.problems.append(Problem((*path, name), "must be a string, a number, true or false"))
        flat[name] = text or ""
        line = document.lines.get((*path, *keys))
        if line is not None:
            document.lines.setdefault((*path, name), line)
    return flat


def _leaves(table: Table) -> Iterator[tuple[tuple[str, ...], object]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from (((key, *keys), leaf) for keys, leaf in _leaves(value))
        else:
            yield (key,), value


def as_text(value: object) -> str | None:
    """Return a TOML string, number or boolean as the text Kafka and Spark read: `true`, `5`; None for anything else."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, (str, int, float)) else None


def _apply(document: Document, override: str) -> None:
    """Apply one `--set key=value`: the value is parsed as TOML if it is TOML, else it is a string."""
    key, equals, text = override.partition("=")
    path = _key_path(key)
    if not equals or not path:
        document.problems.append(Problem((), "--set takes key=value with a dotted key, as in sink.topic=orders-dev"))
        return
    _put(document, path, _value(text), text.strip())


def override(document: Document, overrides: Mapping[str, Any]) -> None:
    """Set keys, by dotted name, to values that Python code gives; a string stays a string."""
    document.flag = "overrides:"
    for key, value in overrides.items():
        path = _key_path(key)
        if path:
            _put(document, path, _plain(value), str(value))
        else:
            document.problems.append(Problem((), f"overrides: {key!r} is no dotted key, such as sink.topic"))


def _put(document: Document, path: KeyPath, value: object, text: str) -> None:
    """Set a key; `text` is the value as it was given."""
    flat = next((table for table in FLAT_TABLES if path[: len(table)] == table and len(path) > len(table)), None)
    if flat is not None:
        path = (*flat, ".".join(map(str, path[len(flat) :])))
    table = document.tables
    for depth, part in enumerate(path[:-1], start=1):
        inner = table.setdefault(str(part), {})
        if not isinstance(inner, dict):
            document.problems.append(Problem(path, f"{dotted(path[:depth])} is no table"))
            return
        table = inner
    document.overridden.add(path)
    if flat is not None:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            value = text  # as it was typed, for passwords such as 0123, 1_000, 1e5
        _set_flat(document, flat, table, str(path[-1]), value)
    else:
        table[str(path[-1])] = value
        for each in FLAT_TABLES:
            if each[: len(path)] == path:
                _flatten_in_place(document, each)


def _set_flat(document: Document, flat: KeyPath, table: Table, name: str, value: object) -> None:
    for key in list(table):
        if key.startswith(f"{name}.") and isinstance(value, dict):
            del table[key]
    table.update(_flat(document, flat, {name: value}))


def _key_path(key: str) -> KeyPath | None:
    """Return the parts of a dotted TOML key, or None if it is not one."""
    parsed = _parse(f"{key.strip()} = 0") if "\n" not in key else None
    paths = list(_paths(parsed or {}))
    return paths[-1] if paths and not key.lstrip().startswith(("#", "[")) else None


def _value(text: str) -> object:
    parsed = _parse(f"value = {text}")
    if parsed is None or set(parsed) != {"value"}:
        return text
    value = parsed["value"]
    return text if isinstance(value, (datetime.date, datetime.time)) else value
