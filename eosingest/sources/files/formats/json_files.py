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
    says,
)

_INFERENCE = ("primitivesAsString", "prefersDecimal", "inferTimestamp", "dropFieldIfAllNull")
_LENIENT = (
    "allowComments",
    "allowUnquotedFieldNames",
    "allowSingleQuotes",
    "allowNumericLeadingZeros",
    "allowUnquotedControlChars",
    "allowBackslashEscapingAnyCharacter",
)

_LIMITS = {"maxStringLen": str(2**31 - 1), "maxNumLen": str(1 << 20)}  # of characters; by default 20,000,000 and 1,000


def _refused(options: Mapping[str, str], has_schema: bool) -> Refusals:
    whole = is_multi_line(options)
    yield from encodings.refused_encoding(options, whole=whole)
    if whole:
        for name in _LENIENT:
            if says(name.lower(), options):
                yield name, "not allowed with multiLine: a document is read by the standard, RFC 8259; leave it out"
        if "linesep" in options:
            yield "lineSep", "has no effect with multiLine; drop one of them"


def _reader_options(options: Mapping[str, str], has_schema: bool) -> dict[str, str]:
    """Leave out an encoding that is UTF-8: if one is set, Spark changes the text of numbers that are read as STRING.

    Raise the parser's limits: to it, a longer text or number makes its row corrupt, without a reason.
    """
    return {**_LIMITS, **{name: value for name, value in options.items() if not encodings.names_utf_8(name, value)}}


JSON = FileFormat(
    name="json",
    schema_note="not given: Spark looks through the data first",
    # From the options that Spark 4.0's own readers declare (JSONOptions, CSVOptions, …), without those only for writing.
    options={
        **OF_TYPED_TEXT,
        **dict.fromkeys((*_INFERENCE, *_LENIENT, "allowNonNumericNumbers", "multiLine"), BOOLEAN),
    },
    defaults={
        **dict.fromkeys((*_INFERENCE, *_LENIENT, "multiLine"), "false"),
        **dict.fromkeys(("allowSingleQuotes", "allowNonNumericNumbers"), "true"),
        **DEFAULTS_OF_TYPED_TEXT,
    },
    is_text=True,
    has_corrupt_rows=True,
    drops_unknown=True,
    lenient=frozenset(map(str.lower, _LENIENT)),
    is_whole=is_multi_line,
    refused=_refused,
    reader_options=_reader_options,
)
