"""Texts of JSON, CSV and XML that Spark's parsers read as times of today: the search finds each of them."""

from __future__ import annotations

import datetime
import random
from typing import Any

import pytest
from pyspark.sql import functions

from eosingest.spark.parsed_times import search_of
from tests.support.reading.lab import Lab, lab  # noqa: F401 - a fixture

_NESTED = "l ARRAY<TIMESTAMP>, s STRUCT<_x: TIMESTAMP, at: TIMESTAMP>, m MAP<STRING, TIMESTAMP>"
SCHEMAS = {
    "json": f"at TIMESTAMP, {_NESTED}",
    "xml": f"at TIMESTAMP, _at TIMESTAMP, _VALUE TIMESTAMP, {_NESTED}",
    "csv": "at TIMESTAMP, _at TIMESTAMP",
}
_ANY_ESCAPE = {"allowBackslashEscapingAnyCharacter": "true"}
TODAY: list[tuple[str, dict[str, str], list[str]]] = [
    (
        "xml",
        {},
        [
            "<r><at>10:30</at></r>",
            '<r at="T10:30"/>',
            "<r at = '10:30'/>",
            "<r><at><![CDATA[ 10:30]]></at></r>",
            "<r><at>1<![CDATA[0:3]]>0</at></r>",
            "<r><at><!-- x -->10:30</at></r>",
            "<r><at>10:<!-- x -->30</at></r>",
            "<r><at>1<?y z?>0:30</at></r>",
            "<r><at>1&none;0:30</at></r>",
            "<r>xT<?p x?>1:0<x/></r>",
            "<r><at>x<!-- x --><![CDATA[1:0]]></at></r>",
            "<r><at>&#49;0&#x3a;30</at></r>",
            "<r><l>1990</l><l>&#x0054;1</l></r>",
            "<r><s _x='1'><at>\t10:30</at></s></r>",
            "<r><m><k>10:30</k></m></r>",
            "<r><b/>10:30</r>",
            "<?xml version='1.1'?><r><at>&#1;&#x1F;10:30</at></r>",
            "<!DOCTYPE r [<!ENTITY e '<!--'>]><r><at>10:30</at><!-- --></r>",
        ],
    ),
    ("xml", {"ignoreSurroundingSpaces": "false"}, ["<r><at> 10:30</at></r>", "<r><at>T10:30</at></r>"]),
    (
        "json",
        {},
        [
            '{"at":"10:30"}',
            "{'at':' 10:30'}",
            '{"at":"\\n\\u00310\\u003A30"}',
            '{"at":"\\u0054\\u0031"}',
            '{"at":"GMT10:30"}',
            '{"at":"1\\u0047\\u004dT0:30"}',
            '{"l":[null, "10:30"]}',
            '{"m":{"k":\n"10:30"}}',
            '{"s":{"at":"\\u001f10:30"}}',
        ],
    ),
    ("json", _ANY_ESCAPE, ['{"at":"\\10:30"}', '{"at":"1\\0\\:30"}', '{"at":"\\T1"}', '{"at":"\\G\\M\\T1:0"}']),
    ("json", {"allowComments": "true"}, ["{\"at\":/* x */'10:30'}", "{'at'://x\n'10:30'}"]),
    ("json", {"allowUnquotedControlChars": "true", "allowUnquotedFieldNames": "true"}, ['{at:"\x0110:30"}']),
    ("json", {"timestampFormat": "yyyy", "enableDateTimeParsingFallback": "true"}, ['{"at":"10:30"}']),
    ("csv", {}, ["10:30", "GMT10:30", "1GMT0:30", "x,10:30", '" 10:30"', 'x,"T1"']),
    ("csv", {"comment": "#"}, ["#x\n10:30"]),
    ("csv", {"sep": "a"}, ["xa10:30", 'xa"10:30"']),
    ("csv", {"sep": "-"}, ["x-10:30"]),
    ("csv", {"sep": "."}, ["x.10:30"]),
    ("csv", {"sep": " "}, ["x 10:30", 'x " 10:30"']),
    ("csv", {"sep": ", "}, ["x, 10:30", 'x, " 10:30"']),
    ("csv", {"sep": "||"}, ["x||10:30"]),
    ("csv", {"sep": "\\t"}, ["x\t10:30"]),
    ("csv", {"quote": "-"}, ["-10:30-", "x,- 10:30-"]),
    ("csv", {"timestampFormat": "yyyy", "enableDateTimeParsingFallback": "true"}, ["10:30"]),
]
DATED: list[tuple[str, dict[str, str], list[str]]] = [
    (
        "xml",
        {},
        [
            "<r><at>2026-01-01 10:30:00</at></r>",
            "<!DOCTYPE r><r><at><!-- 10:30 -->2026-01-01<![CDATA[ 10:30:00]]></at></r>",
            "<r at='2026-01-01T10:30:00Z'><n>it's 5'10: tall, \"10:30\"</n><o>&quot;10: x</o></r>",
        ],
    ),
    ("json", _ANY_ESCAPE, ['{"at":"2026-01-01 10:30:00","n":"123: x","o":"a T1, 5\'10: tall"}']),
    ("csv", {}, ["2026-01-01 10:30:00", '"2026-01-01 10:30:00",2026-01-01T10:30:00+01:00']),
    ("csv", {"sep": " "}, ["2026-01-01T10:30:00 x"]),
    ("csv", {"sep": "||", "emptyValue": "None"}, ["2026-01-01 10:30:00||"]),
]


def _looked_through(lab: Lab, kind: str, options: dict[str, str], texts: list[str]) -> list[tuple[str, bool, bool]]:  # noqa: F811
    """Return each text, whether the parser reads a time of today in it, and whether the search finds it."""
    given = ", ".join(repr(text) for pair in options.items() for text in pair)
    call = f"from_{kind}(t, '{SCHEMAS[kind]}'{f', map({given})' if options else ''})"
    rows = (
        lab.spark.createDataFrame([(text,) for text in texts], "t STRING").selectExpr("t", f"{call} AS x").coalesce(1)
    )
    jvm: Any = lab.spark._jvm
    plan = jvm.org.apache.spark.sql.catalyst.optimizer.ReplaceExpressions.apply(rows._jdf.queryExecution().analyzed())
    search = search_of(plan.children().apply(0).expressions().apply(1).child(), lab.spark)
    assert search is not None
    left = functions.col("t") if search.removed is None else functions.regexp_replace("t", search.removed, search.kept)
    found = rows.select("t", functions.to_json("x"), left.rlike(search.found)).collect()
    today = datetime.datetime.now(datetime.UTC).date()
    days = [f'"{today + datetime.timedelta(days)}T' for days in (-1, 0, 1)]
    return [(text, any(day in (parsed or "") for day in days), is_found) for text, parsed, is_found in found]


@pytest.mark.parametrize(("kind", "options", "texts"), TODAY)
def test_a_time_of_today_is_found(lab: Lab, kind: str, options: dict[str, str], texts: list[str]) -> None:  # noqa: F811
    assert [text for text, _, is_found in _looked_through(lab, kind, options, texts) if not is_found] == []


@pytest.mark.parametrize(("kind", "options", "texts"), DATED)
def test_a_time_with_a_date_is_not_found(lab: Lab, kind: str, options: dict[str, str], texts: list[str]) -> None:  # noqa: F811
    assert _looked_through(lab, kind, options, texts) == [(text, False, False) for text in texts]


_TIMES = ["10:30", "1:0", "T10", "T1:0"]
_PIECES: dict[str, tuple[str, ...]] = {
    "json": (
        *(
            "1",
            "0",
            "T",
            ":",
            '"',
            "'",
            "\\",
            "\\u0031",
            "\\u003a",
            "\\u0054",
            " ",
            "\t",
            "GMT",
            "\\u0047",
            "/**/",
            "{",
        ),
        *("]", ",", "\\n", "\\t", "-", "\x01", "\x7f"),
    ),
    "xml": (
        *("1", "0", "T", ":", " ", "\n", "<b/>", "</at>", "<at>", "<!-- x -->", "<![CDATA[", "]]>", "<?p x?>", "&#49;"),
        *("&#x3A;", "&#x54;", "&#x1;", "&amp;", "&e;", '"', "'", ">"),
    ),
    "csv": ("1", "0", "T", ":", '"', '""', " ", "\t", "\n", "GMT", ",", "||", "-", "#", "\\", "a", "\x00"),
}
_AROUND: dict[str, list[str]] = {
    "json": ['{"at":"X"}', "{'at': 'X'}", '{"x":1,"at":/**/\'X\'}', '{"m":{"a":"X"}}', '{"l":["X"]}'],
    "xml": [
        *(
            "<r><at>X</at></r>",
            "<r at='X'/>",
            "<?xml version='1.1'?><r><at>X</at></r>",
            "<r>X</r>",
            "<r><l>X</l><l>1</l></r>",
        ),
        *("<!DOCTYPE r><r><at>X</at></r>", "<r><s x='X'><at/></s></r>", "<r><m a='X'><k>X</k></m></r>"),
    ],
    "csv": ["X", "x,X", "x||X", "x-X", '"x",X', "#x\nX", "\nX", '"X"', 'x,"X"'],
}


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("json", {}),
        ("json", {**_ANY_ESCAPE, "allowComments": "true", "allowUnquotedControlChars": "true"}),
        ("xml", {}),
        ("csv", {}),
        ("csv", {"sep": "||", "quote": "-", "escape": "#"}),
        ("csv", {"sep": "-", "comment": "#", "escape": '"', "unescapedQuoteHandling": "BACK_TO_DELIMITER"}),
    ],
)
def test_of_random_texts_each_time_of_today_is_found(lab: Lab, kind: str, options: dict[str, str]) -> None:  # noqa: F811
    random_ = random.Random(1)
    texts = []
    for _ in range(1_500):
        pieces = list(random_.choice(_TIMES)) if random_.random() < 0.7 else []
        for _ in range(random_.randint(0, 3) if pieces else 8):
            pieces.insert(random_.randint(0, len(pieces)), random_.choice(_PIECES[kind]))
        texts.append(random_.choice(_AROUND[kind]).replace("X", "".join(pieces)))
    read = _looked_through(lab, kind, options, texts)
    assert sum(is_today for _, is_today, _ in read) > 50
    assert [text for text, is_today, is_found in read if is_today and not is_found] == []


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("xml", "<r><at/><n>x{}</n></r>"),
        ("json", '{{"at":null,"n":"x{}","o":"the \'T1\' line, 5\'10: tall"}}'),
        ("csv", ",x{}"),
    ],
)
def test_a_long_text_does_not_overflow_javas_stack(lab: Lab, kind: str, text: str) -> None:  # noqa: F811
    repeated = [
        "1",
        " ",
        "\n",
        "GMT",
        "\\\\1",
        '\\"',
        "''",
        "&none;",
        ">",
        "<b/>",
        "<!-- x -->",
        "<!--",
        "<![CDATA[",
        "<?",
    ]
    texts = [text.format(piece * 100_000) for piece in repeated]
    assert [found for _, _, found in _looked_through(lab, kind, {"maxCharsPerColumn": "-1"}, texts)] == [False] * len(
        texts
    )
