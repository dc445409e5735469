"""Lists the encodings in which text is known to be read exactly, for the formats whose readers decode text."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping

from eosingest.sources.files.formats.entry import Refusals

# Python's names. Python refuses all bytes that Java would silently replace in them (tests/reading/test_json_csv_rows.py).
_ONE_BYTE = (
    *(f"iso8859-{number}" for number in (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 15, 16)),
    *(f"cp125{number}" for number in range(9)),
    *("koi8-r", "koi8-u", "cp437", "cp850", "cp852", "cp855", "cp857", "cp858", "cp862", "cp866"),
)
ENCODINGS = frozenset(("utf-8", "ascii", *_ONE_BYTE, "shift_jis", "gbk", "gb2312", "euc_kr"))
WIDE = frozenset(("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"))
_TWO_BYTES, _ASCII_IN_PAIRS = ("shift_jis", "gbk"), re.compile(r"[@-~]")  # the second byte may be one of ASCII
_ICONV = "write the files as UTF-8: iconv -f … -t UTF-8"


def refused_encoding(options: Mapping[str, str], *, whole: bool = False) -> Refusals:
    """Yield the refusal of the encoding in the options (names in lower case), if any. `whole`: files are read as a whole."""
    name = next((name for name in ("encoding", "charset") if name in options), None)
    if name is None:
        return
    try:
        encoding = codecs.lookup(options[name]).name
    except LookupError:
        encoding = ""
    if encoding in ("utf-16", "utf-32"):
        wide = encoding.upper()
        why = "readers differ about a file without a mark" if whole else "lines are decoded one by one"
        yield name, f"{why}, so say the order of bytes: {wide}LE or {wide}BE"
    elif encoding in WIDE and "linesep" not in options and not whole:
        yield name, 'a line would be cut in the middle of its end; say where lines end: lineSep = "\\n"'
    elif encoding in _TWO_BYTES and _ASCII_IN_PAIRS.match(options.get("linesep", "")) and not whole:
        yield name, f"its characters of two bytes may contain lineSep; {_ICONV}"
    elif encoding not in ENCODINGS | WIDE:
        yield name, f"not an encoding that is known to be read exactly; {_ICONV}"
