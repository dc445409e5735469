"""Checks a schema (Spark DDL) offline: its names, its types, and words that are no types.

Only Spark decides whether a schema is valid; one that is not understood here is accepted. lint.py uses the result, `Columns`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from eosingest.errors import SpecError
from eosingest.spec.ddl import DdlError, Field, Type, parse

_TYPES = (
    *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "DATE", "TIME", "TIMESTAMP"),
    *("TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "STRING", "CHAR", "VARCHAR", "BINARY", "VOID", "INTERVAL", "VARIANT"),
    *("GEOMETRY", "GEOGRAPHY", "ARRAY", "MAP", "STRUCT"),
)
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

    `sure`: there are no other columns. Otherwise an unknown name may be a column that is not known here. `unlisted` are names
    in lower case of further columns, which `*` does not contain.
    """

    types: dict[str, tuple[str, str]] = field(default_factory=dict)
    sure: bool = True
    unlisted: tuple[str, ...] = ()

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
        return Columns({**more, **self.types}, self.sure, self.unlisted)


def columns_of(ddl: str) -> tuple[Columns | None, list[str]]:
    """Return the columns of a schema (None if it is not understood) and its problems."""
    try:
        fields = parse(ddl)
    except SpecError as error:
        return None, [error.message]
    except DdlError:
        return None, []
    columns = Columns()
    for each in fields:
        columns.add(each.name, each.type.name.lower() if each.type.name in _TYPES else "")
    return columns, list(_problems(fields))


def _problems(fields: Iterable[Field]) -> Iterator[str]:
    for each in fields:
        yield from _problems_of(each.type, each.name)


def _problems_of(kind: Type, column: str) -> Iterator[str]:
    if not kind.name:
        yield f"the column {column} has no type"
    elif kind.name not in _TYPES:
        yield f"the column {column} is of an unknown type, {kind.name}{_meant(kind.name.lower())}"
    for inner in (kind.key, kind.element):
        if inner is not None:
            yield from _problems_of(inner, column)
    yield from _problems(kind.fields)


def _meant(word: str) -> str:
    if word in _ELSEWHERE:
        return f"; Spark calls it {_ELSEWHERE[word]}"
    close = difflib.get_close_matches(word.upper(), _TYPES, n=1)
    return f"; did you mean {close[0]}?" if close else f"; known are {', '.join(_TYPES)}"
