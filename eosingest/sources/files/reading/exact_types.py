"""Checks that each column of Parquet, ORC and Avro is read exactly: compares the type to read it as with the file's own type.

Between the footers (parquet_columns.py, orc_columns.py, avro_columns.py) and the schema that is given, pinned or inferred
(data_schema.py, columnar_scan.py). Spark silently reads Avro's numbers as dates and times. Here a type other than the file's
own must hold every value of the file's own type.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
)

from eosingest.errors import FatalError, listed
from eosingest.sources.files.reading.columnar import FORMAT_NAMES, NUMBERED, Footer, Stored, Unreadable

_NAMED_AT_MOST = 10
_MOST_DIGITS = 38
_DIGITS: dict[type[DataType], int] = {ByteType: 3, ShortType: 5, IntegerType: 10, LongType: 19}
_ORDER = list(_DIGITS)
_NANOS_AS_LONG = (
    '[spark] conf = { "spark.sql.legacy.parquet.nanosAsLong" = "true" } reads it as a BIGINT of nanoseconds'
)


def refuse_misread(footers: Sequence[Footer], schema: StructType, format: str, *, given: bool, case: bool) -> None:
    """Raise FatalError if a column would be read as a type that does not hold all values of its file's own type.

    `schema` is that of the data, without folder columns. `given`: it is the spec's or pinned, else it was inferred. `case`:
    names are case-sensitive.
    """
    for footer in footers:
        _refuse_packed(footer, schema, case)
    problems = [problem for footer in footers for problem in _problems(footer, schema, format, given, case)]
    if problems:
        way_out = (
            "write the file's own type into source.schema, and cast in record.value"
            if given
            else "give the column one type in source.schema that holds both, or give these files a separate job"
        )
        raise FatalError(
            listed(problems, _NAMED_AT_MOST, separator="; ", rest="; and {} more"),
            code="type-mismatch",
            hint=f"nothing of this run was sent; {way_out}",
        )


def _refuse_packed(footer: Footer, schema: StructType, case: bool) -> None:
    """Raise FatalError if a column that is read is compressed by a codec that this Spark does not have."""
    read = {_folded(name, case) for name in schema.names}
    for name, codec in footer.packed.items():
        if _folded(name, case) in read:
            raise FatalError(
                f"{footer.example}: column {name} is compressed with {codec}, which cannot be decompressed",
                code="unreadable-column",
                hint="nothing of this run was sent; write the file with zstd, snappy or gzip",
            )


def refuse_unreadable(footers: Sequence[Footer], format: str) -> None:
    """Raise FatalError for columns of types that Spark does not have, if the schema is to be inferred from the files."""
    found = [
        (footer, name, kind)
        for footer in footers
        for name, kind in footer.columns.items()
        if isinstance(kind, Unreadable)
    ]
    if not found:
        return
    footer, name, kind = found[0]
    more = f"; and {len(found) - 1} more columns" if len(found) > 1 else ""
    raise FatalError(
        f"{footer.example}: column {name} is of {FORMAT_NAMES[format]}'s type {kind.words}, which Spark does not have{more}",
        code="unreadable-column",
        hint=f"nothing of this run was sent; {_way_out(name, kind)}",
    )


def _way_out(name: str, kind: Unreadable) -> str:
    nanos = f"{_NANOS_AS_LONG}; or " if "TIMESTAMP(NANOS" in kind.words else ""
    if kind.stored is None:
        return f"{nanos}write the column as another type, or list the columns to read, without {name}, in source.schema"
    return f"{nanos}list the columns in source.schema: {name} {type_words(kind.stored)} gives the stored values"


def merged(footers: Sequence[Footer], format: str, *, case: bool) -> StructType:
    """Return the columns of all footers, each with the narrowest of its types that holds the others.

    Raises FatalError that names two files if no type of a column does.
    """
    found: dict[str, tuple[StructField, Footer]] = {}
    for footer in footers:
        for name, kind in footer.columns.items():
            assert isinstance(kind, DataType), "refuse_unreadable comes first"
            known, other = found.setdefault(_folded(name, case), (StructField(name, kind), footer))
            both = _wider(known.dataType, kind, format, case)
            if both is None:
                raise FatalError(
                    f"column {name} is {type_words(known.dataType)} in {other.example} and {type_words(kind)} in"
                    f" {footer.example}",
                    code="type-mismatch",
                    hint=f"nothing of this run was sent; {_holding_both(name, known.dataType, kind)}",
                )
            if both != known.dataType:
                found[_folded(name, case)] = (StructField(known.name, both), footer)
    return StructType([field for field, _ in found.values()])


def _holding_both(name: str, one: DataType, other: DataType) -> str:
    if {type(one), type(other)} == {LongType, DoubleType}:
        return (
            f"list the columns in source.schema, with {name} DOUBLE, which holds whole numbers up to 2^53, or give these files"
            " a separate job"
        )
    return "give these files a separate job, or write them with one type"


def _wider(one: DataType, other: DataType, format: str, case: bool) -> DataType | None:
    """Return a type that holds every value of both, None if there is none: of structs it has the fields of both."""
    if isinstance(one, StructType) and isinstance(other, StructType):
        fields = {_folded(field.name, case): field for field in one.fields}
        for field in other.fields:
            known = fields.setdefault(_folded(field.name, case), field)
            kind = _wider(known.dataType, field.dataType, format, case)
            if kind is None:
                return None
            fields[_folded(field.name, case)] = StructField(known.name, kind)
        return StructType([*fields.values()])
    if isinstance(one, ArrayType) and isinstance(other, ArrayType):
        element = _wider(one.elementType, other.elementType, format, case)
        return None if element is None else ArrayType(element)
    if isinstance(one, MapType) and isinstance(other, MapType):
        key = _wider(one.keyType, other.keyType, format, case)
        value = _wider(one.valueType, other.valueType, format, case)
        return None if key is None or value is None else MapType(key, value)
    if _always_holds(one, other, format):
        return other
    if _always_holds(other, one, format):
        return one
    if isinstance(one, DecimalType) and isinstance(other, DecimalType):
        scale = max(one.scale, other.scale)
        digits = max(one.precision - one.scale, other.precision - other.scale) + scale
        return DecimalType(digits, scale) if digits <= _MOST_DIGITS else None
    return None


def _always_holds(own: DataType, read: DataType, format: str) -> bool:
    """Say whether `read` holds every value of `own`, of the same kind: no text of bytes, no fraction of a whole number."""
    if isinstance(own, NullType) or own == read:
        return True
    is_kept = (type(own) in _DIGITS and type(read) in _DIGITS) or isinstance(own, FloatType | DecimalType)
    return is_kept and holds(own, read, format)


def _problems(footer: Footer, schema: StructType, format: str, given: bool, case: bool) -> list[str]:
    if footer.positional:
        return _problems_by_place(footer, schema, format, given, case)
    columns = {_folded(column.name, case): column for column in footer.stored}
    problems = []
    for wanted in schema.fields:
        found = columns.get(_folded(wanted.name, case))
        if found is not None:
            problems += [f"{footer.example}: {text}" for text in _differences(wanted, found, format, case)]
    return problems


def _problems_by_place(footer: Footer, schema: StructType, format: str, given: bool, case: bool) -> list[str]:
    """As `_problems`, if Spark matches columns by position: the file's first is the schema's first, under any name."""
    if len(footer.columns) > len(schema.fields):
        return [
            f"{footer.example}: it has {len(footer.columns)} columns without names, and is read by their place: the schema has"
            f" {len(schema.fields)}"
        ]
    problems = []
    for wanted, column in zip(schema.fields, footer.stored, strict=False):
        if wanted.name != column.name and (not given or wanted.name.startswith(NUMBERED)):
            return [
                f"{footer.example}: its columns are read by their place, and {column.name} would be taken for"
                f" {wanted.name}"
            ]
        problems += [f"{footer.example}: {text}" for text in _differences(wanted, column, format, case)]
    return problems


def _folded(name: str, case: bool) -> str:
    return name if case else name.lower()


def _differences(wanted: StructField, column: Stored, format: str, case: bool) -> list[str]:
    return [
        f"column {path} is {_own_words(own)}, and would be read as {type_words(read)}{_stored_words(own)}"
        for path, own, read in _narrowed(column.name, column, wanted.dataType, format, case)
    ]


def _own_words(own: DataType | Unreadable) -> str:
    return f"of type {own.words}, which Spark does not have" if isinstance(own, Unreadable) else type_words(own)


def _stored_words(own: DataType | Unreadable) -> str:
    stored = own.stored if isinstance(own, Unreadable) else None
    return f" ({type_words(stored)} gives the stored values)" if stored is not None else ""


def _narrowed(
    path: str, own: Stored, read: DataType, format: str, case: bool
) -> list[tuple[str, DataType | Unreadable, DataType]]:
    """Return path, own and read type of each part of a column that would not be read exactly."""
    kind = own.readable
    if isinstance(kind, StructType) and isinstance(read, StructType):
        if format == "avro" and _is_union(kind) and kind.names != read.names:  # it would lose values
            return [(path, kind, read)]
        inner = {_folded(part.name, case): part for part in own.parts}
        found = []
        for wanted in read.fields:
            mine = inner.get(_folded(wanted.name, case))
            if mine is not None:
                found += _narrowed(f"{path}.{mine.name}", mine, wanted.dataType, format, case)
        return found
    if isinstance(kind, ArrayType) and isinstance(read, ArrayType):
        return _narrowed(f"{path}[]", own.parts[0], read.elementType, format, case)
    if isinstance(kind, MapType) and isinstance(read, MapType):
        key, value = own.parts
        keys = _narrowed(f"{path}.key", key, read.keyType, format, case)
        return keys + _narrowed(f"{path}.value", value, read.valueType, format, case)
    if isinstance(own.kind, Unreadable):
        return [] if kind is not None and kind == read else [(path, own.kind, read)]
    return [] if holds(own.kind, read, format) else [(path, own.kind, read)]


def _is_union(kind: StructType) -> bool:
    """Say whether this may be a union of Avro's, as Spark represents it."""
    return kind.names == [f"member{place}" for place in range(len(kind.names))] and bool(kind.names)


def type_words(kind: DataType) -> str:
    """Return a type as it is written in a schema; the names of its fields keep their case."""
    nested = isinstance(kind, StructType | ArrayType | MapType)
    return kind.simpleString() if nested else kind.simpleString().upper()


def holds(own: DataType, read: DataType, format: str) -> bool:
    """Say whether every value of the file's `own` type is read as the same value of type `read`, or refused."""
    if own == read:
        return True
    kind, to = type(own), type(read)
    if format == "parquet" and (kind is NullType or (kind, to) == (LongType, DoubleType)):
        return True  # each value is checked when it is read (columnar_values.py)
    if kind in _DIGITS and to in _DIGITS:
        return _ORDER.index(kind) < _ORDER.index(to)
    if kind in _DIGITS and isinstance(read, DecimalType):
        return read.precision - read.scale >= _DIGITS[kind]
    if isinstance(own, DecimalType) and isinstance(read, DecimalType):
        return read.scale >= own.scale and read.precision - read.scale >= own.precision - own.scale
    if format == "parquet" and (kind, to) in ((BinaryType, StringType), (DateType, TimestampNTZType)):
        return True
    return (kind, to) in (
        (FloatType, DoubleType),
        (ByteType, DoubleType),
        (ShortType, DoubleType),
        (IntegerType, DoubleType),
        (StringType, BinaryType),
    )
