"""A task looks at local files before it commits all of them in one transaction: each must be as it was listed.

As store_check.py does it for stores (`scan.SplitFrame.check_all`). Elsewhere the driver looks after the job, before it marks a
split as done; here the split is done with the transaction that has its rows.
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
    """Looks at files; `paths` are theirs, by name. Pickled into the tasks."""

    paths: dict[str, str]

    @classmethod
    def of(cls, files: Sequence[SourceFile]) -> LocalCheck:
        """Return the check for a run's files."""
        return cls({file.name: file.path for file in files})

    def __call__(self, splits: Iterable[PlannedSplit]) -> None:
        """Raise ChangedError that names a file which is another one now, or gone."""
        for name, version in {split.split.item: split.version for split in splits}.items():
            was = Fingerprint.from_json(version)
            file = SourceFile(name, self.paths[name], was.length, was.mtime_ms, splittable=True)
            if not is_as_listed_now(file):
                raise while_sent(file)
