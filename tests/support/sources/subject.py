"""What a kind of source brings to the conformance suite: a source with known rows, and readers of it that are none of ours.

A kind is registered by a line in KINDS (kinds.py). The suite makes a subject for each test in a folder of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Protocol

from eosingest.protocol.source import Split
from eosingest.sources.registry import Kind

SPLIT_SIZE = 1024  # the smallest that a spec may name
_MAX_LETTERS = 1000
_AS_BROKERS_HAVE_IT: Mapping[str, str] = MappingProxyType({})


class Subject(Protocol):
    """A source in a folder (or a service that the folder names), of at least two items; each has rows for several splits.

    Where a kind is never cut, each of its items is one split.
    """

    needs_spark: bool  # rows come from Spark; else tasks read them, and no JVM is started
    kind: Kind | None  # the tests' own; None for one that is registered anyway
    noticed_behind_listing: str  # the code of the error where an item changes between listing and plan
    sink_config: Mapping[str, str]  # of the topic that its rows are sent to
    dead_config: Mapping[str, str] | None  # of the topic for those that cannot be; None: the spec has no such topic
    dead_code: str  # why they cannot be sent
    whole: bool  # everything that a run has to send goes in one transaction

    def create(self) -> None:
        """Make the source, with at least two items."""

    def spec(self) -> str:
        """Return the tables `[source]` and `[record]` of a spec, by which a record is made of each row."""

    def row(self, key: bytes | None, value: bytes | None) -> bytes:
        """Return the row that a record was made of."""

    def row_of_letter(self, key: bytes | None, value: bytes | None) -> bytes:
        """Return the row that a dead letter was made of."""

    def is_dead(self, row: bytes) -> bool:
        """Say whether the row cannot be sent."""

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
    """A subject whose values are the rows, without keys. All of them can be sent."""

    sink_config = _AS_BROKERS_HAVE_IT
    dead_config: Mapping[str, str] | None = None
    dead_code = ""
    whole = False

    def row(self, key: bytes | None, value: bytes | None) -> bytes:
        assert not key  # empty on a Kafka in memory, which has no others
        return value or b""

    def row_of_letter(self, key: bytes | None, value: bytes | None) -> bytes:
        raise NotImplementedError

    def is_dead(self, row: bytes) -> bool:
        return False


def on_error(subject: Subject, topic: str, most: int = _MAX_LETTERS) -> str:
    """Return the line of a spec that names the topic for rows that cannot be sent, where the subject has such rows."""
    return "" if subject.dead_config is None else f'on_error = {{ topic = "{topic}", max = {most} }}\n'


def transaction(subject: Subject, max_records: int) -> str:
    """Return the lines of a spec's table `[transaction]`: transactions of so many records, or one, which has room for all."""
    return 'boundary = "job"\n' if subject.whole else f"max_records = {max_records}\n"


def sink_creation(subject: Subject, partitions: int) -> str:
    """Return the line of a spec by which the topic is created that its rows are sent to."""
    config = ", ".join(f'"{name}" = "{value}"' for name, value in subject.sink_config.items())
    return f"create = {{ partitions = {partitions}, config = {{ {config} }} }}\n"


def by_topic(subject: Subject, rows: Iterable[bytes]) -> list[bytes]:
    """Return rows of one split as they are read from the topics: those that are sent, and then those that cannot be."""
    return sorted(rows, key=subject.is_dead)
