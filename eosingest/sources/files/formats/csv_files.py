"""Defines the format entry of CSV: one record per line, or, with `multiLine`, records over several lines."""

from __future__ import annotations

import re
from collections.abc import Mapping

from eosingest.sources.files.formats import encodings
from eosingest.sources.files.formats.entry import (
    ANY_TEXT,
    BOOLEAN,
    CHARACTER,
    DEFAULTS_OF_TYPED_TEXT,
    OF_TYPED_TEXT,
    UNESCAPED,
    WHOLE_NUMBER,
    FileFormat,
    Refusals,
    is_multi_line,
)


def _refused(options: Mapping[str, str], has_schema: bool) -> Refusals:
    whole = is_multi_line(options)
    yield from encodings.refused_encoding(options, whole=whole)
    if whole:
        yield from _refused_of_whole(options)
    if "enforceschema" in options and options.get("header") == "true":
        yield "enforceSchema", "not allowed: with a header the columns are always checked against it; leave it out"
    if options.get("inferschema") == "true" and has_schema:
        yield "inferSchema", "has no effect with source.schema; drop one of them"


def _refused_of_whole(options: Mapping[str, str]) -> Refusals:
    """Yield the options with which univocity, Spark's parser, does not read records over several lines exactly."""
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
    for name in ("unescapedQuoteHandling", "charToEscapeQuoteEscaping"):
        if name.lower() in options:
            yield name, "not allowed with multiLine: a quote inside a quoted field must be escaped; leave it out"


def _reader_options(options: Mapping[str, str], has_schema: bool) -> dict[str, str]:
    ours = {}
    if options.get("header", "").lower() == "true":
        ours["enforceSchema"] = "false"  # else Spark silently swaps reordered columns
    if not has_schema and "inferSchema" not in options:
        ours["inferSchema"] = "true"
    if is_multi_line(options) and "lineSep" not in options:
        ours["lineSep"] = "\n"  # univocity's detection would change the line breaks in values
    return {**options, **ours}


def _defaults_of(options: Mapping[str, str]) -> dict[str, str]:
    """Double a quote within quotes, as in RFC 4180, unless nothing is quoted; Spark's default is a backslash."""
    quote = options.get("quote", '"')
    return {"escape": quote} if quote and "escape" not in options else {}


CSV = FileFormat(
    name="csv",
    schema_note="not given: Spark looks through the data first",
    options={
        **OF_TYPED_TEXT,
        **dict.fromkeys(("header", "inferSchema", "enforceSchema", "preferDate", "multiLine"), BOOLEAN),
        **dict.fromkeys(("ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace"), BOOLEAN),
        **dict.fromkeys(("maxColumns", "maxCharsPerColumn", "inputBufferSize"), WHOLE_NUMBER),
        **dict.fromkeys(("quote", "escape", "comment", "charToEscapeQuoteEscaping"), CHARACTER),
        **dict.fromkeys(("sep", "delimiter"), ANY_TEXT),
        **dict.fromkeys(("nullValue", "emptyValue", "nanValue", "positiveInf", "negativeInf"), ANY_TEXT),
        "unescapedQuoteHandling": UNESCAPED,
    },
    defaults={
        "multiLine": "false",
        **dict.fromkeys(("header", "ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace"), "false"),
        **dict.fromkeys(("inferSchema", "preferDate", "enforceSchema"), "true"),
        "sep": ",",
        "encoding": "UTF-8",
        "quote": '"',
        "escape": "\\",
        "comment": "",
        "nullValue": "",
        "nanValue": "NaN",
        "positiveInf": "Inf",
        "negativeInf": "-Inf",
        "maxColumns": "20480",
        "maxCharsPerColumn": "-1",
        "unescapedQuoteHandling": "STOP_AT_DELIMITER",
        **DEFAULTS_OF_TYPED_TEXT,
    },
    is_text=True,
    has_corrupt_rows=True,
    is_whole=is_multi_line,
    refused=_refused,
    reader_options=_reader_options,
    defaults_of=_defaults_of,
)
