"""Finds columns of a given schema that the data does not have although it has one of a similar name: probably misspelt.

A run asks for them before Spark starts (app/run.py): Spark's readers give null for such a column in every row, without an
error.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from eosingest.errors import EosingestError
from eosingest.sniff.found import quoted
from eosingest.sniff.opened import Opened, opened

_LOOKED_AT_BYTES = 1 << 20
_ALIKE = 0.75
_WITH_NAMES = ("json", "parquet", "orc")
_BY_CASE = "json"  # Spark matches its fields by case; columns of Parquet and ORC not


def misspelt(file: Path, format: str, columns: Sequence[str]) -> str | None:
    """Return a note on misspelt columns, by the file's first rows; None if there are none, or the file cannot be read.

    `columns` are the names of the schema, without those that folders give. Nothing is found in other formats than JSON,
    Parquet and ORC.
    """
    if format not in _WITH_NAMES:
        return None
    try:
        data = opened(file)
        names, looked_at = _fields(data) if format == "json" else (_columns(data, format), "the columns")
    except (EosingestError, OSError, ValueError, NotImplementedError):  # pyarrow's errors are of these
        return None
    fold = str if format == _BY_CASE else str.lower
    there, wanted = {fold(name) for name in names}, {fold(name) for name in columns}
    unread = [name for name in names if fold(name) not in wanted]
    found = [(name, like) for name in columns if fold(name) not in there and (like := _like(name, unread))]
    if not found or not names:
        return None
    pairs = ", ".join(f"{quoted(name)} ({quoted(like)} is there)" for name, like in found)
    return (
        f"not among {looked_at} of {file.name}: {pairs}. Spark makes null of a column that is not there: correct"
        " source.schema if the name is misspelt"
    )


def _like(name: str, others: Iterable[str]) -> str | None:
    lower = {other.lower(): other for other in others}
    close = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=_ALIKE)
    return lower[close[0]] if close else None


def _columns(data: Opened, format: str) -> list[str]:
    from eosingest.sniff import footers

    return footers.names(data, format)


def _fields(data: Opened) -> tuple[list[str], str]:
    """Return the field names in the first rows, in their order, and words for these rows. Other rows are ignored."""
    with data.stream() as stream:
        head = stream.read(_LOOKED_AT_BYTES)
    lines = head.decode("utf-8-sig", "replace").split("\n")
    if len(head) == _LOOKED_AT_BYTES:
        lines = lines[:-1]
    names: dict[str, None] = {}
    rows = 0
    for line in lines:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            names |= dict.fromkeys(row)
            rows += 1
    return list(names), f"the fields of the first {rows:,} rows"
