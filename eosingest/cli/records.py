"""Formats records for `preview` and `topic peek`: bytes as text if they are printable UTF-8; long values are cut."""

from __future__ import annotations

from collections.abc import Iterator

from eosingest.cli import formatting
from eosingest.report.model import ShownRecord

_SHOWN = 500
_SHOWN_BINARY = 64


def lines_of(record: ShownRecord, title: str) -> Iterator[str]:
    """Yield a record as a title and an indented table."""
    if record.corrupt is not None:
        yield f"{title}: no record, the row cannot be parsed:"
        yield from formatting.table([("corrupt", _cut(record.corrupt))])
        return
    if record.unfit is not None:
        yield f"{title}: no record, the row does not fit the schema:"
        yield from formatting.table([("reason", record.unfit)])
        return
    yield f"{title}, {formatting.count(record.size, 'byte')}"
    shown = {name: text if text is None else _cut(text) for name, text in record.decoded.items()}
    rows = [
        ("key", shown.get("key") or text_of(record.key, absent="none")),
        ("value", shown.get("value") or text_of(record.value, absent="null (a tombstone)")),
    ]
    rows += [(f"header {name}", text_of(value, absent="null")) for name, value in record.headers]
    if record.time is not None:
        rows.append(("timestamp", record.time))
    if record.partition is not None and record.offset is None:
        rows.append(("partition", str(record.partition)))
    yield from formatting.table(rows)


def text_of(value: bytes | None, *, absent: str) -> str:
    """Return bytes as text if they are printable, else as hexadecimal; `absent` for None. Cuts a long value and says so."""
    if value is None:
        return absent
    if not value:
        return "(empty)"
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = ""
    if text and all(character.isprintable() or character in "\n\r\t" for character in text):
        return _cut(text.replace("\r", "\\r").replace("\n", "\\n"))
    more = f"… ({formatting.count(len(value), 'byte')} in all)" if len(value) > _SHOWN_BINARY else ""
    return f"0x{value[:_SHOWN_BINARY].hex()}{more}"


def _cut(text: str) -> str:
    if len(text) <= _SHOWN:
        return text
    return f"{text[:_SHOWN]}… ({len(text):,} characters in all; --output json shows them)"
