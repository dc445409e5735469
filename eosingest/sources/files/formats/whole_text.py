"""Decodes the text of a file that is read as a whole, piece by piece, and refuses bytes that cannot be decoded exactly.

Between the decompressed pieces of a file (codecs.py) and whole_json.py, whole_csv.py, xml/text.py. Java silently replaces such
bytes; Jackson guesses the encoding if none is set.
"""

from __future__ import annotations

import codecs
import itertools
from collections.abc import Iterable, Iterator

from eosingest.sources.files.bytes.text_blocks import BadTextError, not_of_encoding

LONGEST_RECORD = 256 << 20  # characters
_UTF_8_MARK = codecs.BOM_UTF8
_LONGEST_MARK = 4


def decoded(pieces: Iterable[bytes], encoding: str) -> Iterator[str]:
    """Yield the text. UTF-8's byte order mark is removed, as by Spark's readers.

    Raises BadTextError for bytes that are not of the encoding, for any other byte order mark and for zero bytes.
    """
    decoder, line, first = codecs.getincrementaldecoder(encoding)("strict"), 1, True
    for piece in itertools.chain(_long_at_first(pieces), (b"",)):
        if first:
            first, piece = False, _without_mark(piece, encoding)
        text = _decode(decoder, piece, encoding, line, final=not piece)
        if "\0" in text:
            raise BadTextError(
                "a zero byte",
                line=line + text.count("\n", 0, text.index("\0")),
                hint='if it is UTF-16, name it: source.options.encoding = "UTF-16LE"; or write it as UTF-8: iconv -f UTF-16'
                " -t UTF-8",
            )
        yield text
        line += text.count("\n")


def _long_at_first(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the pieces that are not empty; the first one is long enough for a whole byte order mark."""
    begun, head = False, b""
    for piece in pieces:
        head += piece
        if head and (begun or len(head) >= _LONGEST_MARK):
            begun = True
            yield head
            head = b""
    if head:
        yield head


def _without_mark(piece: bytes, encoding: str) -> bytes:
    is_utf_8 = codecs.lookup(encoding).name == "utf-8"
    if is_utf_8 and piece == _UTF_8_MARK:  # readers differ
        raise BadTextError("nothing but a byte order mark", line=1)
    if is_utf_8 and piece.startswith(_UTF_8_MARK):
        return piece[len(_UTF_8_MARK) :]
    marks = () if is_utf_8 else (_UTF_8_MARK, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)
    if piece.startswith(marks):
        raise BadTextError(
            f"a byte order mark, which would become part of the data in {encoding}",
            line=1,
            hint="write it as UTF-8, or without a mark: iconv -f … -t UTF-8",
        )
    return piece


def _decode(decoder: codecs.IncrementalDecoder, piece: bytes, encoding: str, line: int, *, final: bool) -> str:
    held = decoder.getstate()[0]
    try:
        return decoder.decode(piece, final)
    except UnicodeDecodeError as error:
        data = held + piece
        before = data[: error.start].decode(encoding, "replace")
        raise not_of_encoding(data, error.start, encoding, line + before.count("\n")) from error
