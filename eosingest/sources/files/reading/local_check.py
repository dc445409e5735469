"""Checks in a task that local files are as listed, before the task commits all of them in one transaction.

As store_check.py does for stores (`scan.SplitFrame.check_all`). In other jobs the driver checks after the job, before it marks
a split as done; here the transaction with the rows of a split also marks it as done.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eosingest.protocol.plan import PlannedSplit
from eosingest.sources.files.listing.errors import while_sent
from eosingest.sources.files.listing.fingerprint import Fingerprint
from eosingest.sources.files.listing.source_file import SourceFile
from eosingest.sources.files.storage.local import is_as_listed_now


@dataclass(frozen=True)
class LocalCheck:
    """Checks files; `paths` maps their names to their paths. Pickled and sent to tasks."""

    paths: dict[str, str]

    @classmethod
    def of(cls, files: Sequence[SourceFile]) -> LocalCheck:
        """Return the check for a run's files."""
        return cls({file.name: file.path for file in files})

    def __call__(self, splits: Iterable[PlannedSplit]) -> None:
        """Raise ChangedError that names a file which is no longer the listed one, or is gone."""
        for name, version in {split.split.item: split.version for split in splits}.items():
            was = Fingerprint.from_json(version)
            file = SourceFile(name, self.paths[name], was.length, was.mtime_ms, splittable=True)
            if not is_as_listed_now(file):
                raise while_sent(file)
