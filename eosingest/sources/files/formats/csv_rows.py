"""Defines the dialect of CSV files, and parses a row of it field by field, strictly.

Between the options of a spec, the inspection (csv_check.py, whole_csv.py) and the tasks' reader (reading/csv_columns.py), which
has pyarrow parse whole blocks of rows that numpy finds regular. Any other row is parsed here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from eosingest.sources.files.bytes.text_blocks import BadTextError

_ESCAPES = {"\\t": "\t", "\\r": "\r", "\\b": "\b", "\\f": "\f", '\\"': '"', "\\'": "'", "\\\\": "\\", "\\u0000": "\0"}
BLANKS = "".join(map(chr, range(0x21)))
_LF = 10
_WAY_OUT = "where records go over several lines, set source.options.multiLine = true, or write each in one"


class UnclosedFieldError(BadTextError):
    """A quoted field does not end in its line."""


@dataclass(frozen=True)
class Dialect:
    """The options that define rows and fields; an empty character means none."""

    delimiter: str
    quote: str
    escape: str
    comment: str
    header: bool
    skips_space: bool
    drops_space: bool

    @staticmethod
    def of(options: Mapping[str, str]) -> Dialect:
        """Read the options of a spec."""
        lower = {name.lower(): value for name, value in options.items()}
        quote = lower.get("quote", '"').strip("\0")
        return Dialect(
            delimiter=_unescaped(lower.get("sep", lower.get("delimiter", ","))),
            quote=quote,
            escape=lower.get("escape", quote).strip("\0") if quote else "",
            comment=lower.get("comment", "").strip("\0"),
            header=lower.get("header", "").lower() == "true",
            skips_space=lower.get("ignoreleadingwhitespace", "").lower() == "true",
            drops_space=lower.get("ignoretrailingwhitespace", "").lower() == "true",
        )

    @property
    def doubles(self) -> bool:
        """Whether a quote inside a quoted field is doubled."""
        return self.escape == self.quote

    @property
    def is_trimmed(self) -> bool:
        """Whether white space around fields is no part of them."""
        return self.skips_space or self.drops_space

    def is_row(self, line: str) -> bool:
        """Say whether a line is a row: an empty line and a comment are none."""
        return bool(line) and not (self.comment and line.startswith(self.comment))

    def trimmed(self, text: str) -> str:
        """Return a field that is not quoted without the white space that is no part of it."""
        text = text.lstrip(BLANKS) if self.skips_space else text
        return text.rstrip(BLANKS) if self.drops_space else text

    def fields(self, row: str) -> list[str | None]:
        """Return the fields of a row; one that is empty and not quoted is None.

        Raises BadTextError, without a line, for a quoted field that does not end, for text after one, and for an escape outside
        of quotes, which readers read in different ways.
        """
        found: list[str | None] = []
        at = 0
        while True:
            start = self._patterns.leading.match(row, at).end() if self.skips_space else at  # type: ignore[union-attr]
            if self.quote and row.startswith(self.quote, start):
                text, at = self._quoted(row, start)
                found.append(text)
            else:
                end = row.find(self.delimiter, at)
                end = len(row) if end < 0 else end
                self._refuse_escape(row, at, min(end + len(self.delimiter), len(row)))
                found.append(self.trimmed(row[at:end]) or None)
                at = end
            if at == len(row):
                return found
            at += len(self.delimiter)

    def escaped(self, text: str) -> re.Match[str] | None:
        """Return the first escape before a quote, a delimiter or itself, if quotes are not doubled."""
        return self._patterns.escaped.search(text) if self._patterns.escaped is not None else None

    def _quoted(self, row: str, start: int) -> tuple[str, int]:
        """Return the text of a quoted field, and the index of the delimiter, or of the end, after it."""
        body = self._patterns.quoted.match(row, start)
        assert body is not None, "a quoted field may be unclosed"
        at = body.end()
        if at == len(row):
            hint = f"{_WAY_OUT}{or_another_escape(self)}"
            raise UnclosedFieldError(f"a quoted field does not end in its line: {shown(row, start)}", hint=hint)
        behind = self._patterns.behind.match(row, at)
        if behind is not None:
            return self._patterns.special.sub(r"\1", body[1]), behind.end()
        if self._patterns.spaced.match(row, at):
            hint = 'set source.options.ignoreTrailingWhiteSpace = "true" if it is no part of the field'
            raise BadTextError(f"white space after a quoted field: {shown(row, at)}", hint=hint)
        hint = or_another_escape(self).removeprefix("; ") or "escape the quote"
        raise BadTextError(f"a quote inside a quoted field that is not escaped: {shown(row, at)}", hint=hint)

    def _refuse_escape(self, row: str, begin: int, end: int) -> None:
        if self._patterns.escaped is not None and (found := self._patterns.escaped.search(row, begin, end)):
            raise escape_outside_of_quotes(shown(row, found.start()))

    @cached_property
    def _patterns(self) -> _Patterns:
        return _Patterns(self)


def _unescaped(delimiter: str) -> str:
    """Return the delimiter as Spark's CSVExprUtils.toDelimiterStr does."""
    return re.sub(r"\\u0000|\\.", lambda found: _ESCAPES.get(found[0], found[0]), delimiter)


def escape_outside_of_quotes(around: str, line: int | None = None) -> BadTextError:
    """Return the error for an escape that some readers keep and others remove."""
    return BadTextError(
        f"an escape outside of quotes, which readers keep or remove: {around}",
        line=line,
        hint="put the field in quotes; if no escape is meant, set source.options.escape = '\"'",
    )


def or_another_escape(dialect: Dialect) -> str:
    """Return the end of a hint, in case quotes are not escaped as `escape` says; "" if they are doubled anyway."""
    if dialect.doubles:
        return ""
    wanted = f"'{dialect.quote}'" if dialect.quote == '"' else f'"{dialect.quote}"'
    return f"; if quotes are doubled inside fields, as in most CSV, set source.options.escape = {wanted}"


def shown(line: str, at: int) -> str:
    """Return the text around an index of a line, for a message."""
    return line[max(0, at - 20) : at + 40]


class _Patterns:
    """The regular expressions of a dialect's fields. Their quantifiers are possessive, so that they take linear time."""

    def __init__(self, dialect: Dialect) -> None:
        delimiter, quote, escape = map(re.escape, (dialect.delimiter, dialect.quote, dialect.escape))
        if not escape:
            body, special = rf"[^{quote or chr(0)}]", r"(?!)()"
        elif dialect.doubles:
            body, special = rf"[^{quote}]|{quote}{quote}", rf"{quote}({quote})"
        else:
            body, special = rf"[^{quote}{escape}]|{escape}.", rf"{escape}({quote}|{escape})"
        space = rf"(?:(?!{delimiter})[\x00-\x20])*+"
        self.quoted = re.compile(rf"{quote}((?:{body})*+)", re.DOTALL)
        self.special = re.compile(special)
        self.leading = re.compile(space)
        self.behind = re.compile(rf"{quote}{space if dialect.drops_space else ''}(?={delimiter}|\Z)")
        self.spaced = re.compile(rf"{quote}{space}(?={delimiter}|\Z)")
        says = bool(escape) and not dialect.doubles
        self.escaped = re.compile(rf"{escape}(?:{quote}|{escape}|{delimiter})") if says else None


def irregular_lines(data: bytes, dialect: Dialect, end: int = _LF) -> list[int] | None:
    """Return the numbers, from 0, of lines with a quote that opens or closes no field; None if numpy cannot decide.

    `end` is the byte that ends each line. A line is regular if its first, third, … quote follows a delimiter or the line's
    start, and each quote between precedes a delimiter or the line's end. If quotes are doubled, two of them in a row belong to
    the field.
    """
    if len(dialect.delimiter) > 1 or not (dialect.delimiter + dialect.quote + dialect.escape).isascii():
        return None
    delimiter, quote, escape = map(ord, (dialect.delimiter, dialect.quote, dialect.escape or "\0"))
    found = np.frombuffer(b"%c%b%c" % (end, data, end), np.uint8)
    marks = np.flatnonzero((found == quote) | (found == end))
    is_quote = found[marks] != end
    line_of = np.cumsum(~is_quote) - 1
    quotes, line_of = marks[is_quote], line_of[is_quote]
    before, behind = found[quotes - 1], found[quotes + 1]
    irregular = np.zeros(len(quotes), bool)
    if dialect.escape and not dialect.doubles:
        escaped = before == escape
        irregular |= escaped & (found[np.maximum(quotes - 2, 0)] == escape)
        bad_lines = line_of[irregular]
        quotes, line_of, before, behind = (each[~escaped] for each in (quotes, line_of, before, behind))
    else:
        bad_lines = line_of[:0]
    count = np.bincount(line_of, minlength=int(line_of[-1]) + 1 if len(line_of) else 0)
    first = np.cumsum(count) - count
    opens = (np.arange(len(quotes)) - first[line_of]) % 2 == 0 if len(quotes) else np.zeros(0, bool)
    good_before, good_behind = (_at_border(each, end, delimiter, quote, dialect) for each in (before, behind))
    bad = np.where(opens, ~good_before, ~good_behind)
    odd = np.flatnonzero(count % 2)
    return sorted(set(np.concatenate((bad_lines, line_of[bad], odd)).tolist()))


def _at_border(
    bytes_: npt.NDArray[np.uint8], end: int, delimiter: int, quote: int, dialect: Dialect
) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = (bytes_ == end) | (bytes_ == delimiter)
    return found | (bytes_ == quote) if dialect.doubles else found


def lines_with(data: bytes, mark: bytes) -> list[int]:
    """Return the numbers, from 0, of the lines that have a byte; each ends with a line feed."""
    found = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(found == _LF)
    return sorted(set(np.searchsorted(ends, np.flatnonzero(found == ord(mark))).tolist()))
