"""Infers the columns of JSON and their types: of each field the type that holds all its values, as Spark's inference finds it.

    a line ─▶ the decoder of all that was seen ─▶ nothing is new
         └─▶ if it fails: its values one by one ─▶ Seen, a tree with a node for each field ─▶ a type

The result does not depend on the order of rows or on the cuts of files. Unlike Spark's, a type holds every value exactly:
an empty text is a text, and whole numbers that a DOUBLE would round are a STRING next to fractions.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any

import msgspec
import pyarrow as pa
from msgspec import Meta, Raw
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from eosingest.errors import FatalError
from eosingest.sources.files.bytes.text_blocks import is_utf_8
from eosingest.sources.files.cuts import file_split
from eosingest.sources.files.formats.json_text import REJECTED, has_odd_name, standard
from eosingest.sources.files.listing.source_file import as_file
from eosingest.sources.files.reading.json_decoder import JsonDecoder
from eosingest.sources.files.reading.json_reader import JsonSettings, texts_of
from eosingest.sources.files.reading.typed_text import TextType
from eosingest.spark.python_scan import PythonSplit

_LONGS, _EXACT = range(-(1 << 63), 1 << 63), 1 << 53
_LONG_DIGITS, _MOST_DIGITS = 20, 38  # Spark's DECIMAL of BIGINT, and its longest
_NUMBER_TEXT = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)
_WORDS = frozenset(f"{sign}{word}" for sign in ("", "+", "-") for word in ("Infinity", "INF")) | {"NaN"}
_MOST_ROWS_BETWEEN = 1024
_LONG = Annotated[int, Meta(ge=_LONGS[0], le=_LONGS[-1])]
_NUMBER = Annotated[int, Meta(ge=-_EXACT, le=_EXACT)] | float


@dataclass
class Seen:
    """The kinds of values of a field, apart from null. `whole` and `scale`: digits of the numbers before and after the
    point, as far as they are not a BIGINT, or BIGINT's if there was one. `strings` are not looked into yet (`settle`).
    """

    texts: bool = False
    times: bool = False
    booleans: bool = False
    longs: bool = False
    whole: int = 0
    scale: int = 0
    fractions: bool = False  # that are a DOUBLE
    rounded: bool = False  # a number that is no DOUBLE: a whole one that would be rounded, one in quotes
    fields: dict[str, Seen] | None = None
    elements: Seen | None = None
    strings: list[str] = field(default_factory=list)

    @property
    def numbers(self) -> bool:
        """Whether there was a number."""
        return self.longs or self.fractions or self.whole > 0 or self.scale > 0

    @property
    def kinds(self) -> int:
        """How many kinds of values there were, of which no type but STRING holds two."""
        nested = (self.fields is not None) + (self.elements is not None)
        return self.texts + self.times + self.booleans + self.numbers + nested

    def merge(self, other: Seen) -> Seen:
        """Add another node of the field to this one, and return it."""
        for name in ("texts", "times", "booleans", "longs", "fractions", "rounded"):
            setattr(self, name, getattr(self, name) or getattr(other, name))
        self.whole, self.scale = max(self.whole, other.whole), max(self.scale, other.scale)
        if other.fields is not None:
            self.fields = {} if self.fields is None else self.fields
            for name, each in other.fields.items():
                self.fields.setdefault(name, Seen()).merge(each)
        if other.elements is not None:
            self.elements = (self.elements or Seen()).merge(other.elements)
        return self

    def settle(self, are_times: Callable[[list[str]], bool]) -> None:
        """Decide whether the strings are times or texts."""
        if self.strings:
            is_text = self.texts or not are_times(self.strings)
            self.texts, self.times, self.strings = self.texts or is_text, self.times or not is_text, []
        for each in (*(self.fields or {}).values(), *((self.elements,) if self.elements else ())):
            each.settle(are_times)

    def type(self, known: DataType | None = None, *, drops_nulls: bool = False) -> DataType | None:
        """Return the type; None for a field that has none. `known` is the type of a field without a value, else STRING."""
        if self.kinds == 0:
            return None if drops_nulls and known is None else known or StringType()
        if self.kinds > 1:
            return StringType()
        if self.fields is not None:
            return self._struct(known, drops_nulls=drops_nulls)
        if self.elements is not None:
            inner = self.elements.type(
                known.elementType if isinstance(known, ArrayType) else None, drops_nulls=drops_nulls
            )
            return None if inner is None else ArrayType(inner)
        if self.numbers:
            if self.rounded and isinstance(known, DoubleType):
                return StringType()  # as of an inference of both: the pinned DOUBLE does not hold these whole numbers
            return self._number()
        return BooleanType() if self.booleans else TimestampType() if self.times else StringType()

    def _struct(self, known: DataType | None, *, drops_nulls: bool) -> DataType | None:
        before = {each.name: each.dataType for each in known.fields} if isinstance(known, StructType) else {}
        found = {
            name: each.type(before.get(name), drops_nulls=drops_nulls)
            for name, each in (self.fields or {}).items()
            if name
        }
        names = sorted((name for name, kind in found.items() if kind is not None), key=_as_java_sorts)
        return StructType([StructField(name, found[name]) for name in names]) if names else None  # type: ignore[arg-type]

    def _number(self) -> DataType:
        whole = max(self.whole, _LONG_DIGITS) if self.longs else self.whole
        if not self.fractions and not self.whole and not self.scale:
            return LongType()
        if not self.fractions and whole + self.scale <= _MOST_DIGITS:
            return DecimalType(whole + self.scale, self.scale)
        return StringType() if self.rounded else DoubleType()


def _as_java_sorts(name: str) -> bytes:
    return name.encode("utf-16-be", "surrogatepass")


@dataclass(frozen=True)
class Inference:
    """How values are seen, by the options of the inference."""

    texts_only: bool = False  # primitivesAsString
    decimals: bool = False  # prefersDecimal
    times: bool = False  # inferTimestamp
    drops_nulls: bool = False  # dropFieldIfAllNull
    ratio: float = 1.0  # samplingRatio

    @staticmethod
    def of(options: Mapping[str, str]) -> Inference:
        """Return the inference that the options mean."""
        lower = {name.lower(): value.lower() for name, value in options.items()}
        return Inference(
            texts_only=lower.get("primitivesasstring") == "true",
            decimals=lower.get("prefersdecimal") == "true",
            times=lower.get("infertimestamp") == "true",
            drops_nulls=lower.get("dropfieldifallnull") == "true",
            ratio=float(lower.get("samplingratio", "1")),
        )

    def add(self, value: Any, seen: Seen, *, words: bool = False) -> None:
        """Add a value; `words`: texts such as NaN are numbers."""
        kind = type(value)
        if kind is dict:
            fields = seen.fields = {} if seen.fields is None else seen.fields
            for name, inner in value.items():
                node = fields.get(name)
                self.add(inner, fields.setdefault(name, Seen()) if node is None else node, words=words)
        elif kind is list:
            elements = seen.elements = Seen() if seen.elements is None else seen.elements
            for inner in value:
                self.add(inner, elements, words=words)
        elif value is not None:
            self._add_plain(value, seen, words=words)

    def _add_plain(self, value: Any, seen: Seen, *, words: bool) -> None:
        if isinstance(value, str) and not (words and value in _WORDS):
            self._add_text(value, seen)
        elif self.texts_only:
            seen.texts = True
        elif isinstance(value, bool):
            seen.booleans = True
        elif isinstance(value, int):
            _add_whole(value, seen)
        elif isinstance(value, Decimal) and value.is_finite():
            _add_decimal(value, seen)
        else:
            seen.fractions = True

    def _add_text(self, value: str, seen: Seen) -> None:
        if self.decimals and _NUMBER_TEXT.fullmatch(value):
            _add_decimal(Decimal(value), seen)
            seen.rounded = True
        elif self.times and not seen.texts:
            seen.strings.append(value)
        else:
            seen.texts = True


def _add_whole(value: int, seen: Seen) -> None:
    if value in _LONGS:
        seen.longs = True
    else:
        seen.whole = max(seen.whole, len(str(abs(value))))
    if not -_EXACT <= value <= _EXACT and not seen.rounded:
        seen.rounded = value.bit_length() > 1023 or int(float(value)) != value


def _add_decimal(value: Decimal, seen: Seen) -> None:
    digits, exponent = value.as_tuple().digits, value.as_tuple().exponent
    assert isinstance(exponent, int), "it is finite"
    scale = max(0, -exponent)
    whole = max(0, len(digits) + exponent)
    if whole + scale > _MOST_DIGITS:
        seen.fractions = True
    else:
        seen.whole, seen.scale = max(seen.whole, whole, int(not scale)), max(seen.scale, scale)
        seen.rounded = seen.rounded or (not scale and int(float(value)) != value)


# ---- a split ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class JsonTypes:
    """The function of a task that infers. Pickled and sent to tasks."""

    settings: JsonSettings
    inference: Inference

    def __call__(self, splits: Iterable[PythonSplit]) -> Iterator[tuple[str, Seen]]:
        """Yield the file's name and the columns of each split."""
        for split in splits:
            yield split.item.name, self.of(split)

    def of(self, split: PythonSplit, blocks: int | None = None) -> Seen:
        """Return the columns of a split, by all its rows or by so many blocks. Rows that are corrupt do not count."""
        rows = _Rows(self.settings, self.inference)
        found = texts_of(as_file(split.item), file_split(split.planned.split), self.settings, rows.decoder)
        for place, texts in enumerate(found):
            rows.add(texts)
            if blocks is not None and place + 1 >= blocks:
                break
        return rows.seen


class _Rows:
    """The rows of a split: those with anything new are looked through."""

    def __init__(self, settings: JsonSettings, inference: Inference) -> None:
        self.seen = Seen(fields={})
        self.decoder = JsonDecoder(StructType([]), single_quotes=settings.single_quotes, words=settings.words)
        self._settings = settings
        self._inference = inference
        self._sample = random.Random(1)
        self._known: Callable[[bytes], Any] | None = None
        self._new, self._enough = 0, 1
        hook: Any = Decimal if inference.decimals else None
        self._decode = msgspec.json.Decoder(float_hook=hook).decode
        self._can_be_fast = not (inference.decimals or inference.times or inference.texts_only)
        pattern = settings.patterns.get(TimestampType)
        self._times = TextType(TimestampType(), pattern)

    def add(self, texts: Sequence[bytes]) -> None:
        """Add the texts of rows, or lines."""
        if self._inference.ratio < 1:
            texts = [text for text in texts if self._sample.random() < self._inference.ratio]
        all_utf_8 = is_utf_8(b"".join(texts))
        for text in texts:
            if self._known is not None:
                try:
                    self._known(text)
                except REJECTED:
                    pass
                else:
                    if all_utf_8 or is_utf_8(text):
                        continue
            if all_utf_8 or is_utf_8(text):
                for row in (text,) if self._settings.whole else self.decoder.elements(text):
                    self._add(row)
        if self._inference.times:
            self.seen.settle(self._are_times)

    def _add(self, text: bytes) -> None:
        words = False
        try:
            row = self._decode(text)
        except REJECTED:
            row, words = self._leniently(text), True
        if not isinstance(row, dict):
            return
        try:
            self._inference.add(row, self.seen, words=words)
        except RecursionError:
            return
        self._new += 1
        if self._can_be_fast and self._new >= self._enough:
            self._new, self._enough = 0, min(2 * self._enough, _MOST_ROWS_BETWEEN)
            kind = _known(self.seen)
            self._known = None if kind is None else msgspec.json.Decoder(kind).decode

    def _leniently(self, text: bytes) -> Any:
        """Return a row that is no standard JSON, or has a number beyond DOUBLE; None if it is corrupt."""
        given = self._settings
        number = Decimal if self._inference.decimals else float
        try:
            again = standard(text.decode(), single_quotes=given.single_quotes, words=given.words)
            return json.loads(again, parse_float=number, parse_int=_whole, parse_constant=_refused)
        except (ValueError, ArithmeticError, RecursionError):
            return None

    def _are_times(self, texts: list[str]) -> bool:
        if any(text.strip().lstrip("+-").isdigit() for text in texts):
            return False  # a year, or a number
        return self._times.values(pa.array(texts, pa.string()))[1] is None


def _whole(text: str) -> int:
    """Return a whole number; of more digits than Python converts, one that is as far beyond every type."""
    return int(text) if len(text) < 4000 else 10**400 + 1


def _refused(word: str) -> Any:
    raise ValueError(word)


def _known(seen: Seen) -> Any:
    """Return the msgspec type of the values that change nothing; None if there is no such type."""
    if seen.kinds > 1 or (seen.fractions and seen.rounded):
        return Raw
    if seen.kinds == 0:
        return type(None)
    if seen.fields is not None:
        return _known_struct(seen.fields)
    if seen.elements is not None:
        inner = _known(seen.elements)
        return None if inner is None else list[inner] | None  # type: ignore[valid-type]
    if seen.numbers:
        return None if seen.whole or seen.scale else (_NUMBER if seen.fractions else _LONG) | None
    return (bool if seen.booleans else str) | None


def _known_struct(fields: Mapping[str, Seen]) -> Any:
    kinds = [_known(each) for each in fields.values()]
    if None in kinds or has_odd_name(fields):
        return None
    names = {f"f{place}": name for place, name in enumerate(fields)}
    pairs = [(name, kind, None) for name, kind in zip(names, kinds, strict=True)]
    made = msgspec.defstruct("Known", pairs, rename=names, forbid_unknown_fields=True, gc=False)
    return made | None


# ---- all splits ------------------------------------------------------------------------------------------------------


def struct_of(seen: Seen, inference: Inference, known: StructType | None = None) -> StructType:
    """Return the columns; one without a value has its type in `known`, else STRING."""
    found = seen.type(known, drops_nulls=inference.drops_nulls)
    return found if isinstance(found, StructType) else StructType([])


def refuse_alike(kind: DataType) -> None:
    """Raise FatalError for names that differ only in case, at any depth."""
    if isinstance(kind, ArrayType):
        refuse_alike(kind.elementType)
    if not isinstance(kind, StructType):
        return
    seen: dict[str, str] = {}
    for each in kind.fields:
        other = seen.setdefault(each.name.lower(), each.name)
        if other != each.name:
            raise FatalError(
                f"the data has fields {other} and {each.name}, which Spark takes for one",
                code="bad-data",
                hint="nothing of this run was sent; rename one of them, write a source.schema with the one to read, or have"
                ' both read: [spark] conf = { "spark.sql.caseSensitive" = "true" }',
            )
        refuse_alike(each.dataType)
