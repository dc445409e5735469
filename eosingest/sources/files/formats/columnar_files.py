"""Defines the format entries of Parquet and ORC, whose files contain their schema."""

from __future__ import annotations

from eosingest.sources.files.formats.entry import BOOLEAN, REBASE_MODE, FileFormat

PARQUET = FileFormat(
    name="parquet",
    schema_note="that of the files",
    options={"mergeSchema": BOOLEAN, "datetimeRebaseMode": REBASE_MODE, "int96RebaseMode": REBASE_MODE},
    defaults={"mergeSchema": "true"},  # eosingest's default without a schema
    is_compressed_inside=True,
    has_footers=True,
)
ORC = FileFormat(
    name="orc",
    schema_note="that of the files",
    options={"mergeSchema": BOOLEAN},
    defaults={"mergeSchema": "true"},
    is_compressed_inside=True,
    has_footers=True,
)
