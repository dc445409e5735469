"""What `init --from` names: a data file on this machine or in a bucket, and what a spec can say of one there; or a topic."""

from __future__ import annotations

import re
from typing import Any

from eosingest import broker
from eosingest.app.connection import EMBEDDED, embedded_is_down
from eosingest.errors import SpecError
from eosingest.sniff.found import Found
from eosingest.sources import registry
from eosingest.spec import spec_for_topic

_COLUMN = re.compile(r"(?:CAST\()?(\w+)(?: AS STRING\))?")


def data_file(text: str) -> Any:
    """Return what a path names, to be looked at by `sniff`."""
    return registry.FILES.data_file(text)


def as_in_bucket(found: Found, path: str) -> tuple[Found, str | None]:
    """Return what was found as it is read of a bucket, and the key: JSON lines are lines.

    Raises SpecError for what is not read of one.
    """
    if found.format in ("text", "xml"):
        return found, found.key
    if found.format != "json" or found.options:
        raise SpecError(
            f"{path} is {found.format}, and of a bucket only lines of text and xml are read in this version",
            code="storage-format",
            hint="copy it to a disk, then: eosingest init --from FILE",
        )
    column = _COLUMN.fullmatch(found.key or "")
    note = "of a bucket, JSON lines are read as text: each is a record as it is, and get_json_object takes values out of it"
    lines = Found("text", whole=found.whole, notes=(*found.notes, note))
    return lines, f"get_json_object(value, '$.{column[1]}')" if column is not None else None


def spec_of_topic(text: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the text of a spec that copies the topic that a text names, and notes; None where it names no topic.

    Raises TemporaryError where no broker answers, SpecError for a topic that is not there, FatalError where it may not be read.
    """
    kind = registry.TOPICS.addressed()
    address = kind.address_of(text)
    if address is None:
        return None
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
