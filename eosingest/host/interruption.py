"""Turns signals during a run, which the command line's handler records, into an error that `check` raises.

Long waits of the driver (open transactions, fencing, the start of a JVM, brokers that do not answer) call `check`, so that a
run ends within seconds. Once the Spark job runs, the driver reads `signal_number` itself and continues to the verdict: it calls
`disarm`, after which `check` raises only if the run has not ended SETTLE_S seconds after the signal.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator

from eosingest.errors import InterruptedRunError

SETTLE_S = 6.0  # with the steps before and after, a run ends within 10 s of its signal
RUN_AGAIN = "committed records are kept, nothing was sent twice; run again: it resumes from here"


class Interruption:
    """Whether a signal was received; `received` returns its number or None, `now` is a monotonic clock in seconds."""

    def __init__(self, received: Callable[[], int | None], now: Callable[[], float] = time.monotonic) -> None:
        """Start armed: `check` raises as soon as a signal was received."""
        self._received = received
        self._now = now
        self._armed = True
        self._seen_at: float | None = None

    @property
    def signal_number(self) -> int | None:
        """The number of the signal received, if any."""
        number = self._received()
        if number is not None and self._seen_at is None:
            self._seen_at = self._now()
        return number

    def disarm(self) -> None:
        """Make `check` raise only SETTLE_S seconds after a signal: the caller ends the run cleanly meanwhile."""
        self._armed = False

    @contextlib.contextmanager
    def armed(self, armed: bool) -> Iterator[None]:
        """Context manager: be armed, or not, during the body."""
        before, self._armed = self._armed, armed
        try:
            yield
        finally:
            self._armed = before

    def check(self) -> None:
        """Raise InterruptedRunError if a signal was received; if not armed, only if it was seen more than SETTLE_S ago."""
        number = self.signal_number
        if number is None or self._seen_at is None:
            return
        if self._armed:
            raise interrupted_by(number)
        if self._now() - self._seen_at > SETTLE_S:
            raise _unsettled(number)


def interrupted_by(number: int) -> InterruptedRunError:
    """Make the error for a run that a signal ended."""
    return InterruptedRunError(
        f"stopped by {signal.Signals(number).name}; open transactions were aborted",
        signal_number=number,
        hint=RUN_AGAIN,
    )


def _unsettled(number: int) -> InterruptedRunError:
    """Make the error for a run that could not commit its verdict: its open transactions and last commit are unknown."""
    return InterruptedRunError(
        f"stopped by {signal.Signals(number).name}; {SETTLE_S:.0f} s later the brokers had not confirmed how the run ended, and"
        " its end is not recorded",
        signal_number=number,
        hint="committed records are kept, nothing was sent twice; a transaction that is still open ends at its timeout, or"
        " by the next run; run again when the brokers answer: it resumes after the committed records",
    )


def never() -> None:
    """A `check` that never raises, for code that receives no signal: Spark's workers."""
