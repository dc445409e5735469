"""Decodes an XML document by its byte order mark and declaration, with Python's decoders, which replace nothing.

Between the decompressed pieces of a file (codecs.py) and document.py, whose parser gets only UTF-8 and may not choose the
encoding: it would decode half a surrogate pair of UTF-16 to another character.
"""

from __future__ import annotations

import codecs
import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from eosingest.sources.files.bytes.text_blocks import BadTextError
from eosingest.sources.files.formats.encodings import ENCODINGS, WIDE
from eosingest.sources.files.formats.whole_text import decoded

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# The first bytes of a document that has a declaration and no mark.
_DECLARED = (
    ("<?xm".encode("utf-32-le"), "utf-32-le"),
    ("<?xm".encode("utf-32-be"), "utf-32-be"),
    ("<?xm".encode("utf-16-le"), "utf-16-le"),
    ("<?xm".encode("utf-16-be"), "utf-16-be"),
)
_DECLARATION = re.compile(
    r"""<\?xml\s+version\s*=\s*(?:"[^"]*"|'[^']*')\s+encoding\s*=\s*["'](?P<name>[A-Za-z][A-Za-z0-9._\-]*)["']"""
)
_HEAD_BYTES = 1024
_UTF_8 = "write the files as UTF-8: iconv -f … -t UTF-8, and so in the declaration"


@dataclass(frozen=True)
class DocumentText:
    """A document's text in pieces; `declared` is the encoding that its declaration names, None if it names none."""

    pieces: Iterator[str]
    declared: str | None


def document_text(pieces: Iterable[bytes], encoding: str | None) -> DocumentText:
    """Decode a document: by its mark or declaration, else by `encoding` (of the spec), else as UTF-8.

    Raises BadTextError if these disagree, or for an encoding that is not known to be read exactly; the pieces raise it for
    bytes that are not of the encoding.
    """
    rest = iter(pieces)
    head = b""
    while len(head) < _HEAD_BYTES and (piece := next(rest, b"")):
        head += piece
    mark, by_mark = next(((mark, name) for mark, name in _MARKS if head.startswith(mark)), (b"", None))
    inner = head.removeprefix(mark)
    wide = by_mark or next((name for begin, name in _DECLARED if inner.startswith(begin)), None)
    begin = inner[: _HEAD_BYTES - len(mark)].decode(wide or "latin-1", "replace")
    found = _DECLARATION.match(begin)
    declared = found["name"] if found is not None else None
    said = _known(encoding) if encoding is not None else None
    used = wide or (_known(declared) if declared is not None else None) or said or "utf-8"
    if declared is not None:
        _agree(used, _known(declared), f"its declaration says {declared}", "its first bytes are of another")
    if said is not None:
        _agree(
            used, said, f"source.options.encoding says {encoding}", f"by its mark or declaration it is {used.upper()}"
        )
    # `decoded` always removes UTF-8's mark.
    bytes_ = itertools.chain((head if used == "utf-8" else inner,), rest)
    return DocumentText(_without_second_mark(decoded(bytes_, used)), declared)


def _without_second_mark(pieces: Iterator[str]) -> Iterator[str]:
    """Yield the pieces. Raises BadTextError for another byte order mark, which the parser would skip."""
    first = True
    for piece in pieces:
        if first and piece.startswith("\ufeff"):
            raise BadTextError("a second byte order mark", line=1)
        first = first and not piece
        yield piece


def _known(name: str) -> str:
    """Return Python's name of an encoding; UTF-16 and UTF-32 without a byte order as "utf-16" and "utf-32"."""
    try:
        found = codecs.lookup(name).name
    except LookupError:
        found = ""
    made_up = found == "utf-8" and name.lower() not in ("utf-8", "utf8")  # an alias that only Python has
    if made_up or found not in ENCODINGS | WIDE | {"utf-16", "utf-32"}:
        raise BadTextError(f"its encoding {name} is not one that is known to be read exactly", line=1, hint=_UTF_8)
    return found


def _agree(used: str, said: str, words: str, other: str) -> None:
    """Raise BadTextError if the encoding that is `used` differs from the one that is `said`."""
    is_one_of = said in ("utf-16", "utf-32") and used.startswith(f"{said}-")
    if not is_one_of and (used != said or said in ("utf-16", "utf-32")):
        raise BadTextError(f"{words}, and {other}", line=1, hint=f"correct the wrong one of the two, or {_UTF_8}")
