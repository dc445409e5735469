"""Finds lines of JSON in which an object has a name twice, of which decoders keep the last value.

numpy finds the names of a block of lines, by the colons after quotes, and compares those of a line by their ends and lengths.
Where names of a line are alike, it compares only those of the same object. A line that is left out has no name twice; the
others are parsed by Python's json.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from eosingest.sources.files.formats.json_text import parsed

LF, BACKSLASH = 10, 92
_WORD = 8  # bytes of a name that are compared, at its start and at its end
_KEPT = np.array([(1 << 8 * length) - 1 for length in range(_WORD + 1)], np.uint64)
_FACTORS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], np.uint64)
_BLANK, _COLON = 1, 2
_KINDS = np.zeros(256, np.uint8)
_KINDS[[ord(" "), ord("\t"), ord("\r")]] = _BLANK
_KINDS[ord(":")] = _COLON


class NameTwiceError(Exception):
    """An object of JSON has a name twice."""


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of JSON (`object_pairs_hook`). Raises NameTwiceError if a name is there twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        name = next(name for at, (name, _) in enumerate(pairs) if name in dict(pairs[:at]))
        raise NameTwiceError(f"an object has the name {json.dumps(name, ensure_ascii=False)} twice")
    return found


ONCE = json.JSONDecoder(object_pairs_hook=once, parse_int=str, parse_float=str)


def lines_to_parse(text: bytes) -> list[int]:
    """Return the numbers of lines, from 0, in which an object may have a name twice. Lines end with line feeds."""
    padding = b"\n" + b" " * _WORD
    data = np.frombuffer(b"%s%s\n%s" % (padding, text, padding), np.uint8)
    feeds = np.flatnonzero(data == LF)
    quotes = np.flatnonzero(data == ord('"'))
    backslashes = np.flatnonzero(data == BACKSLASH) if b"\\" in text else quotes[:0]
    if len(backslashes):
        quotes = quotes[~escaped(data, quotes)]
    named = np.flatnonzero(data[quotes[1:] + 1] == ord(":"))
    starts, ends = quotes[named] + 1, quotes[named + 1]
    found = [quotes[_before_blank_colon(data, quotes)]]
    if len(backslashes):  # an escape may be a character of another name
        found.append(ends[np.searchsorted(backslashes, starts) < np.searchsorted(backslashes, ends)])
    hashes, lines = _hashes(data, starts, ends), np.searchsorted(feeds, ends)
    if not _are_alike(hashes, lines) and len(_again(hashes, lines)):
        in_text = _InText(quotes, feeds)
        found.append(ends[_again(hashes, _objects(data, ends, in_text))])
        single = np.flatnonzero(data == ord("'"))  # outside of double quotes it is a quote too, and may enclose them
        found.append(single[~in_text(single)])
    elif b"'" in text:
        single = np.flatnonzero(data == ord("'"))
        found.append(single[(data[single + 1] == ord(":")) | _before_blank_colon(data, single)])
    return [int(line) - 1 for line in np.unique(np.searchsorted(feeds, np.concatenate(found)))]


def with_names_twice(texts: Sequence[bytes]) -> set[int]:
    """Return the places of the texts in which an object has a name twice, or may have. A text may go over several lines."""
    joined = b"\n".join(texts)
    if joined.count(b"\n") >= len(texts):
        joined = b"\n".join(text.replace(b"\n", b" ") for text in texts)
    found = (place for place in lines_to_parse(joined) if place < len(texts))
    return {place for place in found if _has_name_twice(texts[place])}


def _has_name_twice(text: bytes) -> bool:
    try:
        parsed(text.decode(errors="replace"), ONCE)
    except (NameTwiceError, RecursionError):
        return True
    return False


class _InText:
    """Says of positions whether they are inside of double quotes, which are counted from each line's start."""

    def __init__(self, quotes: npt.NDArray[np.int64], feeds: npt.NDArray[np.int64]) -> None:
        self._quotes = quotes
        self._feeds = feeds
        self._before_lines = np.searchsorted(quotes, feeds)

    def __call__(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        before = self._before_lines[np.searchsorted(self._feeds, places) - 1]
        found: npt.NDArray[np.bool_] = (np.searchsorted(self._quotes, places) - before) % 2 == 1
        return found


def _objects(data: npt.NDArray[np.uint8], names: npt.NDArray[np.int64], in_text: _InText) -> npt.NDArray[np.int64]:
    """Return the place of the brace that opens the object of each name: the last one of its depth."""
    braces = np.flatnonzero((data == ord("{")) | (data == ord("}")))
    braces = braces[~in_text(braces)]
    opens = data[braces] == ord("{")
    depth = np.concatenate(([0], np.cumsum(np.where(opens, 1, -1))))
    places = np.concatenate((braces[opens], names))
    depths = np.concatenate((depth[1:][opens], depth[np.searchsorted(braces, names)]))
    order = np.lexsort((places, depths))
    begins = np.maximum.accumulate(np.where(order < np.count_nonzero(opens), np.arange(len(order)), 0))
    found = np.empty(len(order), np.int64)
    found[order] = places[order][begins]
    return found[np.count_nonzero(opens) :]


def _before_blank_colon(data: npt.NDArray[np.uint8], quotes: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return for each quote whether a blank follows, and after it a colon or another blank, after which one may follow."""
    found: npt.NDArray[np.bool_] = (_KINDS[data[quotes + 1]] == _BLANK) & (_KINDS[data[quotes + 2]] != 0)
    return found


def _hashes(
    data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint64]:
    """Return a number for each name, the same one for equal names."""
    words = np.ndarray((len(data) - _WORD + 1,), "<u8", data, strides=(1,))
    lengths = (ends - starts).astype(np.uint64)
    shown = np.minimum(lengths, _WORD)
    first = words[starts] & _KEPT[shown]
    last = words[ends - _WORD] & ~_KEPT[_WORD - shown]
    hashes: npt.NDArray[np.uint64] = first * _FACTORS[0] ^ (last >> np.uint64(7)) * _FACTORS[1] ^ lengths * _FACTORS[2]
    return hashes


def _are_alike(hashes: npt.NDArray[np.uint64], lines: npt.NDArray[np.int64]) -> bool:
    """Say whether all lines have the same names, in the same order, and each once: so it is nearly always."""
    per_line = int(np.searchsorted(lines, lines[0], side="right")) if len(lines) else 1
    if len(hashes) % per_line:
        return False
    rows, of_line = hashes.reshape(-1, per_line), lines.reshape(-1, per_line)
    in_lines = (of_line[:, 0] == of_line[:, -1]).all() and (of_line[1:, 0] > of_line[:-1, 0]).all()
    alike = in_lines and (rows == rows[:1]).all()
    return bool(alike and len(np.unique(rows[:1])) == per_line) or not len(rows)


def _again(hashes: npt.NDArray[np.uint64], groups: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the places of the numbers that are in their group a second time."""
    order = np.lexsort((hashes, groups))
    hashes, groups = hashes[order], groups[order]
    found: npt.NDArray[np.int64] = order[1:][(hashes[1:] == hashes[:-1]) & (groups[1:] == groups[:-1])]
    return found


def escaped(data: npt.NDArray[np.uint8], quotes: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return for each quote whether an odd number of backslashes precedes it."""
    run = np.zeros(len(quotes), np.int64)
    going = np.flatnonzero(data[quotes - 1] == BACKSLASH)
    while len(going):
        run[going] += 1
        going = going[data[np.maximum(quotes[going] - 1 - run[going], 0)] == BACKSLASH]
    odd: npt.NDArray[np.bool_] = run % 2 == 1
    return odd
