"""Opens the sink topic, or creates it where the spec says so, but never once earlier runs wrote to it.

For planning.py, which opens it after the claim, and job_lease.py. An audit begins and ends at its high watermarks.
"""

from __future__ import annotations

from collections.abc import Collection

from eosingest.errors import FatalError, TemporaryError
from eosingest.kafka.ports import Admin, TopicDescription
from eosingest.protocol import pins
from eosingest.protocol.driver_contract import TopicCreation
from eosingest.protocol.offsets.blocking import abort_hint
from eosingest.protocol.transactional_ids import stem_of


def opened(admin: Admin, name: str, create: TopicCreation | None, *, may_create: bool) -> TopicDescription:
    """Return the topic. Creates one that does not exist, if `create` says how and no earlier run wrote to it (`may_create`).

    Raises ChangedError where a topic that earlier runs wrote to is gone, FatalError where there is none and the spec does not
    create it, TemporaryError where the new topic cannot be seen yet.
    """
    found = admin.describe_topic(name)
    if found is not None:
        return found
    if not may_create:
        raise pins.written_topic_recreated(name)
    if create is None:
        raise FatalError(
            f"topic {name} does not exist",
            code="topic-missing",
            hint="create it, or let the spec do it: [sink] create = { partitions = 6 }",
        )
    return created(admin, name, create)


def created(admin: Admin, name: str, create: TopicCreation) -> TopicDescription:
    """Create a topic and return it. Raises TemporaryError where it cannot be seen yet."""
    admin.create_topic(
        name, partitions=create.partitions, replication_factor=create.replication_factor, config=create.config
    )
    found = admin.describe_topic(name)
    if found is None:
        raise TemporaryError(f"topic {name} was just created and is not there yet", hint="run again")
    return found


def hanging(admin: Admin, sink: TopicDescription, stems: Collection[str]) -> TemporaryError | None:
    """Return the error for hanging transactions of ours in the topic, None for none. Call it after all ids are fenced.

    They are open in a partition, and their coordinator has ended them. `stems` are those of our ids (`stem_of`).
    """
    ours = [
        (partition, each)
        for partition, each in admin.hanging_transactions(sink.name, sink.partitions)
        if stem_of(each.transactional_id) in stems
    ]
    if not ours:
        return None
    places = ", ".join(f"{sink.name}-{partition} ({each.transactional_id})" for partition, each in ours)
    return TemporaryError(
        f"hanging transactions of this job in {places}: their coordinator has ended them, these partitions keep them open;"
        " the next commit of the same producer would commit their records, even those that were to be aborted",
        code="hanging-transaction",
        hint=f"nothing was sent twice so far; {abort_hint(sink.name, ours)} (an abort loses records that were to be"
        " committed, and verify names their splits); then run again",
    )


def ends(admin: Admin, sink: TopicDescription) -> tuple[int, ...]:
    """Return the high watermark of each partition, by number."""
    return tuple(place.end for place in admin.offset_ranges(sink.name, sink.partitions))
