"""Finds texts in which `from_json`, `from_csv` or `from_xml` may find a time without a date, which Spark takes for today's.

    call of a parser in the plan ─▶ its types and options ─▶ Search: what to take out of a text, what to find in the rest

A search finds more than the parser reads, never less. Where the options make that impossible, the call is refused. The patterns
are Java's. Their repetitions are possessive: Java matches others of alternatives by recursion, and a long text would overflow
its stack. Used by volatile_casts.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pyspark.sql import SparkSession
from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    StructType,
    TimestampType,
    VariantType,
    _parse_datatype_json_string,
)

PARSERS = ("JsonToStructs", "CsvToStructs", "XmlToStructs")
# With these, `timestampFormat` is not the only way in which times are read.
_FALLBACKS = (
    "spark.sql.legacy.json.enableDateTimeParsingFallback",
    "spark.sql.legacy.csv.enableDateTimeParsingFallback",
)
_POLICY = "spark.sql.legacy.timeParserPolicy"
_CONTROLS = [*map(chr, range(32)), " ", "\x7f"]  # Spark takes them off a time
_OF_TIMES = frozenset("0123456789:TGM")


class Search(NamedTuple):
    """What a text is searched for, after each match of `removed` became `kept`."""

    found: str
    removed: str | None = None
    kept: str = ""


class UnsearchableError(ValueError):
    """No text shows whether a call reads a time without a date; the message says why."""


def no_date(
    before: str,
    *,
    blank: str = r"[\x00-\x20\x7f]",
    letter: str = "T",
    digit: str = "[0-9]",
    colon: str = ":",
    nothing: str = "(?!)",
) -> str:
    """Return the pattern of a time without a date, as Spark's SparkDateTimeUtils.parseTimestampString finds it.

    `before` is what precedes it. The others are the alternatives for one character; `nothing` is between the characters of
    the time, and no part of it.
    """
    number = f"(?:(?:{digit})(?:{nothing})*+){{1,2}}+"
    return f"{before}(?:{blank})*+(?:(?:{letter})(?:{nothing})*+(?:{digit})|{number}(?:{colon}))"


def search_of(parser: Any, spark: SparkSession) -> Search | None:
    """Return how to find such texts for a call of a parser, None if it reads no time of today. Raises UnsearchableError."""
    kind = parser.getClass().getSimpleName()
    given = {pair._1().lower(): pair._2() for pair in _each(parser.options().toSeq())}
    types = _parse_datatype_json_string(parser.dataType().json())
    if not _has_times(types, VariantType if kind == "CsvToStructs" else TimestampType) or _by_format(given, spark):
        return None
    if kind == "JsonToStructs":
        return Search(_IN_COMMENTED_JSON if "allowcomments" in given else _IN_JSON)
    if kind == "XmlToStructs":
        return Search(_IN_XML, _MARKUP, rf"$1{_MARK}")
    jvm: Any = spark._jvm
    return _of_csv(jvm.org.apache.spark.sql.catalyst.csv.CSVOptions(parser.options(), True, "UTC"), given)


def _has_times(kind: DataType, other: type[DataType]) -> bool:
    """Say whether a type has a TIMESTAMP in it, or an `other`: from_csv guesses the types of VARIANT."""
    if isinstance(kind, StructType):
        return any(_has_times(field.dataType, other) for field in kind)
    if isinstance(kind, ArrayType):
        return _has_times(kind.elementType, other)
    return _has_times(kind.valueType, other) if isinstance(kind, MapType) else isinstance(kind, TimestampType | other)


def _by_format(given: Mapping[str, str], spark: SparkSession) -> bool:
    """Say whether times are read by the option `timestampFormat` alone, which knows no today."""
    if "timestampformat" not in given or "enabledatetimeparsingfallback" in given:
        return False
    falls_back = any(str(spark.conf.get(name, None)).lower() == "true" for name in _FALLBACKS)
    return not falls_back and str(spark.conf.get(_POLICY, None)).upper() != "LEGACY"


def _each(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(index) for index in range(sequence.size()))


# ---- JSON: a text is in either kind of quotes, each of its characters may be escaped, and "GMT" is dropped. --------------


def _escaped(character: str) -> str:
    return rf"\\?{character}|\\u00{ord(character):02x}".replace("3a", "3[aA]").replace("4d", "4[dD]")


_GMT = "".join(f"(?:{_escaped(character)})" for character in "GMT")
_IN_JSON, _IN_COMMENTED_JSON = (
    no_date(
        before,
        blank=rf"\\?[\x00-\x20\x7f]|\\[bfnrt]|\\u00(?:[01].|20|7[fF])|{_GMT}",
        letter=_escaped("T"),
        digit=r"\\?[0-9]|\\u003[0-9]",
        colon=_escaped(":"),
        nothing=_GMT,
    )
    for before in (r"""(?:"|[\[{,:][\x00-\x20]*+')""", "[\"']")
)

# ---- XML: each character may be a reference. Spark joins the parts of a text around comments, instructions and CDATA, or
# takes them for separate ones; here a mark is between them.

_MARK = "\0"
_MARKUP = (
    r"(?s)<!\[CDATA\[(.*?)(?:\]\]>|\z)|<!--.*?(?:-->|\z)|<\?.*?(?:\?>|\z)"
    r"|&(?!amp;|lt;|gt;|quot;|apos;|#)[^;<&]*+;|GMT"
)
_SPACE = r"[\x20\t\r\n\x85\u2028]"
# The names in a DOCTYPE's declarations would need a parser.
_DECLARES = rf"<!DOCTYPE(?!{_SPACE}++[^\x20\t\r\n>\[\"']++{_SPACE}*+>)"
_IN_XML = f"{_DECLARES}|" + no_date(
    rf"(?:>|={_SPACE}*+[\"']|{_MARK})",
    blank=r"[\x01-\x20\x7f\x85\u2028]|&#0*+(?:[1-9]|[12][0-9]|3[0-2]|127);|&#x0*+(?:[1-9a-fA-F]|1[0-9a-fA-F]|20|7[fF]);",
    letter="T|&#0*+84;|&#x0*+54;",
    digit="[0-9]|&#0*+(?:4[89]|5[0-7]);|&#x0*+3[0-9];",
    colon=":|&#0*+58;|&#x0*+3[aA];",
    nothing=_MARK,
)

# ---- CSV: quotes, escapes and "GMT" are dropped. -------------------------------------------------------------------------


def _of_csv(options: Any, given: Mapping[str, str]) -> Search:
    separator, quote, escape = options.delimiter(), options.quote(), options.escape()
    more = (given.get("chartoescapequoteescaping", ""), given.get("linesep", ""))
    if not _OF_TIMES.isdisjoint("".join((separator, quote, escape, *more))):
        raise UnsearchableError("with a digit, a colon, T, G or M as separator, quote or escape")
    if re.match(no_date("^", blank=r"[\x00-\x20\x7f]|GMT", nothing="GMT"), options.emptyValueInRead()):
        raise UnsearchableError("with this emptyValue")
    ends = {"\r", "\n", *more[1]} | set(separator).intersection(_CONTROLS)
    dropped = {*_CONTROLS, quote, escape, *more[0]} - ends - set(separator)
    before = f"(?:^|{_quoted(separator)}|{'|'.join(map(_quoted, sorted(ends)))})"
    return Search(no_date(before, blank="(?!)"), f"(?:{'|'.join(map(_quoted, sorted(dropped)))}|GMT)++")


def _quoted(text: str) -> str:
    return "".join(rf"\x{{{ord(character):x}}}" for character in text)
