"""SQL over a table's key: the walk that cuts its ranges, the check that it is a key, and the query of a task.

Columns are named as those of `t`: `order by "id"` would mean what is selected under that name, a cast in another order.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from eosingest.errors import FatalError
from eosingest.sources.postgres.catalogue import Found
from eosingest.sources.postgres.ranges import KEY_COLUMN, TEXT_KEYS, TIME_KEYS, KeyRange, KeyValue, Relation


def quoted(name: str) -> str:
    """Return an identifier, quoted."""
    return '"' + name.replace('"', '""') + '"'


def key_order(relation: Relation) -> str:
    """Return the key as it is compared and ordered by: texts by their bytes."""
    return f"t.{quoted(relation.key)}" + (' collate "C"' if relation.key_type in TEXT_KEYS else "")


def key_value(relation: Relation) -> str:
    """Return the key as a position has it: its text."""
    return f"t.{quoted(relation.key)}::text"


def literal(relation: Relation, value: KeyValue) -> str:
    """Return a key's value as SQL."""
    escaped = value.replace("'", "''")
    return f"'{escaped}'::{relation.key_type}"


def behind(relation: Relation, value: KeyValue | None, *, or_at: bool = False) -> str:
    """Return the condition that a key lies behind a value, None for the first row."""
    return "true" if value is None else f"{key_order(relation)} {'>=' if or_at else '>'} {literal(relation, value)}"


def rows_query(relation: Relation, split: KeyRange, last: KeyValue | None, *, again: bool) -> str:
    """Return the query of a range's rows behind the `last` key that was sent; `again`: with the row of that key."""
    columns = [
        f"t.{quoted(column.name)}{'::text' if column.as_text else ''} as {quoted(column.name)}"
        for column in relation.columns
    ]
    begin = behind(relation, split.after) if last is None else behind(relation, last, or_at=again)
    order = key_order(relation)
    return (
        f"select {', '.join(columns)}, {key_value(relation)} as {quoted(KEY_COLUMN)} from {relation.name} as t"
        f" where {begin} and {order} <= {literal(relation, split.upto)} order by {order}"
    )


def prove(connection: Any, found: Found) -> None:
    """Check in the connection's snapshot that no key is null or there twice. Raises FatalError."""
    relation = found.relation
    key, table = f"t.{quoted(relation.key)}", f"{relation.name} as t"
    if not found.not_null:
        (nulls,) = connection.execute(f"select exists (select from {table} where {key} is null)").fetchone()
        if nulls:
            raise _no_key(relation, "is null in some rows, which ranges of keys would leave out")
    if not found.unique:
        twice = f"select exists (select from {table} group by {key} having count(*) > 1)"
        if connection.execute(twice).fetchone()[0]:
            raise _no_key(relation, "has some values in several rows, which a position could not tell apart")


def _no_key(relation: Relation, why: str) -> FatalError:
    return FatalError(
        f"source.key: {relation.name}.{relation.key} {why}",
        code="source-key-not-unique",
        hint="what was committed is kept; name a column that is unique and not null",
        item=relation.name,
    )


def _refuse_far_date(relation: Relation, row: Any) -> None:
    """Raise FatalError for a first or last date before the year 1 or behind 9999: the proof of the order compares texts."""
    if row is not None and re.match(r"[0-9]{4}-.*[^C]$", row[0]) is None:
        raise FatalError(
            f"source.key: {relation.name}.{relation.key} has the value {row[0]}, and a key lies in the years 1 to 9999",
            code="source-key-date",
            hint="what was committed is kept; correct that row, or name another unique column",
            item=relation.name,
        )


def cut(connection: Any, found: Found, name: str, split_rows: int, check: Callable[[], None]) -> list[KeyRange]:
    """Cut the table, called `name`, into ranges of `split_rows` rows, by a walk along the key.

    Into one range where no index has the key's order. `check` raises to end a long walk. Raises FatalError for dates whose
    texts do not sort as they do.
    """
    relation, ranges = found.relation, list[KeyRange]()
    value, order, table = key_value(relation), key_order(relation), f"{relation.name} as t"
    last: KeyValue | None = None

    def first_of(rest: str) -> Any:
        check()
        return connection.execute(f"select {value} from {table} where {behind(relation, last)} {rest}").fetchone()

    if relation.key_type in TIME_KEYS:
        for way in ("asc", "desc"):
            _refuse_far_date(relation, first_of(f"order by {order} {way} limit 1"))
    while found.walkable and (row := first_of(f"order by {order} offset {split_rows - 1} limit 1")) is not None:
        ranges.append(KeyRange(name, relation.identity, last, row[0], split_rows))
        last = row[0]
    if (row := first_of(f"order by {order} desc limit 1")) is not None:
        (count,) = connection.execute(f"select count(*) from {table} where {behind(relation, last)}").fetchone()
        ranges.append(KeyRange(name, relation.identity, last, row[0], count))
    return ranges
