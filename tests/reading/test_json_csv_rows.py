"""What Spark's JSON and CSV readers and its expressions make of rows: exactly what the file says, or refused."""

from __future__ import annotations

from typing import Any

import pytest

from eosingest.errors import FatalError, SpecError
from eosingest.spec.expressions import unstable
from tests.reading.lab import Lab, lab  # noqa: F401 - a fixture

_ROWS = b'{"n":1,"t":"10:30","u":"2020-01-01 10:00:00"}\n{"n":2,"t":"2020-01-02 10:30:00","u":"x"}\n'

# ---- expressions --------------------------------------------------------------------------------------------------------

COMMENTS: list[tuple[dict[str, Any], list[bytes]]] = [
    ({"where": "n >= 2 -- only big", "value": "CAST(n AS STRING)"}, [b"2"]),
    ({"value": "CAST(n AS STRING) -- the number"}, [b"1", b"2"]),
    ({"value": "CAST(n AS STRING) -- the number \\"}, [b"1", b"2"]),
    ({"value": "CAST(n AS STRING)", "select": ("n -- all", "t")}, [b"1", b"2"]),
    ({"value": "CAST(n AS STRING)", "select": ("* -- all",)}, [b"1", b"2"]),
    ({"value": "CAST(n AS STRING)", "key": "t -- key", "headers": {"h": "t -- h"}}, [b"1", b"2"]),
    ({"value": "CAST(n AS STRING)", "timestamp": "timestamp_millis(n) /* at */ -- t"}, [b"1", b"2"]),
    ({"value": "CAST(n AS STRING)", "partition": "CAST(n AS INT) -- p"}, [b"1", b"2"]),
]


def test_comments_swallow_nothing(lab: Lab) -> None:  # noqa: F811
    for settings, expected in COMMENTS:
        assert lab.values("json", _ROWS, **settings) == expected, settings


def test_an_expression_is_one_by_itself(lab: Lab) -> None:  # noqa: F811
    with pytest.raises(SpecError):
        lab.values("json", _ROWS, where="n > 5) OR (true")


# ---- records that use no column ------------------------------------------------------------------------------------------

NO_COLUMN: list[tuple[str, bytes, dict[str, Any], list[bytes]]] = [
    ("json", _ROWS, {"value": "'ping'"}, [b"ping", b"ping"]),
    ("json", _ROWS, {"value": "_metadata.file_name"}, [b"a.json", b"a.json"]),
    ("json", _ROWS, {"value": "'ping'", "schema": "n BIGINT"}, [b"ping", b"ping"]),
    ("json", b"{}\n{}\n", {}, [b"{}", b"{}"]),
    ("json", b"\n\n", {}, []),
    ("csv", b"a,b\n1,2\n3,4\n", {"value": "'ping'", "options": {"header": "true"}}, [b"ping", b"ping"]),
    ("csv", b"1,2\n3,4\n", {"value": "_metadata.file_name", "options": {"header": "false"}}, [b"a.csv", b"a.csv"]),
    ("csv", b"\n\n", {"options": {"header": "false"}}, []),
]


def test_records_that_use_no_column(lab: Lab) -> None:  # noqa: F811
    for format, data, settings, expected in NO_COLUMN:
        assert lab.values(format, data, **settings) == expected, settings
    for format, data in (("json", b'{"n":1}\n{bad\n'), ("csv", b"1,2\n3\n")):
        with pytest.raises(ValueError, match="corrupt row"):
            lab.values(format, data, "'ping'", options={"header": "false"} if format == "csv" else {})


# ---- times --------------------------------------------------------------------------------------------------------------

OF_THE_DAY = [
    "coalesce(CAST(u AS TIMESTAMP), 'now')",
    "date_format(' NOW ', 'yyyy')",
    "CAST(n AS TIMESTAMP) IN ('2020-01-01', 'today')",
    "date_add('tomorrow', 1)",
    "to_date(concat('yester', 'day'))",
    "CAST(n AS TIMESTAMP) > '10:30'",
    "to_timestamp('T10')",
    "CAST(array(t) AS ARRAY<TIMESTAMP>)",
    "CAST(parse_json(to_json(struct(t))) AS TIMESTAMP)",
    "variant_get(parse_json(to_json(struct(t))), '$.t', 'timestamp')",
]
STOP_AT_A_ROW = [
    "CAST(t AS TIMESTAMP)",
    "t::timestamp",
    "to_timestamp(t)",
    "date_format(t, 'yyyy')",
    "transform(array(t), x -> CAST(x AS TIMESTAMP))[0]",
    "from_json(to_json(struct(t)), 't TIMESTAMP').t",
    "from_csv(t, 't TIMESTAMP').t",
]
STABLE = [
    ("coalesce(CAST(NULL AS TIMESTAMP), 'epoch')", [b"1970-01-01 00:00:00"] * 2),
    ("concat('now', 'today')", [b"nowtoday"] * 2),
    ("hour(t)", [b"10", b"10"]),
    ("try_cast(t AS TIMESTAMP)", [None, b"2020-01-02 10:30:00"]),
    ("try_to_timestamp(t)", [None, b"2020-01-02 10:30:00"]),
    ("IF(length(t) > 5, CAST(t AS TIMESTAMP), NULL)", [None, b"2020-01-02 10:30:00"]),
    ("from_json(to_json(struct(t)), 't TIMESTAMP', map('timestampFormat', '[HH:mm][y-MM-dd HH:mm:ss]')).t",
     [b"1970-01-01 10:30:00", b"2020-01-02 10:30:00"]),
]  # fmt: skip


def test_expressions_know_no_today(lab: Lab) -> None:  # noqa: F811
    for expression in OF_THE_DAY:
        with pytest.raises(SpecError):
            print(expression, lab.values("json", _ROWS, f"CAST({expression} AS STRING)"))
    for expression in STOP_AT_A_ROW:
        with pytest.raises(Exception, match="a time without a date"):
            print(expression, lab.values("json", _ROWS, f"CAST({expression} AS STRING)"))
    with pytest.raises(Exception, match="a time without a date"):
        lab.values("json", _ROWS, "CAST(n AS STRING)", where="CAST(t AS TIMESTAMP) > '2000-01-01'")
    with pytest.raises(Exception, match="a time without a date"):
        lab.values("json", _ROWS, "CAST(n AS STRING)", timestamp="CAST(t AS TIMESTAMP)")
    with pytest.raises(SpecError):
        lab.values("json", _ROWS, "CAST(x AS STRING)", select=("explode(array(CAST(t AS TIMESTAMP))) AS x",))
    for expression, expected in STABLE:
        assert lab.values("json", _ROWS, f"CAST({expression} AS STRING)") == expected, expression


def test_a_literal_without_a_date_is_refused_by_check() -> None:
    for expression in ("TIMESTAMP '10:30'", "ts > timestamp_ltz 'T10'", 'TIMESTAMP r"  10:30:00"'):
        assert unstable(expression), expression
    for expression in ("TIMESTAMP '2020-01-01 10:30'", "concat('10:30', x)", "TIMESTAMP_NTZ '2020-01-01'"):
        assert not unstable(expression), expression


_NESTED = "s STRUCT<l: ARRAY<STRUCT<t: TIMESTAMP, u: INT>>, m: MAP<STRING, TIMESTAMP>>"
TIME_COLUMNS: list[tuple[str, bytes, dict[str, Any]]] = [
    ("json", _ROWS, {"schema": "n INT, t TIMESTAMP"}),
    ("json", _ROWS, {"schema": "n INT, t TIMESTAMP", "options": {"timeZone": "Asia/Tokyo"}}),
    ("json", b'{"s":{"l":[{"t":"2020-01-01"},{"t":" T10"}]}}\n', {"schema": _NESTED}),
    ("json", b'{"s":{"m":{"a":"2020-01-01","b":"1:2:3"}}}\n', {"schema": _NESTED}),
    ("csv", b"10:30,1\n", {"schema": "t TIMESTAMP, n INT", "options": {"header": "false"}}),
    ("csv", b"t,n\n2020-01-01,1\n10:30:00Z,1\n", {"schema": "t TIMESTAMP, n INT", "options": {"header": "true"}}),
]
INFERRED: list[tuple[bytes, list[bytes]]] = [
    (b"10:30,1\n11:30,2\n", [b'{"_c0":"10:30","_c1":1}', b'{"_c0":"11:30","_c1":2}']),
    (b"2020-01-01 10:30:00,1\n11:30,2\n", [b'{"_c0":"2020-01-01 10:30:00","_c1":1}', b'{"_c0":"11:30","_c1":2}']),
    (b"2020-01-01 10:30:00,1\n", [b'{"_c0":"2020-01-01T10:30:00.000Z","_c1":1}']),
]


def test_columns_know_no_today(lab: Lab) -> None:  # noqa: F811
    for format, data, settings in TIME_COLUMNS:
        with pytest.raises(FatalError, match="times without a date"):
            print(settings, lab.values(format, data, **settings))
    for data, expected in INFERRED:
        assert lab.values("csv", data, options={"header": "false"}) == expected
    by_format = {"timestampFormat": "HH:mm"}
    assert lab.values("json", b'{"t":"10:30"}\n', "CAST(t AS STRING)", schema="t TIMESTAMP", options=by_format) == [
        b"1970-01-01 10:30:00"
    ]
