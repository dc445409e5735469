"""Connects to the database, for the driver (psycopg) and for tasks (ADBC), and fixes the settings of each transaction.

    opening(): reset of the session, isolation level ─▶ locks ─▶ SETTLE: the settings, set and read back

Used by source.py and the reader: it turns the spec's table into a connection string of libpq, which both clients use.
Settings apply to one transaction, and none is sent in libpq's `options`: a pooler may drop or refuse those, and a session
that it shares between several clients has settings of the others.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlsplit

from eosingest.errors import EosingestError, FatalError, SpecError, TemporaryError

INSTALL = "pip install 'eosingest[postgres]'"
# Texts of values must not depend on settings of a pooler, server, database or role; and a snapshot's holder is idle.
_SETTINGS = {
    "TimeZone": "UTC",
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "xmlbinary": "base64",
    "xmloption": "content",
    "lc_monetary": "C",
    "lc_numeric": "C",
    "lc_time": "C",
    "standard_conforming_strings": "on",
    "quote_all_identifiers": "off",
    "transform_null_equals": "off",
    "gin_fuzzy_search_limit": "0",  # otherwise an index returns some of the rows
    "row_security": "off",  # an error instead of rows hidden by a policy
    "idle_in_transaction_session_timeout": "0",
    "transaction_timeout": "0",  # since PostgreSQL 17
    "application_name": "eosingest",
}
_REQUIRED = {"zero_damaged_pages": "off", "ignore_checksum_failure": "off"}  # only a superuser may set them
# Statements before the snapshot. RESET undoes the settings that other clients of a pooler left in the session.
_OPENING = (
    "RESET SESSION AUTHORIZATION",
    "RESET ROLE",
    "RESET ALL",
    "SET LOCAL client_encoding = 'UTF8'",
    "SET LOCAL search_path = pg_catalog, pg_temp",  # others' temporary tables come last
    "SET LOCAL statement_timeout = 0",
    "SET LOCAL lock_timeout = '30s'",  # a table that is altered for longer is left for a later run
)
_SET = ", ".join(f"('{name}', '{value}', true)" for name, value in _SETTINGS.items())
_READ = ", ".join(f"('{name}', '{value}', false)" for name, value in _REQUIRED.items())
# The first query of a transaction: it takes the snapshot. Returns each setting with the wanted and the current value.
SETTLE = f"""
select w.name, w.value, case when w.ours then set_config(w.name, w.value, true) else current_setting(w.name) end
from (values {_SET}, {_READ}) as w (name, value, ours)
where exists (select from pg_settings s where s.name = w.name)
"""
_LIBPQ = {
    "client_encoding": "UTF8",
    "application_name": "eosingest",
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "6",
    "tcp_user_timeout": "60000",
    "options": "",  # not from PGOPTIONS, which executors may not have
}
_SECRETS = ("password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key")
# Parameters that a run sets itself, that would name another server, and that must not be shown.
_NO_PARAMETERS = ("options", "client_encoding", "service", "passfile", "dbname", "hostaddr", "user", "host", *_SECRETS)
_USER = re.compile(r"([^@/]*)@")  # as libpq finds it: any text before the `@`
_HOSTS = re.compile(r"(?:(?:\[[^\]]*\]|[^:,\[\]]*)(?::\d*)?(?:,|$))*")
# Classes of SQLSTATE that a later try may not meet: connection, rollback, resources, locks, operator intervention, system.
LATER_STATES = ("08", "40", "53", "55", "57", "58")
# SQLSTATEs of messages of the server in which values are not repeated: they name objects, or say what was cancelled.
_WITHOUT_VALUES = ("08", "0A", "25", "28", "3D", "40", "42", "53", "54", "55", "57", "58", "XX001", "XX002")
# Messages by which the server interrupts a statement, also in a function, which may raise all others.
_INTERRUPTED = ("canceling ", "terminating ")
# ADBC adds its statement, which has keys in it, after the server's message or before it.
_STATEMENT = re.compile(r"(?s)\s*\bQuery was: ?.*|(?<=Failed to execute query) '.*'(?=: )")
# Texts of refusals that a later try may not meet.
_LATER = ("starting up", "shutting down", "recovery", "too many", "reserved")
READ_ONLY = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY, NOT DEFERRABLE"
LOCKING = (
    "SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY, NOT DEFERRABLE"  # each statement has its own snapshot
)
# Errors of pgbouncer (class 08) that a later try cannot avoid.
_POOLER = {
    "statement pooling mode": "a pooler in statement mode has no transaction, which holds the snapshot: name in source.url"
    " PostgreSQL itself, or a pool with pool_mode = transaction or session",
    "unsupported startup parameter": "the pooler takes only some parameters: unset PGGEQO and the like in the environment,"
    " leave such parameters out of source.url, or name them in its ignore_startup_parameters",
}
_NO_CONNECTION = "query_wait_timeout"


class Others(Protocol):
    """The rest of a spec that this source uses (`spec.tables.Beside`)."""

    @property
    def resolve(self) -> Callable[[Mapping[str, str], str], dict[str, str]]:
        """Resolves references in properties."""


class Table(Protocol):
    """The keys of `[source]` for a table, or for a query."""

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
        """The rest of the spec that this source uses."""


def check_url(url: str) -> str:
    """Return the URL if it is one of a database. Raises ValueError, which names the fault, and repeats nothing of the URL."""
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
    """Say whether a URL has a secret, also if it is invalid: a `/` of the password is not encoded there."""
    rest = url.partition("://")[2]
    user, (hosts, _, behind) = _USER.match(rest), rest.partition("/")
    if user is not None and ":" in user[1]:
        return True
    return ("@" in behind and not _HOSTS.fullmatch(hosts)) or not set(_SECRETS).isdisjoint(_parameters(url))


def _parameters(url: str) -> list[str]:
    return [name for name, _ in parse_qsl(url.partition("?")[2], keep_blank_values=True)]


def conninfo(table: Table) -> str:
    """Return libpq's connection string, with the password. Raises SpecError if the extra is missing or the URL is wrong."""
    given = {} if table.password is None else table.others.resolve({"password": table.password}, "source")
    return conninfo_of(table.url, given)


def conninfo_of(url: str, given: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return libpq's connection string for a URL with more parameters; raises as `conninfo`."""
    psycopg = _psycopg()
    try:
        made: str = psycopg.conninfo.make_conninfo(url, **given, **_LIBPQ)
    except psycopg.Error as error:
        raise SpecError(
            f"source.url: libpq does not take it: {one_line(error)}",
            code="bad-url",
            hint="nothing was sent; as in postgresql://reader@db:5432/shop",
        ) from None
    return made


@contextlib.contextmanager
def explained(what: str, *, hides_keys: bool = False) -> Iterator[None]:
    """Turn psycopg's errors into errors of the source; `what` says what failed, `hides_keys` as in `one_line`."""
    psycopg = _psycopg()
    try:
        yield
    except psycopg.Error as error:
        raise _error(what, error, hides_keys=hides_keys) from None


def connect(info: str) -> Any:
    """Return a psycopg connection. Raises TemporaryError if no server answers, FatalError if it refuses."""
    psycopg = _psycopg()
    with explained("the database could not be reached"):
        return psycopg.connect(info, prepare_threshold=None)  # names of prepared statements may be others' in a pool


def opening(isolation: str) -> tuple[str, ...]:
    """Return the first statements of a transaction. They take no snapshot, so locks can precede it."""
    return (isolation, *_OPENING)


def begin(connection: Any, isolation: str) -> None:
    """Begin a transaction, without a snapshot yet. Raises psycopg's errors."""
    connection.execute("; ".join(opening(isolation)).encode())


def settle(connection: Any) -> None:
    """Fix the settings of the transaction with its first query. Raises FatalError if one is not in force."""
    refuse_settings(connection.execute(SETTLE.encode()).fetchall())


@contextlib.contextmanager
def transaction(info: str, isolation: str) -> Iterator[Any]:
    """Open a connection in a transaction that is rolled back: a pooled session stays as it was. Raises as `connect`."""
    with contextlib.closing(connect(info)) as connection:
        begin(connection, isolation)
        yield connection
        connection.rollback()


def refuse_settings(rows: Iterable[tuple[str, str, str]]) -> None:
    """Raise FatalError if a setting that SETTLE returns is not as wanted: rows could be lost, or values changed."""
    wrong = [f"{name} is {found}, not {wanted}" for name, wanted, found in rows if wanted != found]
    if wrong:
        raise FatalError(
            f"the session of PostgreSQL has settings with which rows are lost or values change: {'; '.join(wrong)}",
            code="postgres-settings",
            hint="committed records are kept; ALTER ROLE … RESET and ALTER DATABASE … RESET undo what a role or a database sets"
            "; if a proxy changes settings, name PostgreSQL itself in source.url",
        )


def _error(what: str, error: Any, *, hides_keys: bool) -> EosingestError:
    text = one_line(error, hides_keys=hides_keys)
    if hint := next((hint for words, hint in _POOLER.items() if words in text), None):
        return FatalError(
            f"{what}: the pooler refused: {text}", code="pooler-refused", hint=f"nothing was sent; {hint}"
        )
    if _NO_CONNECTION in text:
        return TemporaryError(
            f"{what}: the pooler had no connection to PostgreSQL to give: {text}",
            code="source-unreadable",
            hint="committed records are kept, nothing was sent twice; a run needs two connections and one for each task at a"
            " time: raise the pooler's pool_size, then run again",
        )
    refused = "FATAL:" in text and not any(word in text for word in _LATER)
    state = error.sqlstate
    if (state is None and not refused) or (state or "")[:2] in LATER_STATES:
        return TemporaryError(
            f"{what}: {text}",
            code="source-unreadable",
            hint="committed records are kept, nothing was sent twice; run again: it resumes from here",
        )
    return FatalError(
        f"{what}: PostgreSQL refused: {text}",
        code="postgres-refused",
        hint="committed records are kept; correct source.url, source.password, or the role's rights (SELECT on each relation)",
    )


def one_line(error: Exception, *, hides_keys: bool = False) -> str:
    """Return the text of an error of the server or its client in one line, without the statement.

    `hides_keys`: the server's message alone, and not even that if it may repeat a value. An error that is chained to this one
    has the text that this function removes: raise yours `from None`.
    """
    state = getattr(error, "sqlstate", None)
    text = str(error)
    if hides_keys and state is not None:
        text, context = _fields(error)
        raised = bool(context) and not text.startswith(_INTERRUPTED)
        if raised or not state.startswith(_WITHOUT_VALUES):
            text = f"the message is hidden, as it may have a key in it (SQLSTATE {state}; the server's log has it)"
    line = " ".join(_STATEMENT.sub("", text).split())
    is_cut = state is not None and state not in line and (not line or _STATEMENT.search(text) is not None)
    return f"{line} (SQLSTATE {state})".lstrip() if is_cut else line


def _fields(error: Any) -> tuple[str, str]:
    """Return the server's message and its context, "" if the server gave none."""
    if hasattr(error, "diag"):  # psycopg
        return error.diag.message_primary or "", error.diag.context or ""
    found = {bytes(name).decode(): bytes(value).decode(errors="replace") for name, value in error.details}
    return found.get("PG_DIAG_MESSAGE_PRIMARY", ""), found.get("PG_DIAG_CONTEXT", "")


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
