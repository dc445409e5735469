"""Whether JSON is as its schema says: told without the record's values, by drafts that the schema names."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from eosingest.errors import SpecError
from eosingest.kafka.ports import Records
from eosingest.protocol.task_contract import Batch
from eosingest.records.encoding import JSON, Encoding
from eosingest.records.json_schema import JsonSchemaCheck, checks_of
from eosingest.spark.preview import _shown
from eosingest.spark.record_settings import RecordSettings
from eosingest.spark.worker import JsonFit

_FRAME = b"\0\0\0\0\7"
ORDER = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "user": {"type": "string"}, "at": {"format": "date-time"}},
    "required": ["id"],
    "additionalProperties": False,
}


def why_not(value: Any, schema: Any = ORDER) -> str | None:
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return JsonSchemaCheck(json.dumps(schema), "it").why_not(_FRAME + text)


@pytest.mark.parametrize(
    "value",
    [{"id": 1}, {"id": 10**30}, {"id": 1.0}, {"id": 1, "user": "ann", "at": "2026-11-20T10:00:00.000001Z"}],
)
def test_what_fits(value: Any) -> None:
    assert why_not(value) is None


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({}, '"id" is a required property'),
        ({"id": "secret"}, 'id: the value is not of type "integer"'),
        ({"id": 1.5}, 'id: the value is not of type "integer"'),
        ({"id": None}, 'id: the value is not of type "integer"'),
        ({"id": 1, "user": None}, 'user: the value is not of type "string"'),
        ({"id": 1, "at": "secret"}, 'at: the value is not a "date-time"'),
        ({"id": 1, "more": "secret"}, "Additional properties are not allowed ('more' was unexpected)"),
        ([], 'the value is not of type "object"'),
        (b"{", "it is not JSON"),
        (b"NaN", "it is not JSON: NaN is not a JSON number"),
        (b'"\xff"', "it is not JSON"),
        (b"", "it is not JSON"),
        (b'{"id": "secret", "id": 1}', "it is not JSON: id appears twice"),
        ('{"id":1}'.encode("utf-16"), "it is not JSON: 'utf-8' codec"),
        (b'\xef\xbb\xbf{"id":1}', "it is not JSON"),
        (b"[" * 100_000, "it is not JSON"),
        (b'{"id":1,"more":' + b"[" * 900 + b"]" * 900 + b"}", "it cannot be compared with the schema"),
        (b'{"id":1,"\\ud800":1}', "it cannot be compared with the schema"),
    ],
)
def test_what_does_not_fit_is_told_without_values(value: Any, reason: str) -> None:
    told = why_not(value)
    assert told is not None and told.startswith(reason) and "secret" not in told


def test_a_tombstone_fits() -> None:
    assert JsonSchemaCheck(json.dumps(ORDER), "it").why_not(None) is None


def test_the_draft_is_that_of_the_schema() -> None:
    """In draft 4 `exclusiveMinimum` is a switch of `minimum`."""
    schema = {"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 1, "exclusiveMinimum": True}
    assert why_not(1, schema) is not None and why_not(2, schema) is None


@pytest.mark.parametrize(
    "schema", [{"type": "objec"}, {"$ref": "http://127.0.0.1:9/x"}, {"$ref": "file:///etc/passwd"}, {"pattern": "("}, 1]
)
def test_a_schema_that_is_none_or_names_others_is_refused(schema: Any) -> None:
    with pytest.raises(SpecError, match=r"order\.json is not a self-contained JSON Schema") as raised:
        JsonSchemaCheck(json.dumps(schema), "order.json")
    assert raised.value.code == "bad-schema"


def batch(keys: list[bytes | None], values: list[bytes | None], unfit: list[str | None] | None = None) -> Batch:
    zeros = np.zeros(len(keys), np.int64)
    return Batch(zeros, Records(keys, values), zeros, zeros, unfit=unfit)


def test_rows_of_a_batch() -> None:
    """Breaks when a reason goes to another row, a reason of before is lost, or the key is not asked."""
    fit = JsonFit({"key": '{"type": "integer"}', "value": '{"type": "string"}'})
    good, bad = [_FRAME + b"1", None], _FRAME + b"{}"
    assert fit(batch(good, [_FRAME + b'"x"', None])).unfit is None
    found = fit(batch([_FRAME + b"1", bad, bad, bad], [bad, _FRAME + b'"x"', None, bad], [None, None, "before", None]))
    words = ['the value is not of type "string"', 'the value is not of type "integer"', "before"]
    assert found.unfit == [*words, words[1]]


def test_a_preview_tells_of_a_row_that_is_no_text_and_decodes_nothing_of_it() -> None:
    """Breaks when a value that is no UTF-8 ends the preview with a traceback."""
    encoding = Encoding("orders-value", 7, '{"type": "string"}', "v", JSON)
    settings = RecordSettings(where=None, select=("*",), key=None, value=encoding, headers={}, timestamp=None)
    shown = _shown({"value": _FRAME + b'"\xff"'}, "a.jsonl", settings, checks_of(settings.json_schemas), None)
    assert shown.unfit is not None and "it is not JSON" in shown.unfit and shown.decoded == {}
    shown = _shown({"value": _FRAME + b'"x"'}, "a.jsonl", settings, checks_of(settings.json_schemas), None)
    assert (shown.unfit, shown.decoded) == (None, {"value": '"x"'})
