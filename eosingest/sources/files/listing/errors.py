"""Opens a file as it was listed, and makes the error if it is not: for the inspection and the tasks.

A storage compares the file with the listing whenever it reads bytes; here it is compared again at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedReader

from eosingest.errors import ChangedError
from eosingest.sources.files.listing.source_file import SourceFile
from eosingest.sources.files.storage.port import NotAsListedError


@contextmanager
def opened_as_listed(
    file: SourceFile, changed: Callable[[SourceFile], ChangedError], until: int | None = None
) -> Iterator[BufferedReader]:
    """Open a file, which must be the listed one until it is read; `until` as in `Storage.open`.

    Raises the error that `changed` returns if it is not.
    """
    try:
        with file.storage.open(file, until) as opened:
            yield opened
            if is_changed(file, opened):
                raise changed(file)
    except (FileNotFoundError, NotAsListedError) as error:
        raise changed(file) from error


def before_sending(file: SourceFile) -> ChangedError:
    """Make the error for a run that has sent nothing."""
    return ChangedError(
        f"{file.name}: changed after it was listed",
        code="changed-while-read",
        hint="nothing of this run was sent; run again once nothing writes to the source any more (source.min_age)",
        item=file.name,
    )


def while_listed(file: SourceFile, what: str = "changed") -> ChangedError:
    """Make the error for a file that is read for its version; `what` happened to it."""
    return ChangedError(
        f"{file.path} {what} since it was listed a moment ago; nothing of it was sent since then.",
        code="file-changed",
        hint='Files that are still being written are left alone with min_age = "60s" in [source]. Then run again.',
    )


def while_sent(file: SourceFile) -> ChangedError:
    """Make the error for a file of which records may be committed."""
    return ChangedError(
        f"{file.name}: changed after it was listed",
        code="changed-while-read",
        hint="its committed records are kept; restore the file, or wait until nothing writes to it (source.min_age)",
        item=file.name,
    )


def is_changed(file: SourceFile, opened: BufferedReader) -> bool:
    """Say whether an open file is another one than the listed file."""
    return file.storage.is_changed(file, opened)
