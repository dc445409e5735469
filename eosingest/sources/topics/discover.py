"""Resolves a topic's address, `kafka://host:port,…/topic`, for `init --from`: whether it exists, and the form of its records.

    address ─▶ the brokers: partitions, settings, offsets ─▶ the last records of some partitions ─▶ Look

There is no spec yet, so there are no properties and no login. It takes bounded time and no consumer group; nothing is
written or created.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from eosingest.errors import FatalError, SpecError, TemporaryError
from eosingest.kafka.config import ClientSettings
from eosingest.kafka.kafka_python import KafkaPythonAdmin
from eosingest.kafka.ports import FailureKind, KafkaFailure, TopicDescription
from eosingest.kafka.topic_reader import TopicReader
from eosingest.sources.topics.cluster import Partition, partitions_of

SCHEME = "kafka://"
_HOST = r"(?:\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]+):\d{1,5}"
_ADDRESS = re.compile(rf"kafka://(embedded|{_HOST}(?:,{_HOST})*)/([A-Za-z0-9._-]{{1,249}})")
_LOGIN_HINT = (
    "begin with: eosingest init; and say there how the cluster is reached, as"
    ' properties = { "sasl.username" = "me", "sasl.password" = "${env:KAFKA_PASSWORD}", … } in [source]'
)
_DEADLINE_S = 20.0
_PATIENCE_S = 5.0
_PARTITIONS = 16  # that are sampled
_OFFSETS = 50  # of each partition, the last ones
_ID = re.compile(r"id|key|uuid|guid|.*(?:_id|_key|_uuid|_guid)|.*[a-z](?:Id|ID|Key|Uuid|UUID)")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


@dataclass(frozen=True)
class Address:
    """The brokers and the topic that a text names."""

    servers: str
    topic: str

    def __str__(self) -> str:
        return f"{SCHEME}{self.servers}/{self.topic}"


@dataclass(frozen=True)
class Look:
    """The result for a topic. `id_field` is a field of JSON objects that can replace the key, None for none.

    `max_message_bytes` is the topic's own limit, None if it is not known.
    """

    address: Address
    partitions: int
    id_field: str | None
    max_message_bytes: int | None
    notes: tuple[str, ...]


def address_of(text: str) -> Address | None:
    """Return the address in a text, None if it is no `kafka://…`. Raises SpecError, which does not repeat a possible secret."""
    if not text.lower().startswith(SCHEME):
        return None
    if "@" in text:
        raise SpecError(
            "the address has a user or a password in it, which would be kept in the shell's history and in the spec",
            code="credentials-in-address",
            hint=f"nothing was written; {_LOGIN_HINT}",
        )
    found = _ADDRESS.fullmatch(SCHEME + text[len(SCHEME) :])
    if found is None or found[2] in (".", ".."):
        raise SpecError(
            f"the address is not {SCHEME}host:port,host:port/topic",  # which is not repeated: it may hold a secret
            code="bad-address",
            hint="nothing was written; name the brokers and one topic, as in kafka://localhost:9092/orders",
        )
    return Address(found[1], found[2])


def look(address: Address, servers: str | None = None) -> Look:
    """Query the brokers; `servers` if they have other names than in the address.

    Raises TemporaryError if none answers, SpecError for a missing topic, FatalError if it may not be read.
    """
    client = ClientSettings(servers or address.servers)
    with _with_hint():
        admin = KafkaPythonAdmin(client)
        try:
            topic = _described(admin, address)
            partitions = partitions_of(admin, topic)
        finally:
            admin.close()
        keys, values, fields = _sampled(client, address, partitions)
    return Look(
        address,
        topic.partitions,
        id_field=_best(fields),
        max_message_bytes=int(topic.config["max.message.bytes"]) if topic.config is not None else None,
        notes=tuple(_notes(topic, partitions, keys, values)),
    )


def _described(admin: KafkaPythonAdmin, address: Address) -> TopicDescription:
    topic = admin.describe_topic(address.topic)
    if topic is None:
        raise SpecError(
            f"there is no topic {address.topic} on {address.servers}",
            code="source-topic-missing",
            hint="nothing was written, and no topic was made; is it spelt so, and is it this cluster?",
        )
    return topic


@contextlib.contextmanager
def _with_hint() -> Iterator[None]:
    """Give errors about brokers a hint for `init`, which has no spec yet and no login."""
    try:
        yield
    except (TemporaryError, FatalError) as error:
        hint = f"nothing was written; {_hint_of(error)}"
        raise type(error)(error.message, code=error.code, hint=hint) from error


def _hint_of(error: TemporaryError | FatalError) -> str:
    hint = error.hint.removeprefix("nothing was sent; ").removesuffix("; then run again")
    hint = hint.removesuffix("; nothing was sent, run again")
    if not hint or "properties" in hint or error.code in ("broker-refused", "kafka-refused"):
        return f"an address has neither a login nor TLS: {_LOGIN_HINT}"
    return hint


# ---- the form of the records ---------------------------------------------------------------------------------------------


def _sampled(
    client: ClientSettings, address: Address, partitions: Sequence[Partition]
) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Return how many keys and values are of each kind, and in how many JSON values each field may be an id."""
    keys, values, fields = Counter[str](), Counter[str](), Counter[str]()
    deadline = time.monotonic() + _DEADLINE_S
    filled = [number for number, found in enumerate(partitions) if found.earliest < found.stable]
    with _readable(address), contextlib.closing(TopicReader(address.topic, client, patience_s=_PATIENCE_S)) as reader:
        for number in filled[:_PARTITIONS]:
            found = partitions[number]
            for messages in reader.read(number, max(found.earliest, found.stable - _OFFSETS), found.stable):
                for message in messages:
                    keys[kind_of(message.key())] += 1
                    values[kind_of(message.value())] += 1
                    fields.update(id_fields(message.value()))
                if time.monotonic() > deadline:
                    return keys, values, fields
    return keys, values, fields


def kind_of(data: bytes | None) -> str:
    """Return the apparent form of bytes, in words."""
    if data is None:
        return "null"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return _bytes(data)
    if text.lstrip().startswith(("{", "[")):
        with contextlib.suppress(ValueError, RecursionError):
            return "JSON objects" if isinstance(json.loads(text), dict) else "JSON"
    return _bytes(data) if _CONTROLS.search(text) else "text"


def _bytes(data: bytes) -> str:
    return "bytes after a schema registry's id" if data[:1] == b"\0" and len(data) > 5 else "bytes"


def id_fields(data: bytes | None) -> list[str]:
    """Return the fields of a JSON object that look like an id and have a value."""
    try:
        made: Any = json.loads(data or b"")
    except (ValueError, RecursionError):
        return []
    if not isinstance(made, dict):
        return []
    return [
        name
        for name, value in made.items()
        if isinstance(value, str | int)
        and not isinstance(value, bool)
        and _PLAIN.fullmatch(name)
        and _ID.fullmatch(name)
    ]


def _best(fields: Counter[str]) -> str | None:
    """Return the most frequent field; of equally frequent ones `id`, `key` or `uuid`."""
    return min(fields, key=lambda name: (-fields[name], name.lower() not in ("id", "key", "uuid")), default=None)


def _in_words(kinds: Counter[str]) -> str:
    """Return the kinds, most frequent first: `text (40), null (2)`; "" for none."""
    if len(kinds) == 1:
        return next(iter(kinds))
    return ", ".join(f"{kind} ({count})" for kind, count in kinds.most_common())


def _notes(
    topic: TopicDescription, partitions: Sequence[Partition], keys: Counter[str], values: Counter[str]
) -> Iterator[str]:
    seen = sum(keys.values())
    if seen:
        yield f"of {seen} records read, the keys are: {_in_words(keys)}; the values: {_in_words(values)}"
    elif any(found.earliest < found.stable for found in partitions):
        yield "read_committed shows none of the topic's last records: nothing is known of keys and values"
    else:
        yield "the topic has no records that read_committed shows yet"
    if any(found.stable < found.latest for found in partitions):
        yield "a transaction is open in the topic: a later run reads the records after its begin"
    if topic.config is not None and "compact" in topic.config.get("cleanup.policy", ""):
        yield "the topic is compacted: an audit against it (verify --against-source) is inconclusive"


@contextlib.contextmanager
def _readable(address: Address) -> Iterator[None]:
    """Turn a failure of a read into a TemporaryError or FatalError."""
    try:
        yield
    except KafkaFailure as failure:
        if failure.kind is FailureKind.REFUSED:
            raise FatalError(f"topic {address.topic} may not be read: {failure}", code="kafka-refused") from failure
        raise TemporaryError(
            f"topic {address.topic} could not be read: {failure}", code="kafka-uncertain", hint="try again"
        ) from failure
