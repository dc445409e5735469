"""What is sent: records of several shapes, their files, and how eosingest and Spark are told to read them.

Every row of a file is deterministic in its number, so that all contenders send the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

FILES = 4


@dataclass(frozen=True)
class Work:
    """A shape of records. `write` makes a file of the rows [start, end) by their numbers; expressions are Spark SQL.

    `sent` says of how many rows one becomes a record (the filter lets the rest fall).
    """

    name: str
    format: str
    write: Callable[[Path, range], None]
    value: str
    key: str | None = None
    where: str | None = None
    schema: str | None = None
    compression: str = "none"
    options: dict[str, str] = field(default_factory=dict)
    sent: Callable[[int], int] = lambda rows: rows

    def files(self, folder: Path, rows: int) -> Path:
        """Write the work's files where they are not yet; return their folder."""
        made = folder / f"{self.format}-{self.write.__name__}-{rows}"
        if not made.exists():
            fresh = folder / "fresh"
            fresh.mkdir(parents=True)
            for file in range(FILES):
                self.write(fresh / f"part-{file}", range(rows * file // FILES, rows * (file + 1) // FILES))
            fresh.rename(made)
        return made


def _write_lines(path: Path, lines: Iterator[str]) -> None:
    with path.open("w") as out:
        out.writelines(lines)


def text_200(path: Path, rows: range) -> None:
    """Lines of 200 bytes with their end."""
    _write_lines(path, (f"{number:012} {'lorem ipsum dolor sit amet ' * 7}"[:199] + "\n" for number in rows))


def text_4k(path: Path, rows: range) -> None:
    """Lines of 4 KiB."""
    _write_lines(path, (f"{number:012} {'lorem ipsum dolor sit amet ' * 160}"[:4095] + "\n" for number in rows))


def json_176(path: Path, rows: range) -> None:
    """JSON lines of 176 bytes; one in ten is filtered out."""

    def line(number: int) -> str:
        row = {"id": number, "user": f"user-{number % 10_007}", "amount": number % 100 - 9.5, "note": ""}
        row["note"] = "x" * (175 - len(json.dumps(row)))
        return json.dumps(row) + "\n"

    _write_lines(path, map(line, rows))


def csv_30(path: Path, rows: range) -> None:
    """Narrow CSV: 30 bytes a row."""
    _write_lines(path, (f"{number:010},{number % 977:06},{number % 31 / 7:010.6f}\n" for number in rows))


def parquet(path: Path, rows: range) -> None:
    """Parquet with three columns."""
    table = pa.table(
        {
            "id": pa.array(rows, pa.int64()),
            "user": pa.array([f"user-{number % 10_007}" for number in rows]),
            "note": pa.array([f"{number:012}" + "x" * 120 for number in rows]),
        }
    )
    pq.write_table(table, path.with_suffix(".parquet"), row_group_size=100_000)


_JSON = "id BIGINT, user STRING, amount DOUBLE, note STRING"
_TO_JSON = "to_json(struct(id, user, amount, note))"
WORKS = {
    work.name: work
    for work in (
        Work("text", "text", text_200, "value"),
        Work("text-lz4", "text", text_200, "value", compression="lz4"),
        Work("text-keys", "text", text_200, "value", key="substring(value, 1, 12)"),
        Work("text-4k", "text", text_4k, "value"),
        Work(
            "json", "json", json_176, _TO_JSON, where="amount > 0", schema=_JSON,
            sent=lambda rows: sum(1 for number in range(rows) if number % 100 > 9),
        ),
        Work(
            "json-keys", "json", json_176, _TO_JSON, key="user", where="amount > 0", schema=_JSON,
            sent=lambda rows: sum(1 for number in range(rows) if number % 100 > 9),
        ),
        Work("csv", "csv", csv_30, "concat_ws(',', a, b, c)", schema="a STRING, b STRING, c STRING"),
        Work("parquet", "parquet", parquet, "to_json(struct(id, user, note))"),
    )
}  # fmt: skip
