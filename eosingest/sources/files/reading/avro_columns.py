"""Reads the columns of an Avro file from its schema: the type of Spark SQL of each, and how fastavro decodes it.

    schema in a header ─▶ AvroColumn: a column as the file stores it ─▶ exact_types.py: what a schema may read it as
                                                                └──▶ avro_values.py: its values

fastavro gets another schema of the same bytes, its `wire` schema, of only those types that it decodes strictly. It reads a
boolean of 2 as true, a negative place in an enum or a union from its end, keeps one of two equal keys of a map, and converts
logical types. So booleans are fixed bytes, enums numbers, texts and decimals bytes, maps arrays of pairs, and a wrong place
in a union is a value of more bytes than there are. The names of the file are not in it: they need not be Avro's.

Spec: https://avro.apache.org/docs/1.12.0/specification/#schema-declaration
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from eosingest.sources.files.reading.columnar import Stored, Unreadable, kind_of

KEY, VALUE = "k", "v"  # the fields of an entry of a map, in a wire schema
_MOST_DIGITS = 38
_PLACES = 64  # those of a union that one byte can name
_BEYOND = {"type": "fixed", "name": "beyond", "size": 1 << 62}
_INTERVAL = "spark.sql.catalyst.type"  # with it Spark marks the numbers that are intervals
# By type: the wire schema, the type of Spark SQL, and Arrow's type of the values.
_PLAIN: Mapping[str, tuple[Any, DataType, Any]] = {
    "null": ("null", NullType(), pa.null()),
    "boolean": ("boolean", BooleanType(), pa.bool_()),
    "int": ("int", IntegerType(), pa.int32()),
    "long": ("long", LongType(), pa.int64()),
    "float": ("float", FloatType(), pa.float32()),
    "double": ("double", DoubleType(), pa.float64()),
    "bytes": ("bytes", BinaryType(), pa.binary()),
    "string": ("bytes", StringType(), pa.binary()),
}
# Those logical types that Spark SQL has; the others are what they are stored as.
_LOGICAL: Mapping[tuple[str, str], tuple[DataType, Any]] = {
    ("int", "date"): (DateType(), pa.date32()),
    ("long", "timestamp-millis"): (TimestampType(), pa.timestamp("ms", "UTC")),
    ("long", "timestamp-micros"): (TimestampType(), pa.timestamp("us", "UTC")),
    ("long", "local-timestamp-millis"): (TimestampNTZType(), pa.timestamp("ms")),
    ("long", "local-timestamp-micros"): (TimestampNTZType(), pa.timestamp("us")),
}


class SchemaError(Exception):
    """The reason why the schema of a file is none."""


@dataclass(frozen=True)
class AvroColumn(Stored):
    """A column as a file stores it, or a part of one. `form` says how its values are decoded (avro_values.py).

    `wire` is its schema for fastavro, `arrow` Arrow's type of its values if it has no parts; `symbols` are those of an enum.
    `empty`: its values have no bytes.
    """

    form: str = ""
    wire: Any = None
    arrow: Any = None
    symbols: tuple[str, ...] = ()
    empty: bool = False


def record_of(text: str) -> AvroColumn:
    """Return the record that the rows of a file are, by the schema in its header. Raises SchemaError."""
    try:
        schema = json.loads(text)
        kind = schema if isinstance(schema, str) else "union" if isinstance(schema, list) else schema["type"]
        found = _Parser().column("", schema, "")
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise SchemaError(f"its schema is not valid: {type(error).__name__} {error}") from error
    if found.form != "record" or isinstance(schema, list):
        raise SchemaError(f"its rows are no records but of type {kind}")
    return found


class _Parser:
    """Reads a schema; its named types may be named again after they were defined."""

    def __init__(self) -> None:
        self._named: dict[str, AvroColumn] = {}
        self._number = 0
        self._beyond: Any = _BEYOND  # which a wire schema has once, and then its name

    def column(self, name: str, schema: Any, space: str) -> AvroColumn:
        """Return a part of the schema as a column of this name; `space` is the namespace around it."""
        if isinstance(schema, list):
            return self._union(name, schema, space)
        if isinstance(schema, str):
            return self._plain(name, schema, {}) if schema in _PLAIN else self._again(name, schema, space)
        kind = schema["type"]
        if not isinstance(kind, str):
            return self.column(name, kind, space)
        if kind in _PLAIN:
            return self._plain(name, kind, schema)
        kinds: Mapping[str, Callable[[str, Any, str], AvroColumn]] = {
            "record": self._record,
            "error": self._record,
            "enum": self._enum,
            "fixed": self._fixed,
            "array": self._array,
            "map": self._map,
        }
        return kinds[kind](name, schema, space) if kind in kinds else self._again(name, kind, space)

    def _new_name(self) -> str:
        self._number += 1
        return f"t{self._number}"

    def _again(self, name: str, named: str, space: str) -> AvroColumn:
        found = self._named.get(_full_name(named, space)) or self._named.get(named)
        if found is None:
            raise SchemaError(f"its schema is not valid: there is no type {named}")
        return replace(found, name=name)

    def _define(self, schema: Any, space: str, column: AvroColumn) -> None:
        """Keep a named type. Raises SchemaError if there is another one of this name."""
        full = _full_name(schema["name"], schema.get("namespace", space))
        if full in self._named:
            raise SchemaError(f"its schema is not valid: {full} is defined twice")
        self._named[full] = column

    def _plain(self, name: str, kind: str, schema: Any) -> AvroColumn:
        wire, spark, arrow = _PLAIN[kind]
        if kind == "boolean":
            wire = {"type": "fixed", "name": self._new_name(), "size": 1}
        if kind == "bytes" and _is_decimal(schema, None):
            return _decimal(name, schema, wire)
        spark, arrow = _LOGICAL.get((kind, schema.get("logicalType", "")), (spark, arrow))
        if _INTERVAL in schema and kind in ("int", "long"):
            return AvroColumn(name, Unreadable(str(schema[_INTERVAL]), spark), form=kind, wire=wire, arrow=arrow)
        form = "bytes" if kind == "string" else kind
        return AvroColumn(name, spark, form=form, wire=wire, arrow=arrow, empty=kind == "null")

    def _fixed(self, name: str, schema: Any, space: str) -> AvroColumn:
        size = int(schema["size"])
        if size <= 0:
            raise SchemaError(f"its schema is not valid: a fixed of {size} bytes")
        wire = {"type": "fixed", "name": self._new_name(), "size": size}
        found = AvroColumn(name, BinaryType(), form="bytes", wire=wire, arrow=pa.binary())
        if _is_decimal(schema, size):
            found = _decimal(name, schema, wire)
        self._define(schema, space, replace(found, wire=wire["name"]))
        return found

    def _enum(self, name: str, schema: Any, space: str) -> AvroColumn:
        symbols = tuple(map(str, schema["symbols"]))
        found = AvroColumn(name, StringType(), form="enum", wire="int", symbols=symbols)
        self._define(schema, space, found)
        return found

    def _record(self, name: str, schema: Any, space: str) -> AvroColumn:
        own = self._new_name()
        itself = AvroColumn(name, Unreadable("of a record that holds itself"), wire=own)
        self._define(schema, space, itself)
        full = _full_name(schema["name"], schema.get("namespace", space))
        inner = full.rpartition(".")[0]
        parts = [self.column(str(field["name"]), field["type"], inner) for field in schema["fields"]]
        if len({part.name for part in parts}) < len(parts):
            raise SchemaError(f"its schema is not valid: {full} has two fields of one name")
        fields = [{"name": f"f{place}", "type": part.wire} for place, part in enumerate(parts)]
        found = _nested(name, parts, None, "record", {"type": "record", "name": own, "fields": fields})
        found = replace(found, empty=all(part.empty for part in parts))
        self._named[full] = replace(found, wire=own)
        return found

    def _array(self, name: str, schema: Any, space: str) -> AvroColumn:
        element = self.column("element", schema["items"], space)
        if element.empty:  # a damaged length would be any number of elements
            raise SchemaError("its schema has an array of elements without bytes")
        return _nested(name, [element], ArrayType, "array", {"type": "array", "items": element.wire})

    def _map(self, name: str, schema: Any, space: str) -> AvroColumn:
        key, value = self.column("key", "string", space), self.column("value", schema["values"], space)
        fields = [{"name": KEY, "type": key.wire}, {"name": VALUE, "type": value.wire}]
        entry = {"type": "record", "name": self._new_name(), "fields": fields}
        return _nested(name, [key, value], MapType, "map", {"type": "array", "items": entry})

    def _union(self, name: str, schema: Sequence[Any], space: str) -> AvroColumn:
        """Return the only type in it that is not null, the wider one of two numbers, or a struct of all (member0, …)."""
        branches = [self.column(name, each, space) for each in schema]
        some = [each for each in branches if each.form != "null"]
        found = self._plain(name, "null", {}) if not some else _wider_number(some)
        if found is not None:
            return replace(found, wire=[*(each.wire for each in branches), *self._wrong_places()], empty=False)
        wires = [each.wire if each.form == "null" else self._wrapped(each, some.index(each)) for each in branches]
        members = [replace(each, name=f"member{place}") for place, each in enumerate(some)]
        return _nested(name, members, None, "union", [*wires, *self._wrong_places()])

    def _wrapped(self, branch: AvroColumn, place: int) -> Any:
        """Return a wire schema whose values say which one of a union's types they are of."""
        return {"type": "record", "name": self._new_name(), "fields": [{"name": str(place), "type": branch.wire}]}

    def _wrong_places(self) -> list[Any]:
        first, self._beyond = self._beyond, "beyond"
        return [first, *["beyond"] * (_PLACES - 1)]


def _full_name(name: str, space: str) -> str:
    return name if "." in name or not space else f"{space}.{name}"


def _nested(name: str, parts: list[AvroColumn], make: Any, form: str, wire: Any) -> AvroColumn:
    return AvroColumn(name, kind_of(parts, make), tuple(parts), form=form, wire=wire)


def _wider_number(some: Sequence[AvroColumn]) -> AvroColumn | None:
    """Return the only type, or the one of two numbers without a logical type that holds the other; else None."""
    kinds = {type(each.kind): each for each in some}
    for wide, narrow in ((LongType, IntegerType), (DoubleType, FloatType)):
        if len(some) == 2 and set(kinds) == {wide, narrow}:
            return kinds[wide]
    return some[0] if len(some) == 1 else None


def _is_decimal(schema: Any, size: int | None) -> bool:
    """Say whether the digits of a decimal are as the specification has them; else Avro ignores its logical type."""
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if schema.get("logicalType") != "decimal" or type(precision) is not int or type(scale) is not int:
        return False
    fits = size is None or 10 ** min(precision, 1000) <= 1 << (8 * size - 1)
    return precision > 0 and 0 <= scale <= precision and fits


def _decimal(name: str, schema: Any, wire: Any) -> AvroColumn:
    precision, scale = schema["precision"], schema.get("scale", 0)
    if precision > _MOST_DIGITS:
        return AvroColumn(name, Unreadable(json.dumps(schema)), form="bytes", wire=wire)
    arrow = pa.decimal128(precision, scale)
    return AvroColumn(name, DecimalType(precision, scale), form="decimal", wire=wire, arrow=arrow)
