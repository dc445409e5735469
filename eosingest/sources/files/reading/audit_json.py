"""Reads lines of JSON for an audit, by Python's json module: no code of it is in the reader of a run (json_reader.py).

lines (audit_lines.py) ─▶ json.JSONDecoder ─▶ values of the schema (audit_values.py) ─▶ columns, corrupt rows
"""

from __future__ import annotations

import base64
import datetime
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from json import decoder, scanner
from typing import Any

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from eosingest.protocol.offsets.record import OffsetRecord
from eosingest.sources.files.cuts import file_split
from eosingest.sources.files.formats.json_names import ONCE, NameTwiceError
from eosingest.sources.files.formats.json_text import parsed
from eosingest.sources.files.listing.source_file import as_file
from eosingest.sources.files.reading.audit_lines import lines_again
from eosingest.sources.files.reading.audit_values import BITS, batch_of, converter, in_range, matched
from eosingest.sources.files.reading.exact_types import type_words
from eosingest.sources.files.reading.folder_columns import FolderColumns, appended
from eosingest.sources.files.reading.json_reader import JsonSettings
from eosingest.spark.python_scan import PythonSplit, arrow_schema

_SHOWN = 60  # characters of a value, in a message
_DECODER: Any = decoder  # typeshed does not have its functions
_SCANNER: Any = scanner
_WHITE = " \t\r\n"
_WORDS = {f"{sign}{word}": float(f"{sign}inf") for sign in ("", "+", "-") for word in ("Infinity", "INF")}
_WORDS["NaN"] = math.nan
# A text in double quotes, one in single quotes, or a word for a number.
_TOKEN = re.compile(
    r"""("(?:[^"\\]|\\.)*+")|'((?:[^'\\]|\\.)*+)'|((?:[+-]?(?:INF|Infinity)|NaN)\b(?!\s*:))""", re.DOTALL
)
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class _Number(str):
    """A number, as it is written."""

    __slots__ = ()


class _Object(dict[str, Any]):
    """An object, with its `text`."""

    text: str


class _Array(list[Any]):
    """An array, with its `text`."""

    text: str


@dataclass(frozen=True)
class AuditJsonReader:
    """Reads the rows of splits (`python_scan.ArrowReader`): those of `json_reader.JsonReader`, with the same columns."""

    schema: StructType
    settings: JsonSettings
    folders: FolderColumns = field(default_factory=FolderColumns)
    names_once: bool = False
    folder_names: tuple[str, ...] = ()

    @staticmethod
    def takes(settings: JsonSettings) -> bool:
        """Say whether files that are written so can be read: lines, and times without a pattern."""
        return settings.layout.ends_at_a_byte and not settings.whole and not settings.patterns

    def narrowed(self, names: frozenset[str]) -> AuditJsonReader:
        """Return a reader of only these columns."""
        fields = [each for each in self.schema.fields if each.name in names]
        return replace(self, schema=StructType(fields), folders=self.folders.narrowed(names))

    def read(self, split: PythonSplit, committed: OffsetRecord | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a split, including committed ones; see `python_scan.ArrowReader`."""
        file, cut = as_file(split.item), file_split(split.planned.split)
        values = self.folders.of(file)
        rows = JsonRows(self.schema, self.settings, names_once=self.names_once, folder_names=self.folder_names)
        for lines in lines_again(file, cut, self.settings.layout.end):
            batch = rows.batch(lines)
            if len(batch):
                yield appended(batch, values)


def _has_a_name_twice(text: str) -> bool:
    try:
        parsed(text, ONCE)
    except NameTwiceError:
        return True
    except (ValueError, RecursionError):
        return False
    return False


class JsonRows:
    """Makes rows of a schema of lines."""

    def __init__(
        self, schema: StructType, settings: JsonSettings, *, names_once: bool = False, folder_names: Sequence[str] = ()
    ) -> None:
        """`names_once`: a row in which an object has a name twice is corrupt. So is a row with a field of `folder_names`."""
        self._names_once = names_once
        self._folder_names = folder_names
        self._schema = schema
        self._settings = settings
        self._types = arrow_schema(schema)
        self._is_bad = False  # whether the current row has a text that is no value of its type
        self._takes = self._fields(schema)
        # Fields in which a STRING may be the text of an object or an array.
        self._strings = [each.name for each in schema.fields if _has_string(each.dataType)]

    def batch(self, lines: list[bytes]) -> pa.RecordBatch:
        """Return the columns of lines, followed by the texts of the corrupt rows, null for others."""
        rows, corrupt = list[list[Any]](), list[bytes | None]()
        for line in lines:
            for found in self._found(line):
                self._is_bad = False
                try:
                    given = _of(dict, found)
                    self._is_bad = any(name in given for name in self._folder_names)
                    rows.append([_taken(take, given.get(name)) for name, take in self._takes])
                except (ValueError, RecursionError):
                    rows.append([None] * len(self._schema.fields))
                    self._is_bad = True
                corrupt.append(line if self._is_bad else None)
        return batch_of(self._types, rows, corrupt)

    def why(self, line: bytes) -> str:
        """Return why the text of a row is a corrupt row; "" where it is none."""
        try:
            text = line.decode().removeprefix("\ufeff").strip(_WHITE)
            (found,) = self._values(text, with_texts=True)
            parsed(text, ONCE)
        except NameTwiceError as twice:
            return str(twice)
        except json.JSONDecodeError as error:
            return f"no JSON: {error.msg[:1].lower()}{error.msg[1:]} at character {error.pos + 1:,}"
        except UnicodeError as error:
            return "half a surrogate pair" if isinstance(error, UnicodeEncodeError) else "bytes that are not UTF-8"
        except (ValueError, RecursionError):
            return ""
        if not isinstance(found, dict):
            return "it is no JSON object"
        if both := [name for name in self._folder_names if name in found]:
            return f"it has a field {both[0]}, and the file is in a folder {both[0]}=…: rename one of them"
        if self._settings.patterns:  # by which values are not converted here
            return ""
        for column, (name, take) in zip(self._schema.fields, self._takes, strict=True):
            if not self._fits(take, found.get(name)):
                value = json.dumps(found[name]) if _is_text(found[name]) else _string(found[name])
                return f"column {name} is {type_words(column.dataType)}, and its value is {value[:_SHOWN]}"
        return ""

    def _fits(self, take: Callable[[Any], Any], value: Any) -> bool:
        self._is_bad = False
        try:
            _taken(take, value)
        except (ValueError, RecursionError):
            return False
        return not self._is_bad

    def _found(self, line: bytes) -> list[Any]:
        """Return the values of a line: of an array its elements, of text that is no JSON, or has a name twice, None."""
        try:
            text = line.decode(self._settings.layout.encoding).removeprefix("\ufeff").strip(_WHITE)
            if self._names_once and _has_a_name_twice(text):
                return [None]
            return self._values(text) if text else []
        except (ValueError, RecursionError):
            return [None]

    def _values(self, text: str, *, with_texts: bool = False) -> list[Any]:
        try:
            found = _PLAIN.decode(text)
        except ValueError:
            text = _standard(text, self._settings)
            found = _PLAIN.decode(text)
        if "\\u" in text:
            json.dumps(found, ensure_ascii=False).encode()  # fails for half a surrogate pair
        is_array = isinstance(found, list)
        may_be_text = isinstance(found, dict) and any(type(found.get(name)) in (dict, list) for name in self._strings)
        if with_texts or is_array or may_be_text:
            found = _WITH_TEXTS.decode(text)
        return found if is_array else [found]

    # ---- values of types ---------------------------------------------------------------------------------------------

    def _value(self, kind: DataType) -> Callable[[Any], Any]:
        """Return the function from a value of JSON, other than null, to one of a type."""
        if isinstance(kind, StructType):
            fields = self._fields(kind)
            return lambda value: {name: _taken(take, _of(dict, value).get(name)) for name, take in fields}
        if isinstance(kind, ArrayType):
            element = self._value(kind.elementType)
            return lambda value: [_taken(element, each) for each in _of(list, value)]
        if isinstance(kind, MapType):
            inner = self._value(kind.valueType)
            return lambda value: [(name, _taken(inner, each)) for name, each in _of(dict, value).items()]
        return self._plain(kind)

    def _fields(self, kind: StructType) -> list[tuple[str, Callable[[Any], Any]]]:
        return [(each.name, self._value(each.dataType)) for each in kind.fields]

    def _plain(self, kind: DataType) -> Callable[[Any], Any]:
        if type(kind) in BITS:
            return lambda value: in_range(int(_of(_Number, value)), BITS[type(kind)])
        if isinstance(kind, StringType):
            return _string
        if isinstance(kind, BooleanType):
            return lambda value: _of(bool, value)
        if isinstance(kind, BinaryType):
            return lambda value: base64.b64decode(matched(_BASE64, _text(value)))
        convert = self._marked(converter(kind, _WORDS if self._settings.words else {}))
        if isinstance(kind, DecimalType):
            return lambda value: convert(value if isinstance(value, str) else "")
        if isinstance(kind, FloatType | DoubleType):
            return lambda value: convert(value if isinstance(value, _Number) or _is_word(value) else "")
        if isinstance(kind, TimestampType):
            since = self._marked(lambda seconds: _EPOCH + datetime.timedelta(seconds=seconds))
            return lambda value: since(int(value)) if isinstance(value, _Number) else convert(_text(value))
        assert isinstance(kind, DateType | TimestampNTZType)
        return lambda value: convert(_text(value))

    def _marked(self, convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return the function that marks the row, and returns None, where `convert` finds no value."""

        def converted(value: Any) -> Any:
            try:
                return convert(value)
            except (ValueError, OverflowError):
                self._is_bad = True
                return None

        return converted


def _taken(take: Callable[[Any], Any], value: Any) -> Any:
    return None if value is None else take(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not isinstance(value, _Number)


def _of(kind: Any, value: Any) -> Any:
    """Return a value of this class. Raises ValueError for another one."""
    if not isinstance(value, kind):
        raise ValueError("another type")
    return value


def _text(value: Any) -> str:
    """Return a text. Raises ValueError for another value."""
    if not _is_text(value):
        raise ValueError("no text")
    return str(value)


def _string(value: Any) -> str:
    """Return the STRING of a value: a text, or the characters of any other value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.text if isinstance(value, _Object | _Array) else str(value)


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and value in _WORDS


def _has_string(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return any(_has_string(each.dataType) for each in kind.fields)
    if isinstance(kind, ArrayType):
        return _has_string(kind.elementType)
    return _has_string(kind.valueType) if isinstance(kind, MapType) else isinstance(kind, StringType)


# ---- JSON ------------------------------------------------------------------------------------------------------------


def _no_number(word: str) -> None:
    raise ValueError(word)


class _WithTexts(json.JSONDecoder):
    """Decodes objects and arrays with their texts."""

    def __init__(self) -> None:
        super().__init__(parse_int=_Number, parse_float=_Number, parse_constant=_no_number)
        self.parse_object = self._object
        self.parse_array = self._array
        self.scan_once = _SCANNER.py_make_scanner(self)

    def _object(self, place: tuple[str, int], *rest: Any) -> tuple[_Object, int]:
        found, end = _DECODER.JSONObject(place, *rest)
        made = _Object(found)
        made.text = place[0][place[1] - 1 : end]
        return made, end

    def _array(self, place: tuple[str, int], *rest: Any) -> tuple[_Array, int]:
        found, end = _DECODER.JSONArray(place, *rest)
        made = _Array(found)
        made.text = place[0][place[1] - 1 : end]
        return made, end


_PLAIN = json.JSONDecoder(parse_int=_Number, parse_float=_Number, parse_constant=_no_number)
_WITH_TEXTS = _WithTexts()


def _standard(text: str, settings: JsonSettings) -> str:
    """Return JSON with texts in double quotes, and with words for numbers as texts, as far as the settings allow them."""

    def rewritten(token: re.Match[str]) -> str:
        _, single, word = token.groups()
        if single is not None and settings.single_quotes:
            inner = re.sub(r"""\\'|"|\\.""", lambda found: {"\\'": "'", '"': '\\"'}.get(found[0], found[0]), single)
            return f'"{inner}"'
        return f'"{word}"' if word is not None and settings.words else token[0]

    return _TOKEN.sub(rewritten, text)
