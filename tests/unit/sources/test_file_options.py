"""Options of the readers of files, per format: an allow-list, and what they mean."""

from __future__ import annotations

import pytest

from eosingest.sources.files.bytes.text_blocks import Layout
from eosingest.sources.files.formats.options import (
    canonical_options,
    meaningful_options,
    refused_options,
)
from eosingest.sources.files.formats.registry import FORMATS


def _options(format_: str, has_schema: bool = False, /, **options: str) -> dict[str, str]:
    return dict(refused_options(format_, options, has_schema=has_schema))


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize(
    "name",
    [
        "mode",
        "columnNameOfCorruptRecord",
        "ignoreCorruptFiles",
        "ignoreMissingFiles",
        "pathGlobFilter",
        "recursiveFileLookup",
        "modifiedBefore",
        "modifiedAfter",
        "basePath",
        "__globPaths__",
        "RECURSIVEFILELOOKUP",
        "compression",
        "path",
    ],
)
def test_options_that_break_the_splits_are_refused_in_every_format(format_: str, name: str) -> None:
    assert _options(format_, **{name: "true"})[name].startswith("not allowed: ")


@pytest.mark.parametrize(
    ("format_", "name", "value", "expected"),
    [
        ("json", "allowComments", "true", "RFC 8259"),
        ("json", "allowSingleQuotes", "false", None),
        ("json", "lineSep", "\n", "no effect"),
        ("json", "encoding", "UTF-16LE", None),
        ("json", "encoding", "UTF-16", "UTF-16LE or UTF-16BE"),
        ("json", "encoding", "EUC-JP", "iconv"),
        ("csv", "lineSep", "\r\n", None),
        *[("json", "samplingRatio", ratio, None) for ratio in ("0.5", "1", "1.0", "1e-3", "5E-1", "00.5", ".1")],
        *[("json", "samplingRatio", ratio, "above 0") for ratio in ("0.0", "1.5", "0e-1", "-1")],
        ("json", "samplingRatio", "0", "above 0"),
        ("json", "samplingRatio", "5", "above 0"),
        ("csv", "lineSep", "\r", "must be"),
        ("csv", "sep", "||", "one character"),
        ("csv", "sep", "\\t", None),
        ("csv", "quote", "", "without quotes"),
        ("csv", "escape", "\\", None),
        ("csv", "escape", "", "without quotes"),
        ("csv", "ignoreLeadingWhiteSpace", "true", "trim"),
        ("text", "lineSep", "\n", "no effect"),
    ],
)
def test_options_beside_that_a_file_is_read_as_a_whole(
    format_: str, name: str, value: str, expected: str | None
) -> None:
    whole = "wholetext" if format_ == "text" else "multiLine"
    for spelt in (whole, whole.upper()):
        found = _options(format_, **{spelt: "True", name: value})
        assert (expected in found[name]) if expected else not found, found
    assert _options(format_, **{whole: "false"}) == {}


@pytest.mark.parametrize(
    ("format_", "name", "value", "expected"),
    [
        ("csv", "headr", "true", 'did you mean "header"?'),
        ("json", "timestampformat ", "x", 'did you mean "timestampFormat"?'),
        ("parquet", "header", "true", "unknown option for parquet"),
        ("csv", "header", "yes", "must be true or false"),
        ("csv", "sep", "", "must not be empty"),
        ("json", "samplingRatio", "all", "must be a number"),
        ("csv", "escape", "ab", "must be one character, or empty"),
        ("csv", "quote", "\U0001f600", "must be one character, or empty"),
        ("orc", "zzz", "1", "known are mergeSchema"),
        ("avro", "datetimeRebaseMode", "NONE", "must be one of CORRECTED, LEGACY, EXCEPTION"),
        ("avro", "avroSchema", "{}", "write source.schema"),
        ("avro", "ignoreExtension", "false", "every file that source.path names is read"),
        ("avro", "positionalFieldMatching", "true", "found by their names"),
    ],
)
def test_unknown_and_ill_typed_options(format_: str, name: str, value: str, expected: str) -> None:
    assert expected in _options(format_, **{name: value})[name]


def test_good_options_pass_in_any_case() -> None:
    assert _options("csv", HEADER="True", nullvalue="NA", Sep="||", quote="", escape="\\") == {}
    assert canonical_options("csv", {"HEADER": "True", "nullvalue": "NA"}) == {"header": "True", "nullValue": "NA"}
    assert _options("json", timestampFormat="yyyy", samplingRatio="0.1") == {}


def test_an_option_given_twice_is_seen() -> None:
    assert "given twice" in _options("csv", sep=";", SEP=",")["SEP"]
    assert "same option as sep" in _options("csv", sep=";", delimiter=",")["delimiter"]
    assert "same option as encoding" in _options("json", encoding="UTF-8", charset="UTF-8")["charset"]


def test_csv_rules() -> None:
    for name in ("enforceSchema", "unescapedQuoteHandling", "maxColumns", "samplingRatio", "locale", "timeZone"):
        assert "not allowed" in _options("csv", header="true", **{name: "true"})[name]
    assert _options("csv", dateFormat="dd.MM.yyyy", timestampFormat="yyyyMMdd HHmmss") == {}
    assert "read the column as STRING" in _options("csv", timestampFormat="EEE dd MMM")["timestampFormat"]
    assert "no effect" in _options("csv", True, inferSchema="true")["inferSchema"]
    assert _options("csv", False, inferSchema="true") == {}


@pytest.mark.parametrize("format_", FORMATS)
def test_every_default_given_by_hand_means_nothing(format_: str) -> None:
    entry = FORMATS[format_]
    assert set(entry.defaults) <= set(entry.options)
    assert meaningful_options(format_, entry.defaults, has_schema=False) == {}


def test_meaningful_options_fold_names_and_drop_what_a_schema_makes_idle() -> None:
    assert meaningful_options("csv", {"delimiter": ";", "header": "TRUE"}, has_schema=True) == {
        "header": "true",
        "sep": ";",
    }
    assert meaningful_options("csv", {"inferSchema": "false"}, has_schema=False) == {"inferSchema": "false"}
    assert meaningful_options("csv", {"inferSchema": "false"}, has_schema=True) == {}


@pytest.mark.parametrize(
    ("options", "name", "expected"),
    [
        ({}, "rowTag", "is missing"),
        ({"rowTag": "<row>"}, "rowTag", "without brackets"),
        ({"rowTag": ""}, "rowTag", "must be a name of XML"),
        ({"rowtag": "ns:row-1.x"}, "rowtag", None),
        ({"rowTag": "é", "attributePrefix": ""}, "attributePrefix", "must not be empty"),
        ({"rowTag": "row", "valueTag": ""}, "valueTag", "must not be empty"),
        ({"rowTag": "row", "ignoreSurroundingSpaces": "no"}, "ignoreSurroundingSpaces", "true or false"),
        ({"rowTag": "row", "encoding": "EUC-JP"}, "encoding", "iconv"),
        ({"rowTag": "row", "encoding": "windows-1252"}, "encoding", None),
        ({"rowTag": "row", "excludeAttribute": "true"}, "excludeAttribute", "unknown option"),
        ({"rowTag": "row", "dateFormat": "yyyy"}, "dateFormat", "unknown option"),
        ({"rowTag": "row", "multiLine": "true"}, "multiLine", "unknown option"),
    ],
)
def test_options_of_xml(options: dict[str, str], name: str, expected: str | None) -> None:
    found = _options("xml", True, **options)
    assert (found == {}) if expected is None else (expected in found[name]), found


@pytest.mark.parametrize("encoding", ["Shift_JIS", "GBK"])
@pytest.mark.parametrize(("separator", "is_refused"), [("|", True), ("~", True), ("\n", False), (";", False)])
def test_a_line_end_that_may_be_half_of_a_character(encoding: str, separator: str, is_refused: bool) -> None:
    """Breaks when a line is cut inside of ポ (83 7C), so that values depend on the splits."""
    for format_ in ("csv", "json"):
        assert ("encoding" in _options(format_, encoding=encoding, lineSep=separator)) is is_refused


@pytest.mark.parametrize("encoding", ["UTF_16LE", "utf_16_le", "UTF-16LE"])
def test_an_encoding_is_known_by_every_name(encoding: str) -> None:
    assert Layout(encoding, "\n").width == 2
