"""Expressions of a spec, where Spark SQL would give another value than they say: the value, or a refusal."""

from __future__ import annotations

import json

import pytest

from eosingest.errors import EosingestError, SpecError
from tests.support.reading.lab import Lab, lab  # noqa: F401 - a fixture

_TWO = b'{"a":null,"b":null}\n{"a":1,"b":2}\n'


@pytest.mark.parametrize("where", ["coalesce(*) IS NOT NULL", "concat_ws('', *) <> ''", "greatest(*) > 0"])
def test_a_star_in_where_has_only_the_columns(lab: Lab, where: str) -> None:  # noqa: F811
    """Breaks when it has ours, too: the hash of the split is never null, and has any sign."""
    schema = "a BIGINT, b BIGINT"
    assert lab.values("json", {"x.json": _TWO, "y.json": _TWO}, "CAST(a AS STRING)", schema=schema, where=where) == [
        b"1",
        b"1",
    ]


def test_a_refusal_names_the_key(lab: Lab) -> None:  # noqa: F811
    schema, without = "a BIGINT, b BIGINT", "coalesce(* EXCEPT (b)) IS NOT NULL"
    with pytest.raises(SpecError, match=r"^transform\.where: \* EXCEPT"):
        lab.values("json", _TWO, "CAST(a AS STRING)", schema=schema, where=without)
    with pytest.raises(SpecError, match=r"^transform\.select: there is no column user"):
        lab.values("json", _TWO, "CAST(a AS STRING)", schema=schema, select=("a", "user AS u"))


@pytest.mark.parametrize(("value", "expected"), [("array(*)[1]", b"y"), ("array(*)[0]", b"x"), ("struct(*).b", b"y")])
@pytest.mark.parametrize("format", ["csv", "json"])
def test_a_star_keeps_the_order_of_the_columns(lab: Lab, format: str, value: str, expected: bytes) -> None:  # noqa: F811
    """Breaks when columns that are not read stand after the others: another one is sent, or null."""
    data = {"csv": b"x,y\n", "json": b'{"a":"x","b":"y"}\n'}[format]
    assert lab.values(format, data, value, schema="a STRING, b STRING") == [expected]


@pytest.mark.parametrize(
    "value",
    [
        "format_string('%s', CAST(a AS BINARY))",
        "printf('%s', DATE '2026-01-01')",
        "format_string('%s', array(a))",
        "format_string('%s-%s', a, struct(a))",
    ],
)
def test_format_string_writes_no_object_of_java(lab: Lab, value: str) -> None:  # noqa: F811
    with pytest.raises(SpecError, match="format_string would not write"):
        lab.values("json", b'{"a":"x"}\n', value, schema="a STRING")
    assert lab.values("json", b'{"a":"x"}\n', "format_string('%s-%d', a, 1)", schema="a STRING") == [b"x-1"]


def test_a_name_is_not_taken_for_a_function(lab: Lab) -> None:  # noqa: F811
    """Breaks when the user that runs Spark is sent in place of a column, or of a name that only a lambda has."""
    lab.spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(EosingestError, match="current_user"):
            lab.values("json", b'{"USER":"x"}\n', "concat(user, '')", schema="USER STRING")
    finally:
        lab.spark.conf.unset("spark.sql.caseSensitive")
    value = "concat_ws(',', transform(xs, user -> upper(user))) || user"
    with pytest.raises(EosingestError, match="current_user"):
        lab.values("json", b'{"xs":["x"]}\n', value, schema="xs ARRAY<STRING>")


_TODAY: list[tuple[str, str, dict[str, str]]] = [
    ("xml", "<r><at>10:30</at></r>", {}),
    ("xml", "<r><at>10:<!-- x -->30</at></r>", {}),
    ("json", '{"at":"10:30"}', {}),
    ("json", '{"at":"\\10:30"}', {"allowBackslashEscapingAnyCharacter": "true"}),
    ("json", '{"at":"10:30"}', {"columnNameOfCorruptRecord": "timestampFormat"}),
    ("csv", "x,10:30", {}),
]


def _call(kind: str, options: dict[str, str], schema: str = "at TIMESTAMP, _at TIMESTAMP") -> str:
    given = ", ".join(repr(text) for pair in options.items() for text in pair)
    return f"from_{kind}(t, '{schema}'{f', map({given})' if options else ''}) AS x"


def _parsed(
    lab: Lab,  # noqa: F811
    kind: str,
    text: str,
    options: dict[str, str],
    value: str = "coalesce(x.at, x._at)",
) -> list[bytes | None]:
    row = json.dumps({"t": text}).encode() + b"\n"
    return lab.values("json", row, f"CAST({value} AS STRING)", schema="t STRING", select=(_call(kind, options),))


@pytest.mark.parametrize(("kind", "text", "options"), _TODAY)
def test_a_text_of_xml_json_or_csv_has_no_time_of_today(
    lab: Lab,  # noqa: F811
    kind: str,
    text: str,
    options: dict[str, str],
) -> None:
    """What else such texts may be is in test_parsed_times.py."""
    with pytest.raises(Exception, match="a time without a date"):
        _parsed(lab, kind, text, options)
    dated = text.replace("x,", "").replace("<!-- x -->", "").replace("\\", "").replace("10:30", "2026-01-01 10:30:00")
    assert _parsed(lab, kind, dated, options) == [b"2026-01-01 10:30:00"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sep": "T"}, "separator, quote or escape"),
        ({"quote": ":"}, "separator, quote or escape"),
        ({"escape": "1"}, "separator, quote or escape"),
        ({"emptyValue": " 10:30"}, "emptyValue"),
    ],
)
def test_a_call_whose_texts_show_nothing_is_refused(lab: Lab, options: dict[str, str], words: str) -> None:  # noqa: F811
    with pytest.raises(SpecError, match=words):
        _parsed(lab, "csv", "x", options)


def test_a_variant_of_csv_has_no_time_of_today(lab: Lab) -> None:  # noqa: F811
    for options in ({}, {"singleVariantColumn": "v"}):
        call = _call("csv", options, "v VARIANT")
        with pytest.raises(Exception, match="a time without a date"):
            lab.values("json", b'{"t":"10:30"}\n', "CAST(x.v AS STRING)", schema="t STRING", select=(call,))


def test_a_field_that_is_called_timestamp_is_not_looked_through(lab: Lab) -> None:  # noqa: F811
    row, call = b'{"t":"{\\"timestamp\\":\\"10:30\\"}"}\n', _call("json", {}, "timestamp STRING")
    assert lab.values("json", row, "x.timestamp", schema="t STRING", select=(call,)) == [b"10:30"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.sql.legacy.json.enableDateTimeParsingFallback", "true"),
        ("spark.sql.legacy.timeParserPolicy", "LEGACY"),
    ],
)
def test_a_format_is_not_trusted_if_spark_falls_back(lab: Lab, name: str, value: str) -> None:  # noqa: F811
    by_format = {"timestampFormat": "yyyy.MM.dd HH.mm"}
    lab.spark.conf.set(name, value)
    try:
        with pytest.raises(Exception, match="a time without a date"):
            _parsed(lab, "json", '{"at":"10:30"}', by_format)
    finally:
        lab.spark.conf.unset(name)
    assert _parsed(lab, "json", '{"at":"10:30"}', by_format) == [None]
    assert _parsed(lab, "json", '{"at":"2026.01.01 10.30"}', by_format) == [b"2026-01-01 10:30:00"]
