"""Resolves a path of the spec to objects by their keys alone: by the rules of local files, for names without folders.

Used by the listing of a bucket (s3_places.py). A key is cut at each `/`; the text before one counts as a folder. Keys keep
every character: `//`, `.` and `..` are names like others here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from eosingest.sources.files.listing import globs
from eosingest.sources.files.listing.names import is_hidden

_SPECIAL = re.compile(r"[\\*?\[{]")


@dataclass
class Chosen:
    """The result for a pattern: keys of `files`; how many names were `hidden`, and are `too_deep` in plain folders.

    `matched`: something was named, a folder or a file, hidden or not.
    """

    files: list[str] = field(default_factory=list)
    hidden: int = 0
    too_deep: int = 0
    matched: bool = False


def plain_beginning(pattern: str) -> str:
    """Return the text of a pattern before its first glob character: every key that it names begins with it."""
    return _SPECIAL.split(pattern, maxsplit=1)[0]


def is_literal(pattern: str, keys: Iterable[str]) -> bool:
    """Say whether a pattern is literally a key, or the folder of one: then it is no glob."""
    return (
        pattern != ""
        and globs.may_be_literal(pattern)
        and any(key == pattern or key.startswith(f"{pattern}/") for key in keys)
    )


def choose(pattern: str, keys: Sequence[str], *, recursive: bool) -> Chosen:
    """Return the keys that a pattern names; "" names the whole bucket. A folder names its files, as locally."""
    chosen, folders = Chosen(), dict[str, list[str]]()
    literal = is_literal(pattern, keys)
    for one in [pattern] if literal else _expanded(pattern):
        segments = [_Segment(text, literal=literal) for text in one.split("/")] if one else []
        for key in keys:
            _sort_in(key, segments, chosen, folders)
    for folder, found in folders.items():
        _take_folder(len(folder), found, chosen, recursive=recursive)
    chosen.files = sorted(set(chosen.files))
    return chosen


class _Segment:
    """A segment of a pattern; a `literal` one is no glob."""

    def __init__(self, text: str, *, literal: bool) -> None:
        self._text = text
        self._regex = None if literal else globs.to_regex(text)

    def matches(self, name: str) -> bool:
        return name == self._text if self._regex is None else self._regex.fullmatch(name) is not None

    def enters(self, folder: str) -> bool:
        """Say whether a folder is meant: a hidden one only if the segment begins with its `_` or `.`."""
        return not is_hidden(folder) or folder[0] == self._text[:1]


def _expanded(pattern: str) -> Iterator[str]:
    """Yield a pattern's alternatives, which have no braces."""
    found = globs.alternatives(pattern)
    if found == [pattern]:
        yield pattern
    else:
        for one in found:
            yield from _expanded(one)


def _sort_in(key: str, segments: Sequence[_Segment], chosen: Chosen, folders: dict[str, list[str]]) -> None:
    """Add a key to the files, or to those of a folder, if the segments name it."""
    names = key.split("/", len(segments))
    if len(names) < len(segments) or not all(map(_Segment.matches, segments, names)):
        return
    chosen.matched = True
    folders_of_it = names[: len(segments)] if len(names) > len(segments) else names[:-1]
    if not all(map(_Segment.enters, segments, folders_of_it)):
        chosen.hidden += 1
    elif len(names) > len(segments):
        folders.setdefault("".join(f"{name}/" for name in folders_of_it), []).append(key)
    elif is_hidden(names[-1]):
        chosen.hidden += 1
    else:
        chosen.files.append(key)


def _take_folder(prefix: int, keys: Sequence[str], chosen: Chosen, *, recursive: bool) -> None:
    """Add the files of a folder: its direct ones, or those of all its folders if they are `k=v` or all are wanted."""
    shown = [key for key in keys if not any(name and is_hidden(name) for name in key[prefix:].split("/"))]
    chosen.hidden += len(keys) - len(shown)
    if recursive or any("=" in key[prefix:].rpartition("/")[0] for key in shown):
        chosen.files += shown
        return
    own = [key for key in shown if "/" not in key[prefix:]]
    chosen.files += own
    chosen.too_deep += sum(not key.endswith("/") for key in shown) - sum(not key.endswith("/") for key in own)
