"""Texts of all types: which are values, and of what; the fast way and the slow one give the same."""

from __future__ import annotations

import datetime
import math
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    LongType,
    TimestampNTZType,
    TimestampType,
)

from eosingest.sources.files.formats import times
from eosingest.sources.files.reading import typed_text
from eosingest.sources.files.reading.typed_text import TextType

NO_VALUE = "no value"


def _read(kind: DataType, pattern: str | None, *texts: str | None) -> list[Any]:
    values, marks = TextType(kind, pattern).values(pa.array(texts, pa.string()))
    assert len(values) == len(texts) and (marks is None or len(marks) == len(texts))
    marked = marks.to_pylist() if marks is not None else [False] * len(texts)
    return [NO_VALUE if bad else value for value, bad in zip(values.to_pylist(), marked, strict=True)]


def _utc(*parts: int) -> datetime.datetime:
    return datetime.datetime(*parts, tzinfo=datetime.UTC)  # type: ignore[misc, arg-type]


CASES: list[tuple[DataType, dict[str, Any]]] = [
    (BooleanType(), {"true": True, "TRUE": True, "False": False, "1": NO_VALUE, "": NO_VALUE}),
    (ByteType(), {"+1": 1, "00012": 12, "-128": -128, "128": NO_VALUE, " 1": NO_VALUE, "1.0": NO_VALUE, "٣": NO_VALUE}),
    (LongType(), {"9223372036854775807": 2**63 - 1, "9223372036854775808": NO_VALUE, "1e3": NO_VALUE, "-": NO_VALUE}),
    (DoubleType(), {"1e400": math.inf, ".5": 0.5, " 7 ": 7.0, "Infinity": math.inf, "1d": NO_VALUE, "0x1p3": NO_VALUE}),
    # Closest to the first FLOAT above 1; rounded to a DOUBLE first, it would be the second one.
    (FloatType(), {"1.00000017881393421514957253748434595763683319091796875001": 1.0 + 2**-23, "1e39": math.inf}),
    (DecimalType(10, 2), {"1.239": Decimal("1.24"), "-1.005": Decimal("-1.01"), "1E3": Decimal("1000.00")}),
    (
        DecimalType(10, 2),
        {"1,234.50": Decimal("1234.50"), "1,5": NO_VALUE, "123456789": NO_VALUE, "1e9999999": NO_VALUE},
    ),
    (DecimalType(10, 2), {"0000000001.10": Decimal("1.10"), "1e-9999999": Decimal("0.00"), "NaN": NO_VALUE}),
    (DateType(), {"2020-1-2": datetime.date(2020, 1, 2), " 2020-01-02 00:00 ": datetime.date(2020, 1, 2)}),
    (DateType(), dict.fromkeys(("2020-01-02 x", "20200102", "2020-02-30", "2020", "2020-05", "0000-01-01"), NO_VALUE)),
    (
        TimestampType(),
        {"2020-01-02": _utc(2020, 1, 2), "2020": _utc(2020, 1, 1), "2020-1-2T3:4": _utc(2020, 1, 2, 3, 4)},
    ),
    (
        TimestampType(),
        {"2020-01-02 10:30:00+0200": _utc(2020, 1, 2, 8, 30), "2020-01-02T10:30:00": _utc(2020, 1, 2, 10, 30)},
    ),
    (TimestampType(), {"2020-01-02T10:30:00.1234567-05:00": _utc(2020, 1, 2, 15, 30, 0, 123456)}),
    (
        TimestampType(),
        dict.fromkeys(("10:30", "2020-05", "202005", "2020-01-02T25:00:00", "2020-01-02 1:2 IST"), NO_VALUE),
    ),
    (TimestampType(), {"0001-01-01T00:00:00+01:00": NO_VALUE, "2020-01-02T00:00:00+15:00": NO_VALUE}),
    (
        TimestampNTZType(),
        {"2020-01-02T10:30:00.5": datetime.datetime(2020, 1, 2, 10, 30, 0, 500000), "123456": NO_VALUE},
    ),
    (TimestampNTZType(), {"2020-01-02T10:30:00Z": NO_VALUE, "2020-01-02": datetime.datetime(2020, 1, 2)}),
]


@pytest.mark.parametrize(("kind", "texts"), CASES)
def test_a_text_is_the_value_that_it_says_or_none(kind: DataType, texts: dict[str, Any]) -> None:
    assert _read(kind, None, None, *texts) == [None, *texts.values()]


@pytest.mark.parametrize(
    ("kind", "pattern", "text", "value"),
    [
        (DateType(), "dd/MM/yyyy", "31/12/2020", datetime.date(2020, 12, 31)),
        (DateType(), "dd/MM/yyyy", "1/2/2020", NO_VALUE),
        (DateType(), "yyyyMMdd", "20200102", datetime.date(2020, 1, 2)),
        (DateType(), "yyyy-MM-dd HH:mm", "2020-01-02 23:59", datetime.date(2020, 1, 2)),
        (DateType(), "yyyy-MM-dd HH:mm", "2020-01-02 99:99", NO_VALUE),
        (DateType(), "yyyy-MM-dd XXX", "2020-01-02 +99:99", NO_VALUE),
        (DateType(), "MMM MM yyyy", "Jan 05 2020", NO_VALUE),
        *(
            (kind, pattern, text, NO_VALUE)
            for kind in (DateType(), TimestampType(), TimestampNTZType())
            for pattern, text in (
                ("MMM MM yyyy", "Jan 05 2020"),
                ("MMMM M yyyy", "January 5 2020"),
                ("yyyy yy-MM-dd", "2020 21-01-02"),
                ("uu uuuu-MM-dd", "20 2021-01-02"),
                ("yyyy-MM-dd HH hh a", "2020-01-02 13 02 PM"),
                ("yyyy-MM-dd[ HH][ hh a]", "2020-01-02 13 02 PM"),
            )
        ),
        (TimestampType(), "yyyy-MM-dd[ HH][ hh a]", "2020-01-02 02 PM", _utc(2020, 1, 2, 14, 0)),
        (TimestampType(), "dd-[MMM][MM]-yyyy", "01-JAN-2020", _utc(2020, 1, 1)),
        (DateType(), "dd-[MMM][MM]-yyyy", "01-JAN-2020", datetime.date(2020, 1, 1)),
        (DateType(), "dd/MM/[yyyy][yy]", "01/02/20", datetime.date(2020, 2, 1)),
        (DateType(), "dd/MM/yyyy[ hh:mm][ a]", "01/01/2020 AM", NO_VALUE),
        (TimestampType(), "dd/MM/yyyy[ hh:mm][ a]", "01/01/2020 AM", NO_VALUE),
        (TimestampType(), "dd/MM/yyyy[ hh:mm][ a]", "01/01/2020 10:30", NO_VALUE),
        (DateType(), "dd/MM/yyyy[ hh:mm][ a]", "01/01/2020 10:30", NO_VALUE),
        (DateType(), "d MMM yy", "2 jan 20", datetime.date(2020, 1, 2)),
        (TimestampType(), "dd-MMMM-yyyy hh:mm a", "31-May-2020 12:05 AM", _utc(2020, 5, 31, 0, 5)),
        (TimestampType(), "dd-MMMM-yyyy hh:mm a", "31-May-2020 13:05 PM", NO_VALUE),
        (
            TimestampType(),
            "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]XXX",
            "2020-01-02T10:00:00.5+02:00",
            _utc(2020, 1, 2, 8, 0, 0, 500000),
        ),
        (TimestampType(), "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]XXX", "2020-01-02T10:00:00Z", _utc(2020, 1, 2, 10)),
        (TimestampType(), "HH:mm", "10:30", _utc(1970, 1, 1, 10, 30)),
        (TimestampNTZType(), "yyyy.MM.dd", "2020.01.02", datetime.datetime(2020, 1, 2)),
    ],
)
def test_a_pattern_says_how_a_time_is_written(kind: DataType, pattern: str, text: str, value: Any) -> None:
    assert _read(kind, pattern, text) == [value]


@pytest.mark.parametrize(
    "pattern",
    ["dMyyyy", "hh:mm", "EEE d", "[yyyy", "VV", "yyyy-DDD", "yyyy yyyy", "SSSSSSSSSS"],
)
def test_a_pattern_that_cannot_be_read_is_refused(pattern: str) -> None:
    with pytest.raises(times.BadPatternError):
        times.compiled(pattern)


def test_both_ways_give_the_same_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Arrow casts a converter in Python reads alike: random numbers, dates and times, also those that do not exist."""
    chance = random.Random(5)
    for kind, text in _random_texts(chance):
        texts = pa.array([text() for _ in range(3_000)], pa.string())
        fast, marked = TextType(kind).values(texts)
        with monkeypatch.context() as patched:
            patched.setattr(typed_text.TextType, "_plain_pattern", lambda self: None)
            slow, of_slow = TextType(kind).values(texts)
        assert fast.equals(slow), kind
        assert (marked is None) == (of_slow is None) and (marked is None or marked.equals(of_slow)), kind


def _random_texts(chance: random.Random) -> list[tuple[DataType, Any]]:
    def number() -> str:
        fraction = f".{chance.randrange(10 ** chance.randint(1, 9))}" if chance.random() < 0.7 else ""
        return f"{chance.choice(('', '-'))}{chance.randrange(10 ** chance.randint(1, 20))}{fraction}"

    def day() -> str:
        return f"{chance.randint(1, 9999):04}-{chance.randint(1, 12):02}-{chance.randint(1, 31):02}"

    def moment() -> str:
        fraction = f".{chance.randrange(10 ** chance.randint(1, 8))}" if chance.random() < 0.7 else ""
        zone = chance.choice(("", "Z", "+02:00", "-13:59", "+14:00", "+14:01"))
        return f"{day()}{chance.choice('T ')}{chance.randint(0, 24):02}:{chance.randint(0, 60):02}:00{fraction}{zone}"

    numbers = (ByteType(), LongType(), FloatType(), DoubleType(), DecimalType(12, 3), DecimalType(38, 0))
    return [
        *((kind, number) for kind in numbers),
        (DateType(), day),
        (TimestampType(), moment),
        (TimestampNTZType(), moment),
    ]
