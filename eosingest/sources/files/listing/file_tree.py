"""Finds files in folders as Spark finds them: explicit paths, globs, folders with their `k=v` folders.

One `Walk` is one listing of a `Tree`, by default the local disk: it returns absolute paths and counts hidden names. The
caller decides about names and times.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import NamedTuple, Protocol

from eosingest.errors import FatalError, SpecError
from eosingest.host.interruption import never
from eosingest.sources.files.listing import globs
from eosingest.sources.files.listing.names import is_hidden

_NOT_THERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG})


class Found(NamedTuple):
    """An absolute path, and whether it is a folder (or a link to one)."""

    path: str
    is_folder: bool


class Entry(Protocol):
    """An entry of a folder."""

    @property
    def name(self) -> str:
        """Its name in the folder."""

    @property
    def path(self) -> str:
        """Its absolute path."""

    def is_dir(self) -> bool:
        """Say whether it is a folder (or a link to one)."""


class Tree(Protocol):
    """Folders, as a walk requests them by absolute paths. All raise FatalError for one that may not be read."""

    def entries(self, folder: str) -> Sequence[Entry]:
        """Return the entries of a folder."""

    def exists(self, path: str) -> bool:
        """Say whether a path exists, even as a dangling link."""

    def is_folder(self, path: str) -> bool:
        """Say whether a path is a folder (or a link to one)."""

    def identity(self, folder: str) -> Hashable:
        """Return a value that is equal for all paths of one folder."""


class LocalTree:
    """The local disk (a `Tree`)."""

    def entries(self, folder: str) -> list[os.DirEntry[str]]:
        """Return the entries of a folder."""
        try:
            with os.scandir(folder) as entries:
                return list(entries)
        except OSError as error:
            raise unreadable(folder, error) from error

    def exists(self, path: str) -> bool:
        """Say whether a path exists, even as a dangling link."""
        return exists(path)

    def is_folder(self, path: str) -> bool:
        """Say whether a path is a folder, or a link to one."""
        return os.path.isdir(path)

    def identity(self, folder: str) -> tuple[int, int]:
        """Return the folder's device and inode."""
        try:
            status = os.stat(folder)
        except OSError as error:
            raise unreadable(folder, error) from error
        return status.st_dev, status.st_ino


class Walk:
    """One listing of a tree. It counts what it leaves out: `hidden` names, and files `too_deep` in plain subfolders."""

    def __init__(self, check: Callable[[], None] = never, tree: Tree | None = None) -> None:
        """List nothing yet. `check` is called for each folder, and raises to end the listing."""
        self.tree: Tree = LocalTree() if tree is None else tree
        self._check = check
        self.hidden = 0
        self.too_deep = 0
        self._names: dict[Hashable, str] = {}

    def match(self, folder: str, pattern: str) -> list[Found]:
        """Return the files and folders that a glob names below an absolute folder, maybe none.

        A name that exists literally wins over the glob, segment by segment. A hidden folder is matched only by a segment that
        begins with the same `_` or `.`: Spark would enter any, also its own unfinished output.
        """
        # A brace may hold "..", which must not make a second name for a file.
        return [Found(os.path.normpath(path), is_folder) for path, is_folder in self._match(folder, pattern)]

    def everything_below(self, path: str) -> list[str]:
        """Return the files of a folder and of all folders in it.

        Raises SpecError for a folder that has two names, by a link: its files would be sent under both.
        """
        return list(self._tree(path, frozenset(), self._refuse_second_name))

    def _refuse_second_name(self, folder: str, inode: Hashable) -> None:
        first = self._names.setdefault(inode, folder)
        if first != folder:
            raise SpecError(
                f"{folder} and {first} are one folder: with recursive = true its files would be sent twice.",
                code="path-twice",
                hint="Nothing was sent; take the link away, or name the folders that are meant in path of [source].",
            )

    def folder(self, path: str) -> list[str]:
        """Return the files that Spark reads for a folder: its direct ones, or its whole tree if it has `k=v` folders."""
        tree = list(self._tree(path, frozenset()))
        prefix = len(path.rstrip("/")) + 1
        if any("=" in os.path.dirname(file[prefix:]) for file in tree):
            return tree
        own = [file for file in tree if "/" not in file[prefix:]]
        self.too_deep += len(tree) - len(own)
        return own

    def _match(self, folder: str, pattern: str) -> Iterator[Found]:
        segment, rest = globs.first_segment(pattern)
        if not segment:
            yield from self._match(folder, rest) if rest else [Found(folder, self.tree.is_folder(folder))]
        elif globs.is_plain(segment) or (
            globs.may_be_literal(segment) and self.tree.exists(os.path.join(folder, segment))
        ):
            yield from self._step(os.path.join(folder, segment), rest)
        elif len(choices := globs.alternatives(segment)) > 1 or choices[0] != segment:
            for choice in choices:
                yield from self._match(folder, f"{choice}/{rest}" if rest else choice)
        else:
            for entry in self._matching_entries(folder, segment):
                found = Found(entry.path, _is_folder(entry))  # mostly known from the folder: no call for each file
                if not rest:
                    yield found
                elif found.is_folder:
                    yield from self._match(found.path, rest)

    def _step(self, path: str, rest: str) -> Iterator[Found]:
        is_folder = self.tree.is_folder(path)
        if rest and is_folder:
            yield from self._match(path, rest)
        elif not rest and (is_folder or self.tree.exists(path)):
            yield Found(path, is_folder)

    def _matching_entries(self, folder: str, segment: str) -> Iterator[Entry]:
        regex = globs.to_regex(segment)
        self._check()
        for entry in self.tree.entries(folder):
            if not regex.fullmatch(entry.name):
                continue
            if is_hidden(entry.name) and entry.name[0] != segment[0] and _is_folder(entry):
                self.hidden += 1
            else:
                yield entry

    def _tree(
        self,
        folder: str,
        above: frozenset[Hashable],
        meet: Callable[[str, Hashable], None] = lambda folder, inode: None,
    ) -> Iterator[str]:
        """Yield every file below. Links are followed, but none that leads back up: those files already have a shorter name."""
        here = self.tree.identity(folder)
        if here in above:
            return
        meet(folder, here)
        self._check()
        for entry in self.tree.entries(folder):
            if is_hidden(entry.name):
                self.hidden += 1
            elif _is_folder(entry):
                yield from self._tree(entry.path, above | {here}, meet)
            else:
                yield entry.path


def exists(path: str) -> bool:
    """Say whether a path exists, even as a dangling link. Raises FatalError if a folder above may not be read."""
    try:
        os.lstat(path)
    except OSError as error:
        if error.errno in _NOT_THERE:
            return False
        raise unreadable(path, error) from error
    return True


def unreadable(path: str, error: OSError) -> FatalError:
    """Return the error for a file or folder that the system does not permit to read."""
    return FatalError(
        f"{path} cannot be read: {error.strerror}.",
        code="file-unreadable",
        hint="Give the user of this run the right to read it, or leave it out by a narrower path in [source].",
    )


def _is_folder(entry: Entry) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself: its status raises an error later
        return False
