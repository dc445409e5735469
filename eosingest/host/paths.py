"""Locates the folder in which eosingest keeps jars, the embedded broker, locks and logs."""

from __future__ import annotations

import os
from pathlib import Path

from eosingest.errors import FatalError


def cache_directory() -> Path:
    """Return the user's folder for eosingest: `$EOSINGEST_HOME`, or `eosingest` in `$XDG_CACHE_HOME` or `~/.cache`.

    The path is absolute. The folder need not exist: code that writes into it creates it.
    """
    own = os.environ.get("EOSINGEST_HOME")
    if own:
        return Path(own).expanduser().absolute()
    # The XDG base directory specification: a relative or empty $XDG_CACHE_HOME must be ignored.
    base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    return (base if base.is_absolute() else Path.home() / ".cache") / "eosingest"


def unusable(folder: Path, error: OSError) -> FatalError:
    """Make the error for a folder that cannot be created or written."""
    return FatalError(
        f"{folder} cannot be used: {error.strerror}",
        code="cache-folder",
        hint="nothing was sent; let EOSINGEST_HOME name a folder that can be written, on a disk with room",
    )
