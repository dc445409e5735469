"""Returns the client settings for the cluster of a source topic: those of `[source]`, or the sink's.

Used by the clients of kafka/: those of the source and those of its tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from eosingest.kafka.config import ClientSettings
from eosingest.kafka.librdkafka import refuse_properties

PROPERTIES = "source.properties"


class Others(Protocol):
    """The rest of a spec that this source uses (`spec.tables.Beside`)."""

    @property
    def topic(self) -> str:
        """The sink's topic."""

    @property
    def offsets_topic(self) -> str:
        """The topic that keeps the job's progress."""

    @property
    def dead_letter_topic(self) -> str | None:
        """The topic for rows that cannot be sent, if the job has one."""

    @property
    def sink(self) -> Callable[[], tuple[str, dict[str, str]]]:
        """Returns the sink's servers and properties."""

    @property
    def resolve(self) -> Callable[[Mapping[str, str], str], dict[str, str]]:
        """Resolves references in properties."""


class Table(Protocol):
    """The keys of `[source]` for a topic."""

    topic: str
    bootstrap_servers: str | None
    properties: Mapping[str, str] | None
    to: str

    @property
    def begin(self) -> str:
        """The key `from`."""

    @property
    def others(self) -> Others:
        """The rest of the spec that this source uses."""


def sink_client(table: Table) -> ClientSettings:
    """Return the client settings for the sink's cluster."""
    return ClientSettings(*table.others.sink())


def source_client(table: Table) -> ClientSettings:
    """Return the client settings for the topic's cluster. Raises SpecError for properties that cannot be used.

    A table without servers has the sink's servers, and also the sink's properties unless it has properties itself.
    """
    servers, of_the_sink = table.others.sink() if table.bootstrap_servers is None else (table.bootstrap_servers, {})
    given = given_properties(table)
    return ClientSettings(servers, of_the_sink if given is None else given)


def given_properties(table: Table) -> dict[str, str] | None:
    """Return the table's own properties, None if it has none. Raises SpecError for properties that cannot be used."""
    if table.properties is None:
        return None
    properties = table.others.resolve(table.properties, PROPERTIES)
    refuse_properties(properties, PROPERTIES)
    return properties
