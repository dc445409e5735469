"""CSV, one record a line: its entry among the formats."""

from __future__ import annotations

from collections.abc import Mapping

from eosingest.sources.files.formats import encodings
from eosingest.sources.files.formats.entry import (
    ANY_TEXT,
    BOOLEAN,
    CHARACTER,
    OF_TYPED_TEXT,
    UNESCAPED,
    WHOLE_NUMBER,
    FileFormat,
    Refusals,
)


def _refused(options: Mapping[str, str], has_schema: bool) -> Refusals:
    yield from encodings.refused_encoding(options)
    if "enforceschema" in options and options.get("header") == "true":
        yield "enforceSchema", "not allowed: with a header the columns are always checked against it; leave it out"
    if options.get("inferschema") == "true" and has_schema:
        yield "inferSchema", "has no effect beside source.schema; drop one of them"


def _reader_options(options: Mapping[str, str], has_schema: bool) -> dict[str, str]:
    ours = {}
    if options.get("header", "").lower() == "true":
        ours["enforceSchema"] = "false"  # otherwise reordered columns swap without a word
    if not has_schema and "inferSchema" not in options:
        ours["inferSchema"] = "true"
    return {**options, **ours}


def _defaults_of(options: Mapping[str, str], generation: int) -> dict[str, str]:
    """Since generation 2 a quote within quotes is doubled, as RFC 4180 has it, where anything is quoted at all."""
    quote = options.get("quote", '"')
    return {"escape": quote} if generation > 1 and quote and "escape" not in options else {}


CSV = FileFormat(
    name="csv",
    schema_note="not given: Spark looks through the data first",
    options={
        **OF_TYPED_TEXT,
        **dict.fromkeys(("header", "inferSchema", "enforceSchema", "preferDate"), BOOLEAN),
        **dict.fromkeys(("ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace"), BOOLEAN),
        **dict.fromkeys(("maxColumns", "maxCharsPerColumn", "inputBufferSize"), WHOLE_NUMBER),
        **dict.fromkeys(("quote", "escape", "comment", "charToEscapeQuoteEscaping"), CHARACTER),
        **dict.fromkeys(("sep", "delimiter"), ANY_TEXT),
        **dict.fromkeys(("nullValue", "emptyValue", "nanValue", "positiveInf", "negativeInf"), ANY_TEXT),
        "unescapedQuoteHandling": UNESCAPED,
    },
    defaults={
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
        "samplingRatio": "1.0",
        "locale": "en-US",
        "timeZone": "UTC",
    },
    is_text=True,
    has_corrupt_rows=True,
    refused=_refused,
    reader_options=_reader_options,
    defaults_of=_defaults_of,
)
