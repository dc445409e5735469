"""The dead-letter topic as a run finds it: what it refuses, what it pins, and how many letters are left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import pytest

from eosingest.errors import ChangedError, FatalError
from eosingest.kafka.ports import OffsetRange, TopicDescription
from eosingest.protocol import dead_letter_topic
from eosingest.protocol.driver_contract import DeadLetterOrder
from eosingest.protocol.offsets.dead_letters import NO_DEAD_LETTERS, DeadLetterPin, DeadLetters

ORDER = DeadLetterOrder("dead", 10)
SENT = DeadLetters(4)


@dataclass
class Brokers:
    """An admin client that knows one topic, of two partitions."""

    name: str = "dead"
    topic_id: str = "id"
    config: Mapping[str, str] | None = None

    def describe_topic(self, name: str) -> TopicDescription | None:
        return TopicDescription(name, self.topic_id, 2, self.config) if name == self.name else None

    def offset_ranges(self, name: str, partitions: int) -> tuple[OffsetRange, ...]:
        return (OffsetRange(0, 5), OffsetRange(0, 7))[:partitions]


def opened(
    brokers: Brokers, pin: DeadLetterPin | None = None, letters: DeadLetters = NO_DEAD_LETTERS
) -> tuple[DeadLetterPin, TopicDescription]:
    return dead_letter_topic.opened(cast(Any, brokers), ORDER, pin, letters)


@pytest.mark.parametrize(
    ("brokers", "code", "words"),
    [
        (Brokers(name="other"), "topic-missing", "create = { partitions = 1 }"),
        (Brokers(config={"cleanup.policy": "compact,delete"}), "dead-letter-topic-policy", "cleanup.policy=delete"),
    ],
)
def test_a_topic_that_cannot_keep_letters(brokers: Brokers, code: str, words: str) -> None:
    with pytest.raises(FatalError) as caught:
        opened(brokers)
    assert caught.value.code == code
    assert words in caught.value.hint and "nothing was sent" in caught.value.hint


def test_letters_begin_where_the_topic_ends() -> None:
    """And a pin without letters is made anew: the spec may name another topic until there is one."""
    pin, _ = opened(Brokers())
    assert pin == DeadLetterPin("dead", "id", (5, 7))
    assert opened(Brokers(), DeadLetterPin("another", "old", (0,)))[0] == pin


@pytest.mark.parametrize(
    ("pin", "code"),
    [(DeadLetterPin("another", "id", (0,)), "pinned"), (DeadLetterPin("dead", "old", (0,)), "topic-recreated")],
)
def test_letters_that_are_in_another_topic(pin: DeadLetterPin, code: str) -> None:
    with pytest.raises(ChangedError) as caught:
        opened(Brokers(), pin, SENT)
    assert caught.value.code == code
    assert opened(Brokers(), replaced := DeadLetterPin("dead", "id", (1, 1)), SENT)[0] == replaced


@pytest.mark.parametrize(("before", "left"), [(0, 6), (4, 10), (3, 9)])
def test_letters_of_complete_jobs_are_not_counted(before: int, left: int) -> None:
    pin = DeadLetterPin("dead", "id", (0, 0), before=before)
    found = Brokers(config={"max.message.bytes": "2000"}).describe_topic("dead")
    assert found is not None
    told = dead_letter_topic.settings(ORDER, found, pin, SENT)
    assert (told.topic, told.max_message_bytes, told.allowed, told.left) == ("dead", 2000, 10, left)


def test_more_letters_than_are_allowed_leave_none() -> None:
    """`max` was lowered since."""
    pin = DeadLetterPin("dead", "id", (0, 0))
    told = dead_letter_topic.settings(ORDER, TopicDescription("dead", "id", 2, None), pin, DeadLetters(40))
    assert told.left == 0
