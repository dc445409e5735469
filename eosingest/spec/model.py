"""Defines the frozen job spec: every key with its type, default and description. The JSON Schema is generated from it.

values.py checks values. References are resolved before, except in keys that may hold secrets, where `resolve_properties`
resolves them. No repr shows a value except the job's name, since any string may come from `${env:…}` or `${file:…}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, PrivateAttr, Tag

from eosingest.errors import SpecError
from eosingest.spec.encodings import ExpressionOrEncoded
from eosingest.spec.references import References, UnresolvedError
from eosingest.spec.tables import SourceTable, Table, shown
from eosingest.spec.units import MIB
from eosingest.spec.values import (
    ROW_AS_JSON,
    TAGS,
    Boundary,
    Count,
    Duration,
    Expression,
    Flat,
    HeadersOrColumn,
    IfRunning,
    Master,
    Name,
    Partitioner,
    Prefix,
    Size,
    Text,
    Topic,
    one_of,
)


class Transform(Table):
    """Which rows and columns are sent."""

    where: Expression | None = Field(
        default=None, description="Spark SQL condition; rows for which it is not true are left out."
    )
    select: Annotated[tuple[Expression, ...], Field(min_length=1)] = Field(
        default=("*",), description="Spark SQL expressions: the columns that the record's expressions see."
    )


class Record(Table):
    """How a row becomes a Kafka record: Spark SQL expressions over the selected columns."""

    key: ExpressionOrEncoded | None = Field(
        default=None,
        description="The record's key, an expression for a string or binary, or a table: avro. None: records without a key.",
    )
    value: ExpressionOrEncoded = Field(
        default=ROW_AS_JSON,
        description="The record's value, an expression for a string or binary, or a table: avro. By default the row as JSON, "
        "with times to the microsecond; for format text the line: value.",
    )
    headers: HeadersOrColumn = Field(
        default_factory=dict,
        description="Header name to expression, string or binary, written in the order of their names; or one expression for "
        "all headers of a record, ARRAY<STRUCT<key STRING, value BINARY>>, written in its order.",
    )
    timestamp: Expression | None = Field(
        default=None, description="The record's timestamp. None, or null in a row: now."
    )
    partition: Expression | None = Field(
        default=None,
        description="The number of the topic's partition, an integer. None, or null in a row: the partitioner's choice.",
    )


class Create(Table):
    """How to create the topic when it does not exist; an existing topic is left as it is."""

    partitions: Count = Field(ge=1, description="Number of partitions.")
    replication_factor: Count = Field(
        default=-1, ge=-1, le=32767, description="Copies of each partition; -1: the broker's default."
    )
    config: Flat = Field(default_factory=dict, description="Topic configuration, such as retention.ms.")


class Sink(Table):
    """The Kafka cluster and topic."""

    bootstrap_servers: Text = Field(description='host:port,… or "embedded": a real Apache Kafka on this machine.')
    topic: Topic = Field(description="The topic to write to.")
    create: Create | None = Field(
        default=None, description="Create the topic so when it does not exist. None: it must exist."
    )
    partitioner: Annotated[Partitioner, one_of(Partitioner)] = Field(
        default="murmur2_random",
        description="How a key finds its partition, by librdkafka's names; the default is as Java's.",
    )
    offsets_topic: Topic = Field(
        default="eosingest-offsets", description="The compacted topic that holds every job's progress."
    )
    transactional_id_prefix: Prefix = Field(
        default="eosingest.", description="What all transactional ids begin with, for ACLs. Pinned for the job's life."
    )
    rate_limit: Annotated[Size, Field(ge=1)] | None = Field(
        default=None,
        description="Bytes of keys, values and headers that all tasks together send in a second at most. By default no limit.",
    )
    properties: Flat = Field(
        default_factory=dict,
        description="Client settings by librdkafka's names: security, compression, tuning.",
    )


class DeadLetters(Table):
    """Where a row goes that cannot be sent, in the same transaction as the records around it."""

    topic: Topic = Field(description="The topic for such rows, on the sink's cluster; not compacted.")
    max: Count = Field(
        ge=1,
        description="How many rows may go there until the job is complete. The next one ends the run; raise it to continue.",
    )
    create: Create | None = Field(
        default=None, description="Create the topic so when it does not exist. None: it must exist."
    )


class Transaction(Table):
    """When a transaction ends, whichever comes first: half the timeout, max_records, max_bytes; or one for all of a run."""

    boundary: Annotated[Boundary, one_of(Boundary)] = Field(
        default="limits",
        description="limits: a transaction ends at the limits below, and another one follows. job: everything that a run has "
        "to send goes in one transaction, by one task, or nothing does; above the limits it is refused.",
    )
    timeout: Duration = Field(
        ge=1,
        le=2_147_483,
        default=60.0,
        description="After this the broker aborts an open transaction; at most its transaction.max.timeout.ms.",
        json_schema_extra=shown("60s"),
    )
    max_records: Count = Field(ge=1, default=1_000_000, description="Records in one transaction at most.")
    max_bytes: Size = Field(
        ge=1,
        default=256 * MIB,
        description="Bytes of keys and values in one transaction at most.",
        json_schema_extra=shown("256MiB"),
    )

    @property
    def whole(self) -> bool:
        """Say whether everything that a run has to send goes in one transaction."""
        return self.boundary == "job"


OnError = Annotated[
    Annotated[DeadLetters, Tag(TAGS[0])] | Annotated[Literal["fail"], Tag(TAGS[1])],
    Discriminator(lambda value: TAGS[isinstance(value, str)]),
]


class Spark(Table):
    """Where Spark runs, and its settings."""

    master: Master | None = Field(
        default=None,
        description="Spark's master: local[*], spark://host:7077, yarn, k8s://https://host:port. local[N] is started with "
        "retries, as local[N,4]. By default that of spark-defaults.conf, and local[*] where it names none.",
    )
    executor_wait: Duration = Field(
        ge=1,
        default=120.0,
        description="On a cluster: how long a run stays without any executor, at its beginning or when all were lost, before "
        "it ends with exit 5.",
        json_schema_extra=shown("2m"),
    )
    conf: Flat = Field(default_factory=dict, description="Spark settings, such as spark.driver.memory.")


class Spec(Table):
    """An eosingest job: read this source, send each row once to this topic."""

    name: Name = Field(description="The job: identity of its progress and transactional ids. May hold ${param:…}.")
    if_running: Annotated[IfRunning, one_of(IfRunning)] = Field(
        default="fence",
        description="When an earlier run of the job is alive on this host: fence it off, fail, or skip this run.",
    )
    source: SourceTable = Field(description="What to read.")
    transform: Transform = Field(default_factory=Transform, description="Which rows and columns are sent.")
    record: Record = Field(default_factory=Record, description="How a row becomes a Kafka record.")
    sink: Sink = Field(description="The Kafka cluster and topic.")
    on_error: OnError = Field(
        default="fail",
        description="What happens to a row that cannot be sent: fail, it ends its split and the run; or where it goes.",
    )
    transaction: Transaction = Field(default_factory=Transaction, description="When a transaction ends.")
    spark: Spark = Field(default_factory=Spark, description="Where Spark runs, and its settings.")

    @classmethod
    def load(
        cls, path: str | Path, *, params: Mapping[str, str] | None = None, overrides: Mapping[str, Any] | None = None
    ) -> Spec:
        """Return the spec in a TOML file; relative paths in it are relative to its folder.

        `params` are the values of `${param:…}`. `overrides` set keys by dotted name, as in {"sink.topic": "orders-dev"}.
        Raises SpecError with all problems, each with file and line (`details`).
        """
        from eosingest.spec.loader import spec_in_python

        return spec_in_python(Path(path), params, overrides)

    @classmethod
    def from_toml(
        cls,
        text: str,
        *,
        folder: str | Path = ".",
        params: Mapping[str, str] | None = None,
        overrides: Mapping[str, Any] | None = None,
    ) -> Spec:
        """Return the spec in a TOML text; relative paths in it are relative to `folder`. Otherwise as `load`."""
        from eosingest.spec.loader import spec_in_python

        return spec_in_python(Path(folder) / "<toml>", params, overrides, text)

    @classmethod
    def from_dict(
        cls,
        tables: Mapping[str, Any],
        *,
        folder: str | Path = ".",
        params: Mapping[str, str] | None = None,
        overrides: Mapping[str, Any] | None = None,
    ) -> Spec:
        """Return the spec in a dict of tables and keys, such as {"name": …, "source": {…}}. Otherwise as `from_toml`.

        Its strings may hold references, as in a file; a literal `${` is written `$${`.
        """
        from eosingest.spec.loader import spec_in_python

        return spec_in_python(Path(folder) / "<dict>", params, overrides, tables)

    _file: Path = PrivateAttr(default=Path())
    _params: dict[str, str] = PrivateAttr(default_factory=dict)
    _environ: Mapping[str, str] | None = PrivateAttr(default=None)
    _root_as_written: str | None = PrivateAttr(default=None)
    _lines: Mapping[str, int] = PrivateAttr(default_factory=dict)

    def with_defaults(self) -> Spec:
        """Return the spec with the defaults that depend on the source, for keys that are not given."""
        source, given = self.source.with_defaults(), self.record.model_fields_set
        defaults = {name: text for name, text in source.default_record().items() if name not in given}
        return self.model_copy(update={"source": source, "record": self.record.model_copy(update=defaults)})

    def attach(
        self,
        file: Path,
        params: Mapping[str, str],
        root_as_written: str | None,
        lines: Mapping[str, int] = MappingProxyType({}),
    ) -> Spec:
        """Set the values that are not in the TOML: the file, the parameters (for late references), the root as written.

        `lines` has the keys' line numbers, for later errors.
        """
        self._file = file.absolute()
        self._lines = lines
        self._params = dict(params)
        self._root_as_written = root_as_written
        return self

    @property
    def file(self) -> Path:
        """The absolute path of the spec's file."""
        return self._file

    @property
    def directory(self) -> Path:
        """The absolute path of the spec's folder, to which relative paths in the spec refer."""
        return self._file.parent

    def line_of(self, key: str) -> int | None:
        """Return the line number of a dotted key in the file, None if the key is not in it."""
        return self._lines.get(key)

    @property
    def root_as_written(self) -> str | None:
        """`source.root` before references were resolved, as the control record pins it."""
        return self._root_as_written

    def references(self) -> References:
        """Return the resolver for this spec's references."""
        return References(self._params, self.directory, self._environ)

    def keep_environment(self, environ: Mapping[str, str]) -> None:
        """Resolve references to the environment from this copy of it from now on (spec/secrets.py)."""
        self._environ = dict(environ)

    def __repr__(self) -> str:
        return f"Spec(name={self.name!r}, file={str(self.file)!r})"

    __str__ = __repr__


def resolve_properties(
    spec: Spec, properties: Mapping[str, str] | None = None, key: str = "sink.properties"
) -> dict[str, str]:
    """Return client properties, by default `sink.properties`, with references resolved. `key` is their table in the spec.

    They may be secrets: keep them in memory only, never print them. Relative paths in `ssl.*.location` and `https.ca.location`
    are resolved against the spec's folder. Raises SpecError for a reference without value.
    """
    references, resolved, problems = spec.references(), {}, []
    for name, text in (spec.sink.properties if properties is None else properties).items():
        try:
            value = references.resolve(text)
        except UnresolvedError as error:
            problems.append(f"{spec.file}: {key}.{name}: {error}")
            continue
        # "probe" makes librdkafka search for the system's certificates.
        is_file = name.startswith(("ssl.", "https.")) and name.endswith(".location") and value not in ("", "probe")
        resolved[name] = str(spec.directory / value) if is_file else value
    if problems:
        raise SpecError("\n".join(problems), code="unset-reference", problems=problems)
    return resolved
