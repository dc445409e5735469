"""Parses a schema (Spark DDL) for the offline check: names, types and unknown types.

Only Spark decides whether a schema is valid; one that is not understood here is accepted. lint.py uses the result, `Columns`.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field

from eosingest.errors import SpecError
from eosingest.spec.expressions import Token, tokens

_PLAIN = (
    *("boolean", "tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long", "float", "real", "double"),
    *("decimal", "dec", "numeric", "date", "time", "timestamp", "timestamp_ntz", "timestamp_ltz", "string", "char"),
    *("character", "varchar", "binary", "void", "interval", "variant", "geometry", "geography"),
)
_NESTED = ("array", "map", "struct")
_TYPES = (*_PLAIN, *_NESTED)
# Types by their names in other systems.
_ELSEWHERE = {
    **dict.fromkeys(("text", "str", "utf8", "nvarchar", "uuid", "object", "json", "varchar2"), "STRING"),
    **dict.fromkeys(("datetime", "datetime64", "timestamptz"), "TIMESTAMP"),
    **dict.fromkeys(("int64", "uint32", "number", "serial", "bigserial"), "BIGINT"),
    **dict.fromkeys(("int32", "int4", "uint16", "mediumint"), "INT"),
    **dict.fromkeys(("int16", "int2"), "SMALLINT"),
    **dict.fromkeys(("float64", "float8"), "DOUBLE"),
    **dict.fromkeys(("float32", "float4"), "FLOAT"),
    **dict.fromkeys(("bytes", "blob", "bytea", "varbinary"), "BINARY"),
    "bool": "BOOLEAN",
    "list": "ARRAY<…>",
}


@dataclass
class Columns:
    """The columns that expressions may name. `types` maps a lower-case name to (name, lower-case type; "" if not known).

    `sure`: there are no other columns. Otherwise an unknown name may be a column that is not known here.
    """

    types: dict[str, tuple[str, str]] = field(default_factory=dict)
    sure: bool = True

    def add(self, name: str, type_: str) -> None:
        """Add a column."""
        self.types[name.lower()] = (name, type_)

    @property
    def names(self) -> list[str]:
        """The names as written."""
        return [name for name, _ in self.types.values()]

    def with_types(self, others: Mapping[str, str]) -> Columns:
        """Return these columns and `others`, which maps names to types."""
        more = {name.lower(): (name, type_) for name, type_ in others.items()}
        return Columns({**more, **self.types}, self.sure)


class _NotUnderstoodError(Exception):
    """The schema is not understood here: nothing is reported."""


def columns_of(ddl: str) -> tuple[Columns | None, list[str]]:
    """Return the columns of a schema (None if it is not understood) and its problems."""
    try:
        reader = _Reader(tokens(ddl))
        columns = reader.columns()
    except SpecError as error:
        return None, [error.message]
    except _NotUnderstoodError:
        return None, []
    return columns, reader.problems


class _Reader:
    """Reads the tokens of one schema from left to right."""

    def __init__(self, found: list[Token]) -> None:
        self._found = found
        self._at = 0
        self.problems: list[str] = []

    def columns(self) -> Columns:
        if self._text() == "struct" and self._text(1) in ("<", "<>"):
            self._at += 2
        columns = Columns()
        self._fields(columns)
        return columns

    def _fields(self, columns: Columns) -> None:
        """Read fields up to the end, or to the bracket that closes them."""
        while self._at < len(self._found) and self._text() != ">":
            name = self._name()
            if self._text() == ":":
                self._at += 1
            if self._text() in ("", ",", ">"):
                self.problems.append(f"the column {name} has no type")
                columns.add(name, "")
            else:
                columns.add(name, self._type(name))
            self._rest_of_column()
            if self._text() == ",":
                self._at += 1

    def _name(self) -> str:
        token = self._found[self._at]
        if not token.name:
            raise _NotUnderstoodError
        self._at += 1
        return token.text[1:-1].replace("``", "`") if token.kind == "quoted" else token.text

    def _type(self, column: str) -> str:
        token = self._found[self._at]
        word = token.text.lower()
        if token.kind != "word":
            raise _NotUnderstoodError
        self._at += 1
        if word not in _TYPES:
            self.problems.append(f"the column {column} is of an unknown type, {token.text}{_meant(word)}")
            word = ""
        if self._text() == "(":
            self._to_closing()
        elif self._text() == "<>":
            self._at += 1
        elif self._text() == "<":
            self._at += 1
            self._inner(word, column)
            if self._text() != ">":
                raise _NotUnderstoodError
            self._at += 1
        return word

    def _inner(self, word: str, column: str) -> None:
        if word == "struct":
            self._fields(Columns())
        elif word in ("array", "map"):
            self._type(column)
            if word == "map" and self._text() == ",":
                self._at += 1
                self._type(column)
        else:
            raise _NotUnderstoodError

    def _rest_of_column(self) -> None:
        """Skip NOT NULL, COMMENT '…', COLLATE … and the units of an interval."""
        depth = 0
        while self._at < len(self._found):
            text = self._text()
            if depth == 0 and text in (",", ">"):
                return
            depth += {"(": 1, ")": -1}.get(text, 0)
            self._at += 1

    def _to_closing(self) -> None:
        while self._at < len(self._found) and self._text() != ")":
            self._at += 1
        self._at += 1

    def _text(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._found[at].text.lower() if at < len(self._found) else ""


def _meant(word: str) -> str:
    if word in _ELSEWHERE:
        return f"; Spark calls it {_ELSEWHERE[word]}"
    close = difflib.get_close_matches(word, _TYPES, n=1)
    return f"; did you mean {close[0].upper()}?" if close else f"; known are {', '.join(_TYPES).upper()}"
