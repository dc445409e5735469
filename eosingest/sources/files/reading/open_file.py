"""Opens a file in a task, as it was listed, and makes the error if it cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader

from eosingest.errors import FatalError
from eosingest.sources.files.bytes.codecs import DamagedError
from eosingest.sources.files.bytes.text_blocks import BadTextError
from eosingest.sources.files.listing.errors import is_changed, opened_as_listed, while_sent
from eosingest.sources.files.listing.source_file import SourceFile


@contextmanager
def opened_to_read(file: SourceFile, until: int | None = None) -> Iterator[BufferedReader]:
    """Open a file, which must be the listed one until it is read; `until` as in `Storage.open`.

    Raises ChangedError if it is another one, FatalError if it cannot be read; an OSError may be temporary.
    """
    try:
        with opened_as_listed(file, while_sent, until) as opened:
            try:
                yield opened
            except (BadTextError, DamagedError) as bad:
                if is_changed(file, opened):  # then the error says nothing about the listed file
                    raise while_sent(file) from bad
                line = f"line {bad.line:,}: " if isinstance(bad, BadTextError) and bad.line is not None else ""
                raise bad_data(file, f"{line}{bad}", bad.hint or "correct the file") from bad
    except PermissionError as error:
        raise bad_data(file, "it may not be read", "give the user of Spark the right to read it") from error


def bad_data(file: SourceFile, why: str, way_out: str) -> FatalError:
    """Make the error for a file of which rows may have been sent; `way_out` is what a user can do about it."""
    kept = "committed records are kept, nothing was sent twice"
    return FatalError(f"{file.name}: {why}", code="bad-data", hint=f"{kept}; {way_out}; then run again", item=file.name)
