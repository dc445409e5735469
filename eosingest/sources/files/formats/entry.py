"""Describes a file format (`FileFormat`), and the valid values of its reader's options.

The formats' entries are in the other modules of this folder; options.py checks the options of a spec against them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

# Pairs of an option and the reason why it is refused.
Refusals = Iterator[tuple[str, str]]

BOOLEAN = re.compile(r"true|false", re.IGNORECASE)
FRACTION = re.compile(r"0*1(\.0*)?|(?=[0.]*[1-9])0*(\.[0-9]+|[0-9](\.[0-9]+)?[eE]-0*[1-9][0-9]*)")
ANY_TEXT = re.compile(r".*", re.DOTALL)
SOME_TEXT = re.compile(r".+", re.DOTALL)
CHARACTER = re.compile(r"[\u0000-\uffff]?")  # one UTF-16 code unit, Java's char
REBASE_MODE = re.compile(r"CORRECTED|LEGACY|EXCEPTION", re.IGNORECASE)
XML_NAME = re.compile(r"(?:[^\W\d]|:)[\w:.\-·]*")
# The message for a value that does not match its option's pattern.
SHAPES = {
    CHARACTER: "must be one character, or empty for none",
    REBASE_MODE: f"must be one of {', '.join(REBASE_MODE.pattern.split('|'))}",
    XML_NAME: "must be a name of XML, without brackets",
    BOOLEAN: "must be true or false",
    SOME_TEXT: "must not be empty",
    FRACTION: "must be a number above 0 and up to 1",
}

# Options of the readers that parse values from text.
OF_TYPED_TEXT: Mapping[str, re.Pattern[str]] = {
    "dateFormat": ANY_TEXT,
    "timestampFormat": ANY_TEXT,
    "timestampNTZFormat": ANY_TEXT,
    "timeZone": ANY_TEXT,
    "locale": ANY_TEXT,
    "enableDateTimeParsingFallback": BOOLEAN,
    "encoding": ANY_TEXT,
    "charset": ANY_TEXT,
    "lineSep": SOME_TEXT,
    "samplingRatio": FRACTION,
}
DEFAULTS_OF_TYPED_TEXT: Mapping[str, str] = {"samplingRatio": "1.0", "locale": "en-US", "timeZone": "UTC"}


def _nothing_refused(options: Mapping[str, str], has_schema: bool) -> Refusals:
    yield from ()


def _none_of_ours(options: Mapping[str, str]) -> Mapping[str, str]:
    return {}


def _any_schema(ddl: str, options: Mapping[str, str]) -> Iterator[str]:
    yield from ()


def says(option: str, options: Mapping[str, str]) -> bool:
    """Say whether the option of this name, in lower case, is true."""
    return any(name.lower() == option and value.lower() == "true" for name, value in options.items())


def is_multi_line(options: Mapping[str, str]) -> bool:
    """Say whether the reader parses a file as a whole, so that a record may span several lines."""
    return says("multiline", options)


def _cut_where_it_can_be(options: Mapping[str, str]) -> bool:
    return False


@dataclass(frozen=True, kw_only=True)
class FileFormat:
    """A file format. `options` are the reader's options that a spec may set, each with the pattern of its values.

    name: its name in a spec.
    schema_note: the text in which `check` describes the columns if the spec has no schema.
    defaults: the option values that mean the same as leaving the option out, for digests. It has no option whose absence is a
        separate mode.
    is_text: its files are text, which may be compressed as a whole, by the name's suffix: the inspection (inspection.py) checks
        their first bytes.
    is_compressed_inside: the format compresses its blocks itself, so that a file with any suffix is cut.
    is_in_blocks: its files are Avro's container files, whose blocks the inspection verifies (avro_container.py).
    has_footers: each file contains its columns and their types, in a footer or header.
    columns: its only columns, name and type; None if the schema defines them.
    value: the record's value if the spec has none; None for the row as JSON.
    needs_schema: a spec must contain a schema.
    schema_problems: the reasons why a schema that Spark may accept cannot be used, given the schema and the options.
    drops_unknown: with a given schema, the reader drops fields that it does not name (unknown_fields.py finds them).
    is_whole: whether, with these options, a file is always one split, since no reader can begin inside of it.
    refused: the options, by names in lower case, that are refused for reasons other than the pattern of their values.
    defaults_of: the options that are set if the spec does not set them.
    """

    name: str
    schema_note: str
    options: Mapping[str, re.Pattern[str]]
    defaults: Mapping[str, str] = field(default_factory=dict)
    is_text: bool = False
    is_compressed_inside: bool = False
    is_in_blocks: bool = False
    has_footers: bool = False
    columns: Mapping[str, str] | None = None
    value: str | None = None
    needs_schema: bool = False
    drops_unknown: bool = False
    schema_problems: Callable[[str, Mapping[str, str]], Iterator[str]] = _any_schema
    is_whole: Callable[[Mapping[str, str]], bool] = _cut_where_it_can_be
    refused: Callable[[Mapping[str, str], bool], Refusals] = _nothing_refused
    defaults_of: Callable[[Mapping[str, str]], Mapping[str, str]] = _none_of_ours
