"""Checks the parts of a spec that loading does not check: expressions, paths, servers and properties.

The loader supplies the tables and adds line numbers; the code that uses a value checks it. Nothing is started and no broker is
contacted. Files, if they exist, are listed for the columns that their folders give.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from eosingest.errors import EosingestError, SpecError
from eosingest.host.interruption import never
from eosingest.kafka.config import ClientSettings, refuse_one_sided, why_one_sided
from eosingest.kafka.librdkafka import check_properties
from eosingest.protocol.source import Purpose, Source
from eosingest.sources.registry import formats, kind_of
from eosingest.spec.document import Problem, Table, get
from eosingest.spec.lint import expression_problems
from eosingest.spec.options import Refusals, refused_properties, refused_source_properties
from eosingest.spec.sources import source_table

_EMBEDDED = "embedded"
_SERVER = re.compile(
    r"(?:(?P<scheme>[A-Za-z_]\w*)://)?(?P<host>\[[0-9A-Fa-f:.%]+\]|[^\s:/\[\]]+)(?::(?P<port>\d{1,5}))?"
)
_LISTENERS = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
_QUOTED = re.compile(r'"([^"]+)"')
_REFUSED: Mapping[str, Callable[[Mapping[str, str]], Refusals]] = {
    "sink": partial(refused_properties, timeout=math.inf),
    "source": refused_source_properties,
}


def further_problems(tables: Table, spec: Path) -> Iterator[Problem]:
    """Yield the problems of `tables`, whose references are resolved. Tables of a wrong type are skipped."""
    source = _source(tables, spec)
    if isinstance(source, Problem):
        yield source
    for table in ("sink", "source"):
        yield from _server_problems(table, get(tables, table, "bootstrap_servers"))
    for table in ("sink", "source"):
        yield from _property_problems(table, get(tables, table, "properties"))
    yield from expression_problems(
        tables, _folders(source) if source is not None and not isinstance(source, Problem) else None
    )


def _source(tables: Table, spec: Path) -> Source | Problem | None:
    """Return the source, or the problem of a path that this version cannot read, or None if the table is too incomplete."""
    read = tables.get("source")
    table = source_table(read).for_a_look(read) if isinstance(read, dict) else None
    if table is None or table.format not in formats():
        return None
    try:
        return kind_of(table.format).source(table, spec.absolute().parent, never)
    except SpecError as error:
        return Problem(("source", "path"), error.message, hint=error.hint, code=error.code)


def _folders(source: Source) -> dict[str, str] | None:
    """Return the columns that rows get from their item's path (`k=v`), without types; None if there are no items to list."""
    try:
        snapshot = source.plan(purpose=Purpose.SHOW)
        return dict.fromkeys(snapshot.folders, "") if snapshot.items else None
    except EosingestError:  # a run reports it; while a spec is written the data may be missing
        return None


def _server_problems(table: str, servers: object) -> Iterator[Problem]:
    if not isinstance(servers, str) or servers == _EMBEDDED or not servers.strip():
        return
    for server in map(str.strip, servers.split(",")):
        found = _SERVER.fullmatch(server)
        text = ""
        if not server:
            text = "a comma too many"
        elif found is None or (found["scheme"] or "plaintext").lower() not in _LISTENERS:
            text = f"'{server}' is not host:port"
        elif found["port"] is None:
            text = f"'{server}' has no port; brokers mostly listen at {server}:9092"
        elif not 0 < int(found["port"]) < 65536:
            text = f"'{server}': there is no port {found['port']}"
        if text:
            yield Problem(
                (table, "bootstrap_servers"), text, hint='write host:port,host:port or "embedded"', code="servers"
            )
            return


def _property_problems(table: str, properties: object) -> Iterator[Problem]:
    """Yield the properties that one of the clients cannot honour, then librdkafka's complaints.

    librdkafka loads what properties name, so it gets no refused one. It reports one problem at a time, so check the other
    properties until it reports none.
    """
    if not isinstance(properties, dict):
        return
    refused = dict(_REFUSED[table](properties))  # reported when the spec is loaded
    left = {str(name): str(value) for name, value in properties.items() if name not in refused}
    for name in list(left):
        if why := why_one_sided(name):
            del left[name]
            yield Problem((table, "properties", name), why.lstrip(": "), code="bad-property")
    if refuse_one_sided(left):  # a login: `check` reports it
        left = {name: value for name, value in left.items() if not name.startswith(("sasl.", "security."))}
    while left and (complaint := check_properties(ClientSettings("", left))):
        named = [name for name in _QUOTED.findall(complaint) if name in left]
        if not named:
            return  # about no single property: reported when the spec is loaded
        del left[named[0]]
        yield Problem((table, "properties", named[0]), f"librdkafka says: {complaint}", code="bad-property")
