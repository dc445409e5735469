"""Classifies librdkafka's (confluent-kafka's) errors for the protocol; has the log and helpers that its clients share.

Used by producer.py, offsets_reader.py and topic_reader.py, which raise only KafkaFailure. Its kind says what the protocol must
do next: the producer is fenced, the request is refused for good, or its outcome is unknown.
"""

from __future__ import annotations

import base64
import contextlib
import logging
import time
import uuid
from collections.abc import Iterator, Mapping

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

from eosingest.errors import SpecError
from eosingest.kafka.config import ClientSettings, refuse_one_sided
from eosingest.kafka.ports import FailureKind, KafkaFailure

log = logging.getLogger("eosingest.librdkafka")
_LOOK_S = 0.5

# Refusals that no retry fixes (docs/protocol.md, The task). Anything else that is not a fence has an unknown outcome.
REFUSALS = frozenset(
    {
        "CLUSTER_AUTHORIZATION_FAILED",
        "GROUP_AUTHORIZATION_FAILED",
        "INVALID_CONFIG",
        "INVALID_MSG",
        "INVALID_RECORD",
        "INVALID_TIMESTAMP",
        "INVALID_TRANSACTION_TIMEOUT",
        "MSG_SIZE_TOO_LARGE",
        "POLICY_VIOLATION",
        "SASL_AUTHENTICATION_FAILED",
        "TOPIC_AUTHORIZATION_FAILED",
        "TOPIC_EXCEPTION",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        "UNKNOWN_TOPIC_OR_PART",
        "UNSUPPORTED_COMPRESSION_TYPE",
        "UNSUPPORTED_FOR_MESSAGE_FORMAT",
        "UNSUPPORTED_VERSION",
        "_AUTHENTICATION",
        "_INVALID_ARG",
        "_UNKNOWN_PARTITION",
        "_UNKNOWN_TOPIC",
        "_UNSUPPORTED_FEATURE",
    }
)
_FENCES = frozenset({"_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"})


# A batch that is damaged or of an unknown kind: librdkafka requests it for ever, or skips it.
DAMAGED = frozenset({"_BAD_MSG", "_BAD_COMPRESSION", "_NOT_IMPLEMENTED"})


def classify(error: KafkaError) -> KafkaFailure:
    """Classify an error of librdkafka by what the protocol must do next."""
    code = error.name()
    if code in _FENCES:
        kind = FailureKind.FENCED
    elif code in REFUSALS:
        kind = FailureKind.REFUSED
    else:
        kind = FailureKind.UNCERTAIN
    return KafkaFailure(kind, code, error.str())


@contextlib.contextmanager
def failures() -> Iterator[None]:
    """Turn KafkaException into KafkaFailure."""
    try:
        yield
    except KafkaException as exception:
        error = exception.args[0]
        if isinstance(error, KafkaError):
            raise classify(error) from exception
        raise KafkaFailure(FailureKind.UNCERTAIN, "unknown", str(exception)) from exception


def raise_unless_passing(error: KafkaError) -> None:
    """Raise KafkaFailure for an error that ends the read. After others, as a lost connection, librdkafka retries."""
    failure = classify(error)
    if error.fatal() or failure.kind is not FailureKind.UNCERTAIN or error.name() in {"_AUTO_OFFSET_RESET", *DAMAGED}:
        raise failure


def position(consumer: confluent_kafka.Consumer, topic: str, partition: int) -> int:
    """Return the consumer's position, -1 where it has none yet."""
    with failures():
        offset = consumer.position([TopicPartition(topic, partition)])[0].offset
    return offset if offset >= 0 else -1


def topic_id(admin: AdminClient, topic: str, timeout_s: float) -> str:
    """Return the id of the topic that exists now, as in `TopicDescription`. Raises KafkaFailure, also if none exists."""
    with failures():
        found = admin.describe_topics(TopicCollection([topic]), request_timeout=timeout_s)[topic].result()
    # librdkafka returns it as Kafka's tools do, kafka-python as a UUID.
    return str(uuid.UUID(bytes=base64.urlsafe_b64decode(f"{found.topic_id}==")))


def check_properties(settings: ClientSettings) -> str | None:
    """Return librdkafka's complaint about the user's properties, None where it takes them. Connects to nothing."""
    try:
        confluent_kafka.Producer({**settings.properties, "transactional.id": "check"}, logger=log)
    except KafkaException as exception:
        error = exception.args[0]
        return error.str() if isinstance(error, KafkaError) else str(exception)
    return None


def refuse_properties(properties: Mapping[str, str], key: str, spec: str = "") -> None:
    """Raise SpecError for connection properties that one of the clients cannot honour; connects to nothing.

    `key` is where the `spec` has them. librdkafka loads what properties name, so it gets none that is refused.
    """
    problems = refuse_one_sided(properties, key)
    if not problems and (complaint := check_properties(ClientSettings("", properties))):
        problems = [f"{spec}{': ' if spec else ''}{key}: librdkafka says: {complaint}"]
    if problems:
        raise SpecError("\n".join(problems), code="bad-property", problems=problems)


def refuses_login(settings: ClientSettings, patience_s: float) -> bool:
    """Say whether a broker refuses the login by these settings; False where it takes it, or nothing is known in time."""
    refusals: list[KafkaError] = []
    deadline = time.monotonic() + patience_s
    with contextlib.suppress(KafkaException):
        client = AdminClient({**settings.librdkafka(), "error_cb": refusals.append}, logger=log)
        while not any(error.name() == "_AUTHENTICATION" for error in refusals) and time.monotonic() < deadline:
            with contextlib.suppress(KafkaException):
                client.list_topics(timeout=_LOOK_S)
                return False
            client.poll(0)
    return any(error.name() == "_AUTHENTICATION" for error in refusals)
