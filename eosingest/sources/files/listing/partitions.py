"""Reads the `column=value` folders of Hive-style trees from file names, and checks that all files agree about them.

Spark silently drops the rows of files whose folders do not fit those of the others, so that tree is refused here. It also
makes a character of each `%XX`; everyone who writes such folders means a byte of UTF-8 (reading/spark_reader.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from eosingest.errors import SpecError
from eosingest.sources.files.listing.source_file import SourceFile

NULL = "__HIVE_DEFAULT_PARTITION__"
_BEYOND_ASCII = re.compile("%[89A-Fa-f][0-9A-Fa-f]")


def decoded(text: str) -> str:
    """Return the name or value that a folder's name holds: each `%XX` is a byte of UTF-8. `_layout` has proven that it is."""
    return unquote_to_bytes(text).decode()


@dataclass(frozen=True)
class _Layout:
    """The layout of one file's folders: the folder above the first `k=v`, and the ordered columns, in lower case."""

    base: str | None
    columns: tuple[str, ...]

    def __str__(self) -> str:
        """Return its text in an error message."""
        return f"columns {', '.join(self.columns)} below {self.base}" if self.columns else "no column=value folder"


def partition_base(files: Iterable[SourceFile], *, recursive: bool) -> str | None:
    """Return the folder above the first `k=v` folder, common to all files: the reader's `basePath`; None without one.

    Only folders in the file's identity count, so that the same names give the same columns in every location. With
    `recursive`, no folder gives a column. Raises SpecError if the files do not share one layout.
    """
    if recursive:
        return None
    layouts: dict[_Layout, str] = {}
    folders: dict[tuple[str, str], _Layout] = {}
    for file in files:
        key = (file.name.rpartition("/")[0], file.path.rpartition("/")[0])
        if key not in folders:
            folders[key] = _layout(*key)
            layouts.setdefault(folders[key], file.name)
    if len(layouts) > 1:
        raise _mixed(layouts)
    return next(iter(layouts)).base if layouts else None


def partition_columns(files: Iterable[SourceFile], *, recursive: bool = False) -> tuple[str, ...]:
    """Return the columns of the tree's `k=v` folders, in lower case; see `partition_base`."""
    for file in () if recursive else files:  # the layout is common to all
        return _layout(file.name.rpartition("/")[0], file.path.rpartition("/")[0]).columns
    return ()


def folder_values(file: SourceFile, decode: Callable[[str], str] = decoded) -> dict[str, str | None]:
    """Return the values of one file's `k=v` folders, ordered, the columns as written; None for null.

    An audit has another `decode` than the run.
    """
    pairs = [segment.partition("=") for segment in file.name.split("/")[:-1] if "=" in segment]
    return {decoded(column): None if value == NULL else decode(value) for column, _, value in pairs}


def folder_names(files: Iterable[SourceFile]) -> list[str]:
    """Return the columns of the files' folders as written. Raises SpecError if one column has two spellings."""
    spelled: dict[str, str] = {}
    for file in files:
        for name in folder_values(file):
            other = spelled.setdefault(name.lower(), name)
            if other != name:
                raise SpecError(
                    f"The folders of [source] are called {other}=… and {name}=…: that is one column with two names.",
                    code="mixed-tree",
                    hint="Rename one of them.",
                )
    return list(spelled.values())


def _layout(name: str, path: str) -> _Layout:
    """Parse the folders of one file; `name` is the end of `path`, or is relative with `..` in front of such an end."""
    segments = name.split("/")
    marked = [index for index, segment in enumerate(segments) if "=" in segment]
    if not marked:
        return _Layout(None, ())
    run = segments[marked[0] : marked[-1] + 1]
    if any("=" not in segment for segment in run):
        raise _broken(name, "a folder without '=' is between two with '='")
    pairs = [segment.partition("=") for segment in run]
    if any(not column or not value for column, _, value in pairs):
        raise _broken(name, "a column=value folder needs a column on the left of '=' and a value on the right")
    for column, _, value in pairs:
        _refuse_other_bytes(name, column, value)
    columns = tuple(decoded(column).lower() for column, _, _ in pairs)
    if len(set(columns)) < len(columns):
        raise _broken(name, "it has one column twice")
    if "_temporary" in (segment.lower() for segment in segments[marked[0] :]):
        raise _broken(name, "Spark reads nothing below '_temporary' in a column=value tree")
    below = len(segments) - marked[0]
    return _Layout("/".join(path.split("/")[:-below]) or "/", columns)


def _refuse_other_bytes(name: str, column: str, value: str) -> None:
    """Raise SpecError if a folder's name has no certain meaning: readers would each find another one."""
    try:
        decoded(value)
        if _BEYOND_ASCII.search(column):
            raise _broken(name, f"'{column}' is the name of a column, in which %XX is read for ASCII only")
    except UnicodeError:
        raise _broken(name, f"the bytes of %XX in '{column}={value}' are not UTF-8") from None


def _broken(name: str, why: str) -> SpecError:
    return SpecError(
        f"The folder {name} is not one of a column=value tree: {why}.",
        code="mixed-tree",
        hint="Rename the folder, or leave it out by a narrower path in [source].",
    )


def _mixed(layouts: dict[_Layout, str]) -> SpecError:
    shown = [f"{name}: {layout}" for layout, name in sorted(layouts.items(), key=lambda item: item[1])]
    return SpecError(
        "The files of [source] are not in one column=value tree; Spark would leave some of them out silently.",
        code="mixed-tree",
        hint="Give each tree a separate job, or narrow path to files with the same column=value folders.",
        problems=shown,
    )
