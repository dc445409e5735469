"""Shows the progress of a run or an audit: a live bar on a terminal, else one plain line every 30 seconds (by default).

The driver reports progress about once a second, from the offsets topic; an audit reports how far its tasks have read. This
module starts no thread or timer. If the bar can no longer be drawn (the terminal is gone), the run continues without it.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from eosingest.cli import formatting
from eosingest.cli.render import Renderer
from eosingest.errors import SpecError
from eosingest.report.progress import AuditProgress, Progress

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

INTERVAL_VARIABLE = "EOSINGEST_PROGRESS_SECONDS"
_INTERVAL_S = 30.0


class Watcher:
    """Shows notes and progress on stderr (`report.AuditObserver`). A context manager that removes the bar at exit."""

    def __init__(self, renderer: Renderer, *, now: Callable[[], float] = time.monotonic) -> None:
        """Draw nothing yet. Raises SpecError if EOSINGEST_PROGRESS_SECONDS is not a number of seconds."""
        self._renderer = renderer
        self._now = now
        self._interval_s = _interval()
        self._said = now()
        self._live = renderer.watched()
        self._bar: Bar | None = None

    def __enter__(self) -> Watcher:
        """Draw nothing yet: there is no progress before the Spark job."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """Remove the bar, so that later output starts on a new line."""
        if self._bar is not None:
            self._draw(self._bar.stop)

    def note(self, text: str) -> None:
        """Print one line, above the bar if there is one."""
        self._renderer.note(text)

    def progress(self, progress: Progress) -> None:
        """Show the progress of a run."""
        if self._live:
            line = line_of(progress, with_size=True)
            self._draw(lambda: self._move(line, progress.size_done, progress.size_planned))
        else:
            self._say(line_of(progress))

    def audited(self, progress: AuditProgress) -> None:
        """Show the progress of an audit."""
        line = audit_line(progress)
        if self._live:
            self._draw(lambda: self._move(line, progress.done, progress.planned))
        else:
            self._say(line)

    def _say(self, line: str) -> None:
        """Print the line if the interval since the last one has passed."""
        if not self._renderer.quiet and self._now() - self._said >= self._interval_s:
            self._said = self._now()
            self._renderer.line(line)

    def _move(self, line: str, done: int, planned: int) -> None:
        """Update the bar."""
        if self._bar is None:
            self._bar = _new_bar(self._renderer)
            self._bar.add_task("")
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], total=planned, completed=done, description=line, refresh=True)

    def _draw(self, step: Callable[[], None]) -> None:
        try:
            step()
        except OSError:
            self._live = False


def line_of(progress: Progress, *, with_size: bool = False) -> str:
    """Return the progress in one line, with the time left once records were committed."""
    parts = [f"{progress.splits_done:,} of {formatting.count(progress.splits_planned, 'split')}"]
    if with_size:
        planned = formatting.amount(progress.size_planned, progress.unit)
        parts.append(f"{formatting.amount(progress.size_done, progress.unit)} of {planned}")
    before = f" ({progress.records_before:,} more by earlier runs)" if progress.records_before else ""
    parts.append(f"{formatting.count(progress.records_sent, 'record')}{before}")
    parts.append(f"{progress.records_per_second:,.0f} records/s")
    if progress.seconds_left is not None:
        parts.append(f"{formatting.clock(progress.seconds_left)} left")
    return ", ".join(parts)


def audit_line(progress: AuditProgress) -> str:
    """Return the progress of an audit in one line."""
    parts = [f"reading {progress.what}: {progress.done:,} of {formatting.count(progress.planned, progress.unit)}"]
    if progress.seconds_left is not None:
        parts.append(f"{progress.per_second:,.0f} {progress.unit}s/s, {formatting.clock(progress.seconds_left)} left")
    return ", ".join(parts)


def _interval() -> float:
    text = os.environ.get(INTERVAL_VARIABLE, "").strip()
    try:
        seconds = float(text) if text else _INTERVAL_S
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise SpecError(
            f"{INTERVAL_VARIABLE} is not a number of seconds: {text}",
            code="usage",
            hint=f"nothing was done; set it to a number such as 10, or unset it for {_INTERVAL_S:.0f}",
        )
    return seconds


def _new_bar(renderer: Renderer) -> Bar:
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    # No refresh thread, since this process starts Spark and its JVM. Rich prints stderr's lines above the bar.
    return Bar(
        BarColumn(bar_width=24),
        TextColumn("{task.description}", markup=False),
        console=renderer.console(),
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
    )
