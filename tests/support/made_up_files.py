"""A source over files that are made up: what planning and audits do with a listing needs no bytes."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable

from eosingest.protocol.source import Item, Purpose, Recorded, Scope, Snapshot, Source
from eosingest.sources.base import compared
from eosingest.sources.files.cuts import FileSplit, FileSplits
from eosingest.sources.files.listing.fingerprint import Fingerprint, Fingerprints
from eosingest.sources.files.listing.source_file import WORDING, SourceFile, as_file
from tests.support.builders import cut_evenly, fingerprint, listing, source_file


class EvenSplits(FileSplits):
    """Splits of files that are cut evenly."""

    def cut(self, item: Item, split_size: int) -> tuple[FileSplit, ...]:
        return cut_evenly(as_file(item), split_size)


class VersionsOfFiles(Source):
    """The part of a source that tells versions of files apart, as the source of files does it."""

    wording = WORDING
    splits = EvenSplits()

    def __init__(self, read: Callable[[SourceFile], Fingerprint]) -> None:
        self._fingerprints = Fingerprints(read)

    def check(self) -> None:
        """Nothing is wrong with files that are made up."""

    @abstractmethod
    def find(self) -> Snapshot:
        """List the files."""

    def plan(
        self, scope: Scope | None = None, recorded: Collection[Recorded] = (), purpose: Purpose = Purpose.RUN
    ) -> Snapshot:
        return self.compared(self.find(), recorded)

    def compared(self, listing: Snapshot, recorded: Iterable[Recorded]) -> Snapshot:
        """Compare files that were listed with recorded ones."""
        return compared(listing, self.splits, recorded, self._fingerprints.unchanged, self._fingerprints.version)


class MadeUpFiles(VersionsOfFiles):
    """A source whose files are cut evenly: content is a word, and looking at it is counted."""

    def __init__(self, files: Iterable[SourceFile] = ()) -> None:
        super().__init__(self.read_content)
        self.files = {file.name: fingerprint(file.length, mtime_ms=file.mtime_ms) for file in files}
        self.too_young: tuple[str, ...] = ()
        self.hidden = 0
        self.read: Counter[str] = Counter()

    def put(self, name: str, length: int, *, mtime_ms: int = 1, content: str = "x") -> Fingerprint:
        self.files[name] = fingerprint(length, mtime_ms=mtime_ms, content=content)
        return self.files[name]

    def find(self) -> Snapshot:
        shown = [name for name in sorted(self.files) if name not in self.too_young]
        listed = [source_file(name, self.files[name].length, mtime_ms=self.files[name].mtime_ms) for name in shown]
        return listing(
            *(file for file in listed if file.length),
            hidden=self.hidden,
            too_young=self.too_young,
            empty=(file.name for file in listed if not file.length),
        )

    def read_content(self, file: SourceFile) -> Fingerprint:
        self.read[file.name] += 1
        return self.files[file.name]

    def changed(self, items: Iterable[Item]) -> list[str]:
        raise AssertionError("planning looks once")
