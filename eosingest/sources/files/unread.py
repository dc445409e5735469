"""A source whose files are listed and cut, and not read: for a look of which nothing is remembered."""

from __future__ import annotations

import builtins
from collections.abc import Iterable

from eosingest.protocol.source import Fingerprint, Listing, Source, SourceFile, Split


class Unread:
    """Gives fingerprints without their content, so that no file need be read for a plan that nothing is sent by."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def list(self) -> Listing:
        """Look at the source once."""
        return self._source.list()

    def fingerprint(self, file: SourceFile) -> Fingerprint:
        """Return what the listing knows."""
        return Fingerprint(file.length, file.mtime_ms, "")

    def splits(self, file: SourceFile, split_size: int) -> tuple[Split, ...]:
        """Cut the file as Spark will."""
        return self._source.splits(file, split_size)

    def look_again(self, files: Iterable[SourceFile]) -> builtins.list[str]:
        """Return the names of those that are not as they were listed."""
        return self._source.look_again(files)
