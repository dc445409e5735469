"""Parses schemas, which are Spark DDL, to trees of types, without Spark: for the check of a spec, digests, and readers of XML.

    ddl ─▶ parse ─▶ fields ─▶ columns.py: what expressions may name, and types that are none
                          ├─▶ normalise_ddl: the digest
                          └─▶ sources/files/formats/xml/schema.py: what XML can be read as

Only Spark decides whether a schema is valid; what is not understood here is a DdlError.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from eosingest.spec.expressions import Token, normalise, quote_name, tokens

_ALIASES = {
    "INTEGER": "INT",
    "LONG": "BIGINT",
    "SHORT": "SMALLINT",
    "BYTE": "TINYINT",
    "REAL": "FLOAT",
    "DEC": "DECIMAL",
    "NUMERIC": "DECIMAL",
    "CHARACTER": "CHAR",
}


class DdlError(Exception):
    """The reason why a schema is not understood here."""


@dataclass(frozen=True)
class Type:
    """A type of Spark SQL, or a word in its place.

    `name`: in upper case and without aliases, "" if it is missing. `numbers`: those in parentheses. ARRAY has its `element`;
    MAP its `key`, and its values as `element`; STRUCT its `fields`.
    """

    name: str
    numbers: tuple[int, ...] = ()
    key: Type | None = None
    element: Type | None = None
    fields: tuple[Field, ...] = ()

    @property
    def precision(self) -> int:
        """The digits of a DECIMAL."""
        return self.numbers[0] if self.numbers else 10

    @property
    def scale(self) -> int:
        """The digits of a DECIMAL after its point."""
        return self.numbers[1] if len(self.numbers) > 1 else 0

    @property
    def ddl(self) -> str:
        """The type as Spark DDL."""
        if self.name == "DECIMAL":
            return f"DECIMAL({self.precision},{self.scale})"
        if self.name == "STRUCT":
            return f"STRUCT<{', '.join(field.ddl for field in self.fields)}>"
        if self.element is not None:
            inner = ", ".join(each.ddl for each in (self.key, self.element) if each is not None)
            return f"{self.name}<{inner}>"
        return f"{self.name}({','.join(map(str, self.numbers))})" if self.numbers else self.name


@dataclass(frozen=True)
class Field:
    """A column, or a field of a struct. `rest`: what follows the type, such as NOT NULL or COMMENT."""

    name: str
    type: Type
    rest: str = ""

    @property
    def ddl(self) -> str:
        """The column as Spark DDL."""
        return f"{quote_name(self.name)}: {self.type.ddl}{' ' if self.rest else ''}{self.rest}"


def parse(ddl: str) -> tuple[Field, ...]:
    """Return the columns of a schema. Raises DdlError; SpecError for an unclosed quote or comment."""
    return _Parser(tokens(ddl)).columns()


def normalise_ddl(ddl: str) -> str:
    """Return the schema in its normal form: types in upper case and without aliases, `name TYPE` as `name: TYPE`.

    Names keep their case, since the names of JSON fields and Parquet columns may differ in case only.
    """
    try:
        fields = parse(ddl)
    except DdlError:
        return normalise(ddl)
    return ", ".join(field.ddl for field in fields)


class _Parser:
    """Reads the tokens of a schema from left to right."""

    def __init__(self, found: list[Token]) -> None:
        self._found = found
        self._at = 0

    def columns(self) -> tuple[Field, ...]:
        if self._text() == "STRUCT" and self._text(1) == "<":  # a schema may be written as a type
            return self._type().fields
        fields = self._fields()
        if self._at < len(self._found):
            raise DdlError(f"'{self._found[self._at].text}' is not understood in it")
        return fields

    def _fields(self) -> tuple[Field, ...]:
        fields: list[Field] = []
        while self._text() not in ("", ">"):
            token = self._found[self._at]
            if not token.name:
                raise DdlError(f"'{token.text}' is not understood in it")
            self._at += 1
            if self._text() == ":":
                self._at += 1
            name = token.text[1:-1].replace("``", "`") if token.kind == "quoted" else token.text
            fields.append(Field(name, self._type(), self._rest()))
            if self._text() == ",":
                self._at += 1
                if self._text() in ("", ">"):
                    raise DdlError("it ends with a comma")
        return tuple(fields)

    def _type(self) -> Type:
        word = self._text()
        if word in ("", ",", ">"):
            return Type("")
        if self._found[self._at].kind != "word":
            raise DdlError(f"'{self._found[self._at].text}' is no type")
        self._at += 1
        name = _ALIASES.get(word, word)
        if self._text() == "<>":
            self._at += 1
            return Type(name)
        if self._text() == "(":
            return Type(name, self._numbers())
        if self._text() != "<":
            return Type(name)
        self._at += 1
        found = self._nested(name)
        self._expect(">")
        return found

    def _nested(self, name: str) -> Type:
        if name == "STRUCT":
            return Type(name, fields=self._fields())
        if name == "ARRAY":
            return Type(name, element=self._type())
        if name != "MAP":
            raise DdlError(f"'{name}' is no type with others in it")
        key = self._type()
        self._expect(",")
        return Type(name, key=key, element=self._type())

    def _numbers(self) -> tuple[int, ...]:
        self._expect("(")
        found: list[int] = []
        while self._text() != ")":
            if not re.fullmatch("[0-9]{1,9}", self._text()):
                raise DdlError(f"'{self._text()}' is no number of digits or characters")
            found.append(int(self._text()))
            self._at += 1
            if self._text() == ",":
                self._at += 1
        self._expect(")")
        return tuple(found)

    def _rest(self) -> str:
        """Return what is left of a column: words in upper case, texts as they are."""
        found, depth = list[str](), 0
        while self._at < len(self._found) and not (depth == 0 and self._text() in (",", ">")):
            depth += {"(": 1, ")": -1}.get(self._text(), 0)
            token = self._found[self._at]
            found.append(token.text.upper() if token.kind == "word" else token.text)
            self._at += 1
        return " ".join(found)

    def _expect(self, sign: str) -> None:
        if self._text() != sign:
            raise DdlError(f"'{sign}' is missing after a type")
        self._at += 1

    def _text(self, ahead: int = 0) -> str:
        """Return a token in upper case, "" at the end."""
        at = self._at + ahead
        return self._found[at].text.upper() if at < len(self._found) else ""
