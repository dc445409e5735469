"""Sizes and durations: what is taken, what is refused, and that a refusal never repeats the text."""

from __future__ import annotations

import re

import pytest

from eosingest.spec.units import DURATION_PATTERN, SIZE_PATTERN, parse_duration, parse_size

SIZES = [
    ("32MiB", 32 * 1024**2),
    ("256 MiB", 256 * 1024**2),
    ("64KiB", 65536),
    ("1GiB", 1024**3),
    ("1.5KiB", 1536),
    ("2TiB", 2 * 1024**4),
    ("1000B", 1000),
    ("500kB", 500_000),
    ("500KB", 500_000),
    ("5MB", 5_000_000),
    ("4096", 4096),
    (4096, 4096),
    (0, 0),
]
NO_SIZES = ["4g", "128m", "64k", "1t", "128mb", "4gb", "1mib", "", "MiB", "-5MB", "1_000", "5 MB extra", "1e3", "0x10"]
DURATIONS = [
    ("60s", 60.0),
    ("5 min", 300.0),
    ("1h30m", 5400.0),
    ("1h 30m", 5400.0),
    ("500ms", 0.5),
    ("1.5h", 5400.0),
    ("2 days", 172_800.0),
    ("1m", 60.0),
    ("1 minute 1 second", 61.0),
    ("60", 60.0),
    (60, 60.0),
    (0.25, 0.25),
]
NO_DURATIONS = ["", "s", "PT60S", "00:01:00", "-5s", "5 parsecs", "60S", "1_000", "s60"]


@pytest.mark.parametrize(("text", "expected"), SIZES)
def test_a_size_is_bytes(text: object, expected: int) -> None:
    assert parse_size(text) == expected


@pytest.mark.parametrize("text", [*NO_SIZES, -1, 1.5, True, None, [], "sekret"])
def test_what_is_no_size_is_refused_without_repeating_it(text: object) -> None:
    with pytest.raises(ValueError, match="MiB") as caught:
        parse_size(text)
    assert "sekret" not in str(caught.value)


@pytest.mark.parametrize("text", ["4g", "128m", "64K", "128mb"])
def test_units_that_spark_reads_otherwise_are_named_as_the_reason(text: str) -> None:
    with pytest.raises(ValueError, match="Spark"):
        parse_size(text)


@pytest.mark.parametrize(("text", "expected"), DURATIONS)
def test_a_duration_is_seconds(text: object, expected: float) -> None:
    assert parse_duration(text) == pytest.approx(expected)


@pytest.mark.parametrize("text", [*NO_DURATIONS, -1, float("nan"), float("inf"), True, None, "sekret"])
def test_what_is_no_duration_is_refused_without_repeating_it(text: object) -> None:
    with pytest.raises(ValueError, match="1h30m") as caught:
        parse_duration(text)
    assert "sekret" not in str(caught.value)


def test_the_patterns_for_editors_agree_with_the_parsers() -> None:
    for pattern, good, bad in ((SIZE_PATTERN, SIZES, NO_SIZES), (DURATION_PATTERN, DURATIONS, NO_DURATIONS)):
        assert [text for text, _ in good if isinstance(text, str) and not re.search(pattern, text)] == []
        assert [text for text in bad if re.search(pattern, text)] == []
