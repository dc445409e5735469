"""Defines the receipt of a split's dead letters, and the pin of their topic (docs/protocol.md, Dead letters).

Part of record.py's wire form; split_progress.py sums receipts, an audit compares them with the dead-letter topic.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

from eosingest.protocol.offsets import wire
from eosingest.protocol.offsets.wire import Checksum
from eosingest.records.checksum import MODULUS


@dataclass(frozen=True)
class DeadLetters(wire.Part):
    """The rows of a split that became dead letters: their number (`count`), and sums that prove which they were.

    `rows` and `metadata` are the sums of the rows' own hashes, as those of records that were sent: together with these they
    are the sums of all rows, which a prefix must equal, with no row judged again. `checksum` is the receipt of the
    dead letters, over key and value as they are in the topic.
    """

    count: int = 0
    rows: Checksum = 0
    metadata: Checksum = 0
    checksum: Checksum = 0

    def __add__(self, other: DeadLetters) -> DeadLetters:
        return DeadLetters(
            self.count + other.count,
            (self.rows + other.rows) % MODULUS,
            (self.metadata + other.metadata) % MODULUS,
            (self.checksum + other.checksum) % MODULUS,
        )

    def to_json(self) -> dict[str, Any] | None:
        """Return the wire form, None without dead letters: most splits have none, and their records stay short."""
        return super().to_json() if self.count else None

    @classmethod
    def from_json(cls, loaded: Any, **key: Any) -> Self:
        """Read what `to_json` wrote."""
        return cls() if loaded is None else super().from_json(loaded, **key)


wire.FORMS["DeadLetters"] = wire.FORMS["DeadLetters"]._replace(what="an object or null", types=(dict, type(None)))
NO_DEAD_LETTERS = DeadLetters()


@dataclass(frozen=True)
class DeadLetterPin(wire.Part):
    """The control record's pin of the dead-letter topic, and of the job's dead letters in it.

    They begin at `start`, by partition; at 0 in a partition added later. `before` of them were written until the job was
    last complete. `retired` is the sum of those of splits whose offset records were tombstoned.
    """

    topic: str
    topic_id: str
    start: tuple[int, ...]
    before: int = 0
    retired: DeadLetters = NO_DEAD_LETTERS

    def total(self, receipts: Iterable[DeadLetters]) -> DeadLetters:
        """Return the sum of all dead letters of the job; `receipts` are those of its offset records."""
        return sum(receipts, self.retired)

    def completed(self, letters: DeadLetters) -> DeadLetterPin:
        """Return the pin of a complete job with these dead letters: the count against the allowed number restarts."""
        return replace(self, before=letters.count)

    def retiring(self, receipts: Iterable[DeadLetters]) -> DeadLetterPin:
        """Return the pin plus the receipts of tombstoned offset records, whose dead letters stay in the topic."""
        return replace(self, retired=self.total(receipts))
