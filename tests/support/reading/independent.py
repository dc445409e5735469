"""What a file says, by readers that are none of ours: Python's csv, json, gzip, bz2; zstandard, lz4, avro, lxml, DuckDB.

ORC and Parquet, which pyarrow reads for a run, are read by Spark and by DuckDB.

The expectation of the table (table.py). A reader returns the rows of a file, or None where it refuses it. Rows of text are
bytes; other rows are what `json.loads` makes of the record that a run sends of them.
"""

from __future__ import annotations

import base64
import csv
import datetime
import io
import json
import math
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache
from typing import Any

import duckdb
import numpy as np
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from eosingest.spec.values import ROW_AS_JSON
from tests.support.compressed import COMPRESS, independently
from tests.support.reading.independent_avro import avro_rows
from tests.support.reading.independent_xml import xml_rows

# The type of a column: a name of SQL, [type of the elements], or {name: type of a field}.
Type = str | list[Any] | dict[str, Any]
Columns = Mapping[str, Type]
_MARK = b"\xef\xbb\xbf"
_WHITE = re.compile(r"[ \t\r\n]*")
_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}


class Refused(Exception):
    """A reader does not take the file."""


def rows(format: str, name: str, data: bytes, columns: Columns | None, options: Mapping[str, str]) -> list[Any] | None:
    """Return a file's rows; None where it is damaged."""
    try:
        if format in ("parquet", "orc", "avro"):
            return {"parquet": _parquet, "orc": _orc, "avro": _avro}[format](data, columns)
        if format == "binaryFile":
            return [data]
        found = contents(name, data)
        if format == "text":
            return [found] if options.get("wholetext") == "true" else lines(found, options.get("lineSep"))
        assert columns is not None, "types are not guessed here"
        if format == "xml":
            return xml_rows(found, columns, options)
        text = _decoded(found, options.get("encoding", "UTF-8"))
        if options.get("multiLine") == "true":
            return (_document if format == "json" else _csv)(text, columns, options)
        return (_json if format == "json" else _csv)(text, columns, options)
    except (Refused, csv.Error, ValueError, RecursionError):
        return None


def contents(name: str, data: bytes) -> bytes:
    """Return what is compressed in a file, by its name."""
    suffix = name.lower().rpartition(".")[2]
    if suffix not in COMPRESS:
        return data
    found = independently(suffix, data)
    if found is None:
        raise Refused
    return found


def lines(data: bytes, separator: str | None) -> list[bytes]:
    """Return the lines; UTF-8's byte order mark is none of the first one's."""
    data = data.removeprefix(_MARK)
    if separator is None:
        data, end = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n"), b"\n"
    else:
        end = separator.encode()
    found = data.split(end)
    return found if found[-1] else found[:-1]


def _decoded(data: bytes, encoding: str) -> str:
    return data.removeprefix(_MARK).decode(encoding)


def _text_lines(text: str, options: Mapping[str, str]) -> list[str]:
    separator = options.get("lineSep")
    if separator is None:
        text, separator = text.replace("\r\n", "\n").replace("\r", "\n"), "\n"
    found = text.split(separator)
    return found if found[-1] else found[:-1]


# ---- JSON -------------------------------------------------------------------------------------------------------------


def _json(text: str, columns: Columns, options: Mapping[str, str]) -> list[Any]:
    found = []
    for line in _text_lines(text, options):
        if line.strip(" \t\r\n"):
            value = json.loads(line, parse_constant=_no_number)
            if not isinstance(value, dict):
                raise Refused
            for name, kind in columns.items():
                if kind == "STRING" and not isinstance(value.get(name), str | None):
                    value[name] = _as_written(line, name)
            found.append(_typed(value, dict(columns)))
            _no_half_pairs(line, value)
    return found


def _document(text: str, columns: Columns, options: Mapping[str, str]) -> list[Any]:
    """Read one object, or an array of objects, as Python's reader does."""
    whole = json.loads(text, parse_constant=_no_number)
    if isinstance(whole, dict):
        return _json(text.replace("\r", " ").replace("\n", " "), columns, {})
    if not isinstance(whole, list) or not all(isinstance(each, dict) for each in whole):
        raise Refused
    found, decoder, at = [], json.JSONDecoder(), text.index("[") + 1
    for _ in whole:
        begin = _WHITE.match(text, at).end()  # type: ignore[union-attr]
        _, end = decoder.raw_decode(text, begin)
        found += _json(text[begin:end].replace("\r", " ").replace("\n", " "), columns, {})
        at = _WHITE.match(text, end).end() + 1  # type: ignore[union-attr]
    return found


def _as_written(line: str, wanted: str) -> str:
    """Return the text of a field's value, as it stands in the line."""
    decoder, found = json.JSONDecoder(), ""
    at = line.index("{") + 1
    for _ in range(line.count(":")):
        name, at = decoder.raw_decode(line, _behind_space(line, at))
        begin = _behind_space(line, line.index(":", at) + 1)
        _, at = decoder.raw_decode(line, begin)
        if name == wanted:
            found = line[begin:at]
        at = _behind_space(line, at)
        if line[at] == "}":
            break
        at += 1
    return found


def _behind_space(line: str, at: int) -> int:
    return at + len(line[at:]) - len(line[at:].lstrip(" \t"))


def _no_number(word: str) -> None:
    raise Refused(word)


def _no_half_pairs(line: str, value: Any) -> None:
    """A text with half a surrogate pair is no text of Unicode: it cannot be written."""
    json.dumps(value, ensure_ascii=False).encode()


def _typed(value: Any, kind: Type) -> Any:
    if value is None:
        return None
    if isinstance(kind, dict):
        return {name: _typed(_taken(value, dict).get(name), inner) for name, inner in kind.items()}
    if isinstance(kind, list):
        return [_typed(each, kind[0]) for each in _taken(value, list)]
    if kind in _BITS:
        return _in_range(_taken(value, int), kind)
    if kind == "DOUBLE":
        return float(_taken(value, int, float))
    if kind == "DECIMAL(10,2)" and isinstance(value, int | float) and not isinstance(value, bool):
        return _of_text(str(value), kind)
    if str(kind).startswith(("DATE", "TIMESTAMP", "DECIMAL")):
        return _of_text(_taken(value, str) or "no time", kind)
    if kind == "BINARY":
        return base64.b64encode(base64.b64decode(_taken(value, str), validate=True)).decode()
    return _taken(value, {"STRING": str, "BOOLEAN": bool}[kind])


def _taken(value: Any, *kinds: type) -> Any:
    if isinstance(value, bool) and bool not in kinds:
        raise Refused
    if not isinstance(value, kinds):
        raise Refused
    return value


def _in_range(value: int, kind: str) -> int:
    if not -(1 << _BITS[kind] - 1) <= value < 1 << _BITS[kind] - 1:
        raise Refused
    return value


# ---- CSV --------------------------------------------------------------------------------------------------------------


def _csv(text: str, columns: Columns, options: Mapping[str, str]) -> list[Any]:
    quote, comment = options.get("quote", '"'), options.get("comment")
    escape = options.get("escape", quote)
    csv.field_size_limit(1 << 30)
    if options.get("multiLine") == "true":
        kept = list(_without_comments(io.StringIO(text, newline=""), comment, quote))
    else:
        found = _text_lines(text, options)
        kept = [f"{line}\n" for line in found if not (comment and line.startswith(comment))]
    reader = csv.reader(
        kept,
        delimiter=options.get("sep", ",").replace("\\t", "\t"),
        quotechar=quote or None,
        quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
        doublequote=escape == quote,
        escapechar=None if escape == quote or not quote else escape,
        strict=True,
    )
    table = [row for row in reader if row]
    if options.get("header") == "true" and table:
        if table.pop(0) != list(columns):
            raise Refused
    if any(len(row) != len(columns) for row in table):
        raise Refused
    return [{n: _of_text(t, str(k)) for t, (n, k) in zip(row, columns.items(), strict=True)} for row in table]


def _without_comments(lines: Iterable[str], comment: str | None, quote: str) -> Iterator[str]:
    """Leave out the lines of comments; one that begins inside of quotes is none."""
    quotes = 0
    for line in lines:
        if quotes % 2 or not (comment and line.startswith(comment)):
            quotes += line.count(quote) if quote else 0
            yield line


def _of_text(text: str, kind: str) -> Any:
    """An empty field is null, and no other is (docs/reading.md)."""
    if text == "":
        return None
    if kind in _BITS:
        return _in_range(int(_matched(_WHOLE, text)), kind)
    if kind == "DOUBLE":
        return float(_matched(_NUMBER, text.strip(" ")))
    if kind == "BOOLEAN":
        return {"true": True, "false": False}[_matched(re.compile("true|false"), text)]
    if kind == "DATE":
        return datetime.date.fromisoformat(_matched(re.compile(r"\d{4}-\d\d-\d\d"), text)).isoformat()
    if kind == "DECIMAL(10,2)":
        number = Decimal(_matched(_NUMBER, text))
        if abs(number) >= 10**8:
            raise Refused
        return number
    if kind == "TIMESTAMP_NTZ":
        return plain(datetime.datetime.fromisoformat(_matched(re.compile(r"\d{4}-\d\d-\d\d[ T][0-9:.]+"), text)))
    if kind == "TIMESTAMP":
        return plain(datetime.datetime.fromisoformat(_matched(re.compile(r"\d{4}-\d\d-\d\d[ T].*"), text)), "Z")
    return text


def _matched(pattern: re.Pattern[str], text: str) -> str:
    if not pattern.fullmatch(text):
        raise Refused
    return text


# ---- Parquet, ORC ------------------------------------------------------------------------------------------------------


def _parquet(data: bytes, columns: Columns | None) -> list[Any]:
    """Read all columns, those of the schema if there is one: a column that the file does not have is null."""
    with tempfile.NamedTemporaryFile(suffix=".parquet") as file:
        file.write(data)
        file.flush()
        try:
            found = _duckdb().execute("SELECT * FROM read_parquet(?)", [file.name])
            description, rows = found.description, found.fetchall()
        except duckdb.Error as error:
            raise Refused from error
    names = [name for name, *_ in description]
    kinds = [str(kind) for _, kind, *_ in description]
    table = [{n: _short(v) if k == "FLOAT" else v for n, k, v in zip(names, kinds, row, strict=True)} for row in rows]
    return [{name: plain(row.get(name)) for name in (names if columns is None else columns)} for row in table]


@cache
def _duckdb() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1}).execute("SET TimeZone = 'UTC'")


def _short(value: float | None) -> float | None:
    """Return the number whose text is the shortest that means a float of 32 bits, as records have it."""
    return None if value is None else float(str(np.float32(value)))


def _orc(data: bytes, columns: Columns | None) -> list[Any]:
    """Read as `_parquet` does, by the JVM of the test's Spark: with ORC's library for Java, that of C++ reads for a run."""
    spark = SparkSession.getActiveSession()
    assert spark is not None, "ORC is expected only where a Spark runs"
    with tempfile.NamedTemporaryFile(suffix=".orc") as file:
        file.write(data)
        file.flush()
        try:
            rows = spark.read.format("orc").load(file.name)
            found = [json.loads(row[0]) for row in rows.selectExpr(ROW_AS_JSON).collect()]
            names = rows.columns if columns is None else list(columns)
        except (Py4JError, PySparkException) as error:
            raise Refused from error
    return [{name: row.get(name) for name in names} for row in found]


# ---- Avro --------------------------------------------------------------------------------------------------------------


def _avro(data: bytes, columns: Columns | None) -> list[Any]:
    """Read all columns, those of the schema if there is one: a column that the file does not have is null."""
    try:
        own, found = avro_rows(data)
    except Exception as error:  # it has no class for what is wrong with a file
        raise Refused from error
    return [{name: plain(row.get(name)) for name in (own if columns is None else columns)} for row in found]


def plain(value: Any, zone: str = "") -> Any:
    """Return a value of Python's as JSON has it in a record; `zone` is how times end that have none."""
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            value, zone = value.astimezone(datetime.UTC).replace(tzinfo=None), "Z"
        return value.isoformat(timespec="microseconds") + zone
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, dict):
        return {name: plain(inner, zone) for name, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(inner, zone) for inner in value]
    return value


def same(expected: Any, found: Any) -> bool:
    """Say whether a row is the expected one, where `found` has every number with a point as Decimal."""
    if isinstance(expected, dict) and isinstance(found, dict):
        return expected.keys() == found.keys() and all(same(expected[name], found[name]) for name in expected)
    if isinstance(expected, list) and isinstance(found, list):
        return len(expected) == len(found) and all(map(same, expected, found))
    if isinstance(expected, bool) or isinstance(found, bool) or expected is None or found is None:
        return expected is found
    if isinstance(expected, float) and isinstance(found, Decimal | int):
        return float(found) == expected
    return bool(expected == found)


def _number(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"


def ddl(columns: Columns) -> str:
    """Return the columns as a schema of Spark's."""
    return ", ".join(f"`{name}` {_ddl_type(kind)}" for name, kind in columns.items())


def _ddl_type(kind: Type) -> str:
    if isinstance(kind, list):
        return f"ARRAY<{_ddl_type(kind[0])}>"
    if isinstance(kind, dict):
        return f"STRUCT<{', '.join(f'`{name}`: {_ddl_type(inner)}' for name, inner in kind.items())}>"
    return kind
