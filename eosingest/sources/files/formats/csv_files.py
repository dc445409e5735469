"""Defines the format entry of CSV: one record per line, or, with `multiLine`, records over several lines."""

from __future__ import annotations

import re
from collections.abc import Mapping

from eosingest.sources.files.formats import encodings
from eosingest.sources.files.formats.entry import (
    ANY_TEXT,
    BOOLEAN,
    CHARACTER,
    SOME_TEXT,
    FileFormat,
    Refusals,
    is_multi_line,
)


def _refused(options: Mapping[str, str], has_schema: bool) -> Refusals:
    whole = is_multi_line(options)
    yield from encodings.refused_encoding(options, whole=whole)
    if whole:
        yield from _refused_of_whole(options)
    if options.get("inferschema") == "true" and has_schema:
        yield "inferSchema", "has no effect with source.schema; drop one of them"


def _refused_of_whole(options: Mapping[str, str]) -> Refusals:
    """Yield the options with which a row over several lines has no certain end."""
    if options.get("linesep", "\n") not in ("\n", "\r\n"):
        yield "lineSep", 'must be "\\n" or "\\r\\n" with multiLine'
    for name in ("sep", "delimiter"):
        if len(re.sub(r"\\.", "x", options.get(name, ","))) != 1:
            yield name, "must be one character with multiLine"
    for name in ("quote", "escape"):
        if not options.get(name, '"').strip("\0"):
            yield name, "must be a character with multiLine: without quotes, no record spans several lines"
    for name in ("ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace"):
        if options.get(name.lower()) == "true":
            yield name, "not allowed with multiLine; write trim(…) in transform.select"


def _defaults_of(options: Mapping[str, str]) -> dict[str, str]:
    """Double a quote within quotes, as in RFC 4180, unless nothing is quoted."""
    quote = options.get("quote", '"')
    return {"escape": quote} if quote and "escape" not in options else {}


CSV = FileFormat(
    name="csv",
    schema_note="not given: the types of all texts in the data",
    options={
        **dict.fromkeys(("header", "inferSchema", "multiLine"), BOOLEAN),
        **dict.fromkeys(("ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace"), BOOLEAN),
        **dict.fromkeys(("quote", "escape", "comment"), CHARACTER),
        **dict.fromkeys(
            ("sep", "delimiter", "lineSep", "dateFormat", "timestampFormat", "timestampNTZFormat"), SOME_TEXT
        ),
        **dict.fromkeys(("nullValue", "emptyValue", "nanValue", "positiveInf", "negativeInf"), ANY_TEXT),
        **dict.fromkeys(("encoding", "charset"), ANY_TEXT),
    },
    defaults={
        "multiLine": "false",
        **dict.fromkeys(("header", "ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace"), "false"),
        "inferSchema": "true",
        "sep": ",",
        "encoding": "UTF-8",
        "quote": '"',
        "comment": "",
        "nullValue": "",
        "emptyValue": "",
        "nanValue": "NaN",
        "positiveInf": "Inf",
        "negativeInf": "-Inf",
    },
    is_text=True,
    is_whole=is_multi_line,
    refused=_refused,
    defaults_of=_defaults_of,
)
