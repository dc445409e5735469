"""Translates Hadoop's globs, one path segment at a time: `*`, `?`, `[ab]`, `[a-c]`, `[^a]`, `[!a]`, `{a,b/c}`, `\\` to escape.

Pure text; file_tree.py matches it against the disk. `**` means no more than `*` in Hadoop, so it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from eosingest.errors import SpecError

_SPECIAL = frozenset("\\*?[]{}")


def first_segment(pattern: str) -> tuple[str, str]:
    """Cut a pattern at its first `/` outside braces: (segment, the rest without that `/`)."""
    for position, character, depth in _scan(pattern):
        if character == "/" and depth == 0:
            return pattern[:position], pattern[position + 1 :]
    return pattern, ""


def is_plain(segment: str) -> bool:
    """Say whether a segment has no character that is special in a glob."""
    return _SPECIAL.isdisjoint(segment)


def may_be_literal(segment: str) -> bool:
    """Say whether a segment may also be a literal name, as `a[1].jsonl` and `{a}.csv` are.

    `*` and `?` match themselves, so reading them as a glob never misses the file of that very name.
    """
    return "*" not in segment and "?" not in segment


def alternatives(segment: str) -> list[str]:
    """Expand the first `{…}` group: `a{b,c/d}` gives `ab` and `ac/d`; a segment without one is returned alone."""
    start, cuts = -1, list[int]()
    for position, character, depth in _scan(segment):
        if character == "{" and depth == 1 and start < 0:
            start, cuts = position, [position]
        elif character == "," and depth == 1 and start >= 0:
            cuts.append(position)
        elif character == "}" and depth == 0 and start >= 0:
            cuts.append(position)
            head, tail = segment[:start], segment[position + 1 :]
            return [head + segment[a + 1 : b] + tail for a, b in pairwise(cuts)]
    if start >= 0:
        raise _malformed(segment, "its '{' is never closed")
    return [segment]


def to_regex(segment: str) -> re.Pattern[str]:
    """Translate a segment without braces. Raises SpecError when it is malformed, or has `**`."""
    if re.search(r"(?<!\\)\*\*", segment):
        raise SpecError(
            f"'{segment}' in a path: '**' does not cross folders here, it means the same as '*'.",
            code="glob",
            hint="Write one '*' per folder level: data/*/*.jsonl.",
        )
    parts, position = list[str](), 0
    while position < len(segment):
        part, position = _translate(segment, position)
        parts.append(part)
    try:
        return re.compile("".join(parts), re.DOTALL)
    except re.error as error:
        raise _malformed(segment, str(error)) from error


def _scan(text: str) -> Iterator[tuple[int, str, int]]:
    """Yield (position, character, brace depth after it) for every character that is not escaped."""
    depth, escaped = 0, False
    for position, character in enumerate(text):
        if escaped or character == "\\":
            escaped = not escaped
            continue
        depth = max(0, depth + (character == "{") - (character == "}"))
        yield position, character, depth


def _translate(segment: str, position: int) -> tuple[str, int]:
    """Translate the pattern at `position`: (regular expression, position after it)."""
    character = segment[position]
    if character == "*":
        return ".*", position + 1
    if character == "?":
        return ".", position + 1
    if character == "[":
        return _translate_set(segment, position)
    if character == "\\":
        if position + 1 == len(segment):
            raise _malformed(segment, "nothing follows its last '\\'")
        return re.escape(segment[position + 1]), position + 2
    return re.escape(character), position + 1


def _translate_set(segment: str, start: int) -> tuple[str, int]:
    negated = segment[start + 1 : start + 2] in ("!", "^")
    body, position = list[str](), start + 1 + negated
    while segment[position : position + 1] not in ("]", ""):
        if segment[position] == "\\":
            position += 1
            body.append(re.escape(segment[position : position + 1]))
        else:
            body.append("-" if segment[position] == "-" else re.escape(segment[position]))
        position += 1
    if position >= len(segment) or not body:
        raise _malformed(segment, "its '[' has no end or nothing in it")
    return f"[{'^' if negated else ''}{''.join(body)}]", position + 1


def _malformed(segment: str, why: str) -> SpecError:
    return SpecError(
        f"'{segment}' in a path is not a valid glob: {why}.",
        code="glob",
        hint="A '\\' in front of a character makes it part of the name.",
    )
