"""Adds to corrupt rows the reason that their reader gives, for messages and dead letters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol, TypeAlias, runtime_checkable

from eosingest.protocol.task_contract import Batch

# Returns why the texts of rows are corrupt rows, "" for one of which that is not known.
Why: TypeAlias = Callable[[Sequence[bytes]], list[str]]


@runtime_checkable
class Explaining(Protocol):
    """A reader that knows why a row is corrupt."""

    def why(self, texts: Sequence[bytes]) -> list[str]:
        """Return a reason for each text of a corrupt row; "" where it is not known."""


def why_of(reader: object) -> Why | None:
    """Return the function `Explaining.why` of a reader, which is pickled; None if it has none."""
    return reader.why if isinstance(reader, Explaining) else None


def explained(batch: Batch, why: Why | None) -> Batch:
    """Return the batch with the reasons of its corrupt rows."""
    if why is None or batch.corrupt is None:
        return batch
    reasons = list(batch.unfit or [None] * len(batch.corrupt))
    places = [at for at, text in enumerate(batch.corrupt) if text is not None]
    for at, reason in zip(places, why([text for text in batch.corrupt if text is not None]), strict=True):
        reasons[at] = reason
    return replace(batch, unfit=reasons if any(reasons) else None)
