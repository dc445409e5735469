"""Composes SQL over a table's key: the queries that cut its ranges, prove the key, and read the rows of a task.

Columns are named as those of `t`: `order by "id"` would mean the selected column of that name, a cast in another order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

from eosingest.errors import FatalError
from eosingest.sources.postgres.catalogue import Found
from eosingest.sources.postgres.ranges import KEY_COLUMN, TEXT_KEYS, TIME_KEYS, KeyColumn, KeyRange, KeyValue, Relation


def quoted(name: str) -> str:
    """Return an identifier, quoted."""
    return '"' + name.replace('"', '""') + '"'


def key_parts(relation: Relation) -> list[str]:
    """Return the columns of the key as they are compared and ordered by: texts by their bytes."""
    return [f"t.{quoted(key.name)}" + (' collate "C"' if key.type in TEXT_KEYS else "") for key in relation.keys]


def key_order(relation: Relation, way: str = "") -> str:
    """Return the ORDER BY list, each column in the same direction ("" or " desc")."""
    return ", ".join(f"{part}{way}" for part in key_parts(relation))


def key_values(relation: Relation) -> list[str]:
    """Return the columns of the key as a position has them: as texts."""
    return [f"t.{quoted(key.name)}::text" for key in relation.keys]


def compared(relation: Relation, sign: str, value: KeyValue) -> str:
    """Return the condition that compares the key with a value; several columns as a row, for which an index can be used."""
    values = [_literal(text, key) for text, key in zip(value, relation.keys, strict=True)]
    return f"{_row(key_parts(relation))} {sign} {_row(values)}"


def _literal(text: str, key: KeyColumn) -> str:
    escaped = text.replace("'", "''")
    return f"'{escaped}'::{key.type}"


def _row(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


def behind(relation: Relation, value: KeyValue | None, *, or_at: bool = False) -> str:
    """Return the condition that a key is after a value; None: from the first row."""
    return "true" if value is None else compared(relation, ">=" if or_at else ">", value)


def key_columns(relation: Relation) -> list[str]:
    """Return the names of the key's columns in a task's query, which follow those of the table."""
    return [KEY_COLUMN + (str(number) if number else "") for number in range(len(relation.keys))]


def rows_query(
    relation: Relation, split: KeyRange, last: KeyValue | None, *, again: bool, only: Collection[str] | None = None
) -> str:
    """Return the query of a range's rows after the `last` key that was sent; `again`: with the row of that key.

    `only` names the wanted columns, None for all.
    """
    columns = [
        f"t.{quoted(column.name)}{'::text' if column.as_text else ''} as {quoted(column.name)}"
        for column in relation.columns
        if only is None or column.name in only
    ]
    values = zip(key_values(relation), key_columns(relation), strict=True)
    columns += [f"{value} as {quoted(name)}" for value, name in values]
    begin = behind(relation, split.after) if last is None else behind(relation, last, or_at=again)
    return (
        f"select {', '.join(columns)} from {relation.sql} as t"
        f" where {begin} and {compared(relation, '<=', split.upto)} order by {key_order(relation)}"
    )


def prove(connection: Any, found: Found) -> None:
    """Check in the connection's snapshot that no key is null or a duplicate. Raises FatalError.

    Also check that dates, which proofs of the order compare as texts, sort so, except those that the walk checks (`cut`).
    """
    relation = found.relation
    table = f"{relation.sql} as t"
    if not found.not_null:
        missing = " or ".join(f"{part} is null" for part in key_parts(relation))
        (nulls,) = connection.execute(f"select exists (select from {table} where {missing})").fetchone()
        if nulls:
            raise _no_key(relation, "is null in some rows, which ranges of keys would leave out")
    if not found.unique:
        twice = f"select exists (select from {table} group by {key_order(relation)} having count(*) > 1)"
        if connection.execute(twice).fetchone()[0]:
            raise _no_key(relation, "has some values in several rows, which a position could not distinguish")
    for key in relation.keys[1:]:
        if key.type in TIME_KEYS:
            far = f"t.{quoted(key.name)} < '0001-01-01' or t.{quoted(key.name)} >= '10000-01-01'"
            far_row = f"select t.{quoted(key.name)}::text from {table} where {far} limit 1"
            _refuse_far_date(relation, key, connection.execute(far_row).fetchone())


def _no_key(relation: Relation, why: str) -> FatalError:
    return FatalError(
        f"source.key: {relation.key_names} of {relation.name} {why}",
        code="source-key-not-unique",
        hint="committed records are kept; name a key that is unique and not null: a column, or a list of columns",
        item=relation.name,
    )


def _refuse_far_date(relation: Relation, key: KeyColumn, row: Any) -> None:
    """Raise FatalError for a date before the year 1 or after 9999: the proof of the order compares texts."""
    if row is not None and re.match(r"[0-9]{4}-.*[^C]$", row[0]) is None:
        value = "a value that is hidden" if relation.hides_keys else f"the value {row[0]}"
        raise FatalError(
            f"source.key: {relation.name}.{key.name} has {value}, and a key must be in the years 1 to 9999",
            code="source-key-date",
            hint="committed records are kept; correct that row, or name another unique column",
            item=relation.name,
        )


def cut(
    connection: Any,
    found: Found,
    name: str,
    split_rows: int,
    check: Callable[[], None],
    last: KeyValue | None = None,
) -> list[KeyRange]:
    """Cut the table, called `name`, after a key into ranges of `split_rows` rows, by a walk along the key.

    If no index has the key's order, there is one range. `check` raises to end a long walk. Raises FatalError for dates
    whose texts do not sort as they do.
    """
    relation, ranges = found.relation, list[KeyRange]()
    values, order, table = ", ".join(key_values(relation)), key_order(relation), f"{relation.sql} as t"
    backwards = key_order(relation, " desc")

    def first_of(rest: str) -> KeyValue | None:
        check()
        row = connection.execute(f"select {values} from {table} where {behind(relation, last)} {rest}").fetchone()
        return None if row is None else tuple(row)

    if relation.keys[0].type in TIME_KEYS:
        for way in (order, backwards):
            _refuse_far_date(relation, relation.keys[0], first_of(f"order by {way} limit 1"))
    while found.walkable and (row := first_of(f"order by {order} offset {split_rows - 1} limit 1")) is not None:
        ranges.append(KeyRange(name, relation.identity, last, row, split_rows))
        last = row
    if (row := first_of(f"order by {backwards} limit 1")) is not None:
        (count,) = connection.execute(f"select count(*) from {table} where {behind(relation, last)}").fetchone()
        ranges.append(KeyRange(name, relation.identity, last, row, count))
    return ranges
