"""`unknown_fields = "error"`: a field that the schema does not name is found before anything is sent, wherever it is."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from eosingest.sources.files.formats import json_scan
from eosingest.sources.files.formats.text_checks import check_text
from eosingest.sources.files.formats.unknown_fields import BadTextError, known_fields
from eosingest.sources.files.formats.xml.columns import settings_of
from eosingest.sources.files.formats.xml.document import XmlCheck
from eosingest.sources.files.formats.xml.schema import parse

PLAIN = "id BIGINT, t STRING"
NESTED = "s STRUCT<a: BIGINT, l: ARRAY<STRUCT<b: STRING>>>"
MAP = "m MAP<STRING, STRUCT<a: STRING>>, d DATE NOT NULL COMMENT 'x'"


def unknown(schema: str, lines: Sequence[str], options: dict[str, str] | None = None) -> tuple[str, int] | None:
    """Return the fields that a check of these lines names, and the line."""
    try:
        check_text(["\n".join(lines).encode() + b"\n"], "json", options or {}, fields=known_fields(schema))
    except BadTextError as bad:
        assert 'unknown_fields = "ignore"' in bad.hint
        return bad.message.partition(": ")[2], bad.line or 0
    return None


@pytest.mark.parametrize(
    ("schema", "line", "named"),
    [
        (PLAIN, '{"id":1,"t":"x"}', None),
        (PLAIN, '{"id":1,"late":2}', "late"),
        (PLAIN, '{"\\u0069d":1}', None),
        (PLAIN, '{"ID":1}', "ID"),  # Spark's reader distinguishes them
        (PLAIN, '{"":1}', ""),
        (PLAIN, '{"id":1,"t":{"any":{"deeper":1}}}', None),  # a text holds any JSON
        (PLAIN, '{"id":1,"t":5,"late":null}', "late"),
        (PLAIN, '{"id":1,"t":5,"b":1,"a":[{"c":1}]}', "b, a"),
        (PLAIN, "{'id':1,'late':'it\\'s \"so\"'}", "late"),
        (PLAIN, "{'id':1,'t':'it\\'s \"so\"'}", None),
        (PLAIN, '{"id":INF,"late":-INF,"t":"INF +Infinity"}', "late"),
        (PLAIN, '[{"id":1},{"late":1}]', "late"),
        (PLAIN, '{"id":1,"late":}', None),  # a corrupt row, which the reader reports
        (PLAIN, '{"id":"x\'","t":', None),
        (PLAIN, "  ", None),
        (NESTED, '{"s":{"a":1,"l":[{"b":"x"},{},null]}}', None),
        (NESTED, '{"s":{"a":1,"l":[{"b":"x"},{"c":1}]}}', "s.l.c"),
        (NESTED, '{"s":{"b":1}}', "s.b"),  # known in another place
        (NESTED, '{"s":null}', None),
        (MAP, '{"m":{"x":{"a":1},"y":{"a":{"z":1}}},"d":[{"q":1}]}', None),
        (MAP, '{"m":{"x":{"a":1},"y":{"b":1}}}', "m.b"),
    ],
)
def test_json_lines(schema: str, line: str, named: str | None) -> None:
    """Breaks when a field is overlooked at any depth, or a line that is no JSON is refused: that is a bad row."""
    first = [json.dumps({}), json.dumps({schema.partition(" ")[0]: None})]
    assert unknown(schema, [*first, line]) == (None if named is None else (named, 3))


def test_a_number_of_many_digits_is_no_error_of_the_check() -> None:
    assert unknown(PLAIN, [f'{{"id":1,"t":{"9" * 5_000},"late":1}}']) == ("late", 1)


def test_all_fields_are_named_with_the_first_line() -> None:
    lines = ['{"id":1}', '{"a":1}', '{"b":1,"a":2}', *(f'{{"c{number}":1}}' for number in range(20))]
    named = ", ".join(["a", "b", *(f"c{number}" for number in range(8))]) + " and 12 more"
    assert unknown(PLAIN, lines) == (named, 2)


@pytest.mark.parametrize("text", ['[{"id":1},\n{"id":2,\n"late":1}]\n', '{"id":1,\n"late":2}\n'])
def test_documents(text: str) -> None:
    """Breaks when files that are one document (`multiLine`) are not checked."""
    assert (unknown(PLAIN, [text], {"multiLine": "true"}) or ())[0] == "late"
    assert unknown(PLAIN, [text.replace("late", "t")], {"multiLine": "true"}) is None


def test_nearly_all_lines_are_decoded_by_msgspec_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when Python parses each line, which takes four times as long."""
    monkeypatch.setattr(json_scan, "value_and_rest", None)
    assert unknown(PLAIN, ['{"id":1,"t":"x"}', '{"t":"é"}', '{"id":null,"t":{"x":1}}']) is None
    assert unknown(NESTED, ['{"s":{"a":1,"l":[{"b":"x"}]}}', '{"s":null}']) is None
    assert unknown(MAP, ['{"m":{"x":{"a":1}},"d":"2020-01-02"}']) is None


S = 'xmlns:s="http://www.w3.org/2001/XMLSchema-instance"'


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('<r><i a="1"><b>2</b><s><c>1</c></s></i></r>', None),
        ('<r new="1"><i a="1"/><other><x/></other></r>', None),  # no part of a row
        ('<r><i a="1" xmlns:x="u" xsi:nil="true" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"/></r>', None),
        (f'<r {S}><i a="1" s:nil="true" s:schemaLocation="u v"/></r>', None),
        (f'<r {S}><i a="1"><b s:nil="1" s:type="t"/><s {S.replace("s=", "t=")} t:nil="0"/></i></r>', None),
        (f'<r {S}><i a="1" xmlns:s="u" s:nil="true"/></r>', "_s:nil"),
        (f'<r {S}><i a="1" s="true"/></r>', "_s"),
        (f'<r><i a="1"><b {S}/><s s:nil="true"/></i></r>', "s._s:nil"),
        ("<r><i><late>1</late></i></r>", "late"),
        ("<r><i><late><b>1</b></late></i></r>", "late"),
        ('<r><i late="1"/></r>', "_late"),
        ('<r><i xmlnslate="1"/></r>', "_xmlnslate"),
        ('<r><i><b late="1">2</b></i></r>', "b._late"),
        ("<r><i><s><late/></s></i></r>", "s.late"),
        ('<r><i><s d="1"/></i></r>', "s._d"),
    ],
)
def test_xml(text: str, named: str | None) -> None:
    settings = settings_of({"rowTag": "i"}, parse("_a BIGINT, b BIGINT, s STRUCT<c: BIGINT>"))
    if named is None:
        return XmlCheck(settings, refuses_unknown=True)([text.encode()])
    with pytest.raises(BadTextError, match=rf"does not name: {named}$"):
        XmlCheck(settings, refuses_unknown=True)([text.encode()])
    return XmlCheck(settings)([text.encode()])
