"""Finds fields of JSON and XML that the schema does not name, before anything is sent: readers leave them out without a word.

For the inspection (inspection.py), if `source.unknown_fields` is "error". pyarrow parses blocks of lines and accepts nearly all
of them (reading/known_fields.py); Python's json, which takes four times as long, parses the others and names the fields.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from eosingest.errors import listed
from eosingest.sources.files.bytes.text_blocks import BadTextError

_NAMED_AT_MOST = 10
_WAY_ON = 'name them in source.schema, or set source.unknown_fields = "ignore", which leaves them out of the records'
# A string, or a word that Jackson takes for a number and Python's json does not.
_TOKEN = re.compile(
    r"""[^"'IN+-]++|"(?:[^"\\]|\\.)*+"|'(?P<single>(?:[^'\\]|\\.)*+)'|(?P<word>[+-]?INF\b|\+Infinity\b)|.""", re.DOTALL
)
_DECODER = json.JSONDecoder(parse_int=float)  # Python's int() takes no more than 4,300 digits
_WHITE = " \t\r\n\ufeff"  # Jackson skips a byte order mark at the beginning of any line
# The fields of a struct with the names in each; of an array or a map, in a tuple, the names in its values; None: any or none.
Names: TypeAlias = "dict[str, Names] | tuple[Names] | None"


@dataclass(frozen=True)
class KnownFields:
    """The fields that a schema names. `fits`: says of lines that they have no others; of False nothing follows."""

    names: Names
    fits: Callable[[str], bool] | None = None


class UnknownFields:
    """The fields that were found, by their paths from the row, with the line of the first one."""

    def __init__(self) -> None:
        self._names: dict[str, None] = {}
        self._line = 0

    def add(self, path: str, line: int) -> None:
        """Add a field."""
        self._line = self._line or line
        self._names[path] = None

    def refuse(self) -> None:
        """Raise BadTextError if a field was found."""
        if self._names:
            words = (
                "a field that source.schema does not name" if len(self._names) == 1 else "fields that it does not name"
            )
            message = f"{words}: {listed(list(self._names), _NAMED_AT_MOST)}"
            raise BadTextError(message, line=self._line, hint=_WAY_ON)


class JsonFields:
    """Compares the fields of JSON with the known ones."""

    def __init__(self, known: KnownFields) -> None:
        self._known = known
        self._found = UnknownFields()

    def in_lines(self, text: str, lines: Sequence[str], first: int) -> None:
        """Compare the lines of a text; the first one has this number. A line that is no JSON is a corrupt row."""
        if self._known.fits is not None and self._known.fits(text):
            return
        for number, line in enumerate(lines, first):
            try:
                row = parsed(line)
            except RecursionError:
                raise BadTextError("nested too deep for a check of its fields", line=number, hint=_WAY_ON) from None
            for each in row if isinstance(row, list) else (row,):  # each element of an array line is a row
                self.in_record(each, number)

    def in_record(self, record: Any, line: int) -> None:
        """Compare a record that begins in this line."""
        for path in _unknown(record, self._known.names, ""):
            self._found.add(path, line)

    def refuse(self) -> None:
        """See `UnknownFields.refuse`."""
        self._found.refuse()


def _unknown(value: Any, known: Names, path: str) -> Iterator[str]:
    if isinstance(known, tuple):
        for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from _unknown(each, known[0], path)
    elif known is not None and isinstance(value, dict):
        for name, inner in value.items():
            if name not in known:
                yield f"{path}{name}"
            elif (names := known[name]) is not None:
                yield from _unknown(inner, names, f"{path}{name}.")


def parsed(line: str, decoder: json.JSONDecoder = _DECODER) -> Any:
    """Return the value of a line, None if it is no JSON to Jackson, which also takes single quotes and INF."""
    line = line.strip(_WHITE)
    try:
        return decoder.decode(line)
    except ValueError:
        pass
    try:
        return decoder.decode("".join(map(_standard, _TOKEN.finditer(line)))) if line else None
    except ValueError:
        return None


def _standard(token: re.Match[str]) -> str:
    if token["single"] is not None:
        inner = re.sub(
            r"""\\'|"|\\.""", lambda found: {"\\'": "'", '"': '\\"'}.get(found[0], found[0]), token["single"]
        )
        return f'"{inner}"'
    return "0" if token["word"] else token[0]
