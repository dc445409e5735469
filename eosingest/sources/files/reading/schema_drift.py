"""Checks that a pinned schema that was inferred still fits, if files are pending from which it was not inferred.

Called by the launcher in a job that has begun, before a run sends anything. A field that is not in the schema is dropped, and
a value that does not fit is a corrupt row. So the schema is inferred again from the pending files: a field that is new, or has
a wider type, ends the run, with an error that names the file and a schema that fits both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from eosingest.errors import ChangedError, listed
from eosingest.sources.files.formats.registry import FORMATS
from eosingest.sources.files.reading.exact_types import holds, type_words
from eosingest.sources.files.reading.schema_types import columns_ddl

_NAMED_AT_MOST = 10
_ASKED_AT_MOST = 20  # files that are inferred one by one, to name those that differ
WAY_OUT = (
    "nothing of this run was sent; move these files away until the job is complete, then bring them back: a new run infers"
    " the schema again"
)


@dataclass(frozen=True)
class Difference:
    """A column, or a field in one, with the type that is `found` now and the `pinned` one, None where it is new."""

    path: str
    found: DataType
    pinned: DataType | None

    def __str__(self) -> str:
        """Return it in the words of an error message."""
        kind = type_words(self.found)
        if self.pinned is None:
            return f"{self.path} {kind} is new"
        return f"{self.path} is {kind} now, and was {type_words(self.pinned)}"


def too_much_to_infer_again() -> ChangedError:
    """Return the error for pending files that are too large to infer their schema again."""
    return ChangedError(
        "other files are pending than those that the job's schema was inferred from, too many to infer it again",
        code="schema-outgrown",
        hint=WAY_OUT,
    )


def refuse_outgrown(found: StructType, pinned: StructType, format: str, by_file: Mapping[str, StructType]) -> None:
    """Raise ChangedError if the `pinned` schema does not fit the one that was `found`; `by_file` has each file's columns."""
    differences = list(compare(found, pinned, format))
    if differences:
        names = [name for name, columns in by_file.items() if list(compare(columns, pinned, format))]
        raise _outgrown(names[:_ASKED_AT_MOST], differences, found, pinned, format)


def _outgrown(
    names: list[str],
    differences: list[Difference],
    found: StructType,
    pinned: StructType,
    format: str,
) -> ChangedError:
    where = f"{', '.join(names)}: " if names else ""
    said = listed([str(difference) for difference in differences], _NAMED_AT_MOST, separator="; ", rest="; and {} more")
    return ChangedError(
        f"{where}the job's schema, which was inferred when it began, does not fit the files: {said}",
        code="schema-outgrown",
        hint=f"{WAY_OUT}. {_for_both(found, pinned, format)}",
    )


def _for_both(found: StructType, pinned: StructType, format: str) -> str:
    """Return a hint: a schema with which everything could be sent again. For formats with footers there may be none."""
    both = _joined(pinned, found, format)
    if FORMATS[format].has_footers and [*compare(found, both, format), *compare(pinned, both, format)]:
        return "Or give these files a separate job: no type holds both"
    return (
        "Or take a schema that holds both, under a new job name or with --from-scratch:\n"
        f'schema = "{columns_ddl(both)}"'
    )


# ---- pure ------------------------------------------------------------------------------------------------------------


def compare(found: DataType, pinned: DataType, format: str, path: str = "") -> Iterator[Difference]:
    """Yield the columns and fields of the type `found` that a reader with the `pinned` type would drop or not fit."""
    if isinstance(found, StructType) and isinstance(pinned, StructType):
        kinds = {field.name: field.dataType for field in pinned.fields}
        for field in found.fields:
            name = f"{path}.{field.name}" if path else field.name
            if field.name in kinds:
                yield from compare(field.dataType, kinds[field.name], format, name)
            else:
                yield Difference(name, field.dataType, None)
    elif isinstance(found, ArrayType) and isinstance(pinned, ArrayType):
        yield from compare(found.elementType, pinned.elementType, format, f"{path}[]")
    elif isinstance(found, MapType) and isinstance(pinned, MapType):
        yield from compare(found.valueType, pinned.valueType, format, f"{path}.value")
    elif not _takes(pinned, found, format):
        yield Difference(path, found, pinned)


def _joined(one: StructType, other: StructType, format: str) -> StructType:
    more = {field.name: field.dataType for field in other.fields}
    both = [
        StructField(f.name, joined(f.dataType, more.pop(f.name), format) if f.name in more else f.dataType)
        for f in one.fields
    ]
    return StructType(both + [StructField(name, kind) for name, kind in more.items()])


def joined(one: DataType, other: DataType, format: str) -> DataType:
    """Return a type that holds the values of both."""
    if isinstance(one, StructType) and isinstance(other, StructType):
        return _joined(one, other, format)
    if isinstance(one, ArrayType) and isinstance(other, ArrayType):
        return ArrayType(joined(one.elementType, other.elementType, format))
    if isinstance(one, MapType) and isinstance(other, MapType):
        return MapType(one.keyType, joined(one.valueType, other.valueType, format))
    if _takes(one, other, format):
        return one
    if _takes(other, one, format):
        return other
    if isinstance(one, DecimalType | IntegralType) and isinstance(other, DecimalType | FloatType | DoubleType):
        return DoubleType()
    return StringType()


def _takes(pinned: DataType, found: DataType, format: str) -> bool:
    """Say whether reading `found` values by the `pinned` type gives what inference over both would give."""
    if pinned == found or holds(found, pinned, format):
        return True
    if FORMATS[format].has_footers:
        return False
    if isinstance(pinned, StringType):
        return True
    if isinstance(pinned, DoubleType):
        return isinstance(found, IntegralType | DecimalType | FloatType)
    if isinstance(pinned, TimestampType | TimestampNTZType):
        return isinstance(found, DateType | TimestampNTZType)
    return False
