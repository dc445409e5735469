"""What a kind of source brings to the conformance suite: a source with known rows, and readers of it that are none of ours.

A kind is registered by a line in KINDS (kinds.py). The suite makes a subject for each test in a folder of its own.
"""

from __future__ import annotations

from typing import Protocol

from eosingest.protocol.source import Split
from eosingest.sources.registry import Kind

SPLIT_SIZE = 1024  # the smallest that a spec may name


class Subject(Protocol):
    """A source in a folder (or a service that the folder names), of at least two items; each has rows for several splits.

    Where a kind is never cut, each of its items is one split.
    """

    needs_spark: bool  # rows come from Spark; else tasks read them, and no JVM is started
    kind: Kind | None  # the tests' own; None for one that is registered anyway
    noticed_behind_listing: str  # the code of the error where an item changes between listing and plan

    def create(self) -> None:
        """Make the source, with at least two items."""

    def spec(self) -> str:
        """Return the tables `[source]` and `[record]` of a spec, by which a record is made of each row."""

    def row(self, key: bytes | None, value: bytes | None) -> bytes:
        """Return the row that a record was made of."""

    def grow(self) -> None:
        """Add an item, behind the others in the order of listing."""

    def edit(self, row: bytes, *, unseen: bool) -> None:
        """Change a row, and neither its length nor how many rows there are.

        `unseen`: in the way that a listing cannot tell (length and modification time as before).
        """

    def touch(self, item: str) -> None:
        """Make an item look changed to a listing, with the content that it had."""

    def remove(self, item: str) -> None:
        """Take an item away."""

    def items(self) -> list[str]:
        """Return the names of the items in the order of listing, as errors say them."""

    def rows(self) -> list[bytes]:
        """Return all rows there are, item by item and each in order, by a reader that is not ours and not Spark's."""

    def rows_of(self, split: Split) -> list[bytes]:
        """Return the rows of a split in order, by a reader that is not ours and not Spark's."""

    def is_covered(self, splits: list[Split]) -> bool:
        """Say whether the splits of one item, in order, leave no gap in it and overlap nowhere."""


class Plain:
    """A subject whose values are the rows, without keys."""

    def row(self, key: bytes | None, value: bytes | None) -> bytes:
        assert not key  # empty on a Kafka in memory, which has no others
        return value or b""
