"""Defines what the footer of a file of columns says: its columns, and the type of Spark SQL of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql.types import DataType, StructField, StructType

from eosingest.errors import listed

NUMBERED = "_col"  # the prefix of column names in ORC files of old versions of Hive
UUID = "UUID"  # a `Stored.physical`: 16 bytes, which are read as text
FORMAT_NAMES = {"parquet": "Parquet", "orc": "ORC", "avro": "Avro"}


@dataclass(frozen=True)
class Unreadable:
    """A type unknown to Spark: its name in the file's format (`words`), and the type that is `stored`, None if unknown."""

    words: str
    stored: DataType | None = None


@dataclass(frozen=True)
class Stored:
    """A column as a file stores it, or a part of one: an element, a key, a value, a field.

    `kind` is its type in Spark SQL; `leaves` is the number of the file's own columns that it consists of. `physical` says how
    values are read that are not read by their type alone, such as Parquet's INT96.
    """

    name: str
    kind: DataType | Unreadable
    parts: tuple[Stored, ...] = ()
    physical: str = ""

    @property
    def leaves(self) -> int:
        """Return the number of the file's columns."""
        return sum(part.leaves for part in self.parts) if self.parts else 1

    @property
    def readable(self) -> DataType | None:
        """The type, or the one that is stored if Spark does not have it; None if that is unknown."""
        return self.kind.stored if isinstance(self.kind, Unreadable) else self.kind

    def has(self, physical: str) -> bool:
        """Say whether any part is stored so."""
        return self.physical == physical or any(part.has(physical) for part in self.parts)


def nested(name: str, parts: list[Stored], make: Any = None) -> Stored:
    """Return a column of these parts (`kind_of`)."""
    return Stored(name, kind_of(parts, make), tuple(parts))


def kind_of(parts: Sequence[Stored], make: Any = None) -> DataType | Unreadable:
    """Return the type of a column with parts: a struct, or what `make` makes of theirs. It is unreadable if one part is."""
    kinds: list[Any] = [part.readable for part in parts]
    unread = [part.kind for part in parts if isinstance(part.kind, Unreadable)]
    unknown = [kind.words for kind in unread if kind.stored is None]
    if unknown:
        return Unreadable(unknown[0])
    made: DataType
    if make is None:
        made = StructType([StructField(part.name, kind) for part, kind in zip(parts, kinds, strict=True)])
    else:
        made = make(*kinds)
    return Unreadable(unread[0].words, made) if unread else made


@dataclass(frozen=True)
class Footer:
    """A schema, and the names of the `files` that have it. `positional`: its columns are matched by position, not by name.

    `stored` are the columns as the files store them.
    """

    files: tuple[str, ...]
    stored: tuple[Stored, ...]
    positional: bool = False
    packed: Mapping[str, str] = field(default_factory=dict)  # columns with a codec that no reader here has

    @property
    def columns(self) -> Mapping[str, DataType | Unreadable]:
        """The type of each column in Spark SQL, in the order of the files."""
        return {column.name: column.kind for column in self.stored}

    @property
    def example(self) -> str:
        """Name one file, and the number of others with this schema."""
        return listed(self.files, 1, rest=" (and {:,} more files)")
