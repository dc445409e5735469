"""Expressions of a spec, where Spark SQL would give another value than they say: the value, or a refusal."""

from __future__ import annotations

import json
from typing import Any

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


_TODAY = {
    "xml": [
        "<r><at>10:30</at></r>",
        '<r at="T10:30"/>',
        "<r><at><![CDATA[ 10:30]]></at></r>",
        "<r><at>&#49;0&#x3a;30</at></r>",
    ],
    "json": ['{"at":"10:30"}', "{'at':' 10:30'}", '{"at":"\\n\\u00310\\u003A30"}', '{"at":"\\u0054\\u0031"}'],
}


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in _TODAY.items() for text in texts])
def test_a_text_of_xml_or_json_has_no_time_of_today(lab: Lab, kind: str, text: str) -> None:  # noqa: F811
    parsed = f"from_{kind}(t, 'at TIMESTAMP, _at TIMESTAMP') AS x"
    settings: dict[str, Any] = {"schema": "t STRING", "select": (parsed,)}
    value = "CAST(coalesce(x.at, x._at) AS STRING)"
    row = json.dumps({"t": text}).encode() + b"\n"
    with pytest.raises(Exception, match="a time without a date"):
        lab.values("json", row, value, **settings)
    text = "<r><at>2026-01-01 10:30:00</at></r>" if kind == "xml" else '{"at":"2026-01-01 10:30:00"}'
    good = json.dumps({"t": text}).encode() + b"\n"
    others = {"xml": "<r><at/><n>{}</n></r>", "json": '{{"at":null,"n":"{}","o":"the \'T1\' line, 5\'10: tall"}}'}
    for long in ("1" * 20_000, " " * 20_000):  # Java's stack
        row = json.dumps({"t": others[kind].format(long)}).encode() + b"\n"
        assert lab.values("json", row, value, **settings) == [None]
    assert lab.values("json", good, value, **settings) == [b"2026-01-01 10:30:00"]
