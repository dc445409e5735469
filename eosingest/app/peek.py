"""Reads a few records of a topic as a read_committed consumer does, in bounded time (`topic peek`).

Reads up to the last stable offset, without a consumer group; commits, claims and creates nothing.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from eosingest import broker
from eosingest.app.connection import EMBEDDED, embedded_is_down, refuse_unusable_properties
from eosingest.errors import FatalError, TemporaryError
from eosingest.host.interruption import never
from eosingest.kafka.config import ClientSettings
from eosingest.kafka.kafka_python import KafkaPythonAdmin
from eosingest.kafka.ports import FailureKind, KafkaFailure
from eosingest.kafka.topic_reader import TopicReader, record_of
from eosingest.report.model import PeekReport, ShownRecord
from eosingest.spec import Spec, resolve_properties

_PATIENCE_S = 10.0
_DEADLINE_S = 30.0
_FURTHER_BACK = 4


@dataclass(frozen=True)
class PeekSettings:
    """The records to read: the `count` oldest of a topic, or with `last` the newest. `properties` may hold secrets."""

    topic: str
    servers: str
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    count: int = 10
    last: bool = False


def settings_of(spec: Spec, servers: str | None, count: int, *, last: bool) -> PeekSettings:
    """Return the settings for the topic of a spec. `servers` overrides the spec's bootstrap servers."""
    refuse_unusable_properties(spec)
    where = servers or spec.sink.bootstrap_servers
    return PeekSettings(spec.sink.topic, where, resolve_properties(spec), count, last)


def peek(settings: PeekSettings, check: Callable[[], None] = never) -> PeekReport:
    """Return the records. Raises FatalError if the topic does not exist, TemporaryError if no broker answers."""
    servers = settings.servers
    if servers == EMBEDDED:
        servers = broker.status().bootstrap_servers
        if not servers:
            raise embedded_is_down()
    client = ClientSettings(servers, settings.properties)
    admin = KafkaPythonAdmin(client, check)
    try:
        found = admin.describe_topic(settings.topic)
        if found is None:
            raise FatalError(
                f"topic {settings.topic} does not exist on {servers}",
                code="topic-missing",
                hint="nothing was made; is it the right cluster? A run creates it where the spec says [sink] create = …",
            )
        ranges = admin.offset_ranges(settings.topic, found.partitions)
        stable = admin.last_stable_offsets(settings.topic, found.partitions)
    finally:
        admin.close()
    report = PeekReport(
        topic=settings.topic,
        bootstrap_servers=servers,
        partitions=found.partitions,
        offsets=sum(place.end - place.start for place in ranges),
        last=settings.last,
    )
    notes = []
    if any(place.end > end for place, end in zip(ranges, stable, strict=True)):
        notes.append("a transaction is open: read_committed does not see the records after its begin yet")
    spans = [(place.start, min(end, place.end)) for place, end in zip(ranges, stable, strict=True)]
    with _readable(settings.topic):
        records, all_read = _Look(settings, client, check).records(spans)
    if not all_read:
        notes.append(f"reading ended after {_DEADLINE_S:.0f} s: there may be more")
    return replace(report, records=tuple(records), notes=tuple(notes))


class _Look:
    """Reads a few records of each partition, and selects among them."""

    def __init__(self, settings: PeekSettings, client: ClientSettings, check: Callable[[], None]) -> None:
        self._settings = settings
        self._reader = TopicReader(settings.topic, client, patience_s=_PATIENCE_S)
        self._check = check
        self._deadline = time.monotonic() + _DEADLINE_S

    def records(self, spans: list[tuple[int, int]]) -> tuple[list[ShownRecord], bool]:
        """Return the records, oldest timestamp first, and whether there was time to read all partitions."""
        found: list[ShownRecord] = []
        whole = True
        try:
            for partition, (start, end) in enumerate(spans):
                if time.monotonic() > self._deadline:
                    whole = False
                    break
                found += self._tail(partition, start, end) if self._settings.last else self._head(partition, start, end)
        finally:
            self._reader.close()
        found.sort(key=lambda record: (record.timestamp_ms or 0, record.partition, record.offset))
        count = self._settings.count
        return (found[-count:] if self._settings.last else found[:count]), whole

    def _head(self, partition: int, start: int, end: int) -> list[ShownRecord]:
        found: list[ShownRecord] = []
        if start < end:
            for messages in self._reader.read(partition, start, end):
                self._check()
                found += map(_shown, messages)
                if len(found) >= self._settings.count or time.monotonic() > self._deadline:
                    break
        return found[: self._settings.count]

    def _tail(self, partition: int, start: int, end: int) -> list[ShownRecord]:
        """Return the last records. Markers and aborted records have offsets too, so start further back until enough."""
        back = self._settings.count + 10
        while True:
            begin = max(start, end - back)
            found = [_shown(message) for message in self._messages(partition, begin, end)]
            if len(found) >= self._settings.count or begin == start or time.monotonic() > self._deadline:
                return found[-self._settings.count :]
            back *= _FURTHER_BACK

    def _messages(self, partition: int, begin: int, end: int) -> Iterator[Any]:
        if begin < end:
            for messages in self._reader.read(partition, begin, end):
                self._check()
                yield from messages


def _shown(message: Any) -> ShownRecord:
    return ShownRecord(**record_of(message)._asdict())


@contextlib.contextmanager
def _readable(topic: str) -> Iterator[None]:
    """Turn a failure of a read into a TemporaryError or FatalError."""
    try:
        yield
    except KafkaFailure as failure:
        if failure.kind is FailureKind.REFUSED:
            raise FatalError(f"topic {topic} could not be read: {failure}", code="kafka-refused") from failure
        raise TemporaryError(
            f"topic {topic} could not be read: {failure}", code="kafka-uncertain", hint="try again"
        ) from failure
