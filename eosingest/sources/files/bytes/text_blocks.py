"""Decodes a text file's bytes into blocks of whole lines, cut where Spark cuts lines: for the checks of CSV and JSON.

It takes a file's decompressed pieces (codecs.py), for csv_check.py, json_scan.py and the reader of CSV. Java silently replaces
bytes that it cannot decode; here they end the run. The encodings are those that formats/encodings.py allows: for each of them
Python refuses all bytes that Java would replace (tests/reading/test_json_csv_rows.py).
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

_LF = 10
UTF_8_MARK = b"\xef\xbb\xbf"
_LONGEST = 256 << 20
_WIDTHS = {"utf-16": 2, "utf-32": 4}


class BadTextError(Exception):
    """The text cannot be read exactly, from `line` on (counted from 1; None: as a whole)."""

    def __init__(self, message: str, *, line: int | None = None, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.hint = hint


@dataclass(frozen=True)
class Block:
    """Whole lines: `text` with its ends of line. It begins at byte `offset` and with line number `line`, from 1."""

    text: str
    line: int
    offset: int


@dataclass(frozen=True)
class Layout:
    """The encoding of a file's text, and its ends of line; `separator` None: line feeds and carriage returns.

    `errors`: what becomes of bytes that are not of the encoding (the name of a handler of Python's codecs).
    """

    encoding: str
    separator: str | None
    errors: str = "strict"

    @property
    def ends_at_a_byte(self) -> bool:
        """Whether one byte ends a line, so that a task can begin to read at any byte."""
        return self.width == 1 and (self.end is None or len(self.end) == 1)

    @property
    def end(self) -> bytes | None:
        """The end of a line, in bytes."""
        return None if self.separator is None else self.separator.encode(self.encoding)

    @property
    def width(self) -> int:
        """The bytes in a code unit of the encoding."""
        encoding = codecs.lookup(self.encoding).name
        return next((width for name, width in _WIDTHS.items() if encoding.startswith(name)), 1)

    def lines(self, text: str) -> list[str]:
        """Return the lines of a block's text, without their ends."""
        if self.separator is None:
            text = text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
        end = "\n" if self.separator is None else self.separator
        lines = text.split(end)
        return lines[:-1] if not lines[-1] else lines

    def count(self, text: str) -> int:
        """Return how many lines end in a text."""
        if self.separator is not None:
            return text.count(self.separator)
        returns = text.count("\r")
        return text.count("\n") + (returns - text.count("\r\n") if returns else 0)

    def count_bytes(self, data: bytes, text: str) -> int:
        """Return `count` of a text, given its bytes as well: several times as fast if all lines end with a line feed."""
        if self.separator is not None or self.width > 1 or b"\r" in data:
            return self.count(text)
        return int(np.count_nonzero(np.frombuffer(data, np.uint8) == _LF))


def layout(format: str, options: Mapping[str, str]) -> Layout:
    """Return how Spark's reader decodes and cuts files of a format with these options."""
    encoding = encoding_of(options)
    separator = next((value for name, value in options.items() if name.lower() == "linesep"), None)
    # A line of JSON that is not UTF-8 is a corrupt row.
    is_by_line = format == "json" and codecs.lookup(encoding).name == "utf-8"
    return Layout(encoding, separator, "replace" if is_by_line else "strict")


def encoding_of(options: Mapping[str, str]) -> str:
    """Return the encoding that the options name, or UTF-8."""
    lower = {name.lower(): value for name, value in options.items()}
    return lower.get("encoding", lower.get("charset")) or "UTF-8"


def is_utf_8(data: bytes) -> bool:
    """Say whether bytes are UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def ambiguous_separator(separator: bytes | None) -> bool:
    """Say whether Hadoop may cut lines otherwise at a split's border than inside: if the first byte recurs (measured)."""
    return separator is not None and separator[:1] in separator[1:]


def blocks(pieces: Iterable[bytes], layout: Layout, *, from_start: bool = True) -> Iterator[Block]:
    """Yield the text. If not `from_start`, the pieces are a later part of a file, and lines and bytes are counted from there.

    Raises BadTextError for bytes that are not of the encoding.
    """
    line, offset, rest, began = 1, 0, b"", not from_start
    for piece in pieces:
        data = rest + piece
        if not began and len(data) < len(UTF_8_MARK):
            rest = data
            continue
        if not began:
            began, (data, offset) = True, _without_mark(data, layout)
        cut = _last_end(data, offset, layout)
        if cut == 0:
            rest = data
            if len(rest) > _LONGEST:
                raise BadTextError(f"a line of more than {_LONGEST >> 20} MiB", line=line)
            continue
        text = _decoded(data[:cut], layout, line)
        yield Block(text, line, offset)
        line, offset, rest = line + layout.count_bytes(data[:cut], text), offset + cut, data[cut:]
    if not began:
        rest, offset = _without_mark(rest, layout)
    if rest:
        yield Block(_decoded(rest, layout, line), line, offset)


def refuse_zero_bytes(block: Block, layout: Layout) -> None:
    """Raise BadTextError for a zero byte: mostly it is half of a UTF-16 character."""
    if "\0" in block.text:
        raise zero_byte(block.line + layout.count(block.text[: block.text.index("\0")]))


def zero_byte(line: int | None = None) -> BadTextError:
    """Return the error for a zero byte."""
    return BadTextError("a zero byte", line=line, hint="if it is UTF-16, write it as UTF-8: iconv -f UTF-16 -t UTF-8")


def _without_mark(data: bytes, layout: Layout) -> tuple[bytes, int]:
    """Remove UTF-8's byte order mark, as Hadoop does; refuse any mark in UTF-16 or UTF-32, where it would become data."""
    if data.startswith(UTF_8_MARK) and layout.width == 1:
        return data[len(UTF_8_MARK) :], len(UTF_8_MARK)
    if layout.width > 1 and data.startswith((UTF_8_MARK, "\ufeff".encode(layout.encoding))):
        raise BadTextError(
            "a byte order mark, which would become part of the first field", line=1, hint=_to_utf_8(layout)
        )
    return data, 0


def _to_utf_8(layout: Layout) -> str:
    encoding = layout.encoding.upper().removesuffix("LE").removesuffix("BE")
    return f"write it as UTF-8 without a mark: iconv -f {encoding} -t UTF-8"


def _last_end(data: bytes, offset: int, layout: Layout) -> int:
    """Return the end of the last line that ends in the data; 0 if none does."""
    end = layout.end
    if end is None:
        feed = data.rfind(b"\n") + 1
        # A line feed may follow a carriage return that is the last byte.
        return feed if feed or b"\r" not in data else data.rfind(b"\r", 0, len(data) - 1) + 1
    if layout.width == 1 and not ambiguous_separator(end):
        at = data.rfind(end)
        return at + len(end) if at >= 0 else 0
    last = 0
    for match in re.finditer(re.escape(end), data):
        if (offset + match.start()) % layout.width:
            message = "bytes of two characters that look like an end of line together"
            raise BadTextError(message, hint=_to_utf_8(layout))
        last = match.end()
    return last


def _decoded(data: bytes, layout: Layout, line: int) -> str:
    try:
        return data.decode(layout.encoding, layout.errors)
    except UnicodeDecodeError as error:
        before = data[: error.start].decode(layout.encoding, "replace")
        raise not_of_encoding(data, error.start, layout.encoding, line + layout.count(before)) from error


def not_of_encoding(data: bytes, start: int, encoding: str, line: int) -> BadTextError:
    """Return the error for the bytes from `start` on, which are in this line and cannot be decoded."""
    begin = max(data.rfind(b"\n", 0, start) + 1, start - 20)
    shown = data[begin : start + 4].decode("ascii", "backslashreplace").strip()
    return BadTextError(
        f"bytes that are no {encoding}: {shown}",
        line=line,
        hint="name the file's encoding in source.options.encoding, or write it as UTF-8: iconv -f … -t UTF-8",
    )
