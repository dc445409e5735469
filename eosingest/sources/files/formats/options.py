"""Decides which options `source.options` of files may have, why others are refused, and what they mean.

An allow-list (entry.py), since some options of Spark's readers drop files or rows silently, and the position of a split is a
count of rows. Each refusal names the alternative; the loader of the spec adds file and line.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from eosingest.sources.files.formats import times
from eosingest.sources.files.formats.entry import BOOLEAN, SHAPES, Refusals
from eosingest.sources.files.formats.registry import FORMATS

_CORRUPT = "corrupt rows always end the run with file, split and row named; leave it out"
_LISTING = "the files are listed once, by eosingest; say it with a glob in source.path"
_DROPS = "it would drop rows silently; leave it out"
_WRITES = "it is for writing only; when reading, Spark takes the compression from the file's name"
_IN_UTC = "a TIMESTAMP without a zone is in UTC; leave it out, or write, in transform.select"
_REFUSED = {
    "mode": _CORRUPT,
    "columnNameOfCorruptRecord": _CORRUPT,
    "ignoreCorruptFiles": _DROPS,
    "ignoreMissingFiles": _DROPS,
    **dict.fromkeys(("pathGlobFilter", "recursiveFileLookup", "__globPaths__"), _LISTING),
    **dict.fromkeys(("modifiedBefore", "modifiedAfter"), "files are known by content, not by age; see source.min_age"),
    "basePath": "the files are listed once, by eosingest; name the base folder in source.root",
    "path": "write source.path",
    "paths": "write source.path",
    **dict.fromkeys(("schema", "avroSchema", "avroSchemaUrl"), "write source.schema"),
    "ignoreExtension": "every file that source.path names is read; leave it out",
    "positionalFieldMatching": "columns are found by their names; leave it out",
    "recursiveFieldMaxDepth": "it would drop deeper fields; leave it out",
    "enableStableIdentifiersForUnionType": "the fields of a union are member0, member1, and so on; leave it out",
    "columnPruning": "it hides corrupt rows; leave it out",
    "singleVariantColumn": "it is not supported; write source.schema",
    **dict.fromkeys(("compression", "codec", "extension", "quoteAll", "escapeQuotes", "pretty"), _WRITES),
    **dict.fromkeys(("ignoreNullFields", "writeNonAsciiCharacterAsCodePoint", "parquet.compression"), _WRITES),
    "orc.compress": _WRITES,
    "enforceSchema": "the header of each file must have the columns' names, in their order; leave it out",
    "unescapedQuoteHandling": "a quote inside of a quoted field must be escaped; correct the files",
    "charToEscapeQuoteEscaping": "the escape before an escape is the escape; leave it out",
    **dict.fromkeys(("maxColumns", "maxCharsPerColumn", "inputBufferSize"), "there is no such limit; leave it out"),
    "samplingRatio": "types are inferred from all rows; write source.schema",
    "preferDate": "dates alone are a DATE; write source.schema for another type",
    "locale": "names of months are English; declare the column as STRING",
    "timeZone": f"{_IN_UTC}, to_utc_timestamp(t, 'Europe/Berlin')",
    "enableDateTimeParsingFallback": "only the format is read; declare the column as STRING",
}
_INFERENCE = frozenset(
    [
        "inferSchema",
        "samplingRatio",
        "primitivesAsString",
        "prefersDecimal",
        "inferTimestamp",
        "dropFieldIfAllNull",
        "mergeSchema",
    ]
)
_PATTERNS = ("dateformat", "timestampformat", "timestampntzformat")
_ALIASES = {"delimiter": "sep", "charset": "encoding"}


def canonical_options(format_: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return the options under the names that Spark documents; Spark compares names without regard to case."""
    known = {name.lower(): name for name in FORMATS[format_].options}
    return {known.get(name.lower(), name): value for name, value in options.items()}


def refused_options(format_: str, options: Mapping[str, str], *, has_schema: bool) -> Refusals:
    """Yield the reader options that are unknown, refused, given twice or of a wrong type."""
    shapes = FORMATS[format_].options
    allowed = {name.lower(): name for name in shapes}
    refused = {name.lower(): reason for name, reason in _REFUSED.items() if name not in shapes}
    seen: set[str] = set()
    for name, value in options.items():
        key = name.lower()
        if key in seen:
            yield name, "given twice; Spark ignores case here"
        seen.add(key)
        if key in refused:
            yield name, f"not allowed: {refused[key]}"
        elif key not in allowed:
            yield name, f"unknown option for {format_}{_did_you_mean(key, allowed)}"
        elif not shapes[allowed[key]].fullmatch(value):
            yield name, SHAPES[shapes[allowed[key]]]
        elif key in _PATTERNS:
            yield from _refused_pattern(name, value)
    lower = {name.lower(): value.lower() for name, value in options.items()}
    for other, one in _ALIASES.items():
        if one in lower and other in lower:
            yield allowed.get(other, other), f"is the same option as {one}; write one of them"
    yield from FORMATS[format_].refused(lower, has_schema)


def _refused_pattern(name: str, pattern: str) -> Refusals:
    try:
        times.compiled(pattern)
    except times.BadPatternError as error:
        yield name, f"{error}; read the column as STRING, and write to_timestamp(COLUMN, 'PATTERN') in transform.select"


def _did_you_mean(key: str, known: Mapping[str, str]) -> str:
    close = difflib.get_close_matches(key, known, n=1)
    return f'; did you mean "{known[close[0]]}"?' if close else f"; known are {', '.join(sorted(known.values()))}"


def meaningful_options(format_: str, options: Mapping[str, str], *, has_schema: bool) -> dict[str, str]:
    """Return the options by meaning, sorted: without aliases, defaults, and options without effect under a given schema."""
    entry = FORMATS[format_]
    found = {}
    for name, value in options.items():
        name = _ALIASES.get(name, name)
        if entry.options.get(name) is BOOLEAN:
            value = value.lower()
        if value != entry.defaults.get(name) and not (has_schema and name in _INFERENCE):
            found[name] = value
    return dict(sorted(found.items()))
