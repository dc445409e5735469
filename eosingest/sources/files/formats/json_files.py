"""JSON, one record a line, or with `multiLine` one document a file: its entry among the formats."""

from __future__ import annotations

from collections.abc import Mapping

from eosingest.sources.files.formats import encodings
from eosingest.sources.files.formats.entry import BOOLEAN, OF_TYPED_TEXT, FileFormat, Refusals, says

_LENIENT = (
    "allowComments",
    "allowUnquotedFieldNames",
    "allowSingleQuotes",
    "allowNumericLeadingZeros",
    "allowUnquotedControlChars",
    "allowBackslashEscapingAnyCharacter",
)


def _refused(options: Mapping[str, str], has_schema: bool) -> Refusals:
    whole = is_whole(options)
    yield from encodings.refused_encoding(options, whole=whole)
    if whole:
        for name in _LENIENT:
            if says(name.lower(), options):
                yield name, "not allowed beside multiLine: a document is read by the standard, RFC 8259; leave it out"
        if "linesep" in options:
            yield "lineSep", "has no effect beside multiLine; drop one of them"


def is_whole(options: Mapping[str, str]) -> bool:
    """Say whether each file is one document."""
    return says("multiline", options)


def _reader_options(options: Mapping[str, str], has_schema: bool) -> dict[str, str]:
    """Leave out an encoding that is UTF-8: where one is set, Spark changes the text of numbers that are read as STRING."""
    return {name: value for name, value in options.items() if not encodings.names_utf_8(name, value)}


JSON = FileFormat(
    name="json",
    schema_note="not given: Spark looks through the data first",
    # From the options that Spark 4.0's own readers declare (JSONOptions, CSVOptions, …), less those that only write.
    options={
        **OF_TYPED_TEXT,
        **dict.fromkeys(("primitivesAsString", "prefersDecimal", "inferTimestamp", "dropFieldIfAllNull"), BOOLEAN),
        **dict.fromkeys(("allowComments", "allowUnquotedFieldNames", "allowSingleQuotes"), BOOLEAN),
        **dict.fromkeys(("allowNumericLeadingZeros", "allowNonNumericNumbers", "allowUnquotedControlChars"), BOOLEAN),
        **dict.fromkeys(("allowBackslashEscapingAnyCharacter", "multiLine"), BOOLEAN),
    },
    defaults={
        "multiLine": "false",
        **dict.fromkeys(("primitivesAsString", "prefersDecimal", "inferTimestamp", "dropFieldIfAllNull"), "false"),
        **dict.fromkeys(("allowComments", "allowUnquotedFieldNames", "allowNumericLeadingZeros"), "false"),
        **dict.fromkeys(("allowUnquotedControlChars", "allowBackslashEscapingAnyCharacter"), "false"),
        **dict.fromkeys(("allowSingleQuotes", "allowNonNumericNumbers"), "true"),
        "samplingRatio": "1.0",
        "locale": "en-US",
        "timeZone": "UTC",
    },
    is_text=True,
    has_corrupt_rows=True,
    is_whole=is_whole,
    refused=_refused,
    reader_options=_reader_options,
)
