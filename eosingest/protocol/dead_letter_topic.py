"""Opens the dead-letter topic: it must exist or be created, not be compacted, and be the one that earlier runs wrote to.

For planning.py, after the claim and before anything is sent. offsets/dead_letters.py has the pin of the topic.
"""

from __future__ import annotations

from eosingest.errors import ChangedError, FatalError
from eosingest.kafka.ports import Admin, TopicDescription
from eosingest.protocol import pins, sink_topic
from eosingest.protocol.driver_contract import DeadLetterOrder
from eosingest.protocol.offsets.dead_letters import DeadLetterPin, DeadLetters
from eosingest.protocol.task_contract import DeadLetterSettings
from eosingest.records.limits import topic_limits


def opened(
    admin: Admin, order: DeadLetterOrder, pin: DeadLetterPin | None, letters: DeadLetters
) -> tuple[DeadLetterPin, TopicDescription]:
    """Return the pin of the topic for the control record, and the topic. `letters` are those written so far.

    Creates one that does not exist, if the order says how. Raises FatalError for a topic that is missing or compacted,
    ChangedError where earlier dead letters are in another, TemporaryError where the new topic cannot be seen yet.
    """
    found = looked_up(admin, order, pin, letters)
    if found is None and order.create is not None:
        found = sink_topic.created(admin, order.topic, order.create)
        _refuse_compacted(found)
    assert found is not None, "one that is missing is created, or was refused"
    if letters.count and pin is not None:
        return pin, found
    return DeadLetterPin(found.name, found.topic_id, sink_topic.ends(admin, found)), found


def looked_up(
    admin: Admin, order: DeadLetterOrder, pin: DeadLetterPin | None, letters: DeadLetters
) -> TopicDescription | None:
    """Return the topic, None for one that the order has yet to create. Raises as `opened` does."""
    found = admin.describe_topic(order.topic)
    if letters.count and pin is not None:
        _refuse_other(order, pin, letters, found)
    if found is not None:
        _refuse_compacted(found)
    elif order.create is None:
        raise FatalError(
            f"on_error.topic: topic {order.topic} does not exist",
            code="topic-missing",
            hint="nothing was sent; create it, or let the spec do it: on_error = { …, create = { partitions = 1 } }; run again",
        )
    return found


def left(order: DeadLetterOrder, pin: DeadLetterPin | None, letters: DeadLetters) -> int:
    """Return how many dead letters the order still allows until the job is complete."""
    return max(0, order.allowed - (letters.count - (pin.before if pin is not None else 0)))


def settings(
    order: DeadLetterOrder, found: TopicDescription, pin: DeadLetterPin, letters: DeadLetters
) -> DeadLetterSettings:
    """Return the settings for tasks."""
    limits = topic_limits(found.config, found.partitions)
    return DeadLetterSettings(order.topic, limits.max_message_bytes, order.allowed, left(order, pin, letters))


def _refuse_compacted(found: TopicDescription) -> None:
    if found.config is not None and "compact" in found.config.get("cleanup.policy", "delete"):
        raise FatalError(
            f"on_error.topic: topic {found.name} is compacted: it would keep one dead letter of each key",
            code="dead-letter-topic-policy",
            hint="nothing was sent; give it cleanup.policy=delete, or name another topic; then run again",
        )


def _refuse_other(
    order: DeadLetterOrder, pin: DeadLetterPin, letters: DeadLetters, found: TopicDescription | None
) -> None:
    if order.topic != pin.topic:
        raise ChangedError(
            f"on_error.topic: {letters.count} dead letters of the job are in {pin.topic}, and the spec names {order.topic}",
            code="pinned",
            hint=f"nothing was sent; restore it, or take a new job name{pins.from_scratch_hint()}",
        )
    if found is None or found.topic_id != pin.topic_id:
        raise pins.written_topic_recreated(order.topic)
