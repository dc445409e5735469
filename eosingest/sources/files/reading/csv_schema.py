"""Infers the types of CSV's columns: of each column the narrowest type of which all its texts are values (typed_text.py).

Numbers, times and booleans have no text in common, so the result does not depend on the order of rows or on the cuts of files.
Whole numbers that a DOUBLE would round are texts next to fractions, as in JSON (json_schema.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
)

from eosingest.sources.files.cuts import file_split
from eosingest.sources.files.listing.source_file import as_file
from eosingest.sources.files.reading.csv_columns import CsvColumns, Texts, text_types
from eosingest.sources.files.reading.csv_reader import read_rows
from eosingest.spark.python_scan import PythonSplit

_COMPUTE: Any = pyarrow.compute
# Families of types: each type holds the values of those before it.
_FAMILIES: Sequence[Sequence[DataType]] = (
    (IntegerType(), LongType(), DecimalType(38, 0), DoubleType()),
    (DateType(), TimestampType()),
    (BooleanType(),),
)
_NUMBERS = 0  # the first of them
_WHOLE = r"^\s*[+-]?[0-9]+\s*$"
# Whole numbers of more than 15 digits, and the most digits of which a DOUBLE is sure to be finite.
_OF_64_BITS = r"^-?[0-9]{1,18}$"
_LONG, _LONGEST = r"^\s*[+-]?0*[1-9][0-9]{15,}\s*$", 300


@dataclass(frozen=True)
class Kind:
    """A type of a family, by their indices; `family` None for texts of no family, or of several.

    `rounded`: a DOUBLE would round a whole number among them.
    """

    family: int | None
    level: int = 0
    rounded: bool = False

    def type(self, known: DataType | None = None) -> DataType:
        """Return the type of a column, which has the type `known` so far."""
        if self.family is None:
            return StringType()
        found = _FAMILIES[self.family][self.level]
        is_double = self.family == _NUMBERS and DoubleType() in (found, known)
        return StringType() if is_double and self.rounded else found


def both(one: Kind | None, other: Kind | None) -> Kind | None:
    """Return the kind that holds the values of two; None for no values."""
    if one is None or other is None:
        return other if one is None else one
    if one.family != other.family:
        return Kind(None)
    return Kind(one.family, max(one.level, other.level), one.rounded or other.rounded)


@dataclass(frozen=True)
class CsvTypes:
    """The function of a task that infers. Pickled and sent to tasks. `columns` are all columns, as texts."""

    options: Mapping[str, str]
    columns: CsvColumns

    def __call__(self, splits: Iterable[PythonSplit]) -> Iterator[tuple[str, tuple[Kind | None, ...]]]:
        """Yield the file's name, and each column's kind, of each split."""
        for split in splits:
            yield split.item.name, self.of(split)

    def of(self, split: PythonSplit, blocks: int | None = None) -> tuple[Kind | None, ...]:
        """Return the kinds of a split's columns: of all its rows, or of so many blocks. Rows that are corrupt do not count."""
        file = as_file(split.item)
        found: list[Kind | None] = [None for _ in self.columns.names]
        read = read_rows(file, file_split(split.planned.split), self.options, self.columns.texts)
        for texts in itertools.islice(read, blocks):
            found = self._widened(found, texts)
        return tuple(found)

    def _widened(self, kinds: Sequence[Kind | None], texts: Texts) -> list[Kind | None]:
        return [
            kind if kind == Kind(None) else both(kind, self._kind(column.drop_null(), kind))
            for kind, column in zip(kinds, texts.columns, strict=True)
        ]

    def _kind(self, texts: Any, known: Kind | None) -> Kind | None:
        """Return the kind of texts; it need not be narrower than the known one."""
        if not len(texts):
            return None
        families = range(len(_FAMILIES)) if known is None or known.family is None else (known.family,)
        for family in families:
            fit = self._fit(family, texts[:1], 0)
            if fit is None:
                continue
            fit = self._fit(family, texts, max(fit.level, known.level if known is not None else 0))
            if fit is None:
                return Kind(None)
            # No value of the first type, INT, is rounded; and one that is known to be rounded is enough.
            is_open = family == _NUMBERS and fit.level > 0 and not (known is not None and known.rounded)
            return Kind(family, fit.level, is_open and _are_rounded(texts, fit.values))
        return Kind(None)

    def _fit(self, family: int, texts: Any, start: int) -> _Fit | None:
        """Return the first type of a family, from `start` on, of which all texts are values."""
        types = _FAMILIES[family]
        whole = _COMPUTE.match_substring_regex(texts, _WHOLE)
        if isinstance(types[0], DateType) and _COMPUTE.any(whole).as_py():
            return None  # a year, or a number
        for level in range(start, len(types)):
            if isinstance(types[level], DecimalType) and not _COMPUTE.all(whole).as_py():
                continue  # a fraction would be rounded
            (kind,) = text_types(self.options, [types[level]])
            values, bad = kind.values(texts)
            if bad is None:
                return _Fit(level, values)
        return None


class _Fit(NamedTuple):
    """The type of a family, by its index, of which texts are values; and these."""

    level: int
    values: Any


def _are_rounded(texts: Any, values: Any) -> bool:
    """Say whether a DOUBLE would round a whole number among texts that are numbers; `values` are theirs."""
    if pa.types.is_int64(values.type):
        return _any_rounded(values)
    plain = _COMPUTE.match_substring_regex(texts, _OF_64_BITS)
    if _any_rounded(texts.filter(plain).cast(pa.int64())):
        return True
    rest = texts.filter(_COMPUTE.invert(plain))
    long = rest.filter(_COMPUTE.match_substring_regex(rest, _LONG))
    return any(len(text) > _LONGEST or int(float(text)) != int(text) for text in long.to_pylist())


def _any_rounded(values: Any) -> bool:
    numbers = values.to_numpy()
    floats = numbers.astype(np.float64)
    is_beyond = floats >= 2.0**63  # the last BIGINTs are rounded beyond the type
    return bool((is_beyond | (np.where(is_beyond, 0.0, floats).astype(np.int64) != numbers)).any())


def merged(found: Iterable[tuple[Kind | None, ...]], width: int) -> tuple[Kind | None, ...]:
    """Return the kinds of all splits' columns."""
    kinds: tuple[Kind | None, ...] = (None,) * width
    for each in found:
        kinds = tuple(map(both, kinds, each))
    return kinds
