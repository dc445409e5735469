"""Makes the errors for another table or query than the job's, and for changed columns: exit 12. Pure."""

from __future__ import annotations

from eosingest.errors import ChangedError
from eosingest.sources.postgres.ranges import Relation

_AGAIN = (
    "send all of its rows, in addition to the records in the sink, with: eosingest run SPEC --from-scratch; or begin a"
    " new job (another name)"
)


def another(relation: Relation, was: str) -> ChangedError:
    """Make the error for another table: recreated, or of another database or server; `was` is its identity as in the scope.

    For a query also if its text, or that of a view in it, has changed.
    """
    if relation.query is not None:
        return ChangedError(
            f"the query is {relation.identity} (system identifier/database/hash of its text and views/oids of what it reads),"
            f" and the job reads {was}: query or view has changed, something that it reads was dropped and recreated, or the"
            " spec names another database",
            code="source-query-changed",
            hint=f"nothing of the other query was sent; name the query that was read; or {_AGAIN}",
            item=relation.name,
        )
    return ChangedError(
        f"{relation.said} is {relation.identity} (system identifier/database/oid), and the job reads {was}: it was dropped and"
        " recreated, or the spec names another database",
        code="source-table-recreated",
        hint=f"nothing of the other table was sent; name the table that was read; or {_AGAIN}",
        item=relation.name,
    )


def altered(relation: Relation, what: str) -> ChangedError:
    """Make the error for a table whose columns or key differ from those that an unfinished job has frozen."""
    return ChangedError(
        f"{relation.said}: {what}; the job has sent a part of its rows with the columns as they were",
        code="source-columns-changed",
        hint=f"nothing more was sent; alter the table back and run again; or {_AGAIN}",
        item=relation.name,
    )
