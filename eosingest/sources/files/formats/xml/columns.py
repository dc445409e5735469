"""Builds the tree of the elements and attributes to read, from schema and options; document.py reads by it.

A column is an element of its name, written as in the file with its prefix; with `attributePrefix` in front, an attribute; with
the name `valueTag`, the text of an element that has attributes or elements. Nothing else in a file is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from eosingest.sources.files.formats.xml.values import WHITE, converter
from eosingest.spec.ddl import Field, Type


@dataclass(frozen=True)
class XmlSettings:
    """How XML files are read. `null_value` is the text for null; `trims`: white space around text is dropped.

    `fields` are the columns. `beside` are the columns of the schema that come from `k=v` folders: no row may have them.
    """

    row_tag: str
    fields: tuple[Field, ...]
    attribute_prefix: str = "_"
    value_tag: str = "_VALUE"
    null_value: str | None = None
    trims: bool = True
    encoding: str | None = None
    beside: tuple[str, ...] = ()


def settings_of(options: Mapping[str, str], fields: Iterable[Field], beside: Iterable[str] = ()) -> XmlSettings:
    """Return the settings that a spec's options define."""
    return XmlSettings(
        row_tag=options["rowTag"],
        fields=tuple(fields),
        attribute_prefix=options.get("attributePrefix", "_"),
        value_tag=options.get("valueTag", "_VALUE"),
        null_value=options.get("nullValue"),
        trims=options.get("ignoreSurroundingSpaces", "true").lower() != "false",
        encoding=options.get("encoding"),
        beside=tuple(beside),
    )


@dataclass(frozen=True)
class Scalar:
    """A plain value: `value` converts its text. `path` is its name in messages."""

    path: str
    type: Type
    value: Callable[[str], Any]


@dataclass(frozen=True)
class Child:
    """An element of a struct: the index of its column, its node, and whether it may occur more than once.

    `refused`: the reason why it may not occur at all.
    """

    index: int
    node: Scalar | Struct
    repeated: bool = False
    refused: str = ""


@dataclass(frozen=True)
class Struct:
    """An element with attributes and elements; `text` is the index of the column with its text, and that column's node."""

    path: str
    names: tuple[str, ...]
    attributes: Mapping[str, tuple[int, Scalar]]
    children: Mapping[str, Child]
    text: tuple[int, Scalar] | None
    refused_attributes: Mapping[str, str] = field(default_factory=dict)


def columns_of(settings: XmlSettings) -> Struct:
    """Return the tree of a row's columns."""
    return _Builder(settings).struct(settings.fields, "", settings.beside)


class _Builder:
    def __init__(self, settings: XmlSettings) -> None:
        self._settings = settings

    def struct(self, fields: Iterable[Field], path: str, beside: Iterable[str] = ()) -> Struct:
        prefix, value_tag = self._settings.attribute_prefix, self._settings.value_tag
        attributes: dict[str, tuple[int, Scalar]] = {}
        children: dict[str, Child] = {}
        text = None
        names = tuple(one.name for one in fields)
        for index, one in enumerate(fields):
            name = f"{path}{one.name}"
            if one.name == value_tag:
                text = index, self._scalar(one.type, name)
            elif one.name.startswith(prefix):
                attributes[one.name.removeprefix(prefix)] = index, self._scalar(one.type, name)
            else:
                children[one.name] = self._child(index, one.type, name)
                continue
            children[one.name] = Child(
                index,
                self._scalar(Type("STRING"), name),
                refused=f"an element <{one.name}>, and by that name the schema means"
                f" {'the text' if one.name == value_tag else 'an attribute'}: set"
                f" source.options.{'valueTag' if one.name == value_tag else 'attributePrefix'} to another",
            )
        refused_attributes = {}
        for name in beside:
            why = f"a column {name}, and the file is in a folder {name}=…: rename one of them"
            children[name] = Child(0, self._scalar(Type("STRING"), name), refused=why)
            if name.startswith(prefix):
                refused_attributes[name.removeprefix(prefix)] = why
        return Struct(path.rstrip("."), names, attributes, children, text, refused_attributes)

    def _child(self, index: int, kind: Type, path: str) -> Child:
        inner = kind.element or kind
        node = self.struct(inner.fields, f"{path}.") if inner.name == "STRUCT" else self._scalar(inner, path)
        return Child(index, node, repeated=kind.element is not None)

    def _scalar(self, kind: Type, path: str) -> Scalar:
        return Scalar(path, kind, self._reader(kind))

    def _reader(self, kind: Type) -> Callable[[str], Any]:
        """Return the function that converts text to a value. Empty text is null, except for STRING."""
        convert, null_value, is_text = converter(kind), self._settings.null_value, kind.name == "STRING"
        trims = self._settings.trims

        def read(text: str) -> Any:
            if trims or not is_text:
                text = text.strip(WHITE)
            if text == null_value:
                return None
            if is_text:
                return text
            return convert(text) if text else None

        return read
