"""Defines the result of detection for a file, with columns as Spark DDL."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LIKE_AN_ID = re.compile(r"id|key|uuid|guid|.*(?:_id|_key|_uuid|_guid)|.*[a-z](?:Id|ID|Key|Uuid|UUID)")
_WHOLE = ("TINYINT", "SMALLINT", "INT", "BIGINT")


@dataclass(frozen=True)
class Column:
    """A column: its type as DDL, and whether every row has a value (None: not known)."""

    name: str
    type: str
    always: bool | None = None


@dataclass(frozen=True)
class Found:
    """The result of detection. `columns` None: Spark has to infer them, or the format has none.

    `conf` are Spark settings without which the file cannot be read. `whole`: the whole file was read, not only its beginning.
    `drops_fields`: there are fields that no column can have.
    `compression`: the file's codec, if its name does not show it.
    """

    format: str
    options: dict[str, str | bool] = field(default_factory=dict)
    columns: tuple[Column, ...] | None = None
    conf: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    whole: bool = True
    drops_fields: bool = False
    compression: str | None = None

    @property
    def schema(self) -> str | None:
        """The columns as Spark DDL."""
        return ", ".join(f"{quoted(each.name)} {each.type}" for each in self.columns) if self.columns else None

    @property
    def key(self) -> str | None:
        """An expression for the record's key: a column of strings or whole numbers that looks like an id and is never empty."""
        fit = [each for each in self.columns or () if each.always is not False and _LIKE_AN_ID.fullmatch(each.name)]
        fit = [each for each in fit if each.type == "STRING" or each.type in _WHOLE]
        best = min(fit, key=lambda each: each.name.lower() not in ("id", "key", "uuid"), default=None)
        if best is None:
            return None
        return quoted(best.name) if best.type == "STRING" else f"CAST({quoted(best.name)} AS STRING)"


def quoted(name: str) -> str:
    """Return a column name for use in an expression, in back-quotes if it needs them."""
    plain = _PLAIN_NAME.fullmatch(name) and not _RESERVED.fullmatch(name.lower())
    return name if plain else "`" + name.replace("`", "``") + "`"


def is_kept_by_double(number: str) -> bool:
    """Say whether the double nearest to a number, written as in JSON, has its value."""
    try:
        return Decimal(repr(float(number))) == Decimal(number)
    except InvalidOperation:  # the exponent is beyond that of any Decimal
        return False


# Names that may mean something else in an expression without back-quotes.
_RESERVED = re.compile(
    r"user|current_\w+|localtimestamp|session_user|from|where|order|group|select|case|when|end|not|and|or|in|is|null|true|false"
    r"|interval|exists|any|all|some|distinct|struct|array|map|cast|date|timestamp|time|values|table|with|on|using"
)


def same_but_for_case(names: Sequence[str]) -> bool:
    """Say whether two of the names are equal to Spark, which ignores case."""
    return len({name.lower() for name in names}) < len(names)
