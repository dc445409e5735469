"""Finds lines of CSV that Spark would read as other rows than the file holds, before anything is sent.

For the inspection (inspection.py), on the decoded lines of text_blocks.py. Spark first cuts lines and then parses quotes, line
by line: a quoted field that continues in the next line becomes two rows, silently if the number of fields is right. Spark drops
lines of white space, keeps a doubled quote if `escape` is another character, keeps an escape outside of quotes, and expects a
header only in the first split. Each of these ends the run here. numpy finds the lines in which every quote opens or closes a
field; any other line with a quote is parsed field by field, as by univocity, Spark's parser.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from eosingest.sources.files.bytes.text_blocks import BadTextError, Block, layout, refuse_zero_bytes

_ESCAPES = {"\\t": "\t", "\\r": "\r", "\\b": "\b", "\\f": "\f", '\\"': '"', "\\'": "'", "\\\\": "\\", "\\u0000": "\0"}
_SPACE = "\x00-\x20"
CONTROLS = "".join(map(chr, range(0x21)))  # Spark strips these from a line to see whether it is blank
_BLANK_FIRST = re.compile(r"[\x00-\t\x0b\x0c\x0e-\x20]+(?=\n|\Z)")
_BLANK = re.compile(r"\n[\x00-\t\x0b\x0c\x0e-\x20]+(?=\n|\Z)")  # begins with one character: ten times faster to find
_WAY_OUT = "where records go over several lines, set source.options.multiLine = true, or write each in one"


@dataclass(frozen=True)
class Dialect:
    """The options that define quotes and fields, as Spark reads them; an empty character means none."""

    delimiter: str
    quote: str
    escape: str
    comment: str
    header: bool
    skips_space: bool
    drops_space: bool
    takes_unescaped: bool
    escape_is_said: bool = False  # Spark's default, a backslash, may be plain text

    @staticmethod
    def of(options: Mapping[str, str]) -> Dialect:
        """Read the options given to Spark's reader."""
        lower = {name.lower(): value for name, value in options.items()}
        return Dialect(
            delimiter=_unescaped(lower.get("sep", lower.get("delimiter", ","))),
            quote=lower.get("quote", '"').strip("\0"),
            escape=lower.get("escape", "\\").strip("\0"),
            comment=lower.get("comment", "").strip("\0"),
            header=lower.get("header", "").lower() == "true",
            skips_space=lower.get("ignoreleadingwhitespace", "").lower() == "true",
            drops_space=lower.get("ignoretrailingwhitespace", "").lower() == "true",
            takes_unescaped="unescapedquotehandling" in lower,
            escape_is_said="escape" in lower,
        )


def _unescaped(delimiter: str) -> str:
    """Return the delimiter as Spark's CSVExprUtils.toDelimiterStr does."""
    return re.sub(r"\\u0000|\\.", lambda found: _ESCAPES.get(found[0], found[0]), delimiter)


class CsvScan:
    """The checks of one file."""

    def __init__(self, options: Mapping[str, str], first_split: int | None, *, from_start: bool = True) -> None:
        """`first_split` is the length of the file's first split in bytes, None if the file has only one split.

        Not `from_start`: the blocks are those of a later part of the file, without the header.
        """
        self._dialect = Dialect.of(options)
        self._layout = layout("csv", options)
        self._first_split = first_split
        self._header_found = not self._dialect.header or not from_start
        self._patterns = _Patterns(self._dialect)

    def check(self, blocks: Iterable[Block]) -> bool:
        """Check the file; return whether its header was in the blocks, True if it has none.

        Raises BadTextError for the first text that Spark would misread.
        """
        for block in blocks:
            if self._layout.separator is None and "\r" in block.text and self._header_found:
                text = block.text.replace("\r\n", "\n").replace("\r", "\n")
                block = Block(text, block.line, block.offset)
            refuse_zero_bytes(block, self._layout)
            self._blank_lines(block)
            if not self._header_found:
                self._find_header(block)
            if self._dialect.quote and self._dialect.quote in block.text:
                self._quotes(block)
            if self._patterns.escaped is not None and self._patterns.escaped.search(block.text):
                self._escapes(block, self._patterns.escaped)
        return self._header_found

    def _blank_lines(self, block: Block) -> None:
        """Raise BadTextError for a line of white space and control characters, which Spark drops; an empty line is no row."""
        text = block.text
        if self._layout.separator is None and "\r" not in text:
            first = _BLANK_FIRST.match(text)
            found = _BLANK.search(text)
            number = 0 if first else text.count("\n", 0, found.start() + 1) if found else None
        else:
            lines = self._layout.lines(text)
            number = next((n for n, line in enumerate(lines) if line and not line.strip(CONTROLS)), None)
        if number is not None:
            raise BadTextError(
                "a line of white space only, which Spark skips silently",
                line=block.line + number,
                hint="take the line out, or write its empty fields in quotes",
            )

    def _find_header(self, block: Block) -> None:
        """Find the header. Raises BadTextError if it begins after the first split: Spark would send it as a row."""
        before = 0
        for line in self._layout.lines(block.text):
            if line.strip(CONTROLS) and not (self._dialect.comment and line.startswith(self._dialect.comment)):
                self._header_found = True
                at = block.offset + len(block.text[:before].encode(self._layout.encoding))
                if self._first_split is not None and at > self._first_split:
                    raise BadTextError(
                        f"the header begins at byte {at:,}, after the first split, and would be sent as a row",
                        hint="take the lines before it out, or set source.split_size above it",
                    )
                return
            before = self._behind(block.text, before + len(line))

    def _behind(self, text: str, end: int) -> int:
        """Return the index at which the next line begins."""
        if self._layout.separator is not None:
            return end + len(self._layout.separator)
        return end + (2 if text.startswith("\r\n", end) else 1)

    def _quotes(self, block: Block) -> None:
        numbers = irregular_lines(block.text, self._layout.separator or "\n", self._dialect)
        if numbers == []:
            return
        lines = self._layout.lines(block.text)
        for number in numbers or range(len(lines)):
            if self._dialect.quote in lines[number]:
                self._look_at(lines[number], block.line + number)

    def _look_at(self, line: str, number: int) -> None:
        """Parse a line that is not regular. Raises BadTextError if univocity would misread it."""
        for _ in self._outside_of_quotes(line, number):
            pass

    def _outside_of_quotes(self, line: str, number: int) -> Iterator[tuple[int, int]]:
        """Yield, for each field, the start of its unquoted text and the end of the delimiter after it."""
        dialect = self._dialect
        if dialect.comment and line.startswith(dialect.comment):
            return
        at = 0
        while at <= len(line):
            start = self._patterns.leading.match(line, at).end() if dialect.skips_space else at  # type: ignore[union-attr]
            if line.startswith(dialect.quote, start):
                at = self._behind_quoted(line, start, number)
            end = line.find(dialect.delimiter, at)
            behind = len(line) if end < 0 else end + len(dialect.delimiter)
            yield at, behind
            if end < 0:
                return
            at = behind

    def _behind_quoted(self, line: str, start: int, number: int) -> int:
        body = self._patterns.quoted.match(line, start)
        assert body is not None, "a quoted field may be unclosed"
        at = body.end()
        if at == len(line):
            raise BadTextError(
                f"a quoted field does not end in its line: {shown(line, start)}",
                line=number,
                hint=f"{_WAY_OUT}{or_another_escape(self._dialect)}",
            )
        behind = self._patterns.behind.match(line, at)
        if behind is not None:
            return behind.end(1)
        if self._dialect.takes_unescaped:
            return at
        if self._patterns.spaced.match(line, at):
            raise BadTextError(
                f"white space after a quoted field, which Spark drops: {shown(line, at)}",
                line=number,
                hint='set source.options.ignoreTrailingWhiteSpace = "true" if it is no part of the field',
            )
        raise BadTextError(
            f"a quote inside a quoted field that is not escaped: {shown(line, at)}",
            line=number,
            hint=or_another_escape(self._dialect).removeprefix("; ")
            or "escape the quote, or set unescapedQuoteHandling",
        )

    def _escapes(self, block: Block, escaped: re.Pattern[str]) -> None:
        """Raise BadTextError for an escape outside of quotes: Spark keeps it, other readers remove it."""
        for number, line in enumerate(self._layout.lines(block.text), block.line):
            if not escaped.search(line):
                continue
            for begin, end in self._outside_of_quotes(line, number):
                found = escaped.search(line, begin, end)
                if found is not None:
                    raise escape_outside_of_quotes(shown(line, found.start()), number)


def escape_outside_of_quotes(around: str, line: int) -> BadTextError:
    """Return the error for an escape that Spark keeps and other readers remove."""
    return BadTextError(
        f"an escape outside of quotes, which Spark reads as an ordinary character: {around}",
        line=line,
        hint="put the field in quotes; if no escape is meant, set source.options.escape = '\"'",
    )


def or_another_escape(dialect: Dialect) -> str:
    """Return the end of a hint, in case quotes are not escaped as `escape` says; "" if they are doubled anyway."""
    if dialect.escape == dialect.quote:
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
            body = rf"[^{quote}]"
        elif escape == quote:
            body = rf"[^{quote}]|{quote}{quote}"
        else:
            body = rf"[^{quote}{escape}]|{escape}."
        space = rf"(?:(?!{delimiter})[{_SPACE}])*+"
        spaced = space if dialect.drops_space else ""
        self.quoted = re.compile(rf"{quote}(?:{body})*+", re.DOTALL)
        self.leading = re.compile(space)
        self.behind = re.compile(rf"{quote}{spaced}()(?={delimiter}|\Z)")
        self.spaced = re.compile(rf"{quote}{space}(?={delimiter}|\Z)")
        says = dialect.escape_is_said and bool(quote and escape) and escape != quote
        self.escaped = re.compile(rf"{escape}(?:{quote}|{escape}|{delimiter})") if says else None


def irregular_lines(text: str, end: str, dialect: Dialect) -> list[int] | None:
    """Return the numbers, from 0, of lines with a quote that opens or closes no field; None if numpy cannot decide.

    A line is regular if its first, third, … quote follows a delimiter or the line's start, and each quote between precedes a
    delimiter or the line's end. If quotes are doubled, two of them in a row belong to the field.
    """
    special = end + dialect.delimiter + dialect.quote + dialect.escape
    if len(end) > 1 or len(dialect.delimiter) > 1 or not special.isascii() or "\r" in text:
        return None
    found = np.frombuffer(f"{end}{text}{end}".encode(), np.uint8)
    marks = np.flatnonzero((found == ord(dialect.quote)) | (found == ord(end)))
    is_quote = found[marks] != ord(end)
    line_of = np.cumsum(~is_quote) - 1
    quotes, line_of = marks[is_quote], line_of[is_quote]
    before, behind = found[quotes - 1], found[quotes + 1]
    irregular = np.zeros(len(quotes), bool)
    if dialect.escape and dialect.escape != dialect.quote:
        escaped = before == ord(dialect.escape)
        irregular |= escaped & (found[np.maximum(quotes - 2, 0)] == ord(dialect.escape))
        bad_lines = line_of[irregular]
        quotes, line_of, before, behind = (each[~escaped] for each in (quotes, line_of, before, behind))
    else:
        bad_lines = line_of[:0]
    count = np.bincount(line_of, minlength=int(line_of[-1]) + 1 if len(line_of) else 0)
    first = np.cumsum(count) - count
    opens = (np.arange(len(quotes)) - first[line_of]) % 2 == 0 if len(quotes) else np.zeros(0, bool)
    doubled = dialect.escape == dialect.quote
    ends = (ord(end), ord(dialect.delimiter))
    good_before = (before == ends[0]) | (before == ends[1]) | (doubled & (before == ord(dialect.quote)))
    good_behind = (behind == ends[0]) | (behind == ends[1]) | (doubled & (behind == ord(dialect.quote)))
    bad = np.where(opens, ~good_before, ~good_behind)
    odd = np.flatnonzero(count % 2)
    return sorted(set(np.concatenate((bad_lines, line_of[bad], odd)).tolist()))
