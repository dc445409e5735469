"""Decides which files are read as a whole: JSON, CSV and XML by a parser that does not read line by line, others as one value.

The format's entry (formats/) names the options that cause this. Each such file is one split, of any length and with any suffix,
and its reader opens it once.
"""

from __future__ import annotations

from collections.abc import Mapping

from eosingest.sources.files.formats.registry import FORMATS

LONGEST = (1 << 31) - 1  # bytes of a file that is one value: the JVM's limit for an array


def is_whole(format: str, options: Mapping[str, str]) -> bool:
    """Say whether each file is read as a whole."""
    return FORMATS[format].is_whole(options)


def is_one_value(format: str, options: Mapping[str, str]) -> bool:
    """Say whether each file is one value, and so one row: the format has fixed columns then."""
    return is_whole(format, options) and FORMATS[format].columns is not None
