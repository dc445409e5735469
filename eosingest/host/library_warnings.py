"""Keeps warnings and log records of libraries off the terminal, in a process that performs a verb.

Called before any library is imported: many warn when they are imported. The caller of the Python API keeps its own filters and
handlers: there a verb runs in a separate process (api/child.py).
"""

from __future__ import annotations

import logging
import os
import warnings

_NEVER = (
    DeprecationWarning,
    PendingDeprecationWarning,
    ImportWarning,
    ResourceWarning,
)  # as Python's own default has it


def keep_off_the_terminal() -> None:
    """Turn warnings into log records, and have the root logger handle these; `--verbose` shows them (cli/render.py).

    Without a handler the root logger writes to stderr, and `logging.warning` adds a handler that does. -W and PYTHONWARNINGS
    are for programs under development: with `error`, a deprecated call in a library would end a run. They have no effect here,
    nor in processes that this one starts, such as Spark's Python workers.
    """
    os.environ.pop("PYTHONWARNINGS", None)
    warnings.resetwarnings()
    for category in _NEVER:
        warnings.simplefilter("ignore", category)
    logging.captureWarnings(True)
    logging.getLogger().addHandler(logging.NullHandler())
