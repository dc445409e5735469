"""Limits a task to its share of `sink.rate_limit`, before rows are passed to the producer."""

from __future__ import annotations

from collections.abc import Callable


class Pace:
    """Spreads a task's rows over time: after `size` bytes nothing is sent for `size / rate` seconds.

    Time without sending is not made up for. `rate` is in bytes per second, None for no limit.
    """

    def __init__(self, rate: float | None, now: Callable[[], float]) -> None:
        """The first rows may go at once. `now` is a monotonic clock in seconds."""
        self._rate = rate
        self._now = now
        self._free_at = now()

    def sent(self, size: int) -> None:
        """Count bytes that were handed over."""
        if self._rate is not None:
            self._free_at = max(self._free_at, self._now()) + size / self._rate

    @property
    def wait_s(self) -> float:
        """How long the next rows must wait, in seconds."""
        return max(0.0, self._free_at - self._now()) if self._rate is not None else 0.0
