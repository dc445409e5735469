"""Lists files once as a source, names each alike on every machine and in every checkout, and cuts and hashes them.

Local paths, `file:` URIs, and stores: buckets, HDFS (storage/). The listing has the files that Spark would read of the same
paths (without names that it hides and folders that it does not enter), and refuses files that Spark would drop or misread
silently, before a JVM is started.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from eosingest.errors import SpecError
from eosingest.host.interruption import never
from eosingest.protocol.source import Item, Purpose, Recorded, Scope, Snapshot, Source, Version
from eosingest.sources.base import compared
from eosingest.sources.files.bytes.codecs import named_by_codec
from eosingest.sources.files.cuts import FileSplits, is_splittable
from eosingest.sources.files.listing import etags, hdfs_places
from eosingest.sources.files.listing.fingerprint import Fingerprint
from eosingest.sources.files.listing.local_places import LocalPlaces
from eosingest.sources.files.listing.partitions import partition_base, partition_columns
from eosingest.sources.files.listing.places import Look, Places, Written
from eosingest.sources.files.listing.s3_places import S3Places
from eosingest.sources.files.listing.source_file import WORDING, SourceFile, as_file, left_out
from eosingest.sources.files.storage.port import Status
from eosingest.sources.files.storage.s3 import S3Storage
from eosingest.sources.files.storage.schemes import are_in_buckets, are_in_hdfs


class FileSource(Source):
    """The files of `[source]`. Raises SpecError for a path that its storage cannot have."""

    wording = WORDING
    splits = FileSplits()

    def __init__(
        self,
        *,
        format: str,
        paths: Sequence[str],
        directory: Path,
        root: str | None,
        min_age_s: float,
        allow_empty: bool | None = None,
        refuse_empty: bool = False,
        recursive: bool = False,
        options: Mapping[str, str] | None = None,
        compression: str | None = None,
        now: Callable[[], float] = time.time,
        check: Callable[[], None] = never,
        places: Places | None = None,
    ) -> None:
        """Take the keys of `[source]`.

        `directory` is the spec's folder: relative paths start there, and without `root` the names of their files are relative
        to it; `root` may be a relative path, too. Files younger than `min_age_s` seconds by the clock `now` are left out.
        `options` are those of the reader. `compression` is the codec of all files, None: by their names.
        `recursive`: all files below a folder are read, at any depth, and no folder gives a column.
        With `refuse_empty` a path must find a file, unless `allow_empty` is true (None: unless the path is a glob).
        `check` is called for each folder and file that is listed or hashed, and raises to end a run that was interrupted.
        `places` is the storage of the files, by default the local disk.
        """
        self._format = format
        self._options = options or {}
        self._compression = compression
        self._directory = os.path.abspath(directory)
        self._places = LocalPlaces(self._directory, check) if places is None else places
        self._paths = [self._places.parse(path) for path in paths]
        self._root_text = root
        self._root = None if root is None else self._places.parse(root).absolute
        self._min_age_s = min_age_s
        self._allow_empty = allow_empty
        self._refuse_empty = refuse_empty
        self._recursive = recursive
        self._now = now
        self._check = check

    def check_offline(self) -> None:
        """Raise SpecError if a package is missing that the storage needs. The paths were checked when this was made."""
        self._places.storage.need_packages()

    def check(self) -> None:
        """Raise the errors of `plan` that a short listing finds: of a bucket the first page, else the whole listing."""
        self._listed(self._places.look(self._check, glance=True))

    def plan(
        self, scope: Scope | None = None, recorded: Collection[Recorded] = (), purpose: Purpose = Purpose.RUN
    ) -> Snapshot:
        """List the files, and compare them with the recorded ones. They have no scope.

        Raises SpecError for a path that names nothing ("path-not-found"), if there is no file at all and that is not
        allowed ("source-empty"), for a file outside `root`, a mixed column=value tree; FatalError for a file that cannot be
        read, or whose name Spark cannot take; ChangedError for one that changes meanwhile.
        """
        snapshot, places = self._listed(self._places.look(self._check)), self._places
        if purpose is Purpose.RUN:
            return compared(snapshot, self.splits, recorded, places.unchanged, places.version, places.ahead)
        return compared(snapshot, self.splits, recorded, places.unchanged, _as_listed, self._ahead_to_show)

    def _ahead_to_show(self, files: Iterable[tuple[SourceFile, Sequence[Version]]]) -> AbstractContextManager[None]:
        """Prefetch; a file that is not recorded, or not with its current length, is not read."""
        return self._places.ahead((file, was) for file, was in files if _of_its_length(file, was))

    def _listed(self, look: Look) -> Snapshot:
        names: dict[str, str] = {}
        nothing = list[Written]()
        # Relative paths last: a file named both ways keeps its relative identity, regardless of the order in the spec.
        for written in sorted(self._paths, key=lambda path: path.relative):
            found = look.find(written, recursive=self._recursive, may_match_nothing=self._allow_empty is True)
            names.update((path, self._identity(path, written)) for path in found)
            if not found:
                nothing.append(written)
        if not names and not look.partial:
            self._refuse_nothing(nothing, look)
        youngest_ms = (self._now() - self._min_age_s) * 1000 if self._min_age_s > 0 else float("inf")
        files, too_young, empty = list[SourceFile](), list[str](), list[str]()
        for path in sorted(names, key=names.__getitem__):
            self._check()
            status = look.status(path)
            if status is None:
                continue
            file = self._file(names[path], path, status)
            if file.mtime_ms > youngest_ms:
                too_young.append(file.name)
            elif file.length == 0:
                empty.append(file.name)
            else:
                files.append(file)
        self.partition_base(files)  # raises if the tree is mixed
        return Snapshot(
            tuple(files),
            left_out=left_out(empty, too_young, look.hidden),
            notes=tuple(f"'{text}' names no file" for text in sorted(path.text for path in nothing)),
            folders=partition_columns(files, recursive=self._recursive),
            sample=Path(files[0].path) if files and not files[0].etag else None,
        )

    def _refuse_nothing(self, nothing: Iterable[Written], look: Look) -> None:
        """Raise SpecError if no path names a file and the spec does not allow that."""
        if self._allow_empty or not self._refuse_empty:
            return
        refused = [path for path in nothing if self._allow_empty is False or not look.is_glob(path)]
        if refused:
            left = f"; {look.hidden} names that begin with '_' or '.' were left out" if look.hidden else ""
            raise SpecError(
                f"'{refused[0].text}' holds no file; looked in {refused[0].absolute}{left}.",
                code="source-empty",
                hint="nothing was sent; correct path in [source]; if there may be no file, write allow_empty = true there",
            )

    def missing(self, names: Iterable[str]) -> list[str]:
        """Return the names of files that no longer exist, whether `path` names them or not."""
        base = self._root if self._root is not None else self._places.base
        paths = {self._places.joined(base, name): name for name in names}
        return [paths[path] for path in self._places.missing(paths)]

    def changed(self, items: Iterable[Item]) -> list[str]:
        """Return the names of files that have changed since they were listed, or are gone; see `Places.changed`."""
        files = {file.path: file for file in map(as_file, items)}
        return [files[file.path].name for file in self._places.changed([*files.values()])]

    def partition_base(self, files: Iterable[SourceFile]) -> str | None:
        """Return the reader's `basePath` for a column=value tree, None without one. Spark takes it unescaped."""
        return partition_base(files, recursive=self._recursive)

    def _identity(self, path: str, written: Written) -> str:
        if self._root is None:
            return self._relative(path) if written.relative else path
        if not path.startswith(self._root.rstrip("/") + "/"):
            raise SpecError(
                f"{path} (from path '{written.text}') is outside root '{self._root_text}', which is {self._root}.",
                code="outside-root",
                hint="Name a root in [source] that contains all its files.",
            )
        return path[len(self._root.rstrip("/")) + 1 :]

    def _relative(self, path: str) -> str:
        below = self._directory.rstrip("/") + "/"
        return path[len(below) :] if path.startswith(below) else os.path.relpath(path, self._directory)

    def _file(self, name: str, path: str, status: Status) -> SourceFile:
        is_cut = is_splittable(self._format, self._options, named_by_codec(path, self._compression))
        listed = (status.length, status.mtime_ms, is_cut, status.etag, self._places.storage, self._compression)
        return SourceFile(name, path, *listed)


def _as_listed(file: SourceFile, known: Sequence[Version]) -> Version:
    """Return the version of a file that is not sent: without a hash of its content, or a checksum."""
    return etags.version_of(file) if file.etag else Fingerprint(file.length, file.mtime_ms, "").to_json()


def _of_its_length(file: SourceFile, recorded: Sequence[Version]) -> bool:
    """Say whether a file was recorded, and always with its current length: if not, the listing is enough."""
    return bool(recorded) and all(version.get("length") == file.length for version in recorded)


class Table(Protocol):
    """The keys of `[source]` that locate files."""

    format: str
    options: Mapping[str, str]
    compression: str | None
    path: Sequence[str]
    root: str | None
    recursive: bool
    min_age: float
    allow_empty: bool | None

    def stores(self) -> Mapping[str, Any]:
        """Return the keys of `storage`, with references resolved."""


def source_of(table: Table, directory: Path, check: Callable[[], None]) -> FileSource:
    """Make the source of a spec's `[source]`; `check` raises to end a long wait."""
    return FileSource(
        format=table.format,
        paths=table.path,
        directory=directory,
        root=table.root,
        recursive=table.recursive,
        options=table.options,
        compression=table.compression,
        min_age_s=table.min_age,
        allow_empty=table.allow_empty,
        refuse_empty=True,
        check=check,
        places=_store(table, check),
    )


def _store(table: Table, check: Callable[[], None]) -> Places | None:
    """Return the store of the paths; None if they are on the local disk."""
    if are_in_buckets(table.path):
        return S3Places(S3Storage(**table.stores()), check)
    if are_in_hdfs(table.path):
        return hdfs_places.HdfsPlaces(hdfs_places.storage_of(table.path, table.stores().get("endpoint")), check)
    return None
