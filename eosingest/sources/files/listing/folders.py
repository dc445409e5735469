"""Resolves a path of the spec to files, in a storage with folders: the rules are Spark's, the walk is file_tree.py.

Used by the listings of these storages (local_places.py, hdfs_places.py).
"""

from __future__ import annotations

import os

from eosingest.sources.files.listing.file_tree import Found, Walk
from eosingest.sources.files.listing.globs import is_plain, may_be_literal
from eosingest.sources.files.listing.names import is_hidden
from eosingest.sources.files.listing.places import Written, names_hidden, not_found, only_deeper


class FolderLook:
    """One listing of folders (`places.Look`), without the `status` of files.

    Paths are walked without `prefix`, with which those of the storage begin. `hint` says what to do if nothing exists.
    """

    partial = False

    def __init__(self, walk: Walk, prefix: str, hint: str) -> None:
        """List nothing yet."""
        self._walk = walk
        self._prefix = prefix
        self._hint = hint

    @property
    def hidden(self) -> int:
        """The number of names that were left out."""
        return self._walk.hidden

    @hidden.setter
    def hidden(self, number: int) -> None:
        self._walk.hidden = number

    def find(self, written: Written, *, recursive: bool, may_match_nothing: bool) -> list[str]:
        """Return the files that one path of the spec names; SpecError if it names nothing."""
        walk = self._walk
        literal = may_be_literal(written.pattern) and self._exists(written)
        path = os.path.normpath(self._below(written.absolute))
        if literal:
            matches = [Found(path, walk.tree.is_folder(path))]
        else:
            matches = walk.match(self._below(written.folder), written.pattern)
        if literal and is_hidden(os.path.basename(path)) and not matches[0].is_folder:
            raise names_hidden(written)
        files, too_deep = list[str](), walk.too_deep
        for match in matches:
            if match.is_folder:
                files += walk.everything_below(match.path) if recursive else walk.folder(match.path)
            elif is_hidden(os.path.basename(match.path)):
                walk.hidden += 1
            else:
                files.append(match.path)
        if not matches and not (may_match_nothing and self.is_glob(written)):
            raise not_found(written, self._hint)
        if not files and walk.too_deep > too_deep:
            raise only_deeper(written)
        return [f"{self._prefix}{file}" for file in files]

    def is_glob(self, written: Written) -> bool:
        """Say whether a path is a glob, and not also an existing name."""
        return not self._exists(written) and not is_plain(written.pattern)

    def _exists(self, written: Written) -> bool:
        return self._walk.tree.exists(self._below(written.absolute))

    def _below(self, path: str) -> str:
        return path.removeprefix(self._prefix) or "/"


def normalised(path: str) -> str:
    """Resolve `.` and `..` in the text, up to where braces begin: inside `{a,b/../c}` they are no segments."""
    if "{" not in path:
        return os.path.normpath(path)
    before, slash, after = path[: path.index("{")].rpartition("/")
    return (os.path.normpath(before) if before else "") + slash + after + path[path.index("{") :]
