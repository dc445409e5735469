"""The table's filters: `where` over Parquet and ORC, whose statistics and bloom filters must not lose a row that it keeps.

Expected are the rows of the independent reader that a condition in Python keeps, by Spark's order of numbers: NaN is equal to
itself and larger than all others, and -0.0 is 0.0.
"""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from tests.support.reading.independent import rows
from tests.support.reading.table import Case, one
from tests.support.reading.table_columns import packed

_NAN = float("nan")
_TIME = datetime.datetime(2020, 1, 2, 3, 4, 5, 678901)
_UTC = pa.timestamp("us", "UTC")


def cases() -> Iterator[Case]:
    yield from _numbers()
    yield from _times()
    yield from _map_keys()


def _case(format: str, name: str, table: pa.Table, where: str, keeps: Callable[[Any], bool], **options: Any) -> Case:
    data = packed(format, table, **options)
    found = rows("parquet", "a", data if format == "parquet" else packed("parquet", _in_utc(table)), None, {})
    assert found is not None
    kept = [row for row, values in zip(found, table.to_pylist(), strict=True) if keeps(values["x"])]
    return Case(
        f"{format}/where/{name}, {where}", format, one("a.x", data), where=where, expected=tuple(kept),
        habit="a row is filtered when it has been read",
    )  # fmt: skip


def _in_utc(table: pa.Table) -> pa.Table:
    """Return the table as ORC has it, whose times are in UTC."""
    kinds = [_UTC if pa.types.is_timestamp(field.type) else field.type for field in table.schema]
    return pa.table([column.cast(kind) for column, kind in zip(table.columns, kinds, strict=True)], table.column_names)


def _numbers() -> Iterator[Case]:
    conditions: dict[str, Callable[[float], bool]] = {
        "x > 5": lambda x: math.isnan(x) or x > 5,
        "x >= 3.5": lambda x: math.isnan(x) or x >= 3.5,
        "NOT (x <= 3)": lambda x: math.isnan(x) or x > 3,
        "x = double('NaN')": math.isnan,
        "x IN (double('NaN'), 100)": math.isnan,
        "x <> 3": lambda x: x != 3,
        "x = 0": lambda x: x == 0,
        "x IN (0, 7)": lambda x: x == 0,
        "x <= -double('0.0')": lambda x: x <= 0,
        "x < 0": lambda x: x < 0,
    }
    values = {"nan": [1.0, 3.0, _NAN], "nan alone": [3.0, _NAN], "minus zero": [-0.0, -0.0], "zero": [0.0]}
    for format, kind in itertools.product(("parquet", "orc"), (pa.float64(), pa.float32())):
        for (name, numbers), (where, keeps) in itertools.product(values.items(), conditions.items()):
            yield _case(format, f"{name} {kind}", pa.table({"x": pa.array(numbers, kind)}), where, keeps)
    for where, keeps in conditions.items():
        plain = pa.table({"x": [1.0, 3.0, _NAN]})
        yield _case("parquet", "nan without a dictionary", plain, where, keeps, use_dictionary=False)
        yield _case("parquet", "nan with an index", plain, where, keeps, write_page_index=True, data_page_size=16)


def _times() -> Iterator[Case]:
    compared: dict[str, Callable[[Any, Any], bool]] = {
        "=": lambda one, other: one == other,
        "<": lambda one, other: one < other,
        "<=": lambda one, other: one <= other,
        ">=": lambda one, other: one >= other,
        "<>": lambda one, other: one != other,
    }
    for format, value, apart in itertools.product(
        ("parquet", "orc"), (_TIME, _TIME.replace(microsecond=0)), (-1, 0, 1)
    ):
        other = value + datetime.timedelta(microseconds=apart)
        table = pa.table({"x": pa.array([value, value], pa.timestamp("us"))})
        for sign, keeps in compared.items():
            where = f"x {sign} TIMESTAMP'{other.isoformat(sep=' ', timespec='microseconds')}'"
            yield _case(format, str(value), table, where, lambda x, keeps=keeps, other=other: keeps(x, other))  # type: ignore[misc]


def _map_keys() -> Iterator[Case]:
    """Of maps in a record as JSON, keys that are not their own text are refused; asked for as arrays, they are read."""
    day = datetime.date(2020, 1, 2)
    keys: dict[str, tuple[Any, pa.DataType]] = {
        "bytes": (b"ab", pa.binary()), "a day": (day, pa.date32()), "a time": (_TIME, pa.timestamp("us")),
        "a list": ([1], pa.list_(pa.int64())), "a struct": ({"a": 1}, pa.struct([("a", pa.int64())])),
    }  # fmt: skip
    for format, (name, (key, kind)) in itertools.product(("parquet", "orc"), keys.items()):
        made = pa.table({"x": pa.array([[(key, 1)]], pa.map_(kind, pa.int64()))})
        deep = pa.table({"x": pa.array([[{"m": [(key, 1)]}]], pa.list_(pa.struct([("m", pa.map_(kind, pa.int64()))])))})
        for place, table in (("", made), (" in a list of structs", deep)):
            yield Case(f"{format}/map keys/{name}{place}", format, one("a.x", packed(format, table)), refused=True)
        yield Case(
            f"{format}/map keys/{name} not sent", format, one("a.x", packed(format, made)), value="CAST(size(x) AS STRING)",
            expected=(b"1",), habit="what no record holds is not refused",
        )  # fmt: skip
    for format in ("parquet", "orc"):
        good = pa.table({"x": pa.array([[(1, True), (2, None)]], pa.map_(pa.int64(), pa.bool_()))})
        yield Case(
            f"{format}/map keys/numbers", format, one("a.x", packed(format, good)), expected=({"x": {"1": True, "2": None}},),
            habit="keys that are numbers and booleans are written as text",
        )  # fmt: skip
