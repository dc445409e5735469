"""Detects format, options and schema of a data file from its contents, for `init --from`; without Spark or Kafka.

sniff(file) ─▶ codec by name and first bytes ─▶ format ─▶ csv.py | json_lines.py | xml.py | footers.py | Avro | lines ─▶ Found
"""

from __future__ import annotations

from dataclasses import replace

from eosingest.errors import FatalError
from eosingest.sniff.input import DataFile, Opened, opened
from eosingest.sniff.result import Found
from eosingest.sources.files.bytes import magic

__all__ = ["Found", "sniff", "why_not_json_lines"]

_BY_SUFFIX = {
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".psv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".orc": "orc",
    ".avro": "avro",
    ".xml": "xml",
}
_MAGIC = {b"PAR1": "parquet", b"ORC": "orc", b"Obj\x01": "avro"}
_SPACE = b"\xef\xbb\xbf \t\r\n"  # includes UTF-8's byte order mark
_NOT_READ = {
    b"PK\x03\x04": "a zip archive (as an Excel sheet is: save that as csv)",
    b"\xfd7zXZ": "compressed with xz",
    b"\x7fELF": "a program",
    b"SQLite format 3": "an SQLite database",
}


def sniff(file: DataFile) -> Found:
    """Detect a file's format and columns. Raises FatalError for a file that is damaged or that this version does not read."""
    data = opened(file)
    found = _look(file, data)
    if not data.unnamed:
        return found
    codec = "bzip2" if data.codec == "bz2" else str(data.codec)
    if found.format in ("parquet", "orc", "avro"):
        raise FatalError(
            f"{file} is a {found.format} file inside of {codec}: {found.format} files are not decompressed as a whole",
            code="codec-unnamed",
            hint="decompress a copy, and name that",
        )
    return replace(found, compression=codec)


def _look(file: DataFile, data: Opened) -> Found:
    kind = next((kind for magic, kind in _MAGIC.items() if data.head.startswith(magic)), None)
    what = next((what for magic, what in _NOT_READ.items() if data.head.startswith(magic)), None)
    if what is not None:
        raise FatalError(
            f"{file} is {what}, which this version does not read",
            code="format-unknown",
            hint=magic.unpacked(str(file), data.head) or "convert it to csv, json lines, text, parquet, orc or avro",
        )
    by_name = _BY_SUFFIX.get(data.inner_suffix)
    if kind == "avro":
        return Found("avro")  # the file contains its schema, which a run reads
    if kind is not None:
        from eosingest.sniff import footers

        return footers.look(data, kind)
    if by_name in ("parquet", "orc", "avro"):
        raise FatalError(
            f"{file} is called {data.inner_suffix}, and is no {by_name} file: it does not begin like one",
            code="format-unknown",
            hint="is it cut off, or another format? Rename it as what it is, then: eosingest init --from FILE",
        )
    return _look_at_text(data, by_name)


def why_not_json_lines(file: DataFile) -> FatalError | None:
    """Return the error for a JSON file that is an array, or whose records span lines; None if it may be one record per line."""
    from eosingest.sniff import json_lines

    return json_lines.why_not_lines(opened(file))


def _look_at_text(data: Opened, by_name: str | None) -> Found:
    from eosingest.sniff import csv, json_lines, wide, xml

    encoding = wide.encoding_of(data.head)
    begin = data.head.lstrip(_SPACE) if encoding is None else wide.text_of(data.head, encoding).lstrip().encode()
    if by_name == "xml" or (by_name is None and begin.startswith(b"<?xml")):
        return xml.look(data)
    if encoding is not None:
        raise wide.refusal(data, encoding)
    if by_name == "json" or (by_name is None and begin.startswith((b"{", b"[{"))):
        return json_lines.look(data)
    if by_name == "csv":
        return csv.look(data)
    by_content = csv.delimited(data) if by_name is None else None
    return by_content or Found("text", whole=True)
