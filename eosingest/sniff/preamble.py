"""Finds lines of a CSV file that are no rows, such as a title or a total, and names the command that removes them."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from dataclasses import replace

from eosingest.errors import FatalError
from eosingest.sniff.convert import command
from eosingest.sniff.csv_dialect import DELIMITERS, Dialect
from eosingest.sniff.input import Opened

_MOST_LINES = 50  # of a title
_LEAST_ROWS = 2
_SEPARATOR = re.compile(r"sep=.\r?\n")


def refuse_separator_line(data: Opened, text: str) -> None:
    """Raise FatalError if the first line is the one by which Excel knows the separator."""
    if _SEPARATOR.match(text):
        raise FatalError(
            f"{data.file}: its first line names the separator, for Excel, and would be read as the header",
            code="csv-header",
            hint=_without(data, "tail -n +2"),
        )


def refuse_title(data: Opened, sample: str) -> None:
    """Raise FatalError if a text without a delimiter in all rows has one in all rows below a title."""
    for delimiter in DELIMITERS:
        way = _way_out(data, sample, Dialect(delimiter), whole=False)
        if way:
            raise FatalError(
                f"{data.file}: the rows below its first lines have fields, separated by {json.dumps(delimiter)}",
                code="corrupt-row",
                hint=way,
            )


def with_way_out(error: FatalError, data: Opened, sample: str, dialect: Dialect, *, whole: bool) -> FatalError:
    """Return the error for a row with another number of fields, with the command if only the first or the last rows have less.

    `whole`: the sample is the whole file.
    """
    others = (replace(dialect, delimiter=delimiter) for delimiter in DELIMITERS)
    way = next(filter(None, (_way_out(data, sample, each, whole=whole) for each in (dialect, *others))), None)
    return error if way is None else FatalError(error.message, code=error.code, hint=way)


def _way_out(data: Opened, sample: str, dialect: Dialect, *, whole: bool) -> str | None:
    """Return the command without a title, or without a total; None if other rows differ."""
    reader, before, rows = dialect.reader(io.StringIO(sample, newline="")), 0, list[tuple[int, int, int]]()
    try:
        for row in reader:
            if row:
                rows.append((len(row), before + 1, reader.line_num))
            before = reader.line_num
    except csv.Error:
        return None
    widths = [width for width, _, _ in rows]
    even = sum(1 for _ in itertools.takewhile(lambda width: width == widths[-1], reversed(widths)))
    title = widths[: len(widths) - even]
    if title and even >= _LEAST_ROWS and max(title) < widths[-1] and rows[-even][1] <= _MOST_LINES:
        return f"if the first lines are a title: {_without(data, f'tail -n +{rows[-even][1]}')}"
    if whole and len(rows) > _LEAST_ROWS and len(set(widths[:-1])) == 1 and widths[-1] < widths[0]:
        return f"if the last row is a total: {_without(data, f'head -n {rows[-2][2]}')}"
    return None


def _without(data: Opened, program: str) -> str:
    line, name = command(data, program, data.inner_suffix or ".csv")
    return f"{line}, then: eosingest init --from {name}"
