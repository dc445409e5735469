"""Defines the words for a source's items in messages and reports: each kind of source provides its own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Wording:
    """The words of a kind of source: used in messages and reports, and as names in JSON.

    `item` and `items` are the noun, one that takes the article "a": file, table, partition. `unit` is the unit of sizes: bytes,
    rows, records. `not_named` says that an item is not listed now. `kept` names the properties that an unnoticed edit leaves
    unchanged. `later` is the key of the spec that leaves items for a later run, "" if there is none. `on_executors` is what the
    machines of a cluster must do to read the items. `corrected` is the remedy for rows that cannot be sent. `hides_keys`:
    positions are data of the source, and must not be shown.
    """

    item: str
    items: str
    unit: str
    not_named: str
    kept: str
    later: str
    on_executors: str
    corrected: str = "correct them, and run again"
    hides_keys: bool = False

    def count(self, number: int) -> str:
        """Return `1 file`, `1,200 files`."""
        return f"{number:,} {self.item if number == 1 else self.items}"

    def place(self, position: object) -> str:
        """Return a position for a message."""
        return "a position that is hidden" if self.hides_keys else str(position)

    @property
    def left_alone(self) -> str:
        """Return the words for an existing item that this run does not read."""
        return f"left alone by {self.later}" if self.later else "left alone by this run"
