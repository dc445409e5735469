"""Finds lines of JSON that are not what their writer means, before anything is sent.

For the inspection (inspection.py), on the decoded lines of text_blocks.py. msgspec, which the run decodes lines with, accepts
nearly all of them; a line that it rejects is looked into here, so that text after the first value, half a surrogate pair and
fields that the schema does not name have separate messages. Any other bad line is a corrupt row in the run. A name that is
twice in an object is found by json_names.py.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence

from eosingest.sources.files.bytes.text_blocks import BadTextError, Block, layout, refuse_zero_bytes
from eosingest.sources.files.formats.json_names import ONCE, NameTwiceError, lines_to_parse
from eosingest.sources.files.formats.json_text import REJECTED, WHITE, parsed, value_and_rest
from eosingest.sources.files.formats.unknown_fields import JsonFields, KnownFields, decoder_of

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_PAIRS = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?!u[dD][89a-fA-F]).)", re.DOTALL)
# The copy is written outside of the source: a run that finds both files sends each record twice.
_BY_JQ = (
    "write one record a line to a folder that source.path does not match, then move the copy in FILE's place:"
    " jq -c {} FILE > FOLDER/COPY (jq 1.7 or later: earlier versions round numbers of more than 15 digits)"
)
_LAST_BY_JQ = f"correct it, or, if the last value of a name is meant, {_BY_JQ.format('.')}"
_MULTI_LINE = f"set source.options.multiLine = true, or {_BY_JQ}"


class JsonScan:
    """The checks of one file."""

    def __init__(
        self, options: Mapping[str, str], *, from_start: bool = True, fields: KnownFields | None = None
    ) -> None:
        """Take the options of a spec. Not `from_start`: the blocks are those of a later part of the file.

        `fields`: the schema whose fields are the only ones (unknown_fields.py); None if there may be others.
        """
        self._layout = layout("json", options)
        self._begun = not from_start
        self._fields = JsonFields(fields) if fields is not None else None
        self._decode = decoder_of(fields.names if fields is not None else None).decode

    def check(self, blocks: Iterable[Block]) -> bool:
        """Check the file; return whether it has a line of content.

        Raises BadTextError for the first finding.
        """
        for block in blocks:
            refuse_zero_bytes(block, self._layout)
            lines = self._layout.lines(block.text)
            if not self._begun:
                self._first_line(block, lines)
            self._names(block, lines)
            decode = self._decode
            for number, line in enumerate(lines, block.line):
                try:
                    decode(line)
                except REJECTED:
                    self._look_into(line, number)
        if self._fields is not None:
            self._fields.refuse()
        return self._begun

    def _first_line(self, block: Block, lines: Sequence[str]) -> None:
        """Raise BadTextError if the first line of content begins a document over several lines."""
        for number, line in enumerate(lines):
            text = line.strip(WHITE)
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

    def _names(self, block: Block, lines: Sequence[str]) -> None:
        """Raise BadTextError if an object has a name twice: the decoder keeps the last value. No line is refused as no JSON."""
        text = self._with_feeds(block.text)
        for number in range(len(lines)) if text is None else lines_to_parse(text.encode()):
            try:
                if number < len(lines):
                    parsed(lines[number], ONCE)
            except NameTwiceError as twice:
                raise BadTextError(str(twice), line=block.line + number, hint=_LAST_BY_JQ) from None
            except RecursionError:
                continue

    def _with_feeds(self, text: str) -> str | None:
        """Return a block's text with line feeds at the ends of lines; None if the lines end otherwise."""
        if self._layout.separator is None and "\r" in text:
            return text.replace("\r\n", "\n").replace("\r", "\n")
        return text if self._layout.separator in (None, "\n") else None

    def _look_into(self, line: str, number: int) -> None:
        """Raise BadTextError for a rejected line if its reason has a separate message."""
        half = half_pair(line)
        if half is not None:
            message = f"half a surrogate pair, which is no character: {half}…"
            raise BadTextError(message, line=number, hint="correct the text, or move the file away")
        try:
            value, rest = value_and_rest(line)
        except RecursionError:
            if self._fields is None:
                return
            raise BadTextError("nested too deep for a check of its fields", line=number) from None
        if rest and isinstance(value, dict | list):
            raise BadTextError(f"text after the line's first value: {rest[:40]}", line=number, hint=_BY_JQ.format("."))
        if self._fields is not None:
            for each in value if isinstance(value, list) else (value,):  # each element of an array is a row
                self._fields.in_record(each, number)


def half_pair(text: str, start: int = 0, end: int = sys.maxsize) -> str | None:
    """Return the start of the escape of half a surrogate pair in JSON text[start:end], None if there is none."""
    if not _SURROGATE.search(text, start, end):
        return None
    found = _SURROGATE.search(_PAIRS.sub("", text[start:end]))
    return None if found is None else found[0]
