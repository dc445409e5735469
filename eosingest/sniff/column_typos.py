"""Finds probably misspelt columns of a given schema: the data lacks the column, but has one of a similar name.

A run checks for them before Spark starts (app/run.py): Spark's readers return null for these columns in every row, without an
error.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from eosingest.errors import EosingestError
from eosingest.sniff.input import DataFile, Opened, opened
from eosingest.sniff.result import quoted

_LOOKED_AT_BYTES = 1 << 20
_ALIKE = 0.75
_WITH_NAMES = ("json", "xml", "parquet", "orc")
_BY_CASE = ("json", "xml")  # their names are case-sensitive; those of Parquet and ORC are not
_NAMED_AT_MOST = 10


def misspelt(file: Path, format: str, columns: Sequence[str], row_name: str | None = None) -> str | None:
    """Return a note on misspelt columns, by the file's first rows; None if there are none, or the file cannot be read.

    `columns` are the names of the schema, without those that folders give. `row_name` is the rows' name in the data, if they
    have one: if no row has it, the note says so. Only JSON, XML, Parquet and ORC are checked.
    """
    if format not in _WITH_NAMES:
        return None
    try:
        data = opened(file)
        if format == "xml":
            return _of_elements(data, columns, row_name or "")
        names, looked_at = _fields(data) if format == "json" else (_columns(data, format), "the columns")
    except (EosingestError, OSError, ValueError, NotImplementedError):  # pyarrow's errors are of these
        return None
    return _note(file, columns, names, looked_at, str if format in _BY_CASE else str.lower)


def _note(
    file: DataFile, columns: Sequence[str], names: Sequence[str], looked_at: str, fold: Callable[[str], str]
) -> str | None:
    there, wanted = {fold(name) for name in names}, {fold(name) for name in columns}
    unread = [name for name in names if fold(name) not in wanted]
    found = [(name, like) for name in columns if fold(name) not in there and (like := _like(name, unread))]
    if not found or not names:
        return None
    pairs = ", ".join(f"{quoted(name)} ({quoted(like)} is there)" for name, like in found)
    return (
        f"not among {looked_at} of {file.name}: {pairs}. A column that is not there is null: correct"
        " source.schema if the name is misspelt"
    )


def _of_elements(data: Opened, columns: Sequence[str], row_name: str) -> str | None:
    from eosingest.sniff import xml

    names, every = xml.names_in(data, row_name, _LOOKED_AT_BYTES)
    if row_name not in every:
        shown = ", ".join(every[:_NAMED_AT_MOST]) + (" …" if len(every) > _NAMED_AT_MOST else "")
        return (
            f"no element <{row_name}> is at the beginning of {data.file.name}; there are: {shown}. See options.rowTag"
        )
    return _note(data.file, columns, names, "the columns of the first rows", str)


def _like(name: str, others: Iterable[str]) -> str | None:
    lower = {other.lower(): other for other in others}
    close = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=_ALIKE)
    return lower[close[0]] if close else None


def _columns(data: Opened, format: str) -> list[str]:
    from eosingest.sniff import footers

    return footers.names(data, format)


def _fields(data: Opened) -> tuple[list[str], str]:
    """Return the field names in the first rows, in their order, and a phrase for these rows. Skip lines that are no object."""
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
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict):
            names |= dict.fromkeys(row)
            rows += 1
    return list(names), f"the fields of the first {rows:,} rows"
