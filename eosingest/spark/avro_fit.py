"""Checks that columns fit an Avro schema, and makes conditions for their rows, before Spark writes a byte.

    columns (Catalyst) ─┐
                        ├─▶ fit ─▶ Fit: the type to cast to, and a condition for each way in which a row may not fit
    schema (Avro) ──────┘

Used by encoded_columns.py. Spark's own writer also writes values inexactly, without an error: it drops microseconds
(`timestamp-millis`, and a `long` without a logical type), writes dates as plain numbers, writes text that is not UTF-8 as it
is, or with other characters in a key of a map, and writes null for a missing field that has another default. And it fails
the whole task if one row has a null in a required field, or text that is no symbol of an enum. This module refuses columns
that do not fit, by name. For values that may not fit it makes conditions, which find the bad rows.

Pure: it needs no JVM. Conditions are Spark SQL over the struct that is written; from the user they contain only names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import types

from eosingest.spec.expressions import quote_name

Avro = Any  # a schema as JSON has it: a name, a union's list, an object

_WHOLE = (types.ByteType, types.ShortType, types.IntegerType, types.LongType)
_MOST_DIGITS = 38  # of a decimal in Spark
_UUID = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
_DAY = {"time-millis": 86_400_000, "time-micros": 86_400_000_000}
# The logical types of Avro 1.12 that can be written, by their underlying type; any other logical type is refused.
_LOGICAL = {
    "int": ("date", "time-millis"),
    "long": (
        "timestamp-millis",
        "timestamp-micros",
        "local-timestamp-millis",
        "local-timestamp-micros",
        "time-micros",
    ),
    "bytes": ("decimal",),
    "fixed": ("decimal",),
    "string": ("uuid",),
}


@dataclass(frozen=True)
class Guard:
    """A `condition`, in Spark SQL, that is true for a row that cannot be written, and the `reason` in words."""

    condition: str
    reason: str


@dataclass(frozen=True)
class Fit:
    """`target` is the type to which the struct is cast, without loss; `guards` are checked for each row before it is written.

    `problems` say why the columns do not fit, one sentence each; if there are any, nothing can be written.
    """

    target: types.StructType
    guards: tuple[Guard, ...]
    problems: tuple[str, ...]


def fit(columns: types.StructType, schema: Avro, struct: str) -> Fit:
    """Compare the columns with a record's schema that has each named type where it is used (`fastavro`'s expanded form).

    `struct` is the name of the column whose fields they are.
    """
    found = _Found()
    if not isinstance(schema, Mapping) or schema.get("type") not in ("record", "error"):
        return Fit(columns, (), ("the schema is not a record",))
    target = found.record(columns, schema, _Place(quote_name(struct), ""))
    return Fit(target, tuple(found.guards), tuple(found.problems))


@dataclass(frozen=True)
class _Place:
    """A value in the struct: its name in SQL and in messages. `where` turns a condition on it into one on the row."""

    sql: str
    name: str
    where: Callable[[str], str] = lambda condition: condition

    def inside(self, name: str) -> _Place:
        """Return the place of a field."""
        full = f"{self.name}.{name}" if self.name else name
        return replace(self, sql=f"{self.sql}.{quote_name(name)}", name=full)

    def each(self, values: str, depth: int) -> _Place:
        """Return the place of each element of the array `values`, an SQL expression."""
        element = f"__each{depth}"
        return _Place(
            element, f"{self.name}[]", lambda condition: self.where(f"exists({values}, {element} -> {condition})")
        )

    def if_there(self) -> _Place:
        """Return the place for conditions that apply only if it is not null."""
        return replace(self, where=lambda condition: self.where(f"({self.sql} IS NOT NULL AND {condition})"))


@dataclass
class _Found:
    """Collects the guards and problems of a schema."""

    guards: list[Guard] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    depth: int = 0

    def record(self, columns: types.StructType, schema: Mapping[str, Any], place: _Place) -> types.StructType:
        """Match the fields by name, as Spark does: in any order, ignoring case."""
        wanted = {one["name"]: one for one in schema["fields"]}
        made, met = [], set()
        for column in columns.fields:
            names = [name for name in wanted if name.lower() == column.name.lower()]
            if len(names) != 1:
                what = "is not in the schema" if not names else f"is any of {', '.join(names)} in the schema"
                self.problems.append(f"{place.inside(column.name).name} {what}")
                continue
            if names[0] in met:
                self.problems.append(f"{place.inside(column.name).name} appears twice")
                continue
            met.add(names[0])
            kind = self.value(
                column.dataType, wanted[names[0]]["type"], place.inside(column.name), nullable=column.nullable
            )
            made.append(types.StructField(column.name, kind, column.nullable))
        for name, one in wanted.items():
            if name not in met and not _may_be_missing(one):
                self.problems.append(f"{place.inside(name).name} is in the schema, and there is no such column")
        return types.StructType(made)

    def value(self, kind: types.DataType, schema: Avro, place: _Place, *, nullable: bool) -> types.DataType:
        """Match a value; return the type to which it is cast."""
        options = schema if isinstance(schema, list) else [schema]
        others = [one for one in options if _type_of(one) != "null"]
        if len(others) != 1:
            self.problems.append(
                f"{place.name}: the schema has a union of {len(others)} types; one type, or null and one, can be written"
            )
            return kind
        if len(others) < len(options):
            return self._of_type(kind, others[0], place.if_there())
        if nullable:
            self._guard(place, f"{place.sql} IS NULL", "is null, and the schema has no null for it")
        return self._of_type(kind, others[0], place.if_there() if nullable else place)

    def _guard(self, place: _Place, condition: str, reason: str) -> None:
        self.guards.append(Guard(place.where(condition), f"{place.name} {reason}"))

    def _of_type(self, kind: types.DataType, schema: Avro, place: _Place) -> types.DataType:
        name = _type_of(schema)
        logical = schema.get("logicalType") if isinstance(schema, Mapping) else None
        if logical is not None and logical not in _LOGICAL.get(name, ()):
            self.problems.append(f"{place.name}: {name} of the logical type {logical} cannot be written")
            return kind
        match = _SIMPLE.get((name, logical))
        if match is not None:
            into = match(kind)
            if into is None:
                self._does_not_fit(kind, schema, place)
                return kind
            self._of_this_value(schema, name, logical, place)
            return into
        return self._of_parts(kind, schema, name, logical, place)

    def _of_parts(
        self, kind: types.DataType, schema: Avro, name: str, logical: str | None, place: _Place
    ) -> types.DataType:
        if logical == "decimal":
            return self._decimal(kind, schema, place)
        if name in ("record", "error") and isinstance(kind, types.StructType):
            return self.record(kind, schema, place)
        if name == "array" and isinstance(kind, types.ArrayType):
            return self._array(kind, schema, place)
        if name == "map" and isinstance(kind, types.MapType) and isinstance(kind.keyType, types.StringType):
            return self._map(kind, schema, place)
        self._does_not_fit(kind, schema, place)
        return kind

    def _array(self, kind: types.ArrayType, schema: Mapping[str, Any], place: _Place) -> types.DataType:
        self.depth += 1
        element = self.value(
            kind.elementType, schema["items"], place.each(place.sql, self.depth), nullable=kind.containsNull
        )
        return types.ArrayType(element, kind.containsNull)

    def _map(self, kind: types.MapType, schema: Mapping[str, Any], place: _Place) -> types.DataType:
        self.depth += 1
        keys = f"exists(map_keys({place.sql}), __key{self.depth} -> NOT is_valid_utf8(__key{self.depth}))"
        self._guard(place, keys, "has a key that is not UTF-8 text")
        values = place.each(f"map_values({place.sql})", self.depth)
        value = self.value(kind.valueType, schema["values"], values, nullable=kind.valueContainsNull)
        return types.MapType(kind.keyType, value, kind.valueContainsNull)

    def _decimal(self, kind: types.DataType, schema: Mapping[str, Any], place: _Place) -> types.DataType:
        digits, scale = int(schema.get("precision", 0)), int(schema.get("scale", 0))
        if digits > _MOST_DIGITS:
            self.problems.append(
                f"{place.name}: Spark's decimals have {_MOST_DIGITS} digits, and the schema's {digits}"
            )
        elif (
            not isinstance(kind, types.DecimalType)
            or kind.scale > scale
            or kind.precision - kind.scale > digits - scale
        ):
            self._does_not_fit(kind, schema, place, f"CAST({place.name} AS DECIMAL({digits},{scale}))")
        else:
            return types.DecimalType(digits, scale)
        return kind

    def _of_this_value(self, schema: Avro, name: str, logical: str | None, place: _Place) -> None:
        """Add the guards for values of this type."""
        if name == "string":
            self._guard(place, f"NOT is_valid_utf8({place.sql})", "is not UTF-8 text")
        if logical in ("timestamp-millis", "local-timestamp-millis"):
            micros = f"unix_micros(CAST({place.sql} AS TIMESTAMP))"
            self._guard(place, f"{micros} % 1000 <> 0", f"has microseconds, and the schema's {logical} has none")
        elif logical in _DAY:
            self._guard(place, f"{place.sql} NOT BETWEEN 0 AND {_DAY[logical] - 1}", "is not a time of day")
        elif logical == "uuid":
            self._guard(place, f"NOT ({place.sql} RLIKE '{_UUID}')", "is not a UUID, which the schema requires")
        elif name == "enum":
            symbols = ", ".join(f"'{symbol}'" for symbol in schema["symbols"])  # only A-Z, a-z, 0-9 and _
            self._guard(place, f"{place.sql} NOT IN ({symbols})", "is none of the symbols that the schema's enum has")
        elif name == "fixed":
            size = int(schema["size"])
            self._guard(place, f"length({place.sql}) <> {size}", f"is not of {size} bytes, which the schema requires")

    def _does_not_fit(self, kind: types.DataType, schema: Avro, place: _Place, instead: str = "") -> None:
        says = _words_of(schema)
        hint = f"; write {instead}" if instead else ""
        self.problems.append(f"{place.name}: {kind.simpleString()} does not fit {says} of the schema{hint}")


def _may_be_missing(one: Mapping[str, Any]) -> bool:
    """Say whether a field may have no column: Spark writes null, which readers expect if the field's default is null."""
    return "default" in one and one["default"] is None


def _type_of(schema: Avro) -> str:
    """Return the name of a type: `long`, `record`."""
    while isinstance(schema, Mapping):
        schema = schema.get("type")
    return schema if isinstance(schema, str) else "union"


def _words_of(schema: Avro) -> str:
    logical = schema.get("logicalType") if isinstance(schema, Mapping) else None
    if logical == "decimal":
        return f"decimal({schema.get('precision')},{schema.get('scale', 0)})"
    return logical or _type_of(schema)


def _only(*kinds: type[types.DataType]) -> Callable[[types.DataType], types.DataType | None]:
    """Match one of these types, as it is."""
    return lambda kind: kind if isinstance(kind, kinds) else None


def _into(made: types.DataType, *kinds: type[types.DataType]) -> Callable[[types.DataType], types.DataType | None]:
    """Match one of these types; cast it to `made`, which has all of its values."""
    return lambda kind: made if isinstance(kind, kinds) else None


_TEXT = _into(types.StringType(), types.StringType, types.VarcharType, types.CharType)
# By Avro's type and logical type; types with parts are in `_of_parts`.
_SIMPLE: dict[tuple[str, str | None], Callable[[types.DataType], types.DataType | None]] = {
    ("boolean", None): _only(types.BooleanType),
    ("int", None): _into(types.IntegerType(), *_WHOLE[:3]),
    ("int", "date"): _only(types.DateType),
    ("int", "time-millis"): _only(types.IntegerType),
    ("long", None): _into(types.LongType(), *_WHOLE),
    ("long", "time-micros"): _only(types.LongType),
    ("long", "timestamp-micros"): _only(types.TimestampType),
    ("long", "timestamp-millis"): _only(types.TimestampType),
    ("long", "local-timestamp-micros"): _only(types.TimestampNTZType),
    ("long", "local-timestamp-millis"): _only(types.TimestampNTZType),
    ("float", None): _only(types.FloatType),
    ("double", None): _into(types.DoubleType(), types.FloatType, types.DoubleType),
    ("bytes", None): _only(types.BinaryType),
    ("string", None): _TEXT,
    ("string", "uuid"): _TEXT,
    ("enum", None): _TEXT,
    ("fixed", None): _only(types.BinaryType),
}
