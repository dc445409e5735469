"""Defines the base classes of a spec's tables, and of the table `[source]`, of which each kind of source has a subclass.

Used by model.py. A kind's subclass is in the kind's folder, and loaded through sources/registry.py: it defines the keys, their
meaning, and which of them are in the digest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from eosingest.spec.columns import Columns
from eosingest.spec.document import Problem
from eosingest.spec.units import KIB, MIB
from eosingest.spec.values import ROW_AS_JSON, OnChange, Size, one_of


def shown(text: str) -> dict[str, Any]:
    """Return the extra JSON Schema that shows a default as it is written in TOML."""
    return {"default": text}


class Table(BaseModel):
    """A table of a spec: frozen, without unknown keys, and without values in its repr."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"

    __str__ = __repr__


@dataclass(frozen=True)
class Beside:
    """The parts of the rest of the spec that a source may use: the sink's topics, and access to its cluster.

    `sink` returns the sink's bootstrap servers and client properties; `resolve` returns properties of the source (of the named
    key) with their references resolved. Both results may hold secrets: they are called only to connect.
    """

    topic: str
    offsets_topic: str
    dead_letter_topic: str | None
    sink: Callable[[], tuple[str, dict[str, str]]]
    resolve: Callable[[Mapping[str, str], str], dict[str, str]]


class SourceTable(Table):
    """The interface of `[source]` that is the same for all kinds of source. `format` determines the kind.

    Class methods get the table as it was read, before validation. `hints` maps the codes of their problems to hints.
    `cut_by_size`: items are cut by `split_size`. `more_columns`: rows may have columns that are not in `columns`.
    `unlisted_columns` are in lower case, and `*` does not contain them.
    """

    hints: ClassVar[Mapping[str, str]] = {}
    cut_by_size: ClassVar[bool] = True
    more_columns: ClassVar[bool] = True
    unlisted_columns: ClassVar[tuple[str, ...]] = ()

    format: str = Field(description="The source's kind and format.")
    split_size: Size = Field(
        ge=KIB,
        default=32 * MIB,
        description="The source is cut into splits of this size. Pinned while any item of it (a file) is half done.",
        json_schema_extra=shown("32MiB"),
    )
    on_change: Annotated[OnChange, one_of(OnChange)] = Field(
        default="error",
        description="What to do when an item (a file) has changed since it was sent: stop, or send it again as a whole.",
    )

    @classmethod
    def problems_as_written(cls, source: Mapping[str, Any]) -> Iterator[Problem]:
        """Yield the problems of a table as it is in the file, with unresolved references."""
        yield from ()

    @classmethod
    def problems(cls, source: dict[str, Any]) -> Iterator[Problem]:
        """Yield the problems that the keys' types do not find; normalise the spelling of names in place."""
        yield from ()

    @classmethod
    def columns(cls, source: Mapping[str, Any]) -> tuple[Columns | None, list[Problem]]:
        """Return the columns that expressions may name (None if the spec does not give them), and problems with them."""
        return None, []

    @classmethod
    def for_a_look(cls, source: Mapping[str, Any]) -> SourceTable | None:
        """Return a table that is complete enough to list the source, None if it cannot be."""
        return None

    def with_defaults(self) -> SourceTable:
        """Return the table with our defaults that depend on its keys."""
        return self

    def beside(self, others: Beside) -> SourceTable:
        """Return the table with access to the rest of its spec, for a source that needs the sink's cluster."""
        return self

    def default_record(self) -> Mapping[str, Any]:
        """Return the defaults of the keys of `[record]` that depend on the source."""
        return {"value": self.default_value()}

    def default_value(self) -> str:
        """Return the default of `record.value`."""
        return ROW_AS_JSON

    @property
    def root_as_written(self) -> str:
        """The root of the names of items, for the control record: "." where names need none."""
        return "."

    @property
    def lacks_schema(self) -> bool:
        """Whether the spec gives no schema though it may."""
        return False

    @property
    def given_schema(self) -> str | None:
        """The columns that the spec gives, as DDL."""
        return None

    @property
    def row_name(self) -> str | None:
        """The name of the rows in the data, if they have one."""
        return None

    @property
    def is_of_one_host(self) -> bool:
        """Whether the data is on this host, so that another one may not have it."""
        return False

    @property
    def is_local_json_lines(self) -> bool:
        """Whether the data must be JSON, one record per line, on this host: `check` tests the first item."""
        return False

    def schema_note(self) -> str:
        """The text on where the rows' columns come from if the spec gives none."""
        return "that of the source"

    def places(self) -> tuple[str, ...]:
        """The locations of the source, for display, without passwords."""
        return ()

    def digest_parts(self) -> dict[str, str]:
        """Return the keys that shape the rows' bytes, as named parts in a normal form; `format` is one of them."""
        return {"format": self.format}
