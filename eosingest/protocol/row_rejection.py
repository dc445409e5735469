"""Splits a batch into sendable rows, dead letters, and the row that ends its split.

Between the rows of a task (split_sequence.py) and its transaction (transaction.py). limits.py finds the rows that cannot be
sent, dead_letters.py makes the dead letters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from eosingest.kafka.ports import LARGEST_RECORD_BYTES
from eosingest.protocol.dead_letters import NO_LETTERS, Letters, letters_of
from eosingest.protocol.split_progress import SplitProgress
from eosingest.protocol.task_contract import Batch, TaskSettings
from eosingest.records.limits import BadRow, bad_rows


class Unsendable:
    """Judges the rows of one attempt of a task, each once. It appends to `bad_rows`, the list of the outcome."""

    def __init__(self, settings: TaskSettings, now_ms: Callable[[], int], bad_rows: list[dict[str, Any]]) -> None:
        """No row is judged yet."""
        self._settings = settings
        self._now_ms = now_ms
        self._given_up = bad_rows
        self._letters = 0  # made so far

    def told_apart(self, progress: SplitProgress, rows: Batch) -> tuple[Batch, Letters]:
        """Return the rows of one split that are to be handed over, and the dead letters that some of them become.

        Where a row can neither be sent nor become a dead letter, returns those before it: the split fails there.
        """
        bad = self._bad(rows)
        end = self._end_of_letters(rows, bad)
        if end < len(bad):
            rows, bad = self._give_up(progress, rows, bad[end]), bad[:end]
        if not bad:
            return rows, NO_LETTERS
        letters = letters_of(self._settings, progress.planned, rows, progress.seen, bad)
        self._letters += len(letters)
        return rows, letters

    def _bad(self, rows: Batch) -> list[BadRow]:
        return bad_rows(
            self._settings.limits,
            keys=rows.records.keys,
            sizes=rows.sizes,
            timestamps_ms=rows.records.timestamps_ms,
            partitions=rows.records.partitions,
            corrupt=rows.corrupt,
            unfit=rows.unfit,
            now_ms=self._now_ms(),
        )

    def _end_of_letters(self, rows: Batch, bad: Sequence[BadRow]) -> int:
        """Return how many of the bad rows may become dead letters.

        At most those left, and none from a row on that is larger than any record: its input may have stopped there.
        """
        dead = self._settings.dead_letters
        if dead is None:
            return 0
        endless = (number for number, each in enumerate(bad) if rows.sizes[each.index] > LARGEST_RECORD_BYTES)
        return min(max(0, dead.left - self._letters), next(endless, len(bad)))

    def _give_up(self, progress: SplitProgress, rows: Batch, bad: BadRow) -> Batch:
        """Cut the rows before one that cannot be sent, and mark the split as failed."""
        letters = "raise max" if self._settings.dead_letters is not None else "name a topic"
        progress.failed = True
        self._given_up.append(
            {
                "split": progress.planned.id,
                "label": progress.planned.label,
                "row": progress.seen + bad.index + 1,
                "code": bad.code,
                "reason": bad.reason,
                "letters": letters if rows.sizes[bad.index] <= LARGEST_RECORD_BYTES else "",
                "whole": self._settings.whole,
            }
        )
        return rows.slice(0, bad.index)
