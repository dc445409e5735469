"""Defines Action, a parsed verb, and Result, its outcome: plain values passed between the verbs, `main` and the renderer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eosingest.errors import EXIT_DONE, EXIT_WORK_PENDING, EosingestError

if TYPE_CHECKING:
    from eosingest.cli.render import Renderer


@dataclass(frozen=True)
class Result:
    """The outcome of a verb. `data` is for the JSON envelope, `lines` for text output, which has the `notes` on stderr."""

    command: str
    data: Any = None
    lines: tuple[str, ...] = ()
    exit_code: int = EXIT_DONE
    errors: tuple[EosingestError, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def status(self) -> str:
        """The envelope's `status`: "success" (also if work is pending) or "error"."""
        return "success" if self.exit_code in (EXIT_DONE, EXIT_WORK_PENDING) else "error"


@dataclass(frozen=True)
class Action:
    """A verb with its parsed arguments, not yet performed. `output` is None if it was not given after the verb."""

    command: str
    perform: Callable[[Renderer], Result]
    output: str | None = None
    verbose: bool = False
    quiet: bool = False
