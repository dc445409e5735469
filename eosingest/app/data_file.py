"""What `init --from` names: a data file on this machine or in a bucket, and what a spec can say of one there; or a topic."""

from __future__ import annotations

from typing import Any

from eosingest import broker
from eosingest.app.connection import EMBEDDED, embedded_is_down
from eosingest.sniff.found import Found
from eosingest.sources import registry
from eosingest.spec import spec_for_topic


def data_file(text: str) -> Any:
    """Return what a path names, to be looked at by `sniff`."""
    return registry.FILES.data_file(text)


def notes_in_bucket(found: Found) -> tuple[str, ...]:
    """Return what is worth knowing where the file is an object."""
    if found.format in ("text", "xml"):
        return ()
    return (
        f"of a bucket, Spark reads {found.format} by Hadoop's client of S3, which the first run fetches (558 MB, once);"
        ' lines of format = "text", and xml, need none',
    )


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
