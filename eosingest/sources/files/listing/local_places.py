"""Lists the local file system (`places.Places`): paths and `file:` URIs, found as Spark finds them (file_tree.py)."""

from __future__ import annotations

import builtins
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext

from eosingest.errors import FatalError, SpecError
from eosingest.host.interruption import never
from eosingest.protocol.source import Version
from eosingest.sources.files.listing import etags
from eosingest.sources.files.listing.file_tree import Walk, exists, unreadable
from eosingest.sources.files.listing.fingerprint import Fingerprint, Fingerprints, fingerprint_file
from eosingest.sources.files.listing.folders import FolderLook, normalised
from eosingest.sources.files.listing.names import check_readable_name
from eosingest.sources.files.listing.places import Written
from eosingest.sources.files.listing.source_file import SourceFile
from eosingest.sources.files.storage.local import LOCAL, to_milliseconds
from eosingest.sources.files.storage.port import Status
from eosingest.sources.files.storage.schemes import URI, is_relative


class LocalPlaces:
    """The local disk, as the source of files lists it (`places.Places`)."""

    storage = LOCAL

    def __init__(self, directory: str, check: Callable[[], None] = never) -> None:
        """Relative paths start at `directory`, an absolute one. `check` is called for each file that is read."""
        self.base = directory
        self._check = check
        self._fingerprints = Fingerprints(self._fingerprint)

    def parse(self, text: str) -> Written:
        """Parse a path. `.` and `..` are resolved in the text, as Hadoop does it, not on the disk.

        Raises SpecError for a path that no local disk has (another URI scheme, a zero byte).
        """
        scheme = URI.match(text)
        if scheme and scheme[1].lower() != "file":
            raise SpecError(
                f"'{text}': local paths, file: URIs, s3:// and hdfs:// are read in this version, and not {scheme[1]}:.",
                code="path-scheme",
            )
        path = _local_part(text) if scheme else text
        if not path or "\0" in path:
            raise SpecError(f"{text!r} in [source] is not a path.", code="path")
        relative = is_relative(text)
        folder, pattern = (self.base if relative else "/"), normalised(path).lstrip("/")
        while pattern == ".." or pattern.startswith("../"):
            folder, pattern = os.path.dirname(folder), pattern[3:]
        return Written(text, folder, "" if pattern == "." else pattern, relative)

    def look(self, check: Callable[[], None], *, glance: bool = False) -> LocalLook:
        """Begin a listing. It takes a second for 100,000 files, also for a `glance`."""
        return LocalLook(check)

    def joined(self, base: str, name: str) -> str:
        """Return an absolute path; `name` may be one, or begin with `..`."""
        return os.path.normpath(os.path.join(base, name))

    def missing(self, paths: Iterable[str]) -> builtins.list[str]:
        """Return the paths at which nothing exists, not even a link."""
        return [path for path in paths if not exists(path)]

    def changed(self, files: Sequence[SourceFile]) -> builtins.list[SourceFile]:
        """Return the files whose length or modification time differs now, or that are gone."""
        return [file for file in files if not LOCAL.is_as_listed(file)]

    def version(self, file: SourceFile, known: Iterable[Version]) -> Version:
        """Return the file's fingerprint; see `Fingerprints.version`."""
        return self._fingerprints.version(file, known)

    def unchanged(self, file: SourceFile, recorded: Sequence[Version]) -> bool:
        """Say whether the file is unchanged since it was recorded; see `Fingerprints.unchanged`."""
        if any(map(etags.is_of_object, recorded)):
            return False  # it was moved here from a store: nothing proves it equal
        return self._fingerprints.unchanged(file, recorded)

    def ahead(self, files: Iterable[tuple[SourceFile, Sequence[Version]]]) -> AbstractContextManager[None]:
        """Prefetch nothing."""
        return nullcontext()

    def _fingerprint(self, file: SourceFile) -> Fingerprint:
        """Hash the content; `fingerprint_file` defines the hashed part, and the errors."""
        self._check()
        return fingerprint_file(file)


class LocalLook(FolderLook):
    """One listing (`places.Look`)."""

    def __init__(self, check: Callable[[], None]) -> None:
        """List nothing yet."""
        super().__init__(
            Walk(check),
            "",
            "Relative paths start at the folder of the spec. Correct path in [source], or create what it names.",
        )

    def status(self, path: str) -> Status | None:
        """Return the current status of a file; None if it was deleted since its folder was read."""
        check_readable_name(path)
        try:
            status = os.stat(path)
        except FileNotFoundError as error:
            if not os.path.islink(path):
                return None
            raise FatalError(f"{path} is a link to nowhere.", code="file-unreadable") from error
        except OSError as error:
            raise unreadable(path, error) from error
        if not stat.S_ISREG(status.st_mode):
            raise FatalError(f"{path} is not a regular file.", code="file-unreadable")
        if not os.access(path, os.R_OK, effective_ids=os.access in os.supports_effective_ids):
            raise FatalError(f"{path} may not be read by the user of this run.", code="file-unreadable")
        return Status(status.st_size, to_milliseconds(status.st_mtime_ns))


def _local_part(uri: str) -> str:
    """Return the path of a `file:` URI. Nothing in it is decoded: Hadoop takes `%20` literally."""
    rest = uri.partition(":")[2]
    if not rest.startswith("//"):
        return rest
    host, slash, path = rest[2:].partition("/")
    if host not in ("", "localhost"):
        raise SpecError(
            f"'{uri}' names the host '{host}': a file: URI of this machine begins with file:///.", code="path-scheme"
        )
    return slash + path
