"""The errors for a table that is not the one that was read, or has other columns now: exit 12. Pure."""

from __future__ import annotations

from eosingest.errors import ChangedError

_AGAIN = (
    "send all of its rows, beside what is in the sink, with: eosingest run SPEC --from-scratch; or begin a new job"
    " (another name)"
)


def recreated(table: str, was: str, now: str) -> ChangedError:
    """Make the error for another table: recreated, or of another database or server. Identities as in the scope."""
    return ChangedError(
        f"table {table} is {now} (system identifier/database/oid), and the job reads {was}: it was dropped and created anew, or"
        " the spec names another database",
        code="source-table-recreated",
        hint=f"nothing of the other table was sent; name the table that was read; or {_AGAIN}",
        item=table,
    )


def altered(table: str, what: str) -> ChangedError:
    """Make the error for a table whose columns or key differ from what an unfinished job has frozen."""
    return ChangedError(
        f"table {table}: {what}; the job has sent a part of its rows with the columns as they were",
        code="source-columns-changed",
        hint=f"nothing more was sent; alter the table back and run again; or {_AGAIN}",
        item=table,
    )
