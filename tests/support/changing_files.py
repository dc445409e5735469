"""The files of a simulated job: somebody edits, removes and restores them, and new ones appear between runs."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from random import Random

from eosingest.protocol.source import Snapshot
from eosingest.sources.files.listing.fingerprint import Fingerprint
from eosingest.sources.files.listing.source_file import SourceFile
from tests.support.builders import Place, fingerprint, listing, source_file
from tests.support.made_up_files import VersionsOfFiles
from tests.support.simulated_source import SimulatedSource

_EDITED_AT = "edited at "
BEFORE_MS, AFTER_MS = 1, 2  # modification times of a file as it was, and as somebody saved it


class Files:
    """What is there now. `edited` are the splits that have other rows than at first; whoever edits one by `save` is seen.

    With `correcting` the other content of a file may change only some of its splits. With `appearing` only some files are
    there at first, and each listing may find more of them.
    """

    def __init__(
        self,
        rows: SimulatedSource,
        edited: Collection[Place],
        appearing: Random | None = None,
        correcting: Random | None = None,
    ) -> None:
        self._edited = edited
        self._correcting = correcting
        self._rewritten: dict[str, set[Place]] = {}
        self._appearing = appearing
        self.rows = rows
        self.gone = {name for name in self.names if appearing is not None and appearing.random() < 0.7}
        self.mtimes_ms = {file.name: BEFORE_MS for file in rows.files}

    @property
    def names(self) -> list[str]:
        return [file.name for file in self.rows.files]

    def save(self, name: str) -> None:
        """Save the other content of a file, and then the first one again, with its modification time."""
        self.mtimes_ms[name] = AFTER_MS if self.mtimes_ms[name] == BEFORE_MS else BEFORE_MS

    def rewritten(self, name: str) -> set[Place]:
        """Return the splits whose rows the other content of a file changes: all that have any, or with `correcting` some."""
        splits = [split for split, rows in self.rows.lengths.items() if rows and split[0] == name]
        if self._correcting is not None and name not in self._rewritten:
            self._rewritten[name] = {split for split in splits if self._correcting.random() < 0.5}
        return self._rewritten.get(name, set(splits))

    def appear(self) -> None:
        """Let some of the files that are not there appear."""
        if self._appearing is not None:
            self.gone = {name for name in sorted(self.gone) if self._appearing.random() < 0.7}

    def as_listed(self, name: str) -> SourceFile | None:
        """Return a file as a listing finds it, None where it is not there."""
        length = next(file.length for file in self.rows.files if file.name == name)
        return None if name in self.gone else source_file(name, length, mtime_ms=self.mtimes_ms[name])

    def content(self, file: SourceFile) -> Fingerprint:
        """Return what a file is by its content."""
        other = sorted(start for name, start in self._edited if name == file.name)
        return fingerprint(file.length, mtime_ms=file.mtime_ms, content=f"{_EDITED_AT}{other}")


def edited_at(content: str, split: Place) -> bool:
    """Say whether a split has other rows than at first in a file of this content."""
    return split[1] in json.loads(content.removeprefix(_EDITED_AT))


class ChangingFiles(VersionsOfFiles):
    """A source of one run over these files. `listed` are those that it found."""

    def __init__(self, files: Files) -> None:
        super().__init__(files.content)
        self._files = files
        self.listed: set[str] = set()

    def find(self) -> Snapshot:
        self._files.appear()
        found = [file for name in self._files.names if (file := self._files.as_listed(name)) is not None]
        self.listed = {file.name for file in found}
        return listing(*found)

    def changed(self, files: Iterable[SourceFile]) -> list[str]:
        return [file.name for file in files if self._files.as_listed(file.name) != file]
