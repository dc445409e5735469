"""Defines the format entry of JSON: one record per line, or, with `multiLine`, one document per file."""

from __future__ import annotations

from collections.abc import Mapping

from eosingest.sources.files.formats import encodings
from eosingest.sources.files.formats.entry import (
    BOOLEAN,
    DEFAULTS_OF_TYPED_TEXT,
    OF_TYPED_TEXT,
    FileFormat,
    Refusals,
    is_multi_line,
)

_INFERENCE = ("primitivesAsString", "prefersDecimal", "inferTimestamp", "dropFieldIfAllNull")
_SYNTAX = ("allowSingleQuotes", "allowNonNumericNumbers")
_NOT_STANDARD = "JSON is read by the standard, RFC 8259, apart from single quotes and NaN; write the files so"
_PATTERN_INSTEAD = "set dateFormat or timestampFormat; a text that is written otherwise is a corrupt row"
# Options of Spark's reader that Python's does not have, with what to write instead. Each may have its default.
_OF_SPARK = {
    **dict.fromkeys(
        (
            "allowComments",
            "allowUnquotedFieldNames",
            "allowNumericLeadingZeros",
            "allowUnquotedControlChars",
            "allowBackslashEscapingAnyCharacter",
        ),
        _NOT_STANDARD,
    ),
    "enableDateTimeParsingFallback": _PATTERN_INSTEAD,
    "locale": "names of months are English; read a column with others as STRING, and convert it in transform.select",
    "timeZone": "a TIMESTAMP without a zone is in UTC; for local times write TIMESTAMP_NTZ in source.schema, and"
    " to_utc_timestamp(COLUMN, 'ZONE') in transform.select",
}


def _refused(options: Mapping[str, str], has_schema: bool) -> Refusals:
    whole = is_multi_line(options)
    yield from encodings.refused_encoding(options, whole=whole)
    for name, instead in _OF_SPARK.items():
        if options.get(name.lower(), default := JSON.defaults[name].lower()) != default:
            yield name, f"not allowed: {instead}"
    if whole and "linesep" in options:
        yield "lineSep", "has no effect with multiLine; drop one of them"


JSON = FileFormat(
    name="json",
    schema_note="not given: inferred from the data",
    # From the options that Spark 4.0's own readers declare (JSONOptions, CSVOptions, …), without those only for writing.
    options={
        **OF_TYPED_TEXT,
        **{name: BOOLEAN for name in _OF_SPARK if name not in OF_TYPED_TEXT},
        **dict.fromkeys((*_INFERENCE, *_SYNTAX, "multiLine"), BOOLEAN),
    },
    defaults={
        **dict.fromkeys((*_INFERENCE, *_OF_SPARK, "multiLine"), "false"),
        **dict.fromkeys(_SYNTAX, "true"),
        **DEFAULTS_OF_TYPED_TEXT,
    },
    is_text=True,
    drops_unknown=True,
    is_whole=is_multi_line,
    refused=_refused,
)
