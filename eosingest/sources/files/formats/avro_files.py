"""Defines the format entry of Avro's object container files, which contain their schema."""

from __future__ import annotations

from collections.abc import Mapping

from eosingest.sources.files.formats.entry import REBASE_MODE, FileFormat


def _reader_options(options: Mapping[str, str], has_schema: bool) -> dict[str, str]:
    """Have Spark read every file: with some Hadoop settings it would skip files whose names do not end in .avro."""
    return {**options, "ignoreExtension": "true"}


AVRO = FileFormat(
    name="avro",
    schema_note="that of the files",
    options={"datetimeRebaseMode": REBASE_MODE},
    # The class is in Spark's own jars. The jar spark-avro adds only the short name, and functions.
    reader="org.apache.spark.sql.avro.AvroFileFormat",
    is_compressed_inside=True,
    is_in_blocks=True,
    has_footers=True,
    reader_options=_reader_options,
)
