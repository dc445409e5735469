"""Where eosingest keeps jars, the embedded broker, locks and logs: a leaf that all modules may import."""

from __future__ import annotations

import os
from pathlib import Path


def cache_directory() -> Path:
    """Return the user's folder for eosingest: `$EOSINGEST_HOME`, or `eosingest` in `$XDG_CACHE_HOME` or `~/.cache`.

    The path is absolute. The folder need not exist: who writes into it creates it.
    """
    own = os.environ.get("EOSINGEST_HOME")
    if own:
        return Path(own).expanduser().absolute()
    # The XDG base directory specification: a relative or empty $XDG_CACHE_HOME is to be ignored.
    base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    return (base if base.is_absolute() else Path.home() / ".cache") / "eosingest"
