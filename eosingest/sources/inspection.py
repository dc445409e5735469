"""What a run will read is inspected before anything of it is sent, wherever Spark's and Hadoop's readers take damage silently.

Between the plan and the job: `SparkLauncher.prepare` has the pending files inspected in tasks (spark/inspect_files.py).
Each file is read once, and its bytes go through every check that its format and its name ask for; a file that needs none
is not opened. What is found ends the run: nothing was sent.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader

from eosingest.errors import ChangedError, FatalError
from eosingest.sources import codecs
from eosingest.sources.base import SourceFile
from eosingest.sources.fingerprint import to_milliseconds
from eosingest.sources.text_checks import BadTextError, check_text, needs_text_check
from eosingest.sources.walk import unreadable

_NAMED_AT_MOST = 20
_CORRECT = "correct it, or move it away"


@dataclass(frozen=True)
class Finding:
    """Why a file cannot be read exactly: `where` in it (a byte, a line; may be empty), and what to do about this one."""

    file: str
    where: str
    message: str
    hint: str = _CORRECT

    def __str__(self) -> str:
        """Return it as it is said to people."""
        return ": ".join(part for part in (self.file, self.where, self.message) if part)


def needs_inspection(format: str, options: Mapping[str, str], path: str) -> bool:
    """Say whether Spark cannot be trusted to tell this file's damage, so that it is read before."""
    return format in ("text", "json", "csv") and (
        codecs.codec_of(path) is not None or needs_text_check(format, options)
    )


def inspect(file: SourceFile, format: str, options: Mapping[str, str], split_size: int | None = None) -> Finding | None:
    """Read a file once, through all the checks it needs; return the first thing that is wrong with it.

    `split_size` is how it will be cut, None: not at all.

    Raises ChangedError where it is not the file that was listed, FatalError where it may not be read.
    """
    with _opened(file) as opened:
        try:
            pieces = codecs.pieces(opened, file.path)
            if needs_text_check(format, options):
                is_cut = split_size is not None and file.splittable and file.length > split_size
                check_text(pieces, format, options, split_size if is_cut else None)
            for _ in pieces:
                pass
        except BadTextError as bad:
            return Finding(
                file.name, "" if bad.line is None else f"line {bad.line:,}", bad.message, bad.hint or _CORRECT
            )
        except codecs.DamagedError as damaged:
            where = "" if damaged.at is None else f"near byte {damaged.at:,}"
            return Finding(file.name, where, damaged.message, damaged.hint or _CORRECT)
    return None


def error_of(findings: Sequence[Finding]) -> FatalError:
    """Make the one error of a run for all that was found."""
    named = [str(finding) for finding in findings[:_NAMED_AT_MOST]]
    more = f"; and {len(findings) - _NAMED_AT_MOST} more files" if len(findings) > _NAMED_AT_MOST else ""
    ways_out = "; ".join(dict.fromkeys(finding.hint for finding in findings[:_NAMED_AT_MOST]))
    return FatalError(
        f"{'; '.join(named)}{more}",
        code="bad-data",
        hint=f"nothing of this run was sent; {ways_out}; then run again",
    )


@contextmanager
def _opened(file: SourceFile) -> Iterator[BufferedReader]:
    """Open a file, which must be the one that was listed, before and after it is read."""
    try:
        with open(file.path, "rb") as opened:
            _refuse_change(file, opened)
            yield opened
            _refuse_change(file, opened)
    except FileNotFoundError as error:
        raise _changed(file) from error
    except OSError as error:
        raise unreadable(file.path, error) from error


def _refuse_change(file: SourceFile, opened: BufferedReader) -> None:
    now = os.fstat(opened.fileno())
    if (now.st_size, to_milliseconds(now.st_mtime_ns)) != (file.length, file.mtime_ms):
        raise _changed(file)


def _changed(file: SourceFile) -> ChangedError:
    return ChangedError(
        f"{file.name}: changed after it was listed",
        code="changed-while-read",
        hint="nothing of this run was sent; run again once nothing writes to the source any more (source.min_age)",
    )
