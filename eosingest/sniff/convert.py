"""Makes the shell commands of hints: they convert a file to one that a run reads, and overwrite no file."""

from __future__ import annotations

import itertools
import shlex
from pathlib import Path

from eosingest.sniff.input import Opened


def command(data: Opened, program: str, suffix: str) -> tuple[str, str]:
    """Return the command that passes a file through a program into a new file of this folder, and the new file's name."""
    name = argument(_unused_name(data.file.name.split(".")[0] or "data", suffix))
    file = argument(str(data.file))
    tool = {"gzip": "gzip", "bz2": "bzip2", "zstd": "zstd", "lz4": "lz4"}.get(data.codec or "")
    return (f"{tool} -dc {file} | {program} > {name}" if tool else f"{program} {file} > {name}"), name


def _unused_name(stem: str, suffix: str) -> str:
    names = itertools.chain([f"{stem}{suffix}"], (f"{stem}-{number}{suffix}" for number in itertools.count(1)))
    return next(name for name in names if not Path(name).exists())


def argument(name: str) -> str:
    """Quote a file name for a shell; a name that begins with `-` is no option of the command."""
    return shlex.quote(f"./{name}" if name.startswith("-") else name)
