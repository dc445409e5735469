"""Parses the schema of XML files, Spark DDL, to a tree of types, as far as elements and attributes can be read by it.

    source.schema ─▶ parse ─▶ fields ─▶ problems: for the spec (formats/xml_files.py)
                                    └─▶ columns.py: which elements and attributes are read, and as what

Uses no Spark, since tasks and the check of a spec have none; reading/xml_scan.py compares the result with Spark's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r"\s+|(?P<quoted>`(?:[^`]|``)+`)|(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")|(?P<word>\w+)|(?P<sign>.)"
)
_ALIASES = {
    "INTEGER": "INT",
    "LONG": "BIGINT",
    "SHORT": "SMALLINT",
    "BYTE": "TINYINT",
    "REAL": "FLOAT",
    "DEC": "DECIMAL",
    "NUMERIC": "DECIMAL",
}
PLAIN = (
    *("STRING", "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE"),
    *("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"),
)
_MOST_DIGITS = 38
_TYPES = f"{', '.join(PLAIN)}, DECIMAL(p,s), ARRAY and STRUCT"


class SchemaError(Exception):
    """The reason why XML cannot be read by a schema."""


@dataclass(frozen=True)
class Type:
    """A type of Spark SQL. DECIMAL has `precision` and `scale`, ARRAY its `element`, STRUCT its `fields`."""

    name: str
    precision: int = 0
    scale: int = 0
    element: Type | None = None
    fields: tuple[Field, ...] = ()

    @property
    def ddl(self) -> str:
        """The type as Spark DDL."""
        if self.name == "DECIMAL":
            return f"DECIMAL({self.precision},{self.scale})"
        if self.element is not None:
            return f"ARRAY<{self.element.ddl}>"
        if self.name == "STRUCT":
            return f"STRUCT<{', '.join(f'{_quoted(field.name)}: {field.type.ddl}' for field in self.fields)}>"
        return self.name


@dataclass(frozen=True)
class Field:
    """A column, or a field of a struct."""

    name: str
    type: Type


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def parse(ddl: str) -> tuple[Field, ...]:
    """Return the columns of a schema. Raises SchemaError."""
    return _Reader(ddl).columns()


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


class _Reader:
    """Reads the tokens of a schema from left to right."""

    def __init__(self, ddl: str) -> None:
        found = [match for match in _TOKEN.finditer(ddl) if match.lastgroup]
        self._tokens = [(str(match.lastgroup), match.group()) for match in found]
        self._at = 0

    def columns(self) -> tuple[Field, ...]:
        fields = self._fields("")
        if self._at < len(self._tokens):
            raise SchemaError(f"'{self._text()}' is not understood in it")
        return fields

    def _fields(self, path: str) -> tuple[Field, ...]:
        fields: list[Field] = []
        while self._at < len(self._tokens) and self._text() != ">":
            kind, text = self._tokens[self._at]
            if kind not in ("quoted", "word"):
                raise SchemaError(f"'{text}' is not understood in it")
            self._at += 1
            name = text[1:-1].replace("``", "`") if kind == "quoted" else text
            if self._text() == ":":
                self._at += 1
            fields.append(Field(name, self._type(f"{path}{name}")))
            self._comment(f"{path}{name}")
            if self._text() != ",":
                break
            self._at += 1
            if self._text() in ("", ">"):
                raise SchemaError("it ends with a comma")
        return tuple(fields)

    def _type(self, path: str) -> Type:
        kind, text = self._tokens[self._at] if self._at < len(self._tokens) else ("", "")
        if kind != "word":
            raise SchemaError(f"the column {path} has no type")
        self._at += 1
        name = _ALIASES.get(text.upper(), text.upper())
        if name == "DECIMAL":
            return self._decimal(path)
        if name == "ARRAY":
            self._expect("<", path)
            element = self._type(path)
            self._expect(">", path)
            return Type("ARRAY", element=element)
        if name == "STRUCT":
            self._expect("<", path)
            fields = self._fields(f"{path}.")
            self._expect(">", path)
            if not fields:
                raise SchemaError(f"{path} is a STRUCT without fields")
            return Type("STRUCT", fields=fields)
        if name not in PLAIN:
            raise SchemaError(f"the column {path} is of type {name}, as which no XML is read: take one of {_TYPES}")
        return Type(name)

    def _decimal(self, path: str) -> Type:
        numbers = [10, 0]
        if self._text() == "(":
            self._at += 1
            numbers = [self._number(path), 0]
            if self._text() == ",":
                self._at += 1
                numbers[1] = self._number(path)
            self._expect(")", path)
        precision, scale = numbers
        if not 0 < precision <= _MOST_DIGITS or scale > precision:
            raise SchemaError(f"the column {path} is of a type that there is not, DECIMAL({precision},{scale})")
        return Type("DECIMAL", precision, scale)

    def _number(self, path: str) -> int:
        text = self._text()
        if not (text.isascii() and text.isdigit()):
            raise SchemaError(f"the type of the column {path} is not understood")
        self._at += 1
        return int(text)

    def _expect(self, sign: str, path: str) -> None:
        if self._text() != sign:
            raise SchemaError(f"the type of the column {path} is not understood: '{sign}' is missing")
        self._at += 1

    def _comment(self, path: str) -> None:
        """Skip COMMENT '…'. Raises SchemaError for other text after a type, since it could change the values."""
        if self._text().upper() == "COMMENT" and self._at + 1 < len(self._tokens):
            self._at += 2
        if self._text().upper() == "NOT":
            raise SchemaError(
                f"the column {path} is NOT NULL, and an element that is missing is null; leave NOT NULL out"
            )
        if self._text() not in ("", ",", ">"):
            raise SchemaError(f"'{self._text()}' after the type of the column {path} is not understood")

    def _text(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""
