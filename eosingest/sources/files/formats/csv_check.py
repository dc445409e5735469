"""Finds lines of CSV that are not the rows that the file means, before anything is sent.

For the inspection (inspection.py), on the decoded lines of text_blocks.py. Rows are lines: a quoted field that continues in the
next line would be two rows. numpy finds the lines in which every quote opens or closes a field (csv_rows.py); any other line
with a quote is parsed field by field.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from eosingest.sources.files.bytes.text_blocks import BadTextError, Block, layout, refuse_zero_bytes
from eosingest.sources.files.formats.csv_rows import Dialect, irregular_lines


class CsvCheck:
    """The checks of one file."""

    def __init__(self, options: Mapping[str, str], first_split: int | None, *, from_start: bool = True) -> None:
        """`first_split` is the length of the file's first split in bytes, None if the file has only one split.

        Not `from_start`: the blocks are those of a later part of the file, without the header.
        """
        self._dialect = Dialect.of(options)
        self._layout = layout("csv", options)
        self._first_split = first_split
        self._header_found = not self._dialect.header or not from_start

    def check(self, blocks: Iterable[Block]) -> bool:
        """Check the file; return whether its header was in the blocks, True if it has none.

        Raises BadTextError for the first text that is not exactly rows.
        """
        for block in blocks:
            if self._layout.separator is None and "\r" in block.text and self._header_found:
                text = block.text.replace("\r\n", "\n").replace("\r", "\n")
                block = Block(text, block.line, block.offset)
            refuse_zero_bytes(block, self._layout)
            if not self._header_found:
                self._find_header(block)
            if (self._dialect.quote and self._dialect.quote in block.text) or self._dialect.escaped(block.text):
                self._fields(block)
        return self._header_found

    def _find_header(self, block: Block) -> None:
        """Find the header. Raises BadTextError if it begins after the first split: it would be sent as a row."""
        before = 0
        for line in self._layout.lines(block.text):
            if self._dialect.is_row(line):
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

    def _fields(self, block: Block) -> None:
        """Raise BadTextError for the first line whose fields are not clear."""
        end = self._layout.separator or "\n"
        numbers = None
        if len(end) == 1 and end.isascii() and "\r" not in block.text and not self._dialect.escaped(block.text):
            numbers = irregular_lines(block.text.encode(), self._dialect, ord(end))
        if numbers == []:
            return
        lines = self._layout.lines(block.text)
        for number in numbers or range(len(lines)):
            line = lines[number]
            if self._dialect.is_row(line) and (self._dialect.quote in line or self._dialect.escaped(line)):
                try:
                    self._dialect.fields(line)
                except BadTextError as bad:
                    raise BadTextError(bad.message, line=block.line + number, hint=bad.hint) from bad
