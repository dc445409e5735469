"""The dialect of a CSV file, and its rows by Python's csv."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

DELIMITERS = (",", ";", "\t", "|")


@dataclass(frozen=True)
class Dialect:
    """`escape` is the quote itself where quotes are doubled."""

    delimiter: str
    quote: str = '"'
    escape: str = '"'

    def rows(self, lines: Iterable[str], *, strict: bool = False) -> Iterator[list[str]]:
        """Yield the rows except empty ones: Spark ignores empty lines."""
        return (row for row in self.reader(lines, strict=strict) if row)

    def reader(self, lines: Iterable[str], *, strict: bool = False) -> Any:
        """Return Python's reader."""
        csv.field_size_limit(1 << 30)
        doubled = self.escape == self.quote
        escape = None if doubled else self.escape
        return csv.reader(
            lines, delimiter=self.delimiter, quotechar=self.quote, strict=strict, doublequote=doubled, escapechar=escape
        )

    def options(self, text: str) -> dict[str, str | bool]:
        """Return the options of a spec for a text of this dialect."""
        found: dict[str, str | bool] = {} if self.delimiter == "," else {"sep": self.delimiter}
        if self.quote != '"':
            found["quote"] = self.quote
        elif '"' in text:
            found["escape"] = self.escape
        return found
