"""Computes the columns of `k=v` folders for an audit, in Spark SQL, from the path of each row's file.

A run has these values from Spark's partitions, corrected in Python (spark_reader.py). An audit that shared them would find a
wrong one right; here Java decodes each `%XX`, and Spark casts the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, functions

from eosingest.sources.files.listing.partitions import NULL, decoded
from eosingest.sources.files.listing.source_file import SourceFile
from eosingest.spark.without_pandas import literal


def replaced(rows: DataFrame, files: Sequence[SourceFile]) -> DataFrame:
    """Return the rows with the columns of folders computed from their files' paths. The files are in one tree."""
    path = _decoded(rows.metadataColumn("_metadata")["file_path"])
    names = [segment.partition("=")[0] for segment in files[0].name.split("/")[:-1] if "=" in segment]
    texts = {decoded(name).lower(): _of_folder(path, name) for name in names}
    found = {field.name: field.dataType for field in rows.schema if field.name.lower() in texts}
    return rows.withColumns({name: texts[name.lower()].cast(kind) for name, kind in found.items()})


def _of_folder(path: Column, name: str) -> Column:
    """Return the text of the last folder of this name in a path; null for Hive's name of no value."""
    text = functions.regexp_extract(path, f"(?is)^.*/{re.escape(name)}=([^/]*)/", 1)
    return functions.when(text != NULL, _decoded(text))


def _decoded(text: Column) -> Column:
    """Decode each `%XX` as Java does; a `+`, and a `%` that no two digits follow, are themselves."""
    kept = functions.regexp_replace(text, "%(?![0-9A-Fa-f]{2})", "%25")
    return functions.url_decode(functions.replace(kept, literal("+"), literal("%2B")))
