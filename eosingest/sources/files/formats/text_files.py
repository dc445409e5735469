"""Lines of text, each a record as it is: their entry among the formats."""

from __future__ import annotations

from eosingest.sources.files.formats.entry import ANY_TEXT, FileFormat

TEXT = FileFormat(
    name="text",
    schema_note="one column, value STRING",
    options={"lineSep": ANY_TEXT},  # not encoding: the reader takes the bytes as they are
    is_text=True,
    columns={"value": "STRING"},
    value="value",
)
