"""Recognises UTF-16 and UTF-32, in which lines cannot be cut by their bytes, by the first bytes of a file."""

from __future__ import annotations

import codecs
import re
import unicodedata

from eosingest.errors import FatalError
from eosingest.sniff.convert import command
from eosingest.sniff.input import Opened

_MARKS = ((b"\xff\xfe\0\0", "UTF-32"), (b"\0\0\xfe\xff", "UTF-32"), (b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"))
_NAMES = ("UTF-32LE", "UTF-32BE", "UTF-16LE", "UTF-16BE")
_NOT_OF_ASCII = re.compile(rb"[\x01-\x08\x0e-\x1f\x7f-\xff]")
_LINES = "\t\r\n\f"


def encoding_of(head: bytes) -> str | None:
    """Return the name of the encoding for `iconv`; None for any other."""
    marked = next((name for mark, name in _MARKS if head.startswith(mark)), None)
    if marked is not None or b"\0" not in head:
        return marked
    return next((name for name in _NAMES if _is_text(head, name)), None)


def text_of(head: bytes, encoding: str) -> str:
    """Return the text without its mark, of a piece that may end within a character."""
    return codecs.getincrementaldecoder(encoding)().decode(head).lstrip("\ufeff")


def _is_text(head: bytes, encoding: str) -> bool:
    try:
        text = text_of(head, encoding)
    except UnicodeDecodeError:
        return False
    odd = any(unicodedata.category(char) in ("Cc", "Cn", "Co", "Cs") for char in text if char not in _LINES)
    plain = sum(map(str.isascii, text))
    # Lines of ASCII with some zero bytes would be Chinese here, of ASCII's bytes alone, which no text of a language is.
    lines = ("\n" in text or "\r" in text) and (encoding.startswith("UTF-32") or _NOT_OF_ASCII.search(head) is not None)
    return not odd and (lines or plain * 2 > len(text) > 0)


def refusal(data: Opened, encoding: str) -> FatalError:
    """Make the error for a file in such an encoding."""
    suffix = data.inner_suffix or ".txt"
    line, name = command(data, f"iconv -f {encoding} -t UTF-8", suffix)
    return FatalError(
        f"{data.file} is {encoding}, whose lines cannot be separated by their bytes",
        code="encoding",
        hint=f"{line}, then: eosingest init --from {name}",
    )
