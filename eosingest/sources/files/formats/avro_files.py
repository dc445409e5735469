"""Defines the format entry of Avro's object container files, which contain their schema."""

from __future__ import annotations

from eosingest.sources.files.formats.entry import REBASE_MODE, FileFormat

AVRO = FileFormat(
    name="avro",
    schema_note="that of the files",
    options={"datetimeRebaseMode": REBASE_MODE},
    is_compressed_inside=True,
    is_in_blocks=True,
    has_footers=True,
)
