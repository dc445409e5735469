"""What an inferred schema that is pinned would drop, or not take, of what the files hold now."""

from __future__ import annotations

from typing import cast

import pytest
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from eosingest.sources.files.reading.schema_drift import compare, joined

_LONG, _INT, _TEXT, _REAL = LongType(), IntegerType(), StringType(), DoubleType()
_BIG = DecimalType(20, 0)


def struct(**fields: DataType) -> StructType:
    made = StructType()
    for name, kind in fields.items():
        made.add(name, kind)
    return made


# Found now, pinned, format, what is said of it, and a type for both.
CASES: list[tuple[StructType, StructType, str, list[str], StructType]] = [
    (struct(a=_LONG), struct(a=_LONG, b=_TEXT), "json", [], struct(a=_LONG, b=_TEXT)),
    (struct(a=_LONG, m=_TEXT), struct(a=_LONG), "json", ["m STRING is new"], struct(a=_LONG, m=_TEXT)),
    (struct(a=_REAL), struct(a=_LONG), "json", ["a is DOUBLE now, and was BIGINT"], struct(a=_REAL)),
    (struct(a=_LONG), struct(a=_REAL), "json", [], struct(a=_REAL)),
    (struct(a=_TEXT), struct(a=_LONG), "json", ["a is STRING now, and was BIGINT"], struct(a=_TEXT)),
    (struct(a=_LONG), struct(a=_TEXT), "json", [], struct(a=_TEXT)),
    (struct(a=_LONG), struct(a=_TEXT), "orc", ["a is BIGINT now, and was STRING"], struct(a=_TEXT)),
    (struct(a=_INT), struct(a=_LONG), "parquet", [], struct(a=_LONG)),
    (struct(a=BooleanType()), struct(a=_LONG), "json", ["a is BOOLEAN now, and was BIGINT"], struct(a=_TEXT)),
    (struct(a=DateType()), struct(a=TimestampType()), "csv", [], struct(a=TimestampType())),
    (struct(a=TimestampType()), struct(a=DateType()), "csv", ["a is TIMESTAMP now, and was DATE"], struct(a=TimestampType())),
    (struct(a=_BIG), struct(a=_LONG), "csv", ["a is DECIMAL(20,0) now, and was BIGINT"], struct(a=_BIG)),
    (
        struct(s=struct(x=_LONG, y=_TEXT)),
        struct(s=struct(x=_LONG)),
        "json",
        ["s.y STRING is new"],
        struct(s=struct(x=_LONG, y=_TEXT)),
    ),
    (
        struct(l=ArrayType(struct(x=_REAL))),
        struct(l=ArrayType(struct(x=_LONG))),
        "json",
        ["l[].x is DOUBLE now, and was BIGINT"],
        struct(l=ArrayType(struct(x=_REAL))),
    ),
    (struct(a=struct(x=_LONG)), struct(a=_LONG), "json", ["a is struct<x:bigint> now, and was BIGINT"], struct(a=_TEXT)),
]  # fmt: skip


@pytest.mark.parametrize(("found", "pinned", "format", "said", "both"), CASES, ids=[str(n) for n in range(len(CASES))])
def test_what_the_pinned_schema_does_not_take(
    found: StructType, pinned: StructType, format: str, said: list[str], both: StructType
) -> None:
    assert [str(difference) for difference in compare(found, pinned, format)] == said
    assert joined(pinned, found, format) == both
    assert list(compare(found, cast(StructType, joined(pinned, found, format)), format)) == [] or format == "orc"
