"""Finds JSON documents (`multiLine = true`) that are damaged, before anything is sent.

For the inspection (inspection.py), on the decoded text of whole_text.py. A document must be one object, or an array of objects,
that Python's json accepts: it is read record by record, so that messages have a line and an element.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from eosingest.sources.files.bytes.text_blocks import BadTextError, encoding_of
from eosingest.sources.files.formats.json_names import NameTwiceError, once
from eosingest.sources.files.formats.json_scan import half_pair
from eosingest.sources.files.formats.unknown_fields import JsonFields, KnownFields
from eosingest.sources.files.formats.whole_text import decoded

_WHITE = re.compile(r"[ \t\r\n]*")
_CUT = "Unterminated"  # Python's message for a string without an end
_MULTI_LINE = "leave source.options.multiLine out if the file has one record a line"


def check_json(pieces: Iterable[bytes], options: Mapping[str, str], fields: KnownFields | None = None) -> None:
    """Check a document. Raises BadTextError for the first finding.

    `fields`: see `JsonScan`.
    """
    lower = {name.lower(): value.lower() for name, value in options.items()}
    numbers = lower.get("allownonnumericnumbers") != "false"
    compared = JsonFields(fields) if fields is not None else None
    reader = _Reader("".join(decoded(pieces, encoding_of(options))), compared, allow_nan=numbers)
    begin = reader.next_character()
    if begin == "":
        raise reader.bad("there is no JSON document in it")
    if begin == "[":
        reader.skip()
        _elements(reader)
    elif begin == "{":
        reader.record("the document")
    else:
        raise reader.bad("the document is neither an object nor an array of objects")
    if reader.next_character():
        raise reader.bad("text after the document", hint=_MULTI_LINE)
    if compared is not None:
        compared.refuse()


def _elements(reader: _Reader) -> None:
    number = 0
    if reader.next_character() == "]":
        reader.skip()
        return
    while True:
        number += 1
        if reader.next_character() not in ("{", ""):
            raise reader.bad(f"element {number:,} of the array is no object")
        reader.record(f"element {number:,} of the array")
        end = reader.next_character()
        if end not in (",", "]"):
            raise reader.bad(f"neither ',' nor ']' follows element {number:,} of the array")
        reader.skip()
        if end == "]":
            return


class _Reader:
    """Reads a text forwards."""

    def __init__(self, text: str, fields: JsonFields | None, *, allow_nan: bool) -> None:
        self._text = text
        self._at = 0
        self._counted = 0, 1  # a place, and its line
        self._fields = fields
        constant = float if allow_nan else _refused
        # Only the syntax of a number is checked here.
        self._decoder = json.JSONDecoder(
            object_pairs_hook=once, parse_int=float, parse_float=float, parse_constant=constant
        )

    def next_character(self) -> str:
        """Return the next character that is no white space, "" at the end."""
        self._at = _WHITE.match(self._text, self._at).end()  # type: ignore[union-attr]
        return self._text[self._at : self._at + 1]

    def skip(self) -> None:
        """Skip a character."""
        self._at += 1

    def record(self, what: str) -> None:
        """Skip an object. Raises BadTextError if there is no valid one."""
        try:
            found, end = self._decoder.raw_decode(self._text, self._at)
        except json.JSONDecodeError as error:
            ends = error.msg.startswith(_CUT) or not self._text[error.pos :].strip()
            words = "the file ends inside of it" if ends else error.msg[0].lower() + error.msg[1:]
            raise self.bad(f"{what} is no JSON: {words}", at=error.pos) from error
        except RecursionError as error:
            raise self.bad(f"{what} is nested too deep") from error
        except _NoNumberError as error:
            raise self.bad(f"{what} is no JSON: {error}") from error
        except NameTwiceError as error:
            raise self.bad(f"{what}: {error}") from error
        half = half_pair(self._text, self._at, end)
        if half is not None:
            raise self.bad(
                f"half a surrogate pair, which is no character, in {what}: {half}…",
                hint="correct the text, or move the file away",
            )
        if self._fields is not None:
            self._fields.in_record(found, self._line(self._at))
        self._at = end

    def bad(self, message: str, *, at: int | None = None, hint: str = "") -> BadTextError:
        """Return the error for the current position, or for `at`."""
        place = self._at if at is None else at
        shown = self._text[place : place + 40].split("\n")[0].strip()
        return BadTextError(f"{message}: {shown}" if shown else message, line=self._line(place), hint=hint)

    def _line(self, place: int) -> int:
        """Return the line of a place, which is after those of earlier calls: a document may have millions of records."""
        begin, line = self._counted
        self._counted = place, line + self._text.count("\n", begin, place)
        return self._counted[1]


class _NoNumberError(ValueError):
    """NaN or Infinity, if the options do not allow them."""


def _refused(word: str) -> None:
    raise _NoNumberError(word)
