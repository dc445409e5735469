"""Subjects of the conformance suite of whose rows some cannot be sent, and go to a dead-letter topic: a mixin for each reason.

The number in a row's text tells which rows: single ones, and twelve in a row, more than a transaction has. A dead letter is
turned into the row again, so that each row is to be found once, in one topic or the other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.support.sources.in_avro import InAvro
    from tests.support.sources.kinds import FileSubject
    from tests.support.sources.topics import Topic
else:
    InAvro = FileSubject = Topic = object

_MOST_BYTES = 1100  # of a record in the topics that take none that are too long
_LONG = 24 * 64 - 1  # of a row that is too long: in lines as long as splits divide by
# `is_dead` of a text column `{0}`, in Spark SQL.
_NUMBER = "CAST(regexp_extract({0}, '[0-9]+', 0) AS INT)"
_DEAD = f"{_NUMBER} % 4 = 1 OR {_NUMBER} % 60 BETWEEN 20 AND 31"


def is_dead(number: int) -> bool:
    """Say whether the row of this number cannot be sent. The first of a file always can."""
    return number % 4 == 1 or 20 <= number % 60 < 32


class WithDeadLetters(FileSubject):
    """Such a subject (a mixin before the class of another). A letter is the record that could not be sent."""

    sink_config: Mapping[str, str] = MappingProxyType({})
    dead_config: Mapping[str, str] = MappingProxyType({})

    def is_dead(self, row: bytes) -> bool:
        return is_dead(_number(row))

    def row_of_letter(self, key: bytes | None, value: bytes | None) -> bytes:
        return self.row(key, value)


class Unparsable(WithDeadLetters):
    """JSON of which some lines are broken. A letter is the line."""

    dead_code = "corrupt-row"
    dead_config = MappingProxyType({"max.message.bytes": "1000"})  # of a batch, too: of one letter, or two

    def _write(self, path: Path, rows: list[bytes]) -> None:
        super()._write(path, rows)
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(_broken(line) if self.is_dead(line) else line for line in lines))

    def _read(self, path: Path) -> list[bytes]:
        return [_row_of(_mended(line)) for line in path.read_bytes().splitlines()]

    def row_of_letter(self, key: bytes | None, value: bytes | None) -> bytes:
        assert not key and value is not None and value.endswith(b"]")
        return _row_of(_mended(value))


class TooLong(WithDeadLetters):
    """Some rows are longer than the topic takes."""

    dead_code = "record-too-large"
    sink_config = MappingProxyType({"max.message.bytes": str(_MOST_BYTES)})

    def _write(self, path: Path, rows: list[bytes]) -> None:
        super()._write(path, [row.ljust(_LONG, b"y") if self.is_dead(row) else row for row in rows])


class TooLongToKeep(WithDeadLetters, Topic):
    """Records of a topic, of which some are longer than the other topic takes, and than that for dead letters."""

    dead_code = "record-too-large"
    sink_config = MappingProxyType({"max.message.bytes": str(_MOST_BYTES)})
    dead_config = MappingProxyType({"max.message.bytes": "700"})

    def text_of(self, row: int) -> bytes:
        return super().text_of(row) + (b"y" * 1500 if is_dead(row) else b"")

    def row_of_letter(self, key: bytes | None, value: bytes | None) -> bytes:
        begin = self.row(key, value)
        row = self.text_of(_number(begin))
        assert row.startswith(begin) and len(begin) < len(row)
        return row


class WithoutKey(WithDeadLetters):
    """XML of which some elements have no key, for a topic that is compacted."""

    source = 'format = "xml"\nschema = "_n INT, k STRING, v STRING"\noptions = { rowTag = "row" }'
    dead_code = "null-key"
    sink_config = MappingProxyType({"cleanup.policy": "compact"})

    def spec(self) -> str:
        return f'{super().spec()}key = "k"\n'

    def row(self, key: bytes | None, value: bytes | None) -> bytes:
        assert value is not None
        assert (key or None) == (None if self.is_dead(value) else b"one")
        return value

    def _write(self, path: Path, rows: list[bytes]) -> None:
        super()._write(path, rows)
        rest, *elements = path.read_bytes().split(b"<v>")
        path.write_bytes(
            rest + b"".join(b"<v>" + each if self.is_dead(each) else b"<k>one</k><v>" + each for each in elements)
        )


class NoSuchPartition(WithDeadLetters):
    """Some rows name a partition that the topic does not have."""

    dead_code = "bad-partition"

    def spec(self) -> str:
        return f'{super().spec()}partition = "IF({_DEAD.format(self.value)}, 99, 0)"\n'


class BeforeTheEpoch(WithDeadLetters):
    """Some rows have a time that no topic takes, the others none."""

    dead_code = "bad-timestamp"

    def spec(self) -> str:
        return f"{super().spec()}timestamp = \"IF({_DEAD.format(self.value)}, TIMESTAMP'1960-01-01 00:00:00', NULL)\"\n"


class Unfit(WithDeadLetters, InAvro):
    """Some rows do not fit the schema of Avro. A letter is the row as JSON."""

    dead_code = "does-not-fit"

    def _table(self, part: str, columns: str) -> str:
        return super()._table(part, columns.replace(f"{self.value} = ''", _DEAD.format(self.value)))

    def row_of_letter(self, key: bytes | None, value: bytes | None) -> bytes:
        found: dict[str, Any] = json.loads(value or b"")
        assert found["length"] is None
        return str(found["text"]).encode()


def _number(row: bytes) -> int:
    found = re.search(rb"[0-9]+", row)
    assert found is not None
    return int(found[0])


def _broken(line: bytes) -> bytes:
    return line.replace(b"}", b"]")


def _mended(line: bytes) -> bytes:
    return line.replace(b"]", b"}")


def _row_of(line: bytes) -> bytes:
    return str(json.loads(line)["v"]).encode()
