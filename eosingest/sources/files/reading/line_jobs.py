"""Decides which jobs send lines as they are, and read them in the tasks themselves (line_reader.py)."""

from __future__ import annotations

from collections.abc import Mapping

from eosingest.protocol.plan import Plan
from eosingest.sources.files.bytes.lines import is_compressed
from eosingest.sources.files.cuts import is_cut_by_codec, is_splittable
from eosingest.sources.files.reading.planned_files import pending_files
from eosingest.sources.files.reading.rows import ReadSettings
from eosingest.spec.expressions import tokens

SCHEMA = "value STRING"  # the schema that Spark infers for text


def takes_lines(settings: ReadSettings, conf: Mapping[str, str], plan: Plan, base_path: str | None) -> bool:
    """Say whether the records are the lines of text files as they are, and tasks can read all pending files as Spark would."""
    return sends_lines(settings, conf, base_path) and all(_is_readable(file.coded_path) for file in pending_files(plan))


def sends_lines(settings: ReadSettings, conf: Mapping[str, str], base_path: str | None) -> bool:
    """Say whether the records are the lines of text files as they are."""
    separator = settings.options.get("lineSep", "\n")
    return (
        settings.format == "text"
        and settings.schema is None
        and (settings.where, settings.key, settings.timestamp, settings.partition) == (None, None, None, None)
        and not settings.headers
        and settings.select == ("*",)
        and isinstance(settings.value, str)
        and [token.name for token in tokens(settings.value)] == ["value"]
        and settings.options.keys() <= {"lineSep"}
        and len(separator.encode()) == 1
        and not any(key.startswith("spark.hadoop.") for key in conf)  # other codecs, other file systems
        and base_path is None  # a folder may give a column of any name
    )


def _is_readable(path: str) -> bool:
    """Say whether lines.py can read a file: a plain one, or a compressed one that is not cut. Only Hadoop can cut bzip2."""
    plain = is_splittable("text", {}, path) and not is_cut_by_codec(path)
    return plain or is_compressed(path)


def line_separator(settings: ReadSettings) -> int | None:
    """Return the byte that ends a line, None for line feeds and carriage returns."""
    separator = settings.options.get("lineSep")
    return None if separator is None else ord(separator)
