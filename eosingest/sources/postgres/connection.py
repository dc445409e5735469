"""How the database is reached, by the driver (psycopg) and by tasks (ADBC): one conninfo, with the session settings fixed.

Below source.py and the reader; between the table of the spec and libpq, which both clients use.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlsplit

from eosingest.errors import EosingestError, FatalError, SpecError, TemporaryError

INSTALL = "pip install 'eosingest[postgres]'"
# Texts of values must not depend on what a server, database or role is set to; and a holder of a snapshot sits idle.
_SETTINGS = {
    "TimeZone": "UTC",
    "DateStyle": "ISO,YMD",
    "IntervalStyle": "postgres",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "xmlbinary": "base64",
    "lc_monetary": "C",
    "search_path": "pg_catalog",
    "standard_conforming_strings": "on",
    "statement_timeout": "0",
    "lock_timeout": "30s",  # who alters the table for long is waited for by a later run
    "row_security": "off",  # an error, in place of rows that a policy hides
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
}
_LIBPQ = {
    "client_encoding": "UTF8",
    "application_name": "eosingest",
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "6",
    "tcp_user_timeout": "60000",
}
_SECRETS = ("password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key")
# What a run sets itself, what would name another server beside the first one, and what must not be shown.
_NO_PARAMETERS = ("options", "client_encoding", "service", "passfile", "dbname", "hostaddr", "user", "host", *_SECRETS)
_USER = re.compile(r"([^@/]*)@")  # as libpq finds it, whatever comes before the `@`
_HOSTS = re.compile(r"(?:(?:\[[^\]]*\]|[^:,\[\]]*)(?::\d*)?(?:,|$))*")
# Classes of SQLSTATE that a later try may not meet: connection, rollback, resources, locks, operator intervention, system.
LATER_STATES = ("08", "40", "53", "55", "57", "58")
# The server answered, and will answer otherwise in a moment.
_LATER = ("starting up", "shutting down", "recovery", "too many", "reserved")
READ_ONLY = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
LOCKING = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED READ ONLY"  # the next statement has a snapshot of its own


class Others(Protocol):
    """What is asked of the rest of a spec (`spec.tables.Beside`)."""

    @property
    def resolve(self) -> Callable[[Mapping[str, str], str], dict[str, str]]:
        """Resolves references in properties."""


class Table(Protocol):
    """What a spec says in `[source]` of a table, or of a query."""

    url: str
    password: str | None
    table: str | None
    query: str | None
    key: tuple[str, ...]
    split_rows: int
    incremental: bool
    hide_keys: bool

    @property
    def others(self) -> Others:
        """What the table was told of the rest of its spec."""


def check_url(url: str) -> str:
    """Return a URL that is one of a database. Raises ValueError, which says what is wrong, and repeats nothing of it."""
    try:
        scheme = urlsplit(url).scheme
        parameters = _parameters(url)
    except ValueError:
        raise ValueError("is no URL, as in postgresql://reader@db:5432/shop") from None
    if scheme not in ("postgresql", "postgres"):
        raise ValueError("must begin with postgresql://, as in postgresql://reader@db:5432/shop")
    for name in parameters:
        if name in _NO_PARAMETERS:
            raise ValueError(f"must not have the parameter {name}")
    if gives_password(url):
        raise ValueError('must have no password: give source.password = "${env:…}"')
    return url


def gives_password(url: str) -> bool:
    """Say whether a secret stands in a URL, also in one that is wrong: a `/` of the password is not encoded there."""
    rest = url.partition("://")[2]
    user, (hosts, _, behind) = _USER.match(rest), rest.partition("/")
    if user is not None and ":" in user[1]:
        return True
    return ("@" in behind and not _HOSTS.fullmatch(hosts)) or not set(_SECRETS).isdisjoint(_parameters(url))


def _parameters(url: str) -> list[str]:
    return [name for name, _ in parse_qsl(url.partition("?")[2], keep_blank_values=True)]


def conninfo(table: Table) -> str:
    """Return libpq's connection string, with the password. Raises SpecError where the extra is missing or the URL is wrong."""
    given = {} if table.password is None else table.others.resolve({"password": table.password}, "source")
    return conninfo_of(table.url, given)


def conninfo_of(url: str, given: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return libpq's connection string for a URL, with parameters beside it; raises as `conninfo`."""
    psycopg = _psycopg()
    options = " ".join(f"-c {name}={value}" for name, value in _SETTINGS.items())
    try:
        made: str = psycopg.conninfo.make_conninfo(url, **given, **_LIBPQ, options=options)
    except psycopg.Error as error:
        raise SpecError(
            f"source.url: libpq does not take it: {one_line(error)}",
            code="bad-url",
            hint="nothing was sent; as in postgresql://reader@db:5432/shop",
        ) from None
    return made


@contextlib.contextmanager
def explained(what: str) -> Iterator[None]:
    """Turn psycopg's errors into errors of the source; `what` was being done."""
    psycopg = _psycopg()
    try:
        yield
    except psycopg.Error as error:
        raise _error(what, error) from error


def connect(info: str) -> Any:
    """Return a psycopg connection. Raises TemporaryError where nobody answers, FatalError where the server refuses."""
    psycopg = _psycopg()
    with explained("the database could not be reached"):
        return psycopg.connect(info)


def _error(what: str, error: Any) -> EosingestError:
    text = one_line(error)
    refused = "FATAL:" in text and not any(word in text for word in _LATER)
    state = error.sqlstate
    if (state is None and not refused) or (state or "")[:2] in LATER_STATES:
        return TemporaryError(
            f"{what}: {text}",
            code="source-unreadable",
            hint="what was committed is kept, nothing was sent twice; run again: it goes on from here",
        )
    return FatalError(
        f"{what}: PostgreSQL refused: {text}",
        code="postgres-refused",
        hint="what was committed is kept; correct source.url, source.password, or the role's rights (SELECT on what is read)",
    )


def one_line(error: Exception) -> str:
    """Return the text of an error of the server or its client in one line."""
    return " ".join(str(error).split())


def _psycopg() -> Any:
    try:
        import adbc_driver_postgresql  # noqa: F401 - the tasks will need it
        import psycopg
        import psycopg.conninfo
    except ImportError as error:
        raise SpecError(
            f'format = "postgres" needs {error.name}, which is not installed',
            code="missing-extra",
            hint=f"nothing was sent; install it: {INSTALL}",
        ) from error
    return psycopg
