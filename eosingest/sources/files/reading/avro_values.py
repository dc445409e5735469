"""Makes Arrow arrays of the values that fastavro has decoded, by a column's wire schema (avro_columns.py).

    list of values ─▶ array_of ─▶ Arrow array of the file's own type ─▶ columnar_values.py: the schema's type

Values that are none of their type are refused: a boolean that is neither 0 nor 1, an enum of no symbol, an INT beyond 32 bits,
a decimal of more digits. The bytes of texts are checked where they become the schema's type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal
from itertools import accumulate, chain
from typing import Any

import pyarrow as pa

from eosingest.sources.files.reading.avro_columns import KEY, VALUE, AvroColumn
from eosingest.sources.files.reading.columnar_values import UnfitValueError

_BOOLEANS = {b"\0": False, b"\1": True, None: None}
_EXACT = Context(prec=60)
Values = Sequence[Any]


def array_of(values: Values, column: AvroColumn) -> Any:
    """Return the values of a column as an Arrow array. Raises UnfitValueError."""
    return _MADE.get(column.form, _plain)(values, column)


def _plain(values: Values, column: AvroColumn) -> Any:
    stored = {"int": pa.int32(), "long": pa.int64()}.get(column.form, column.arrow)
    try:
        return pa.array(values, stored).cast(column.arrow)
    except (pa.ArrowInvalid, OverflowError):
        raise UnfitValueError(f"a number that is no {column.form}") from None


def _booleans(values: Values, column: AvroColumn) -> Any:
    try:
        return pa.array([_BOOLEANS[value] for value in values], pa.bool_())
    except KeyError:
        raise UnfitValueError("a boolean that is neither 0 nor 1") from None


def _symbols(values: Values, column: AvroColumn) -> Any:
    try:
        return pa.array(column.symbols, pa.string()).take(pa.array(values, pa.int32()))
    except (pa.ArrowIndexError, pa.ArrowInvalid, OverflowError):
        raise UnfitValueError("an enum that is none of its symbols") from None


def _decimals(values: Values, column: AvroColumn) -> Any:
    scale, beyond = column.arrow.scale, 10**column.arrow.precision

    def decimal(data: bytes | None) -> Decimal | None:
        if data is None:
            return None
        number = int.from_bytes(data, "big", signed=True)
        if not data or abs(number) >= beyond:
            raise UnfitValueError(
                "a decimal without digits" if not data else "a decimal that is larger than its type says"
            )
        return Decimal(number).scaleb(-scale, _EXACT)

    return pa.array([decimal(value) for value in values], column.arrow)


def _struct(values: Values, column: AvroColumn) -> Any:
    is_union = column.form == "union"
    arrays = []
    for place, part in enumerate(column.parts):
        name = str(place) if is_union else f"f{place}"
        # A value of a union has one of its members.
        found = [None if value is None else value.get(name) for value in values]
        arrays.append(array_of(found, part))  # type: ignore[arg-type]
    if not arrays:
        return pa.array([None if value is None else {} for value in values], pa.struct([]))
    names = [part.name for part in column.parts]
    is_null = pa.array([value is None for value in values], pa.bool_())
    return pa.StructArray.from_arrays(arrays, names=names, mask=is_null)


def _list(values: Values, column: AvroColumn) -> Any:
    (element,) = column.parts
    elements = array_of(list(chain.from_iterable(filter(None, values))), element)  # type: ignore[arg-type]
    return pa.ListArray.from_arrays(_offsets(values), elements)


def _map(values: Values, column: AvroColumn) -> Any:
    entries = list(chain.from_iterable(filter(None, values)))
    key, value = column.parts
    keys = array_of([entry[KEY] for entry in entries], key)  # type: ignore[arg-type]
    items = array_of([entry[VALUE] for entry in entries], value)  # type: ignore[arg-type]
    return pa.MapArray.from_arrays(_offsets(values), keys, items)


def _offsets(values: Values) -> Any:
    """Return Arrow's offsets of lists: that of a null is null."""
    ends = accumulate((len(value or ()) for value in values), initial=0)
    starts = [None if value is None else end for value, end in zip([*values, ()], ends, strict=True)]
    return pa.array(starts, pa.int32())


_MADE: Mapping[str, Callable[[Values, AvroColumn], Any]] = {
    "boolean": _booleans,
    "enum": _symbols,
    "decimal": _decimals,
    "record": _struct,
    "union": _struct,
    "array": _list,
    "map": _map,
}
