"""Checks in tasks that the files of a store, whose rows Spark has read, still have the ETag that was listed.

Between the rows that Spark gives to a task and their transaction (`scan.SplitFrame.check_items`). Hadoop's clients open the
current file at a path, and do not accept the listed version. So a file that was overwritten before it was opened is detected
here, before any of its rows is committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import cast

from eosingest.protocol.plan import PlannedSplit
from eosingest.sources.files.listing.errors import while_sent
from eosingest.sources.files.listing.source_file import SourceFile
from eosingest.sources.files.storage.port import Store

_AT_A_TIME = 16


@dataclass(frozen=True)
class StoreCheck:
    """Checks files of a store; the path of each is `prefix` and its name. Pickled and sent to tasks."""

    storage: Store
    prefix: str

    @classmethod
    def of(cls, files: Sequence[SourceFile]) -> StoreCheck | None:
        """Return the check for a run's files; None for local files."""
        if not files or not files[0].etag:
            return None
        return cls(cast(Store, files[0].storage), files[0].path.removesuffix(files[0].name))

    def __call__(self, splits: Iterable[PlannedSplit]) -> None:
        """Raise ChangedError that names a file which is no longer the listed one, or is gone; UnreachableError."""
        files = list({split.split.item: self._file(split) for split in splits}.values())
        if not files:
            return
        with ThreadPoolExecutor(min(_AT_A_TIME, len(files))) as pool:
            for file, is_as_listed in zip(files, pool.map(self.storage.is_as_listed, files), strict=True):
                if not is_as_listed:
                    raise while_sent(file)

    def _file(self, split: PlannedSplit) -> SourceFile:
        name, version = split.split.item, split.version
        length, etag = version["length"], version["etag"]
        assert isinstance(length, int) and isinstance(etag, str), version
        return SourceFile(name, self.prefix + name, length, 0, True, etag, self.storage)
