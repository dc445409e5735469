"""Parses an XML document row by row to its end: one parser for the inspection, which drops the rows, and for the tasks.

    pieces of a file ─▶ text.py ─▶ expat ─▶ the elements named rowTag, outermost ones, as the columns of columns.py ─▶ rows

Memory holds the current row, and of it only the columns of the schema. Raises BadTextError, with the line, if the document is
not well-formed or does not fit the schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from xml.parsers import expat

from eosingest.sources.files.bytes.text_blocks import BadTextError
from eosingest.sources.files.formats.unknown_fields import UnknownFields
from eosingest.sources.files.formats.xml.columns import Child, Scalar, Struct, XmlSettings, columns_of
from eosingest.sources.files.formats.xml.text import document_text
from eosingest.sources.files.formats.xml.values import WHITE, BadValueError

LONGEST_ROW = 256 << 20  # characters of the texts that are read of a row
LONGEST_TAG = 16 << 20  # bytes of a tag, comment or instruction, which the parser keeps as a whole
_DEEPEST = 10_000  # nested elements, whose names the parser keeps
_BATCH_ROWS = 2000
_BATCH_CHARACTERS = 1 << 20
_BUFFERED = 1 << 16  # bytes of text per callback
_OF_XML_ITSELF = re.compile(r"xmlns$|xmlns:|xsi:")  # attributes that are no data, as those of another prefix for `xsi`
_XSI_NAMESPACE = "http://www.w3.org/2001/XMLSchema-instance"
_SHOWN = 60
_ENDS_EARLY = expat.errors.codes[expat.errors.XML_ERROR_NO_ELEMENTS]
_MISSING = object()
_RESOLVED = "for a file that you trust: xmllint --noent --dtdattr --dropdtd FILE > NEW writes its resolved form"
Row = list[Any]


def read_rows(
    pieces: Iterable[bytes], settings: XmlSettings, unknown: UnknownFields | None = None
) -> Iterator[list[Row]]:
    """Yield the rows of a document in batches, up to its end; each row has its columns in the schema's order.

    `unknown` gets the elements and attributes of rows that the schema does not name.
    """
    text = document_text(pieces, settings.encoding)
    handler = _Handler(settings, text.declared, unknown)
    for piece in text.pieces:
        handler.feed(piece)
        yield from handler.batches()
    handler.end()
    yield from handler.batches(last=True)


@dataclass(frozen=True)
class XmlCheck:
    """Parses a document for the inspection (inspection.py) as the tasks will, and drops the rows. Pickled and sent to tasks.

    `refuses_unknown`: see `rows.ReadSettings`.
    """

    settings: XmlSettings
    refuses_unknown: bool = False

    def __call__(self, pieces: Iterable[bytes]) -> None:
        """Raise BadTextError for the first error in the document."""
        unknown = UnknownFields() if self.refuses_unknown else None
        for _ in read_rows(pieces, self.settings, unknown):
            pass
        if unknown is not None:
            unknown.refuse()


class _Open:
    """An element that is being read: its node, the values found so far, and its text."""

    __slots__ = ("child", "children", "interrupted", "nil", "node", "parts", "spoken", "values")

    def __init__(self, child: Child | None, node: Scalar | Struct, nil: bool) -> None:
        self.child = child
        self.node = node
        self.nil = nil
        self.values: Row = [_MISSING] * len(node.names) if isinstance(node, Struct) else []
        self.parts: list[str] = []
        self.children = False
        self.spoken = False  # there is text that is not white space
        self.interrupted = False  # and an element after it


class _Handler:
    """The callbacks of expat, which build the rows."""

    def __init__(self, settings: XmlSettings, declared: str | None, unknown: UnknownFields | None) -> None:
        self._settings = settings
        self._unknown = unknown
        self._declared = declared
        self._columns = columns_of(settings)
        self._stack: list[_Open] = []
        self._depth = 0  # of nesting in the document
        self._unread = 0  # of nesting inside an element that the schema does not name
        self._xsi_prefixes: list[tuple[int, frozenset[str]]] = [(0, frozenset(["xsi"]))]
        self._rows: list[Row] = []
        self._number = 0
        self._row_characters = 0
        self._characters = 0
        self._fed = 0
        parser = expat.ParserCreate("UTF-8")
        parser.buffer_text = True
        parser.buffer_size = _BUFFERED
        parser.ordered_attributes = True
        parser.XmlDeclHandler = self._declaration
        parser.StartDoctypeDeclHandler = self._doctype
        parser.SkippedEntityHandler = self._entity
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        self._parser = parser

    def feed(self, piece: str) -> None:
        """Parse a piece of the document."""
        data = piece.encode()
        self._fed += len(data)
        self._parse(data, last=False)
        if self._fed - max(0, self._parser.CurrentByteIndex) - len(data) > LONGEST_TAG:
            raise self._bad(f"a tag, comment or instruction of more than {LONGEST_TAG >> 20} MiB")

    def end(self) -> None:
        """Parse the end: there must be one root element, and it must be closed."""
        self._parse(b"", last=True)

    def batches(self, *, last: bool = False) -> Iterator[list[Row]]:
        """Yield the rows read so far, if there are many or their text is long."""
        if last or len(self._rows) >= _BATCH_ROWS or self._characters >= _BATCH_CHARACTERS:
            rows, self._rows, self._characters = self._rows, [], 0
            for at in range(0, len(rows), _BATCH_ROWS):
                yield rows[at : at + _BATCH_ROWS]

    def _parse(self, data: bytes, *, last: bool) -> None:
        try:
            self._parser.Parse(data, last)
        except expat.ExpatError as error:
            why = f"{expat.ErrorString(error.code)}, at column {error.offset + 1:,}"
            if error.code == _ENDS_EARLY:
                why = "it ends inside of an element" if self._depth else "there is no element in it"
            raise BadTextError(f"it is no well-formed XML: {why}", line=error.lineno) from None

    # ---- the document ----

    def _declaration(self, version: str, encoding: str | None, standalone: int) -> None:
        if version != "1.0":
            raise self._bad(f"it is XML {version}, and 1.0 is read")
        if encoding != self._declared:
            raise self._bad(f"its declaration names the encoding {encoding} in a way that is not understood")

    def _doctype(self, name: str, system: str | None, public: str | None, has_subset: int) -> None:
        if has_subset or system is not None:
            what = "declares entities or attributes" if has_subset else f"refers to another file, {system}"
            raise self._bad(f"its DOCTYPE {what}, which is not supported", hint=_RESOLVED)

    def _entity(self, name: str, is_parameter: bool) -> None:
        raise self._bad(f"the entity &{name}; is not declared in it")

    # ---- elements ----

    def _start(self, name: str, attributes: list[str]) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._bad(f"elements are nested deeper than {_DEEPEST:,}")
        settings = self._settings
        if self._unread:
            self._unread += 1
            if name == settings.row_tag:
                raise self._nested(name)
            return
        if attributes:
            self._see_prefixes(attributes)
        if not self._stack:
            if name == settings.row_tag:
                self._number += 1
                self._row_characters = 0
                self._open(None, self._columns, attributes)
            return
        outer = self._stack[-1]
        outer.children = True
        outer.interrupted = outer.spoken
        if isinstance(outer.node, Scalar):
            raise self._misfit(outer.node.path, f"is {outer.node.type.ddl}, and there is an element <{name}> in it")
        child = outer.node.children.get(name)
        if child is None:
            if name == settings.row_tag:
                raise self._nested(name)
            self._see_unknown(outer.node, name)
            self._unread = 1
            return
        if child.refused:
            raise self._bad(f"row {self._number:,}: there is {child.refused}")
        if outer.values[child.index] is not _MISSING and not child.repeated:
            raise self._misfit(child.node.path, f"is no ARRAY, and there is more than one <{name}>")
        self._open(child, child.node, attributes)

    def _open(self, child: Child | None, node: Scalar | Struct, attributes: list[str]) -> None:
        opened = _Open(child, node, nil=bool(attributes) and self._is_nil(attributes))
        self._stack.append(opened)
        if child is not None and not child.repeated:
            self._stack[-2].values[child.index] = None  # the element is present
        if attributes and (isinstance(node, Struct) or self._unknown is not None):
            of_node = node.attributes if isinstance(node, Struct) else {}
            for at in range(0, len(attributes), 2):
                found = of_node.get(attributes[at])
                if isinstance(node, Struct) and attributes[at] in node.refused_attributes:
                    raise self._bad(f"row {self._number:,}: there is {node.refused_attributes[attributes[at]]}")
                if found is None and not self._is_of_xml(attributes[at]):
                    self._see_unknown(node, f"{self._settings.attribute_prefix}{attributes[at]}")
                elif found is not None:
                    self._count(attributes[at + 1])
                    opened.values[found[0]] = self._value(found[1], attributes[at + 1])

    def _see_unknown(self, node: Scalar | Struct, name: str) -> None:
        if self._unknown is not None:
            self._unknown.add(f"{node.path}.{name}" if node.path else name, self._parser.CurrentLineNumber)

    def _text(self, data: str) -> None:
        if self._unread or not self._stack:
            return
        opened = self._stack[-1]
        if data.strip(WHITE):
            if isinstance(opened.node, Struct):
                if opened.node.text is None:
                    where = f"the column {opened.node.path}" if opened.node.path else f"<{self._settings.row_tag}>"
                    raise self._bad(
                        f"row {self._number:,}: there is text in {where}, and the schema has no"
                        f" {self._settings.value_tag} there: {_shown(data)}"
                    )
                if opened.interrupted:
                    raise self._misfit(opened.node.text[1].path, f"is text in several places: {_shown(data)}")
            opened.spoken = True
        self._count(data)
        opened.parts.append(data)

    def _end(self, name: str) -> None:
        if self._xsi_prefixes[-1][0] == self._depth:
            self._xsi_prefixes.pop()
        self._depth -= 1
        if self._unread:
            self._unread -= 1
            return
        if not self._stack:
            return
        opened = self._stack.pop()
        value = self._closed(opened)
        if opened.child is None:
            self._rows.append(value)
            return
        values, index = self._stack[-1].values, opened.child.index
        if opened.child.repeated:
            if values[index] is _MISSING:
                values[index] = []
            values[index].append(value)
        else:
            values[index] = value

    def _closed(self, opened: _Open) -> Any:
        """Return the value of an element at its end."""
        node = opened.node
        if opened.nil and (opened.children or opened.spoken):
            raise self._misfit(node.path or self._settings.row_tag, "is nil by its attribute, and not empty")
        if isinstance(node, Scalar):
            return None if opened.nil else self._value(node, "".join(opened.parts))
        if opened.nil and opened.child is not None and all(value is _MISSING for value in opened.values):
            return None
        values = [None if value is _MISSING else value for value in opened.values]
        if node.text is not None and (opened.spoken or not (opened.children or self._settings.trims)):
            text = "".join(opened.parts)
            values[node.text[0]] = self._value(node.text[1], text) if text else None
        return values if opened.child is None else dict(zip(node.names, values, strict=True))

    def _value(self, scalar: Scalar, text: str) -> Any:
        try:
            return scalar.value(text)
        except BadValueError as bad:
            why = f": {bad.why}" if bad.why else ""
            raise self._misfit(
                scalar.path, f"is {scalar.type.ddl}, and the value is {_shown(text)}{why}", hint=bad.hint
            ) from None

    def _count(self, text: str) -> None:
        self._characters += len(text)
        self._row_characters += len(text)
        if self._row_characters > LONGEST_ROW:
            raise self._bad(f"row {self._number:,} has more than {LONGEST_ROW >> 20} MiB")

    # ---- xsi:nil ----

    def _is_of_xml(self, attribute: str) -> bool:
        prefix, colon, _ = attribute.partition(":")
        return bool(_OF_XML_ITSELF.match(attribute)) or (bool(colon) and prefix in self._xsi_prefixes[-1][1])

    def _see_prefixes(self, attributes: list[str]) -> None:
        """Record which prefixes denote the namespace of `xsi`, in the element that begins."""
        prefixes = self._xsi_prefixes[-1][1]
        for at in range(0, len(attributes), 2):
            mark, _, prefix = attributes[at].partition(":")
            if mark == "xmlns" and prefix:
                prefixes = prefixes | {prefix} if attributes[at + 1] == _XSI_NAMESPACE else prefixes - {prefix}
        if prefixes != self._xsi_prefixes[-1][1]:
            self._xsi_prefixes.append((self._depth, prefixes))

    def _is_nil(self, attributes: list[str]) -> bool:
        for at in range(0, len(attributes), 2):
            prefix, _, name = attributes[at].partition(":")
            if name == "nil" and prefix in self._xsi_prefixes[-1][1]:
                value = attributes[at + 1].strip(WHITE)
                if value not in ("true", "1", "false", "0"):
                    raise self._bad(
                        f"row {self._number:,}: {attributes[at]} is neither true nor false: {_shown(value)}"
                    )
                return value in ("true", "1")
        return False

    # ---- errors ----

    def _bad(self, message: str, *, hint: str = "") -> BadTextError:
        return BadTextError(message, line=self._parser.CurrentLineNumber, hint=hint)

    def _misfit(self, column: str, words: str, *, hint: str = "") -> BadTextError:
        change = "correct the file, or give the column another type in source.schema"
        return self._bad(f"row {self._number:,}: column {column} {words}", hint=hint or change)

    def _nested(self, name: str) -> BadTextError:
        return self._bad(
            f"row {self._number:,}: there is a <{name}> in it, which is a row and none of its columns",
            hint=f"name the column {name} in source.schema, choose another rowTag, or correct the file",
        )


def _shown(text: str) -> str:
    text = text.strip(WHITE).replace("\n", " ")
    return f"'{text[:_SHOWN]}…'" if len(text) > _SHOWN else f"'{text}'"
