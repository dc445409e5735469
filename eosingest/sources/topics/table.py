"""Defines `[source]` of a spec whose source is a topic: its keys, with type, default and description.

For the spec alone (spec/tables.py): loaded together with a spec, and not by tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, PrivateAttr, WithJsonSchema

from eosingest.sources.topics.columns import COLUMNS
from eosingest.sources.topics.times import milliseconds
from eosingest.spec.columns import Columns
from eosingest.spec.document import Problem
from eosingest.spec.options import refused_source_properties
from eosingest.spec.tables import Beside, SourceTable
from eosingest.spec.values import Flat, Text, Topic

EARLIEST, LATEST = "earliest", "latest"
_EMBEDDED = "embedded"


def _point(word: str) -> AfterValidator:
    """Return a validator that accepts a word, or a point in time."""

    def check(value: str) -> str:
        if value != word:
            try:
                milliseconds(value)
            except (ValueError, OverflowError):
                example = "2026-11-20T00:00:00Z"
                raise ValueError(f'must be "{word}" or a time with an offset from UTC, as in "{example}"') from None
        return value

    return AfterValidator(check)


class TopicTable(SourceTable):
    """The topic to read."""

    cut_by_size: ClassVar[bool] = False
    more_columns: ClassVar[bool] = False

    format: Annotated[str, WithJsonSchema({"type": "string", "enum": ["kafka"]})] = Field(description="Always kafka.")
    topic: Topic = Field(description="The topic to read, read_committed.")
    bootstrap_servers: Text | None = Field(
        default=None, description="host:port,… of the topic's cluster. By default the sink's."
    )
    start: Annotated[str, _point(EARLIEST)] = Field(
        default=EARLIEST,
        alias="from",
        description="Where reading of a partition begins: earliest, or the first record of this time (RFC 3339) or a later "
        "one. If records of it were read, the next run resumes after them.",
    )
    to: Annotated[str, _point(LATEST)] = Field(
        default=LATEST,
        description="Up to where a run reads, fixed when it begins: latest is the last stable offset; a time (RFC 3339) ends "
        "before the first record of this time or a later one.",
    )
    properties: Flat | None = Field(
        default=None,
        description="Client settings for the topic's cluster, by librdkafka's names. By default the sink's, where its servers "
        "are the sink's.",
    )

    _others: Beside | None = PrivateAttr(default=None)

    @classmethod
    def problems(cls, source: dict[str, Any]) -> Iterator[Problem]:
        """Yield a problem for each refused property, and for keys that have no meaning for a topic."""
        properties = source.get("properties")
        if isinstance(properties, dict):
            for key, text in refused_source_properties(properties):
                yield Problem(("source", "properties", key), text)
        if "split_size" in source:
            yield Problem(
                ("source", "split_size"),
                "a partition is read by one task, in offset order, and never cut; leave it out",
            )
        if source.get("on_change") == "reingest":
            yield Problem(
                ("source", "on_change"),
                "a topic that was recreated is not sent again automatically; leave it out, and run with --from-scratch",
            )
        if source.get("bootstrap_servers") == _EMBEDDED:
            yield Problem(
                ("source", "bootstrap_servers"),
                "leave it out to read from the sink's cluster; or name host:port (eosingest broker status)",
            )

    @classmethod
    def columns(cls, source: Mapping[str, Any]) -> tuple[Columns | None, list[Problem]]:
        """Return the columns of a record."""
        return Columns({name.lower(): (name, kind.lower()) for name, kind in COLUMNS.items()}), []

    def beside(self, others: Beside) -> TopicTable:
        """Return the table with the settings for the sink's cluster."""
        made = self.model_copy()
        made._others = others
        return made

    def default_record(self) -> Mapping[str, Any]:
        """Return the defaults that copy a record."""
        return {"key": "key", "value": "value", "headers": "headers", "timestamp": "timestamp"}

    def schema_note(self) -> str:
        """Name the columns."""
        return ", ".join(COLUMNS)

    def places(self) -> tuple[str, ...]:
        """Return the topic, and its servers if the table has them."""
        return (self.topic if self.bootstrap_servers is None else f"{self.topic} on {self.bootstrap_servers}",)

    def digest_parts(self) -> dict[str, str]:
        """Return format and topic. The offsets of `from` and `to` are in the scope."""
        return {"format": self.format, "topic": self.topic}

    @property
    def begin(self) -> str:
        """The key `from`."""
        return self.start

    @property
    def others(self) -> Beside:
        """The rest of the spec that this source uses."""
        assert self._others is not None, "others are set before the table is read"
        return self._others
