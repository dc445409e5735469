"""Detects an XML file's rows and their columns, for `init --from`: the elements that repeat, and their contents.

The rows are the repeated elements nearest to the root. The schema has every column of the rows that were read.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from xml.parsers import expat

from eosingest.errors import FatalError
from eosingest.sniff.input import LOOKED_AT_BYTES, Opened
from eosingest.sniff.result import Column, Found, is_kept_by_double, quoted

_PIECE = 1 << 18
_DEEPEST = 200
_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,14})\.[0-9]{1,15}")
_LONG = "BIGINT of more digits than DOUBLE is sure to keep"
_SURE_DIGITS = 15
_WORDS = ("true", "false")
_OF_XML_ITSELF = re.compile(r"xmlns$|xmlns:|xsi:")  # attributes that are not data, as in formats/xml/document.py
_XSI_NAMESPACE = "http://www.w3.org/2001/XMLSchema-instance"
_WHITE = " \t\r\n"


class _StopError(Exception):
    """The document is one that a run refuses."""


@dataclass
class _Element:
    """All elements of one name in one place: their number and their contents."""

    count: int = 0
    most_beside: int = 0  # in one parent
    children: defaultdict[str, _Element] = field(default_factory=lambda: defaultdict(_Element))
    attributes: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # the types of their texts
    text: set[str] = field(default_factory=set)
    beside: Counter[str] = field(default_factory=Counter)  # how many children of each name the open element has


def _type(kinds: set[str]) -> str:
    """Return the narrowest type that fits texts of these types."""
    if kinds and kinds <= {"BIGINT", _LONG}:
        return "BIGINT"
    return "DOUBLE" if kinds == {"BIGINT", "DOUBLE"} else next(iter(kinds)) if len(kinds) == 1 else "STRING"


def _kinds(text: str) -> set[str]:
    """Return the type of a text; nothing for an empty one."""
    text = text.strip(_WHITE)
    if _WHOLE.fullmatch(text):
        return {"BIGINT" if len(text.lstrip("-")) <= _SURE_DIGITS else _LONG}
    if _NUMBER.fullmatch(text):
        return {"DOUBLE" if is_kept_by_double(text) else "STRING"}
    return {"BOOLEAN" if text in _WORDS else "STRING"} if text else set()


def look(data: Opened) -> Found:
    """Detect the rows. Raises FatalError for a file that is no XML, or that a run refuses."""
    document, whole = _read(data, LOOKED_AT_BYTES)
    name, rows = _rows(document)
    tags = _Tags.of(rows)
    columns = tuple(
        Column(column, kind, always=rows.children[column].count == rows.count if column in rows.children else None)
        for column, kind in _fields(rows, tags)
    )
    _refuse_equal_names(data, rows, tags)
    note = f"the rows are taken to be the elements <{name}>, {rows.count:,} of them: see options.rowTag"
    if not columns:
        raise FatalError(
            f"{data.file} has no element with data in it",
            code="file-empty",
            hint="name a file with some rows in it",
        )
    return Found("xml", options={"rowTag": name, **tags.options()}, columns=columns, notes=(note,), whole=whole)


def names_in(data: Opened, row_tag: str, limit: int) -> tuple[list[str], list[str]]:
    """Return the columns of the elements `row_tag` among the first `limit` bytes, and the names of all elements there.

    Raises FatalError as `look` does.
    """
    document, _ = _read(data, limit)
    found: dict[str, None] = {}
    every: dict[str, None] = {}

    def go(element: _Element) -> None:
        for name, child in element.children.items():
            every[name] = None
            if name == row_tag:
                found.update(dict.fromkeys(column for column, _ in _fields(child, _Tags())))
            go(child)

    go(document)
    return list(found), list(every)


def _rows(document: _Element) -> tuple[str, _Element]:
    """Return the elements that repeat, nearest to the root; if none does, the outermost element with several children."""
    ((name, element),) = document.children.items()
    best = (name, element)
    while element.children:
        name, element = max(element.children.items(), key=lambda pair: pair[1].most_beside)
        if element.most_beside > 1:
            return name, element
        if not (element.children or element.attributes):
            break
        best = (name, element) if len(best[1].children) == 1 else best
    return best


@dataclass(frozen=True)
class _Tags:
    """What the names of attributes begin with, and the name of the text next to them; as Spark has them, unless elements do."""

    attribute: str = "_"
    value: str = "_VALUE"

    @staticmethod
    def of(rows: _Element) -> _Tags:
        """Return tags by which no element of the rows could be meant: XML has no names with `@` and `#`."""
        elements, attributes = set[str](), set[str]()

        def go(element: _Element) -> None:
            elements.update(element.children)
            attributes.update(element.attributes)
            for child in element.children.values():
                go(child)

        go(rows)
        attribute = "@" if any(name.startswith("_") for name in elements) else "_"
        is_taken = "_VALUE" in elements or f"{attribute}VALUE" in {f"_{name}" for name in attributes}
        return _Tags(attribute, "#VALUE" if is_taken else "_VALUE")

    def options(self) -> dict[str, str | bool]:
        """Return the options that set them."""
        given = {"attributePrefix": (self.attribute, "_"), "valueTag": (self.value, "_VALUE")}
        return {name: tag for name, (tag, default) in given.items() if tag != default}


def _refuse_equal_names(data: Opened, element: _Element, tags: _Tags) -> None:
    """Raise FatalError if two columns, or fields of one struct, differ by case alone: to Spark they are one."""
    seen: dict[str, str] = {}
    for name, _ in _fields(element, tags):
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise FatalError(
                f"{data.file}: {other} and {name} are one column to Spark, which ignores case",
                code="format-unknown",
                hint='rename one of them in the file; or send each file as it is: format = "text" with wholetext = true',
            )
    for child in element.children.values():
        _refuse_equal_names(data, child, tags)


def _fields(element: _Element, tags: _Tags) -> list[tuple[str, str]]:
    """Return the columns, or fields of a struct, of an element: attributes, text, and elements."""
    said = [(name, kinds) for name, kinds in element.attributes.items() if not _OF_XML_ITSELF.match(name)]
    fields = [(f"{tags.attribute}{name}", _type(kinds)) for name, kinds in said]
    if element.text:
        fields.append((tags.value, _type(element.text)))
    for name, child in element.children.items():
        inner = _fields(child, tags)
        kind = _type(child.text)
        if child.children or not all(map(_OF_XML_ITSELF.match, child.attributes)):
            kind = f"STRUCT<{', '.join(f'{quoted(each)}: {of_it}' for each, of_it in inner)}>"
        fields.append((name, f"ARRAY<{kind}>" if child.most_beside > 1 else kind))
    return fields


def _read(data: Opened, limit: int) -> tuple[_Element, bool]:
    """Return a nameless element whose child is the root element of the first `limit` bytes, and whether these are all bytes."""
    reader = _Reader()
    try:
        with data.stream() as stream:
            while limit > 0 and (piece := stream.read(min(_PIECE, limit))):
                limit -= len(piece)
                reader.parser.Parse(piece, False)
            whole = not stream.read(1)
        if whole:
            reader.parser.Parse(b"", True)
    except (expat.ExpatError, _StopError, LookupError, ValueError) as error:
        raise FatalError(
            f"{data.file} is no XML that a run reads: {error}",
            code="file-unreadable",
            hint="correct it; or write the spec by hand: eosingest init",
        ) from None
    return reader.document, whole


class _Reader:
    """The handlers that expat calls."""

    def __init__(self) -> None:
        self.document = _Element()
        self._open: list[_Element] = [self.document]
        self._texts: list[list[str]] = [[]]
        self._xsi = [frozenset[str]()]  # the prefixes of each open element that are other ones for `xsi`
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text

    def _doctype(self, name: str, system: str | None, public: str | None, has_subset: int) -> None:
        if has_subset or system is not None:
            raise _StopError("it has a DOCTYPE with declarations")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self._open) > _DEEPEST:
            raise _StopError("its elements are nested too deep")
        outer = self._open[-1]
        element = outer.children[name]
        outer.beside[name] += 1
        element.count += 1
        element.most_beside = max(element.most_beside, outer.beside[name])
        element.beside.clear()
        declared = {key[6:]: value == _XSI_NAMESPACE for key, value in attributes.items() if key.startswith("xmlns:")}
        self._xsi.append(self._xsi[-1] - declared.keys() | {prefix for prefix, is_xsi in declared.items() if is_xsi})
        for key, value in attributes.items():
            if ":" not in key or key.partition(":")[0] not in self._xsi[-1]:
                element.attributes[key] |= _kinds(value)
        self._open.append(element)
        self._texts.append([])

    def _text(self, text: str) -> None:
        self._texts[-1].append(text)

    def _end(self, name: str) -> None:
        self._xsi.pop()
        self._open.pop().text |= _kinds("".join(self._texts.pop()))
