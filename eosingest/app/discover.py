"""Resolves the argument of `init --from`: a data file, local or in a store, a topic, or a table."""

from __future__ import annotations

import os
from typing import Any

from eosingest.sniff.result import quoted
from eosingest.sources import registry
from eosingest.spec import spec_for_table, spec_for_topic

_PASSWORD = "PGPASSWORD"  # the variable that libpq reads


def data_file(text: str) -> Any:
    """Return the data file that a path names, for `sniff`."""
    return registry.FILES.data_file(text)


def spec_of_address(text: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the text of a spec for the topic or the table at an address, and notes; None if the text is no address of either.

    Raises TemporaryError if no server answers, SpecError if topic or table does not exist, FatalError if it may not be read.
    """
    if "://" not in text:  # Kafka's clients take half a second to load
        return None
    return _spec_of_topic(text) or _spec_of_table(text)


def _spec_of_topic(text: str) -> tuple[str, tuple[str, ...]] | None:
    kind = registry.TOPICS.addressed()
    address = kind.address_of(text)
    if address is None:
        return None
    from eosingest import broker
    from eosingest.app.connection import EMBEDDED, embedded_is_down

    is_embedded = address.servers == EMBEDDED
    servers = broker.status().bootstrap_servers if is_embedded else address.servers
    if not servers:
        raise embedded_is_down()
    found = kind.look(address, servers)
    written = spec_for_topic(
        address=str(address),
        topic=address.topic,
        servers=None if is_embedded else servers,
        partitions=found.partitions,
        max_message_bytes=found.max_message_bytes,
        id_field=found.id_field,
        notes=found.notes,
    )
    return written, found.notes


def _spec_of_table(text: str) -> tuple[str, tuple[str, ...]] | None:
    kind = registry.POSTGRES.addressed()
    address = kind.address_of(text)
    if address is None:
        return None
    found = kind.look(address)
    written = spec_for_table(
        address=str(address),
        url=address.url,
        password=f"${{env:{_PASSWORD}}}",
        has_password=bool(os.environ.get(_PASSWORD)),
        table=found.relation.name,
        key=[column.name for column in found.relation.keys],
        record_key=_record_key(found.relation),
        incremental=found.incremental,
        notes=found.notes,
    )
    return written, found.notes


def _record_key(relation: Any) -> str:
    """Return the expression for the record's key: the table's key column as text, or several columns as JSON."""
    names = [quoted(column.name) for column in relation.keys]
    if len(names) > 1:
        return f"to_json(struct({', '.join(names)}))"
    types = {column.name: column.spark for column in relation.columns}
    return names[0] if types[relation.keys[0].name] == "STRING" else f"CAST({names[0]} AS STRING)"
