"""A signal as the run sees it: noted by the command line's handler, turned into an error between two steps.

Long waits of the driver (open transactions, fencing, a JVM that starts) call `check`, so that a run ends within
seconds. Once the job runs the driver looks at `signal_number` itself and goes on to the verdict: then `disarm`.
"""

from __future__ import annotations

import signal
from collections.abc import Callable

from eosingest.errors import InterruptedRunError

RUN_AGAIN = "what was committed is kept, nothing was sent twice; run again: it goes on from here"


class Interruption:
    """Whether a signal came; `received` returns its number or None."""

    def __init__(self, received: Callable[[], int | None]) -> None:
        """Start armed."""
        self._received = received
        self._armed = True

    @property
    def signal_number(self) -> int | None:
        """The number of the signal received, if any."""
        return self._received()

    def disarm(self) -> None:
        """From here on `check` does nothing: whoever calls this ends the run in order."""
        self._armed = False

    def check(self) -> None:
        """Raise InterruptedRunError if a signal came."""
        number = self._received() if self._armed else None
        if number is not None:
            raise interrupted_by(number)


def interrupted_by(number: int) -> InterruptedRunError:
    """Make the error for a run that a signal ended."""
    return InterruptedRunError(
        f"stopped by {signal.Signals(number).name}; what was open was aborted", signal_number=number, hint=RUN_AGAIN
    )


def never() -> None:
    """The check of those whom no signal reaches: Spark's workers."""
