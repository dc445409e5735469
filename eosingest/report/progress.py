"""Defines the progress of a run and of an audit, and the observers that receive it. Plain values; cli/ shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Progress:
    """Progress of a run, from the offsets topic. `seconds` is the time since the run began; sizes are in the source's `unit`.

    `size_done` is the size of done splits and of the committed part of others, estimated from the mean row size if positions
    are in rows. `records_before` is the number of records sent by earlier runs.
    """

    records_sent: int
    splits_done: int
    splits_planned: int
    size_done: int
    size_planned: int
    seconds: float
    records_before: int = 0
    unit: str = "bytes"

    @property
    def records_per_second(self) -> float:
        """Records committed per second, over the time since the run began."""
        return self.records_sent / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """Time left at the pace so far, None while nothing is done."""
        if not self.size_done:
            return None
        return self.seconds * (self.size_planned - self.size_done) / self.size_done


@dataclass(frozen=True)
class AuditProgress:
    """Progress of an audit's current read: `done` of `planned` `unit`s (offset, row) were read by finished Spark tasks.

    `what` is being read; `seconds` is the time since that read began.
    """

    what: str
    unit: str
    done: int
    planned: int
    seconds: float

    @property
    def per_second(self) -> float:
        """Units read per second so far."""
        return self.done / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """Time left at the pace so far, None while nothing is done."""
        return self.seconds * (self.planned - self.done) / self.done if self.done else None


class Observer(Protocol):
    """Receives the notes and the progress of a run."""

    def note(self, text: str) -> None:
        """Receive one line for the user."""

    def progress(self, progress: Progress) -> None:
        """Receive the progress, about once a second."""


class AuditObserver(Observer, Protocol):
    """Receives the notes and the progress of an audit."""

    def audited(self, progress: AuditProgress) -> None:
        """Receive the progress, about once a second."""


class RecordingObserver:
    """An `Observer` that keeps the notes for the report, and passes everything on to another one."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        """Keep a note and pass it on."""
        self.notes.append(text)
        self._observer.note(text)

    def progress(self, progress: Progress) -> None:
        """Pass progress on."""
        self._observer.progress(progress)
