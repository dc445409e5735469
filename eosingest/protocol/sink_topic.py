"""The sink topic as a run finds it: there, created where the spec says so, never created anew once earlier runs wrote to it.

Under planning.py, which opens it behind the claim, and owned_job.py; asked for its ends where an audit begins or closes.
"""

from __future__ import annotations

from collections.abc import Collection

from eosingest.errors import FatalError, TemporaryError
from eosingest.kafka.protocols import Admin, TopicDescription
from eosingest.protocol import pins
from eosingest.protocol.driver_contract import TopicCreation
from eosingest.protocol.offsets.blocking import abort_hint
from eosingest.protocol.transactional_ids import stem_of


def opened(admin: Admin, name: str, create: TopicCreation | None, *, may_create: bool) -> TopicDescription:
    """Return the topic, created if `create` says how; one that earlier runs wrote to (not `may_create`) is never created anew.

    Raises ChangedError where that one is gone, FatalError where there is none and the spec does not create it.
    """
    found = admin.describe_topic(name)
    if found is None and not may_create:
        raise pins.sink_topic_recreated(name)
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


def hanging(admin: Admin, sink: TopicDescription, stems: Collection[str]) -> TemporaryError | None:
    """Return the error where a transaction of ours is open in the topic that its coordinator calls ended; all ids are fenced.

    `stems` are those of our transactional ids (`stem_of`).
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
        f"hanging transactions of this job in {places}: their coordinator has ended them, these partitions do not know it;"
        " the next commit of the same producer would commit their records, whatever they were to become",
        code="hanging-transaction",
        hint=f"nothing was sent twice so far; {abort_hint(sink.name, ours)} (records that were to be committed are lost by an"
        " abort, and it names their splits); then run again",
    )


def ends(admin: Admin, sink: TopicDescription) -> tuple[int, ...]:
    """Return the high watermark of each partition."""
    return tuple(place.end for place in admin.offset_ranges(sink.name, sink.partitions))
