"""Adds to corrupt rows what is wrong with them, as far as their reader says it: for messages and dead letters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol, runtime_checkable

from eosingest.protocol.task_contract import Batch


@runtime_checkable
class Explaining(Protocol):
    """A reader that says what is wrong with a corrupt row."""

    def why(self, text: bytes) -> str:
        """Return why the text of a row is a corrupt row; "" where it is not known."""


def why_of(reader: object) -> Callable[[bytes], str] | None:
    """Return the function `Explaining.why` of a reader, which is pickled; None if it has none."""
    return reader.why if isinstance(reader, Explaining) else None


def explained(batch: Batch, why: Callable[[bytes], str] | None) -> Batch:
    """Return the batch with the reasons of its corrupt rows."""
    if why is None or batch.corrupt is None:
        return batch
    others = batch.unfit or [None] * len(batch.corrupt)
    reasons = [known if text is None else why(text) for text, known in zip(batch.corrupt, others, strict=True)]
    return replace(batch, unfit=reasons if any(reasons) else None)
