"""Finds JSON documents (`multiLine`) with a value that is not of its column's type, and names it, before anything is sent.

Between the given schema (rows.py) and the rows. Spark marks all rows of that file as bad, without a reason; so each document is
first parsed once, and the first one that does not fit is read again as text, to name the value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pyspark.sql import DataFrame, functions
from pyspark.sql.types import StringType, StructField, StructType

from eosingest.errors import FatalError
from eosingest.sources.files.listing.names import metadata_file_path
from eosingest.sources.files.listing.source_file import SourceFile
from eosingest.sources.files.reading.exact_types import type_words
from eosingest.spark.record_columns import CORRUPT
from eosingest.spec.expressions import quote_name

_FILE = "__eosingest_file"
_SHOWN = 60
Read = Callable[[StructType, Sequence[SourceFile]], DataFrame]


def refuse_misfits(read: Read, schema: StructType, files: Sequence[SourceFile], folders: Iterable[str] = ()) -> None:
    """Raise FatalError for a document with a value that does not fit its column's type.

    `read` reads files by a schema, in the mode PERMISSIVE; `folders` are the columns of `k=v` folders, in lower case.
    """
    beside = set(folders)
    fields = [field for field in schema.fields if field.name.lower() not in beside]
    if not fields:
        return
    told = read(StructType([*fields, StructField(CORRUPT, StringType())]), files)
    # With all columns, since Spark parses only those that are selected. Of a bad row only the file is used.
    names = [quote_name(field.name) for field in fields]
    rows = told.select(*names, CORRUPT, functions.expr("input_file_name()").alias(_FILE))
    found = rows.where(f"{CORRUPT} IS NOT NULL").drop(CORRUPT).limit(1).collect()
    if not found:
        return
    uri = found[0][_FILE].removeprefix("file://")
    of_it = [file for file in files if metadata_file_path(file.path).removeprefix("file:") == uri]
    said = [f"{file.name}: {_misfit(read, fields, file)}" for file in of_it]
    raise FatalError(
        said[0] if said else "a document holds a value that is not of its column's type",
        code="bad-data",
        hint="nothing of this run was sent; correct the value, or give the column another type: STRING takes any",
    )


def _misfit(read: Read, fields: Sequence[StructField], file: SourceFile) -> str:
    """Describe the first value of a document that is null by its type, but not as text."""
    texts = StructType([StructField(field.name, StringType()) for field in fields])
    names = [quote_name(field.name) for field in fields]
    typed = read(StructType(list(fields)), [file]).select(*names)
    pairs = zip(typed.toLocalIterator(), read(texts, [file]).select(*names).toLocalIterator(), strict=False)
    for number, (row, as_text) in enumerate(pairs, start=1):
        for field, value, text in zip(fields, row, as_text, strict=True):
            if value is None and text is not None:
                shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
                return (
                    f"record {number:,}: column {field.name} is {type_words(field.dataType)}, and the value is {shown}"
                )
    return "a record holds a value that is not of its column's type, inside of one of its columns"
