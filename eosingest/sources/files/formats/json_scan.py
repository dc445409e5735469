"""Finds lines of JSON that Spark would read as other records than the file holds, before anything is sent.

For the inspection (inspection.py), on the decoded lines of text_blocks.py. Jackson, Spark's parser, stops after the first value
of a line and ignores the rest; it replaces half a surrogate pair with a question mark; each line of a document over several
lines becomes a corrupt row, without a reason. numpy accepts blocks in which every line is plainly one object, and in other
blocks finds the lines whose brackets do not close once, at the line's end: only those are parsed, and those in which a name may
be there twice (json_names.py).
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from eosingest.sources.files.bytes.text_blocks import BadTextError, Block, layout, refuse_zero_bytes
from eosingest.sources.files.formats.json_names import LF, escaped, lines_to_parse
from eosingest.sources.files.formats.unknown_fields import JsonFields, KnownFields, parsed

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_PAIRS = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?!u[dD][89a-fA-F]).)", re.DOTALL)
_TOKEN = re.compile(r"""[^"'{}\[\]]++|"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'|[{}\[\]]|.""", re.DOTALL)
_SINGLE_QUOTED = re.compile(r"[{,:\[]\s*'")  # a JSON string in single quotes may begin here
_WHITE = " \t\r\n"
# Text before a value: Jackson skips a byte order mark at the beginning of any line.
_LEADING = re.compile("\ufeff?[ \t\r\n]*")
_COMMENT = r"/\*.*?\*/"
_LEADING_COMMENTS = re.compile(rf"\ufeff?(?:[ \t\r\n]|{_COMMENT})*", re.DOTALL)
_NOTHING_BUT_COMMENTS = re.compile(rf"(?:[ \t\r\n]|{_COMMENT})*(?://.*)?", re.DOTALL)
_TOKEN_OR_COMMENT = re.compile(
    rf"""{_COMMENT}|//.*|[^"'{{}}\[\]/]++|"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'|.""", re.DOTALL
)
# The copy is written outside of the source: a run that finds both files sends each record twice.
_BY_JQ = (
    "write one record a line to a folder that source.path does not match, then move the copy in FILE's place:"
    " jq -c {} FILE > FOLDER/COPY (jq 1.7 or later: earlier versions round numbers of more than 15 digits)"
)
_LAST_BY_JQ = f"correct it, or, if the last value of a name is meant, {_BY_JQ.format('.')}"
_MULTI_LINE = f"set source.options.multiLine = true, or {_BY_JQ}"


class NameTwiceError(Exception):
    """An object of JSON has a name twice."""


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of JSON (`object_pairs_hook`). Raises NameTwiceError if a name is there twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        name = next(name for at, (name, _) in enumerate(pairs) if name in dict(pairs[:at]))
        raise NameTwiceError(f"an object has the name {json.dumps(name, ensure_ascii=False)} twice")
    return found


_ONCE = json.JSONDecoder(object_pairs_hook=once, parse_int=str, parse_float=str)


class JsonScan:
    """The checks of one file."""

    def __init__(
        self, options: Mapping[str, str], *, from_start: bool = True, fields: KnownFields | None = None
    ) -> None:
        """Take the options given to Spark's reader. Not `from_start`: the blocks are those of a later part of the file.

        `fields`: the schema whose fields are the only ones (unknown_fields.py); None if there may be others.
        """
        lower = {name.lower(): value.lower() for name, value in options.items()}
        self._layout = layout("json", options)
        self._comments = lower.get("allowcomments") == "true"
        self._begun = not from_start
        self._fields = JsonFields(fields) if fields is not None else None

    def check(self, blocks: Iterable[Block]) -> bool:
        """Check the file; return whether it has a line of content.

        Raises BadTextError for the first text that Spark would misread.
        """
        for block in blocks:
            refuse_zero_bytes(block, self._layout)
            if not self._begun:
                self._first_line(block)
            if "\\" in block.text and _SURROGATE.search(block.text):  # the plain search is many times as fast
                self._surrogates(block)
            self._names(block)
            self._ends(block)
            if self._fields is not None:
                self._fields.in_lines(block.text, self._layout.lines(block.text), block.line)
        if self._fields is not None:
            self._fields.refuse()
        return self._begun

    def _first_line(self, block: Block) -> None:
        """Raise BadTextError if the first line of content begins a document over several lines."""
        for number, line in enumerate(self._layout.lines(block.text)):
            text = line.strip(_WHITE)
            if not text:
                continue
            self._begun = True
            if text.startswith("[") and not text.endswith("]"):
                raise BadTextError(
                    "this is a JSON array over several lines",
                    line=block.line + number,
                    hint=_MULTI_LINE.format("'.[]'"),
                )
            if text.startswith("{") and "}" not in text:
                hint = _MULTI_LINE.format(".")
                raise BadTextError("this is a JSON document over several lines", line=block.line + number, hint=hint)
            return

    def _surrogates(self, block: Block) -> None:
        for number, line in enumerate(self._layout.lines(block.text)):
            half = half_pair(line)
            if half is not None:
                message = f"half a surrogate pair, which is no character: {half}…"
                raise BadTextError(message, line=block.line + number, hint="correct the text, or move the file away")

    def _names(self, block: Block) -> None:
        """Raise BadTextError if an object has a name twice: Spark keeps the last value. A line that is no JSON is skipped."""
        text = self._with_feeds(block.text)
        numbers = range(self._layout.count(block.text) + 1) if text is None else lines_to_parse(text)
        lines = self._layout.lines(block.text) if numbers else []
        for number in numbers:
            try:
                if number < len(lines):
                    parsed(lines[number], _ONCE)
            except NameTwiceError as twice:
                raise BadTextError(str(twice), line=block.line + number, hint=_LAST_BY_JQ) from None
            except RecursionError:
                continue

    def _with_feeds(self, text: str) -> str | None:
        """Return a block's text with line feeds at the ends of lines; None if the lines end otherwise."""
        if self._layout.separator is None and "\r" in text:
            return text.replace("\r\n", "\n").replace("\r", "\n")
        return text if self._layout.separator in (None, "\n") else None

    def _ends(self, block: Block) -> None:
        text = self._with_feeds(block.text)
        numbers: list[int] | range
        if text is None or self._comments or ("'" in text and _SINGLE_QUOTED.search(text)):
            numbers = range(self._layout.count(block.text) + 1)
        else:
            numbers = [] if is_plain(text) else unusual_lines(text)
        lines = self._layout.lines(block.text) if numbers else []
        for number in numbers:
            rest = (
                "" if number >= len(lines) else behind_first_value(lines[number], comments=self._comments).strip(_WHITE)
            )
            if rest and not (self._comments and _NOTHING_BUT_COMMENTS.fullmatch(rest)):
                raise BadTextError(
                    f"text after the line's first value, which Spark drops: {rest[:40]}",
                    line=block.line + number,
                    hint=_BY_JQ.format("."),
                )


def half_pair(text: str, start: int = 0, end: int = sys.maxsize) -> str | None:
    """Return the start of the escape of half a surrogate pair in JSON text[start:end], None if there is none."""
    if not _SURROGATE.search(text, start, end):
        return None
    found = _SURROGATE.search(_PAIRS.sub("", text[start:end]))
    return None if found is None else found[0]


def is_plain(text: str) -> bool:
    """Say whether each line is one object that closes at the line's end, judged only by braces and double quotes.

    False for text with backslashes in which objects are nested: its strings may hold escaped quotes.
    """
    data = np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)
    ends = np.flatnonzero(data == LF)
    if not len(ends) or ends[-1] != len(data) - 1:
        ends = np.append(ends, len(data))
    starts = np.concatenate(([0], ends[:-1] + 1))
    if not ((data[starts] == _BRACES[0]).all() and (data[ends - 1] == _BRACES[1]).all()):
        return False
    opening, closing = (data == brace for brace in _BRACES)
    if np.count_nonzero(opening) == np.count_nonzero(closing) == len(ends):
        return True  # no other brace, in a string or not: each line's last byte closes the object that its first byte opens
    if "\\" in text:
        return False
    marks = np.flatnonzero(opening | closing | (data == ord('"')))
    kinds = data[marks]
    is_brace = kinds != ord('"')
    quotes = np.cumsum(~is_brace, dtype=np.uint8) & 1  # odd: inside a string, if each line's strings end in that line
    depth = np.cumsum(np.where(kinds[is_brace] == _BRACES[0], np.int8(1), np.int8(-1)), dtype=np.int32)
    outermost = marks[is_brace][depth == 0]
    # Each line ends in a brace: if no brace is inside a string, no string is open at the end of a line.
    return bool(not quotes[is_brace].any() and len(outermost) == len(ends) and (outermost == ends - 1).all())


def behind_first_value(line: str, *, comments: bool = False) -> str:
    """Return the text after the first object or array of a line; "" if it does not close, or is another value."""
    begin = (_LEADING_COMMENTS if comments else _LEADING).match(line).end()  # type: ignore[union-attr]
    if not line.startswith(("{", "["), begin):
        return ""
    depth = 0
    for found in (_TOKEN_OR_COMMENT if comments else _TOKEN).finditer(line, begin):
        token = found[0]
        if token in "\"'":  # not closed: a corrupt row, which Spark reports
            return ""
        depth += (token in "{[") - (token in "}]") if len(token) == 1 else 0
        if depth == 0 and token in "}]":
            return line[found.end() :]
    return ""


def unusual_lines(text: str) -> list[int]:
    """Return the numbers of lines, from 0, that are not plainly one object or array that closes at the line's end."""
    data = np.frombuffer(f"\n{text}\n".encode(), np.uint8)
    folded = data | 32  # brackets become braces
    marks = np.flatnonzero((folded == ord("{")) | (folded == ord("}")) | (data == ord('"')) | (data == LF))
    kinds = _MARKS[data[marks]]
    quotes = kinds == _QUOTE
    kept = ~quotes
    kept[quotes] = ~escaped(data, marks[quotes])
    marks, kinds = marks[kept], kinds[kept]
    quotes, ends = kinds == _QUOTE, kinds == _END
    line_of = np.cumsum(ends, dtype=np.int32) - 1
    count = int(line_of[-1])  # the last end closes the last line
    inside = np.cumsum(quotes, dtype=np.int32)
    at_start = inside[ends]
    odd = np.diff(at_start) % 2 == 1
    # Quotes are counted from each line's start, so that one bad line does not affect the next.
    in_text = ((inside - at_start[line_of]) & 1).astype(bool) & ~ends
    step = np.where(in_text, np.int8(0), _STEPS[kinds])
    total = np.cumsum(step, dtype=np.int32)
    depth = total - total[ends][line_of]
    closes = (step == -1) & (depth == 0)
    closed = np.bincount(line_of[closes], minlength=count + 1)[:count]
    opened = np.bincount(line_of[~ends], minlength=count + 1)[:count]
    unbalanced = np.diff(total[ends]) != 0
    last = marks[closes]
    follows = data[np.minimum(last + 1, len(data) - 1)]
    with_rest = line_of[closes][follows != LF]
    bad = np.flatnonzero(odd | unbalanced | ((closed != 1) & (opened > 0)))
    return sorted({*bad.tolist(), *with_rest.tolist()})


_BRACES = (ord("{"), ord("}"))
_QUOTE, _OPEN, _CLOSE, _END = 1, 2, 3, 4
_MARKS = np.zeros(256, np.uint8)
_MARKS[ord('"')] = _QUOTE
_MARKS[[ord("{"), ord("[")]] = _OPEN
_MARKS[[ord("}"), ord("]")]] = _CLOSE
_MARKS[LF] = _END
_STEPS = np.array([0, 0, 1, -1, 0], np.int8)
