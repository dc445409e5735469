"""Defines the messages between a caller's process and the process of its verb: plain values that pickle."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from eosingest.errors import EosingestError
from eosingest.report.progress import AuditProgress, Progress
from eosingest.spec.model import Spec


@dataclass(frozen=True)
class Call:
    """A verb with its spec and options. `caller` is the caller's process id.

    Records of the package's log are passed on from `log_level` up.
    """

    verb: str
    spec: Spec
    options: dict[str, Any]
    caller: int
    log_level: int


@dataclass(frozen=True)
class Note:
    """One line for the user."""

    text: str


@dataclass(frozen=True)
class Logged:
    """A record of the package's log."""

    entry: logging.LogRecord


@dataclass(frozen=True)
class Answer:
    """The outcome of a verb: its report, or its error. `traceback` is that of a bug."""

    report: Any = None
    error: EosingestError | None = None
    traceback: str = ""


Message = Note | Progress | AuditProgress | Logged | Answer
