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

    def __init__(self, options: Mapping[str, str]) -> None:
        self._dialect = Dialect.of(options)
        self._layout = layout("csv", options)

    def check(self, blocks: Iterable[Block]) -> None:
        """Check the blocks of a file. Raises BadTextError for the first text that is not exactly rows."""
        for block in blocks:
            if self._layout.separator is None and "\r" in block.text:
                text = block.text.replace("\r\n", "\n").replace("\r", "\n")
                block = Block(text, block.line, block.offset)
            refuse_zero_bytes(block, self._layout)
            if (self._dialect.quote and self._dialect.quote in block.text) or self._dialect.escaped(block.text):
                self._fields(block)

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
