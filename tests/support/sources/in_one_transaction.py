"""Subjects of the conformance suite whose rows all go in one transaction, or none (`transaction.boundary = "job"`): a mixin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eosingest.protocol.task_contract import Batch, Inputs, Signal, SplitEnd

if TYPE_CHECKING:
    from collections.abc import Callable

    from eosingest.protocol.offsets.record import OffsetRecord
    from eosingest.protocol.plan import PlannedSplit
    from tests.support.sources.subject import Subject as Base
else:
    Base = object


class InOneTransaction(Base):
    """Such a subject (a mixin before the class of another)."""

    whole = True


class EndsEarly:
    """A task's input that ends behind so many batches and ends of splits, as that of a JVM which failed: without a proof."""

    def __init__(self, inputs: Inputs, items: int) -> None:
        self._inputs = inputs
        self._left = items
        self.given = 0
        self.all_given = False  # the end came by itself: nothing was left out but the proof

    def begin(self, committed: Callable[[PlannedSplit], OffsetRecord | None]) -> None:
        self._inputs.begin(committed)

    def get(self, timeout_s: float) -> Batch | SplitEnd | Signal:
        if self.given == self._left:
            return Signal.END
        item = self._inputs.get(timeout_s)
        if item is Signal.ALL:
            self.all_given = True
            return Signal.END
        self.given += isinstance(item, Batch | SplitEnd)
        return item

    def stop(self) -> None:
        self._inputs.stop()
