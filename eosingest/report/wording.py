"""How a person is told of the items of a source: each kind brings its own words, which the rest puts in sentences."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Wording:
    """The words of a kind of source. They stand in sentences of the kind's, in reports, and as names in JSON.

    `item` and `items` are the noun, which takes the article "a": file, table, partition; `unit` is what sizes are counted in:
    bytes, rows, records. `not_named` says of an item that it is not listed now. `kept` is what an edit has to leave as it is
    so that nobody sees it. `later` is the key of the spec that leaves items for a later run, "" where no key does.
    `on_executors` is what a cluster's machines must do to read the items.
    """

    item: str
    items: str
    unit: str
    not_named: str
    kept: str
    later: str
    on_executors: str

    def count(self, number: int) -> str:
        """Return `1 file`, `1,200 files`."""
        return f"{number:,} {self.item if number == 1 else self.items}"

    @property
    def left_alone(self) -> str:
        """Say of an item that is there that this run does not take it."""
        return f"left alone by {self.later}" if self.later else "left alone by this run"
