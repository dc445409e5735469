"""Which files are read as a whole: a JSON or CSV file by a parser that does not go line by line, any other as one value.

The format's entry says by which options (formats/). Such a file is one split, whatever its length and its suffix, and Spark's
reader opens it once.
"""

from __future__ import annotations

from collections.abc import Mapping

from eosingest.sources.files.formats import FORMATS

LONGEST = (1 << 31) - 1  # bytes of a file that is one value: the JVM has no longer array


def is_whole(format: str, options: Mapping[str, str]) -> bool:
    """Say whether each file is read as a whole."""
    return FORMATS[format].is_whole(options)


def is_one_value(format: str, options: Mapping[str, str]) -> bool:
    """Say whether each file is one value, and so one row: the format has columns of its own then."""
    return is_whole(format, options) and FORMATS[format].columns is not None
