"""Lists and cuts files without reading them for their versions: for a plan that is only shown."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from eosingest.protocol.source import Foresighted, Item, Kept, Listing, Scope, Source, Version
from eosingest.sources.files.listing import etags
from eosingest.sources.files.listing.fingerprint import Fingerprint
from eosingest.sources.files.listing.source_file import WORDING, as_file


class _Source(Source, Foresighted, Protocol):
    """A source of files."""


class ListedOnly:
    """A source of files that returns fingerprints without a content hash, since nothing is sent by its plan."""

    wording = WORDING

    def __init__(self, source: _Source) -> None:
        self._source = source
        self.splits = source.splits

    def check(self) -> None:
        """Call the source."""
        self._source.check()

    def list(self, scope: Scope | None = None, done: Iterable[Kept] = ()) -> Listing:
        """List the files."""
        return self._source.list(scope, done)

    def version(self, item: Item, known: Iterable[Version] = ()) -> Version:
        """Return the file's length and modification time, without a content hash; for one in a store the listed version."""
        file = as_file(item)
        if file.etag:
            return etags.version_of(file)
        return Fingerprint(file.length, file.mtime_ms, "").to_json()

    def unchanged(self, item: Item, recorded: Sequence[Version]) -> bool:
        """Call the source."""
        return self._source.unchanged(item, recorded)

    def ahead(self, items: Iterable[tuple[Item, Sequence[Version]]]) -> AbstractContextManager[None]:
        """Announce to the source only the files that it may have to read."""
        return self._source.ahead((item, recorded) for item, recorded in items if _of_its_length(item, recorded))

    def look_again(self, items: Iterable[Item]) -> builtins.list[str]:
        """Return the names of files that have changed or are gone since they were listed."""
        return self._source.look_again(items)


def _of_its_length(item: Item, recorded: Sequence[Version]) -> bool:
    """Say whether a file was recorded, and always with its current length: if not, the listing is enough."""
    return bool(recorded) and all(version.get("length") == item.size for version in recorded)
