"""Action, a parsed verb, and Result, how it ended: plain values passed between the verbs, `main` and the renderer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eosingest.errors import EXIT_DONE, EXIT_WORK_PENDING, EosingestError

if TYPE_CHECKING:
    from eosingest.cli.render import Renderer


@dataclass(frozen=True)
class Result:
    """How a verb ended. `data` is that of the JSON envelope, `lines` the same as text; `notes` go to stderr in text output."""

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
    """A verb with its parsed arguments, not yet performed. `output` None: not given, so text."""

    command: str
    perform: Callable[[Renderer], Result]
    output: str | None = None
    verbose: bool = False
    quiet: bool = False
