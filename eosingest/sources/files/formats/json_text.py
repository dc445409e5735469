"""Parses JSON that is written with single quotes and NaN, which the standard (RFC 8259) does not have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

import msgspec

WHITE = " \t\r\n"
_ODD_IN_NAMES = re.compile(r'["\\\x00-\x1f]')
# What msgspec's decoder raises for a text that is no JSON, or does not fit (ValidationError is a DecodeError).
REJECTED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_LEADING = f"{WHITE}\ufeff"  # a byte order mark may begin any line
_DECODER = json.JSONDecoder(parse_int=float)  # Python's int() takes no more than 4,300 digits

# A string, or a word for a number that is not one of JSON.
_TOKEN = re.compile(
    r"""[^"'IN+-]++|"(?:[^"\\]|\\.)*+"|'(?P<single>(?:[^'\\]|\\.)*+)'"""
    r"""|(?P<word>(?:[+-]?(?:INF|Infinity)|NaN)\b(?!\s*:))|.""",
    re.DOTALL,
)
_IN_SINGLE_QUOTES = re.compile(r"""\\'|"|\\.""", re.DOTALL)
_AS_IN_DOUBLE_QUOTES = {"\\'": "'", '"': '\\"'}


def has_odd_name(names: Iterable[str]) -> bool:
    """Say whether a name has a quote, a backslash or a control character: fields of msgspec's structs cannot have it."""
    return any(map(_ODD_IN_NAMES.search, names))


def standard(text: str, *, single_quotes: bool = True, words: bool = True) -> str:
    """Return a text with strings in double quotes, and with NaN, INF, Infinity and -Infinity as strings.

    A text that is standard JSON is not changed. Not `single_quotes`, not `words`: the one or the other stays as it is.
    """

    def rewritten(token: re.Match[str]) -> str:
        if single_quotes and token["single"] is not None:
            inner = _IN_SINGLE_QUOTES.sub(lambda found: _AS_IN_DOUBLE_QUOTES.get(found[0], found[0]), token["single"])
            return f'"{inner}"'
        return f'"{token["word"]}"' if words and token["word"] else token[0]

    return "".join(map(rewritten, _TOKEN.finditer(text)))


def parsed(line: str, decoder: json.JSONDecoder = _DECODER) -> Any:
    """Return the value of a line by Python's decoder, None if it is no JSON. Raises RecursionError."""
    value, rest = value_and_rest(line, decoder)
    return None if rest else value


def value_and_rest(line: str, decoder: json.JSONDecoder = _DECODER) -> tuple[Any, str]:
    """Return the first value of a line and the text after it; None and "" if it begins with no JSON. Raises RecursionError."""
    text = line.strip(_LEADING)
    for each in (text, standard(text)):
        try:
            value, end = decoder.raw_decode(each)
        except ValueError:
            continue
        return value, each[end:].strip(WHITE)
    return None, ""
