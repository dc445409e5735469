"""The sink topic as a run finds it: there, created where the spec says so, never created anew once earlier runs wrote to it.

Under driver.py, which opens it behind the claim, and asks for its ends where an audit begins or closes.
"""

from __future__ import annotations

from eosingest.errors import FatalError, TemporaryError
from eosingest.kafka.protocols import Admin, TopicDescription
from eosingest.protocol import pins
from eosingest.protocol.driver_contract import TopicCreation


def opened(admin: Admin, name: str, create: TopicCreation | None, *, may_create: bool) -> TopicDescription:
    """Return the topic, created if `create` says how; one that earlier runs wrote to (not `may_create`) is never created anew.

    Raises ChangedError where that one is gone, FatalError where there is none and the spec does not create it.
    """
    found = admin.describe_topic(name)
    if found is None and not may_create:
        raise pins.topic_made_again(name)
    if found is None and create is None:
        raise FatalError(
            f"topic {name} does not exist",
            code="topic-missing",
            hint="create it, or let the spec do it: [sink] create = { partitions = 6 }",
        )
    if found is None and create is not None:
        admin.create_topic(
            name, partitions=create.partitions, replication_factor=create.replication_factor, config=create.config
        )
        found = admin.describe_topic(name)
    if found is None:
        raise TemporaryError(f"topic {name} was just created and is not there yet", hint="run again")
    return found


def ends(admin: Admin, sink: TopicDescription) -> tuple[int, ...]:
    """Return the high watermark of each partition."""
    return tuple(place.end for place in admin.offset_ranges(sink.name, sink.partitions))
