"""Checks the schema of XML files: whether elements and attributes can be read by it.

    source.schema ─▶ parse ─▶ fields ─▶ problems: for the spec (formats/xml_files.py)
                                    └─▶ columns.py: which elements and attributes are read, and as what

Uses no Spark, since tasks and the check of a spec have none; reading/xml_scan.py compares the result with Spark's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from eosingest.errors import SpecError
from eosingest.spec import ddl as ddl_parser
from eosingest.spec.ddl import DdlError, Field, Type

_COMMENT = re.compile(r"""COMMENT (?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""", re.DOTALL)
PLAIN = (
    *("STRING", "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE"),
    *("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"),
)
_MOST_DIGITS = 38
_TYPES = f"{', '.join(PLAIN)}, DECIMAL(p,s), ARRAY and STRUCT"


class SchemaError(Exception):
    """The reason why XML cannot be read by a schema."""


def parse(ddl: str) -> tuple[Field, ...]:
    """Return the columns of a schema. Raises SchemaError if XML cannot be read by it."""
    try:
        fields = ddl_parser.parse(ddl)
    except (DdlError, SpecError) as error:
        raise SchemaError(str(error)) from None
    for field in fields:
        _check(field, field.name)
    return fields


def _check(field: Field, path: str) -> None:
    """Raise SchemaError for a column that XML cannot be read as."""
    kind = field.type
    while kind.name == "ARRAY" and kind.element is not None:
        kind = kind.element
    if kind.name == "STRUCT" and not kind.fields:
        raise SchemaError(f"{path} is a STRUCT without fields")
    if not kind.name:
        raise SchemaError(f"the column {path} has no type")
    if kind.name == "DECIMAL":
        if not 0 < kind.precision <= _MOST_DIGITS or kind.scale > kind.precision:
            raise SchemaError(f"the column {path} is of a type that there is not, {kind.ddl}")
    elif kind.name != "STRUCT" and (kind.name not in PLAIN or kind.numbers):
        raise SchemaError(f"the column {path} is of type {kind.name}, as which no XML is read: take one of {_TYPES}")
    if field.rest.startswith("NOT NULL"):
        raise SchemaError(f"the column {path} is NOT NULL, and an element that is missing is null; leave NOT NULL out")
    if field.rest and not _COMMENT.fullmatch(field.rest):
        raise SchemaError(f"'{field.rest}' after the type of the column {path} is not understood")
    for inner in kind.fields:
        _check(inner, f"{path}.{inner.name}")


def problems(ddl: str, attribute_prefix: str, value_tag: str) -> Iterator[str]:
    """Yield why XML cannot be read by a schema with this prefix for attributes, and this name for text next to elements."""
    try:
        fields = parse(ddl)
    except SchemaError as error:
        yield str(error)
        return
    if not fields:
        yield "has no columns"
    yield from _problems(Type("STRUCT", fields=fields), "", attribute_prefix, value_tag)


def _problems(kind: Type, path: str, prefix: str, value_tag: str) -> Iterator[str]:
    seen: dict[str, str] = {}
    for field in kind.fields:
        name = f"{path}{field.name}"
        other = seen.setdefault(field.name.lower(), field.name)
        if other is not field.name:
            yield f"{path}{other} and {name} are one column to Spark, which ignores case"
        plain = field.type.element is None and field.type.name != "STRUCT"
        if field.name == value_tag and not plain:
            yield f"{name} is the text next to attributes and elements: it can be no {field.type.name}"
        elif field.name != value_tag and field.name.startswith(prefix) and not plain:
            yield (
                f"{name} is an attribute, by its name, and can be no {field.type.name}; if it is an element, write another"
                " attributePrefix into source.options"
            )
        inner = field.type.element or field.type
        if inner.element is not None:
            yield f"{name} is an array of arrays, and repeated elements are one array"
        yield from _problems(inner, f"{name}.", prefix, value_tag)
