"""Decodes lines of JSON by a schema, with msgspec: rows whose values have the schema's types, or lines that are no rows of it.

    a line ─▶ the strict decoder ─▶ a row
         └─▶ if it fails: byte order mark, array, number or object as STRING, single quotes, NaN ─▶ rows, or a corrupt row

A row is a msgspec.Struct with the values of the schema's fields as f0, f1 …, or a dict of raw values (`is_raw`);
json_columns.py makes Arrow columns of them. The decoder reads standard JSON (RFC 8259) to the end of the line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from types import MappingProxyType
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Raw
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from eosingest.sources.files.bytes.text_blocks import is_utf_8
from eosingest.sources.files.formats.json_names import with_names_twice
from eosingest.sources.files.formats.json_text import REJECTED, has_odd_name, standard

_BITS: Mapping[type[DataType], int] = {ByteType: 8, ShortType: 16, IntegerType: 32, LongType: 64}
_STRICT: Mapping[type[DataType], Any] = {
    **{kind: Annotated[int, Meta(ge=-(1 << bits - 1), le=(1 << bits - 1) - 1)] for kind, bits in _BITS.items()},
    StringType: str,
    BooleanType: bool,
    DoubleType: float,
    FloatType: Raw,
    DecimalType: Raw,
    DateType: str,
    TimestampType: int | str,
    TimestampNTZType: str,
    BinaryType: bytes,
}
_LENIENT: Mapping[type[DataType], Any] = {**_STRICT, StringType: Raw, DoubleType: Raw}
_WHITE = b" \t\r\n"
_MARK = b"\xef\xbb\xbf"
_MINUS_ZERO = re.compile(rb"-0[\s,\]}]")
_ELEMENTS = msgspec.json.Decoder(list[Raw])


@dataclass
class Rows:
    """Rows with the text of each, and the places of those that are corrupt: they have no values.

    lenient: values of STRING and DOUBLE may be msgspec.Raw.
    """

    values: list[Any] = field(default_factory=list)
    texts: list[bytes] = field(default_factory=list)
    corrupt: list[int] = field(default_factory=list)
    lenient: bool = False


class JsonDecoder:
    """Decodes lines by a schema of types that `unread_type` finds none in."""

    def __init__(
        self,
        schema: StructType,
        *,
        single_quotes: bool = True,
        words: bool = True,
        names_once: bool = False,
        folder_names: Sequence[str] = (),
    ) -> None:
        """Take the schema. `single_quotes` and `words` are read if they are true; see `json_text.standard`.

        `names_once`: a row in which an object has a name twice is corrupt. Otherwise the inspection found none. So is a row
        with a field of `folder_names`, the columns of folders.
        """
        self.names_once = names_once
        self._folder_names = {f"folder{place}": name for place, name in enumerate(folder_names)}
        self._is_dict = is_raw(schema)
        self._raw = _has(schema, lambda kind: isinstance(kind, StructType) and is_raw(kind))
        self._has_double = _has(schema, lambda kind: isinstance(kind, DoubleType))
        strict = _struct(schema, _LENIENT if self._raw else _STRICT, self._folder_names)
        lenient = _struct(schema, _LENIENT, self._folder_names)
        self._decode = msgspec.json.Decoder(strict).decode
        self._decode_leniently = msgspec.json.Decoder(lenient).decode
        self._nothing = {} if self._is_dict else strict()
        self._standard: Callable[[str], str] = lambda text: standard(text, single_quotes=single_quotes, words=words)

    def rows(self, lines: Sequence[bytes], *, arrays: bool = True) -> Rows:
        """Return the rows of lines in UTF-8: none of a blank line; one for each element of an array, if `arrays`."""
        found = Rows(lenient=self._raw)
        joined = b"\n".join((*lines, b""))
        bad, odd = self._bad(lines, joined), self._minus_zeros(lines, joined)
        decode, values, texts = self._decode, found.values, found.texts
        for place, line in enumerate(lines):
            if place in bad:
                self._add_corrupt(line, found)
                continue
            if place not in odd:
                try:
                    values.append(decode(line))
                    texts.append(line)
                    continue
                except REJECTED:
                    pass
            for text in self.elements(line) if arrays else (line,):
                self._add(text, found, strictly=place not in odd)
        if self._folder_names:
            found.corrupt = sorted({*found.corrupt, *self._with_others(values)})
        return found

    def _with_others(self, values: Sequence[Any]) -> Iterator[int]:
        """Yield the places of rows with a field of `folder_names`."""
        for place, name in self._folder_names.items():
            if self._is_dict:
                yield from (at for at, value in enumerate(values) if name in value)
            else:
                get = attrgetter(place)
                yield from (at for at, value in enumerate(values) if get(value) is not UNSET)

    def _minus_zeros(self, lines: Sequence[bytes], joined: bytes) -> set[int]:
        """Return the places of lines with a -0: the strict decoder takes it for a whole number, which has no sign."""
        if not self._has_double or not _MINUS_ZERO.search(joined):
            return set()
        return {at for at, line in enumerate(lines) if _MINUS_ZERO.search(line + b"\n")}

    def _bad(self, lines: Sequence[bytes], joined: bytes) -> set[int]:
        """Return the places of lines with errors that the decoder does not find: in fields that it leaves out."""
        found = set[int]() if is_utf_8(joined) else {at for at, line in enumerate(lines) if not is_utf_8(line)}
        return found | with_names_twice(lines) if self.names_once else found

    def elements(self, document: bytes) -> list[bytes]:
        """Return the texts of an array's elements; of anything else its own text, of white space none."""
        text = document.removeprefix(_MARK).strip(_WHITE)
        if not text.startswith(b"["):
            return [text] if text else []
        try:
            return [bytes(element) for element in _ELEMENTS.decode(text)]
        except REJECTED:
            pass
        try:
            return [bytes(element) for element in _ELEMENTS.decode(self._standard(text.decode()))]
        except REJECTED:
            return [text]

    def _add(self, text: bytes, found: Rows, *, strictly: bool) -> None:
        """Decode the text of one row, which is no array: leniently, unless the strict decoder may and can read it."""
        value = self._strictly(text) if strictly else None
        if value is None:
            value = self._leniently(text)
            found.lenient = True
        if value is None:
            self._add_corrupt(text, found)
        else:
            found.values.append(value)
            found.texts.append(text)

    def _strictly(self, text: bytes) -> Any:
        """Return a row, None if the text is none to the strict decoder."""
        try:
            return self._decode(text)
        except REJECTED:
            return None

    def _leniently(self, text: bytes) -> Any:
        """Return a row, None if the text is none."""
        try:
            return self._decode_leniently(text)
        except REJECTED:
            pass
        try:
            return self._decode_leniently(self._standard(text.decode()))
        except REJECTED:
            return None

    def _add_corrupt(self, text: bytes, found: Rows) -> None:
        found.corrupt.append(len(found.values))
        found.values.append(self._nothing)
        found.texts.append(text)


def unread_type(kind: DataType) -> DataType | None:
    """Return a type in a schema that is not read from JSON; None if there is none."""
    if isinstance(kind, StructType):
        found = (unread_type(each.dataType) for each in kind.fields)
        return next((each for each in found if each is not None), None)
    if isinstance(kind, ArrayType):
        return unread_type(kind.elementType)
    if isinstance(kind, MapType):
        return unread_type(kind.valueType) if type(kind.keyType) is StringType else kind
    return None if type(kind) in _STRICT else kind


def is_raw(kind: StructType) -> bool:
    """Say whether the values of a struct are dicts of msgspec.Raw: one of its names is none of a msgspec.Struct's."""
    return has_odd_name(kind.names)


def _has(kind: DataType, is_wanted: Callable[[DataType], bool]) -> bool:
    """Say whether a type, or one inside it, is wanted."""
    if is_wanted(kind):
        return True
    if isinstance(kind, StructType):
        return any(_has(each.dataType, is_wanted) for each in kind.fields)
    if isinstance(kind, ArrayType):
        return _has(kind.elementType, is_wanted)
    return isinstance(kind, MapType) and _has(kind.valueType, is_wanted)


def raw_decoder(kind: DataType) -> Callable[[Raw], Any]:
    """Return a function that decodes a field of a dict of raw values, as in lenient rows. It raises one of `REJECTED`."""
    decoder = msgspec.json.Decoder(_optional(kind, _LENIENT))
    return lambda value: decoder.decode(value)


def _struct(
    kind: StructType, plain: Mapping[type[DataType], Any], folder_names: Mapping[str, str] = MappingProxyType({})
) -> Any:
    """Return the msgspec type of a struct's values; of the fields `folder_names` it says whether they are there."""
    if is_raw(kind):
        return dict[str, Raw]
    names = {f"f{place}": each.name for place, each in enumerate(kind.fields)}
    fields: list[tuple[str, Any, Any]]
    fields = [(name, _optional(each.dataType, plain), None) for name, each in zip(names, kind.fields, strict=True)]
    fields += [(place, Any, UNSET) for place in folder_names]
    return msgspec.defstruct("Row", fields, rename={**names, **folder_names}, gc=False)


def _optional(kind: DataType, plain: Mapping[type[DataType], Any]) -> Any:
    if isinstance(kind, StructType):
        return _struct(kind, plain) | None
    if isinstance(kind, ArrayType):
        return list[_optional(kind.elementType, plain)] | None  # type: ignore[misc]
    if isinstance(kind, MapType):
        return dict[str, _optional(kind.valueType, plain)] | None  # type: ignore[misc]
    found = plain[type(kind)]
    return found if found is Raw else found | None  # Raw may be null
