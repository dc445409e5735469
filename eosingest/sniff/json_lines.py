"""Detects types that fit all JSON rows: one record per line, or one document per file. Refuses several multi-line records."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from eosingest.errors import FatalError, listed
from eosingest.sniff.convert import command
from eosingest.sniff.input import Opened
from eosingest.sniff.result import Column, Found, is_kept_by_double, quoted, same_but_for_case
from eosingest.sources.files.formats.json_names import NameTwiceError, once

_NULL, _LONG = "null", "BIGINT of more digits than DOUBLE is sure to keep"
# What becomes STRING, which keeps any JSON as it is written, and the note that says so.
_DIGITS, _MIXED, _DEEP = "number beyond BIGINT and DOUBLE", "several types", "nested deep"
_AS_TEXTS = {
    _DIGITS: "numbers that neither BIGINT nor DOUBLE is sure to keep become texts, as they are written: {}; where that does not"
    " matter, write DOUBLE, or a DECIMAL of enough digits, into the schema",
    _MIXED: "values of several types become texts, as they are written: {}",
    _DEEP: "values that are nested too deep for a schema become texts, as they are written: {}",
}
_NUMBERS = {"BIGINT", "DOUBLE", _LONG, _DIGITS}
_NAMED_AT_MOST = 5
_CASE = {"spark.sql.caseSensitive": "true"}
_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")  # or a whole pair
_SURE_DIGITS = 15
_JQ_VERSION = "jq 1.7 or later: earlier versions round numbers of more than 15 digits"
_DEEPEST = 100  # levels of nesting that a schema describes; a deeper value is the STRING of its JSON


class _Struct(dict[str, Any]):
    """Fields by name, with their types."""


class _Array(list[Any]):
    """A list with one element: the type of the array's elements."""


def look(data: Opened) -> Found:
    """Detect the schema of a file's records. Raises FatalError if it is JSON of another form, or not JSON."""
    raw, whole = data.bytes()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FatalError(
            f"{data.file} is not UTF-8 text (byte {error.start})",
            code="encoding",
            hint="convert it to UTF-8, with iconv -f and the name of its encoding",
        ) from None
    document = _document(data, text) if whole else None
    if document is not None:
        note = "it is one document, and so is each file then (multiLine), read by one task"
        return _found(document, {"multiLine": True}, notes=(note,), whole=whole)
    _refuse_other_forms(data, text)
    lines = enumerate(text.split("\n"), start=1)
    return _found((_parsed(data, number, line) for number, line in lines if line.strip()), {}, whole=whole)


def _found(
    records: Iterable[dict[str, Any]], options: dict[str, str | bool], *, whole: bool, notes: tuple[str, ...] = ()
) -> Found:
    """Return the schema that fits all records."""
    merged: Any = _Struct()
    present: dict[str, int] = {}
    rows = 0
    for value in records:
        rows += 1
        for name, inner in value.items():
            present[name] = present.get(name, 0) + (inner is not None)
        merged = _merged(merged, _type_of(value))
    schema = _Schema()
    columns = tuple(
        Column(name, schema.ddl(type_, name), present[name] == rows) for name, type_ in schema.named(merged)
    )
    if not columns:
        note = "there are no fields with a name: no schema is written; check the records with preview"
        return Found("json", options, notes=(*notes, note), whole=whole)
    conf = _CASE if schema.by_case else {}
    return Found("json", options, columns, conf, (*notes, *schema.notes()), whole, drops_fields=schema.nameless)


class _Schema:
    """Makes the DDL of types, and the notes about it."""

    def __init__(self) -> None:
        self.by_case = False  # whether names differ by case alone
        self.nameless = False  # whether a name is empty
        self._texts: dict[str, list[str]] = {}

    def ddl(self, type_: Any, path: str) -> str:
        if isinstance(type_, _Struct):
            fields = [f"{quoted(name)}: {self.ddl(inner, f'{path}.{name}')}" for name, inner in self.named(type_)]
            return f"STRUCT<{', '.join(fields)}>"
        if isinstance(type_, _Array):
            return f"ARRAY<{self.ddl(type_[0], path)}>"
        if type_ in _AS_TEXTS:
            self._texts.setdefault(type_, []).append(path)
            return "STRING"
        return "STRING" if type_ == _NULL else "BIGINT" if type_ == _LONG else str(type_)

    def named(self, struct: _Struct) -> list[tuple[str, Any]]:
        """Return the fields that a schema can name."""
        self.by_case |= same_but_for_case(list(struct))
        self.nameless |= "" in struct
        return [(name, inner) for name, inner in struct.items() if name]

    def notes(self) -> Iterator[str]:
        for kind, text in _AS_TEXTS.items():
            if names := self._texts.get(kind):
                yield text.format(listed(names, _NAMED_AT_MOST))
        if self.by_case:
            yield "there are fields that differ by case alone, which Spark reads with the setting that is written"
        if self.nameless:
            yield (
                "fields with an empty name are no columns, and are not sent: to send the lines as they are, write"
                ' format = "text", without schema and unknown_fields'
            )


def _document(data: Opened, text: str) -> list[dict[str, Any]] | None:
    """Return the records of an array of objects, or of one object over several lines; None if the text is neither."""
    if not text.lstrip().startswith("[") and "\n" not in text.strip():
        return None
    try:
        found = json.loads(text, object_pairs_hook=once, parse_float=_Number, parse_int=_Number)
    except NameTwiceError as error:
        raise _name_twice(f"{data.file}: {error}") from None
    except (ValueError, RecursionError):
        return None
    records = found if isinstance(found, list) else [found]
    _refuse_half_surrogates(data, "the document", text, found)
    return records if all(isinstance(record, dict) for record in records) else None


def why_not_lines(data: Opened) -> FatalError | None:
    """Return the error for JSON that is certainly not one record per line, by its first bytes; None if it may be."""
    text = data.head.decode(errors="replace").lstrip("\ufeff \t\r\n")
    first, newline, _ = text.partition("\n")
    if not newline or first.strip() not in ("[", "{", "[{"):
        return None
    try:
        _refuse_other_forms(data, "[" if text.startswith("[") else "{\n}")
    except FatalError as error:
        return error
    return None


def _refuse_other_forms(data: Opened, text: str) -> None:
    if text.lstrip().startswith("["):
        line, name = command(data, "jq -c '.[]'", ".jsonl")
        raise FatalError(
            f"{data.file} is one JSON array; records are read one a line",
            code="json-array",
            hint=f"{line}, then: eosingest init --from {name} ({_JQ_VERSION});"
            " or say in the spec that each file is one document: options = { multiLine = true }",
        )
    first = next((line for line in text.split("\n") if line.strip()), "")
    try:
        json.loads(first)
    except RecursionError:
        return  # `_parsed` reports it with the line
    except ValueError:
        try:
            json.JSONDecoder().raw_decode(text.lstrip())
        except (ValueError, RecursionError):
            return  # not JSON at all: `_parsed` reports it with the line
        line, name = command(data, "jq -c .", ".jsonl")
        raise FatalError(
            f"{data.file} has records over several lines; they are read one a line",
            code="json-lines",
            hint=f"{line}, then: eosingest init --from {name} ({_JQ_VERSION});"
            " or, where each file is one record, say in the spec: options = { multiLine = true }",
        ) from None


def _parsed(data: Opened, number: int, line: str) -> dict[str, Any]:
    try:
        value = json.loads(line, object_pairs_hook=once, parse_float=_Number, parse_int=_Number)
    except NameTwiceError as error:
        raise _name_twice(f"{data.file}: line {number}: {error}") from None
    except RecursionError:
        raise FatalError(
            f"{data.file}: line {number} is nested too deep to be read",
            code="corrupt-row",
            hint='remove the line, or send the lines as they are: format = "text"',
        ) from None
    except ValueError as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise FatalError(
            f"{data.file}: line {number} is not JSON: {reason}", code="corrupt-row", hint="correct the line"
        ) from None
    if not isinstance(value, dict):
        raise FatalError(
            f"{data.file}: line {number} is no JSON object",
            code="corrupt-row",
            hint='to send the lines as they are: format = "text"',
        )
    _refuse_half_surrogates(data, f"line {number}", line, value)
    return value


def _name_twice(message: str) -> FatalError:
    hint = 'correct it, or send the lines as they are: format = "text"; a copy by jq -c has the last value of each name'
    return FatalError(message, code="corrupt-row", hint=hint)


def _refuse_half_surrogates(data: Opened, where: str, text: str, value: Any) -> None:
    """Raise FatalError if the text escapes half a surrogate pair, in a name or a value: it is no character."""
    if _HALF_PAIR.search(text) is None:
        return
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise FatalError(
            f"{data.file}: {where} has half a surrogate pair, which is no character",
            code="corrupt-row",
            hint='correct it, or send the lines as they are: format = "text"',
        ) from None


class _Number(str):
    """A number as it is written in JSON: whether a type holds it exactly depends on its digits."""

    __slots__ = ()


def _type_of(value: Any, level: int = 0) -> Any:
    if value is None:
        return _NULL
    if isinstance(value, _Number):
        return _number_type(value)
    if isinstance(value, bool):
        return "BOOLEAN"
    if isinstance(value, float):
        return "DOUBLE"  # NaN, Infinity
    if isinstance(value, list | dict) and level > _DEEPEST:
        return _DEEP
    if isinstance(value, list):
        merged: Any = _NULL
        for each in value:
            merged = _merged(merged, _type_of(each, level + 1))
        return _Array([merged])
    if isinstance(value, dict):
        return _Struct({name: _type_of(inner, level + 1) for name, inner in value.items()})
    return "STRING"


def _number_type(text: str) -> str:
    if not set(text) & set(".eE"):
        # Check the length first: Python's int() takes no more than 4,300 digits (sys.set_int_max_str_digits).
        if len(text) > 20 or not -(2**63) <= int(text) < 2**63:
            return _DIGITS
        return "BIGINT" if len(text.lstrip("-")) <= _SURE_DIGITS else _LONG
    return "DOUBLE" if is_kept_by_double(text) else _DIGITS


def _merged(one: Any, other: Any) -> Any:
    """Return the type that holds both; if there is none, the reason why it is STRING, which holds any JSON text."""
    if one == other or other == _NULL:
        return one
    if one == _NULL:
        return other
    if isinstance(one, _Struct) and isinstance(other, _Struct):
        return _Struct({name: _merged(one.get(name, _NULL), other.get(name, _NULL)) for name in [*one, *other]})
    if isinstance(one, _Array) and isinstance(other, _Array):
        return _Array([_merged(one[0], other[0])])
    if _DEEP in (one, other):
        return _DEEP
    both = {str(one), str(other)}
    if not both <= _NUMBERS:
        return _MIXED
    return "DOUBLE" if both == {"BIGINT", "DOUBLE"} else _LONG if both == {"BIGINT", _LONG} else _DIGITS
