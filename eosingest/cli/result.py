"""What a verb is, and what it ends with: plain values between the verbs, `main` and the renderer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eosingest.errors import EXIT_DONE, EXIT_WORK_PENDING, EosingestError

if TYPE_CHECKING:
    from eosingest.cli.render import Renderer


@dataclass(frozen=True)
class Result:
    """How a verb ended. `data` is the JSON envelope's, `lines` are the same for people; `notes` go to stderr as text."""

    command: str
    data: Any = None
    lines: tuple[str, ...] = ()
    exit_code: int = EXIT_DONE
    errors: tuple[EosingestError, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def status(self) -> str:
        """The envelope's `status`: "success", also where work is pending, or "error"."""
        return "success" if self.exit_code in (EXIT_DONE, EXIT_WORK_PENDING) else "error"


@dataclass(frozen=True)
class Action:
    """A verb with its arguments, parsed and not yet performed. `output` None: not said, so text."""

    command: str
    perform: Callable[[Renderer], Result]
    output: str | None = None
    verbose: bool = False
    quiet: bool = False
