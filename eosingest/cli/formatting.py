"""Formats counts, sizes and times as text. Sizes are in the spec's units (1 KiB = 1024 bytes)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

_UNITS = ("KiB", "MiB", "GiB", "TiB")
_GAPS_SHOWN = 10


def count(number: int, noun: str) -> str:
    """Return `1 file`, `1,200 files`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size(number: int) -> str:
    """Return a number of bytes as `512 bytes`, `32 MiB`, `1.2 GiB`."""
    if number < 1024:
        return count(number, "byte")
    power = next((power for power in range(1, len(_UNITS)) if round(number / 1024**power, 1) < 1024), len(_UNITS))
    return f"{number / 1024**power:,.1f}".removesuffix(".0") + f" {_UNITS[power - 1]}"


def amount(number: int, unit: str) -> str:
    """Return a size in the source's unit: `32 MiB`, `1,200 rows`."""
    return size(number) if unit == "bytes" else count(number, unit.removesuffix("s"))


def duration(seconds: float) -> str:
    """Return an elapsed time: `0.3 s`, `12 min 04 s`, `2 h 00 min 09 s`."""
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min {rest:02} s" if hours else f"{minutes} min {rest:02} s"


def clock(seconds: float) -> str:
    """Return a remaining time as `00:01:20`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{rest:02}"


def table(rows: list[tuple[str, str]]) -> list[str]:
    """Return (name, text) rows as aligned, indented lines."""
    width = max((len(name) for name, _ in rows), default=0)
    return [f"  {name:<{width}}  {text}" for name, text in rows]


def gaps(found: Sequence[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield the rows (name, text) on gaps: data deleted before it was read (`StatusReport.gaps`), latest run first."""
    latest = sorted(found, key=lambda gap: (-gap["run"], gap["name"]))
    for number, gap in enumerate(latest[:_GAPS_SHOWN]):
        text = f"{gap['text']}: deleted before they were read, accepted by run {gap['run']} at {gap['time']}"
        yield ("missing" if not number else "", text)
    if len(latest) > _GAPS_SHOWN:
        yield ("", f"and {len(latest) - _GAPS_SHOWN:,} more (--output json has all)")
