"""Defines `[source]` of a spec whose source is a table of PostgreSQL: its keys, with type, default and description.

For the spec alone (spec/tables.py): loaded together with a spec, and not by tasks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, WithJsonSchema

from eosingest.sources.postgres.connection import check_url
from eosingest.spec.document import Problem
from eosingest.spec.tables import Beside, SourceTable
from eosingest.spec.values import Count, Text

_PART = r'(?:[a-z_][a-z0-9_$]*|"(?:[^"]|"")+")'
_TABLE = re.compile(rf"{_PART}\.{_PART}")


def _check_table(value: str) -> str:
    if not _TABLE.fullmatch(value):
        raise ValueError('must be schema.table, as in "public.orders"; other names in double quotes, as in SQL')
    return value


def _check_query(value: str) -> str:
    if not value.strip() or value.rstrip().endswith(";"):
        raise ValueError("must be one query, without a semicolon at its end")
    return value


def _check_key(value: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(value)) < len(value):
        raise ValueError("must not name a column twice")
    return value


Key = Annotated[
    tuple[Text, ...],
    BeforeValidator(lambda value: (value,) if isinstance(value, str) else value),
    Field(min_length=1, max_length=32),
    AfterValidator(_check_key),
    WithJsonSchema(
        {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 32}]}
    ),
]


def _is_one(key: object) -> bool:
    return isinstance(key, str) or (isinstance(key, list) and len(key) == 1)


class PostgresTable(SourceTable):
    """The table or the query to read."""

    cut_by_size: ClassVar[bool] = False

    format: Annotated[str, WithJsonSchema({"type": "string", "enum": ["postgres"]})] = Field(
        description="Always postgres."
    )
    url: Annotated[str, AfterValidator(check_url)] = Field(
        description="Server, user and database: postgresql://reader@db:5432/shop. Without the password."
    )
    password: str | None = Field(
        default=None,
        description="The user's password, as a reference: ${env:…} or ${file:…}. Resolved when it is used, never shown.",
    )
    table: Annotated[str, AfterValidator(_check_table)] | None = Field(
        default=None, description="The table to read, as schema.table. Or give query."
    )
    query: Annotated[str, AfterValidator(_check_query)] | None = Field(
        default=None,
        description="The query to read in place of a table: one SELECT (or WITH … SELECT) that only reads, with names of "
        "tables as schema.table. The same rows whenever it is computed: no random(), no now().",
    )
    key: Key = Field(
        description="The column, or the list of columns, by which the table is cut into ranges and a run resumes: unique, not "
        "null, and of the type smallint, integer, bigint, text, varchar, uuid, date, timestamp or timestamptz."
    )
    split_rows: Count = Field(
        ge=1,
        default=250_000,
        description="The table is cut into ranges of this many rows. Pinned until the job is complete.",
    )

    incremental: bool = Field(
        default=False,
        description="Whether a run of a complete job sends the rows that came since, by their keys: only for a table whose key "
        "is one column that a sequence gives (a default nextval, or an identity), with CACHE 1.",
    )

    hide_keys: bool = Field(
        default=False,
        description="Whether names of ranges and messages have hashes in place of values of the key. The offsets topic has "
        "the values nevertheless: runs resume by them.",
    )

    _others: Beside | None = PrivateAttr(default=None)

    @classmethod
    def problems(cls, source: dict[str, Any]) -> Iterator[Problem]:
        """Yield a problem for each key that has no meaning for a table."""
        if ("table" in source) == ("query" in source):
            yield Problem(("source",), "must have either table or query")
        if source.get("incremental") not in (None, False) and ("query" in source or not _is_one(source.get("key"))):
            yield Problem(("source", "incremental"), "needs a table, and a key of one column")
        if "split_size" in source:
            yield Problem(("source", "split_size"), "a table is cut by rows; leave it out, and give split_rows")
        if source.get("on_change") == "reingest":
            yield Problem(
                ("source", "on_change"),
                "a table that was recreated is not sent again automatically; leave it out, and run with --from-scratch",
            )

    def beside(self, others: Beside) -> PostgresTable:
        """Return the table with the resolver of references, for the password."""
        made = self.model_copy()
        made._others = others
        return made

    def schema_note(self) -> str:
        """Say where the columns come from."""
        return "the table's columns" if self.query is None else "the query's columns"

    def places(self) -> tuple[str, ...]:
        """Return table and URL, which has no password."""
        return (f"{self.table or 'a query'} of {self.url}",)

    def digest_parts(self) -> dict[str, str]:
        """Return format, table or query, and key. Columns and ranges are in the scope."""
        key = self.key[0] if len(self.key) == 1 else json.dumps(self.key, ensure_ascii=False)
        read = {"table": self.table} if self.table is not None else {"query": str(self.query)}
        parts = {"format": self.format, **read, "key": key}
        return {**parts, "incremental": "true"} if self.incremental else parts

    @property
    def others(self) -> Beside:
        """The rest of the spec that this source uses."""
        assert self._others is not None, "others are set before the table is read"
        return self._others
