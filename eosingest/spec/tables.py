"""What all tables of a spec have in common, and what a kind of source says of its own table `[source]`.

Under model.py. A kind's table lies in the kind's folder and is loaded through sources/registry.py: what its keys are, what they
mean and what of them is in the digest is said there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from eosingest.spec import generations
from eosingest.spec.columns import Columns
from eosingest.spec.document import Problem
from eosingest.spec.units import KIB, MIB
from eosingest.spec.values import OnChange, Size, one_of


def shown(text: str) -> dict[str, Any]:
    """Put a default into the JSON Schema as a person writes it."""
    return {"default": text}


class Table(BaseModel):
    """A table of a spec: frozen, without keys that it does not know, and never shown by its values."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"

    __str__ = __repr__


class SourceTable(Table):
    """`[source]` as all who are not its kind know it. `format` says which kind it is of.

    Class methods are given the table as it was read, before it is known to be right. `hints` has what to do, by the code of
    their problems.
    """

    hints: ClassVar[Mapping[str, str]] = {}

    format: str = Field(description="What is read, and how.")
    split_size: Size = Field(
        ge=KIB,
        default=32 * MIB,
        description="The source is cut into splits of this size. Pinned while any split is half done.",
        json_schema_extra=shown("32MiB"),
    )
    on_change: Annotated[OnChange, one_of(OnChange)] = Field(
        default="error",
        description="What to do when what was sent has changed since: stop, or send it again as a whole.",
    )

    @classmethod
    def problems_as_written(cls, source: Mapping[str, Any]) -> Iterator[Problem]:
        """Yield what is wrong with a table whose references are not resolved."""
        yield from ()

    @classmethod
    def problems(cls, source: dict[str, Any]) -> Iterator[Problem]:
        """Yield what is wrong that the types of the keys do not say; put names into the spelling that is meant."""
        yield from ()

    @classmethod
    def columns(cls, source: Mapping[str, Any]) -> tuple[Columns | None, list[Problem]]:
        """Return the columns that expressions may name, None where the spec does not say, and what is wrong with them."""
        return None, []

    @classmethod
    def for_a_look(cls, source: Mapping[str, Any]) -> SourceTable | None:
        """Return what of a table is enough to look where its source lies, None where not even that is there."""
        return None

    def at_generation(self, generation: int) -> SourceTable:
        """Return the table with the defaults of a generation (spec/generations.py) where it says nothing."""
        return self

    def default_value(self, generation: int) -> str:
        """Return `record.value` where the spec has none."""
        return generations.default_value(generation)

    @property
    def given_schema(self) -> str | None:
        """The columns that the spec gives, as DDL."""
        return None

    @property
    def is_json_lines(self) -> bool:
        """Whether what is read must be JSON, one record a line: `check` looks at it."""
        return False

    def schema_note(self) -> str:
        """Say to a person what columns the rows have, where the spec gives none."""
        return "that of the source"

    def places(self) -> tuple[str, ...]:
        """Return where the source lies, for a person to see: without passwords."""
        return ()

    def digest_parts(self) -> dict[str, str]:
        """Return the named parts of what shapes the rows' bytes, each as a normal form; with `format`."""
        return {"format": self.format}
