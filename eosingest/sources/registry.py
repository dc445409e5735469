"""Registers each kind of source once: the formats that name it in a spec, and the modules that implement it.

Modules are given as `module:name` and loaded when they are needed: a run with nothing to do loads no reader and no Spark.
Code outside of a kind's folder uses the kind through this module only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from eosingest.protocol.source import Source
from eosingest.sources.files.formats.registry import NAMES


@dataclass(frozen=True)
class Kind:
    """A kind of source, with the `formats` that belong to it.

    `table_class`, `source_factory`, `scan_factory` and `warmup` name, as `module:name`, the implementations of `table`,
    `source`, `scan` and `rehearsal`. Only the kind that trains Spark's class archive has `warmup`.
    `file_opener` implements `data_file`; only the kind whose items are files has it.
    `discovery` is the module that resolves a source's address; only kinds that a text can address have it.
    `in_tasks` are the modules that Spark's Python workers load to read; `clients` are the modules of the kind's extra that they
    need for it, with the packages that provide them.
    """

    formats: tuple[str, ...]
    table_class: str
    source_factory: str
    scan_factory: str
    in_tasks: tuple[str, ...]
    warmup: str = ""
    file_opener: str = ""
    discovery: str = ""
    clients: Mapping[str, str] = field(default_factory=dict)

    def table(self) -> Any:
        """Return the kind's class of `spec.tables.SourceTable`. Loads pydantic."""
        return _loaded(self.table_class)

    def source(self, table: Any, directory: Path, check: Callable[[], None]) -> Source:
        """Make the source of a spec's table `[source]`. `directory` is the spec's; `check` raises to end a long listing."""
        made: Source = _loaded(self.source_factory)(table, directory, check)
        return made

    def scan(self, table: Any, records: Any, conf: Mapping[str, str]) -> Any:
        """Make the source's `spark.scan.Scan`. `records` defines the records, `conf` has the spec's settings of Spark."""
        return _loaded(self.scan_factory)(table, records, conf)

    def data_file(self, text: str) -> Any:
        """Return the file that a text names, with the interface of `sniff.input.DataFile`."""
        return _loaded(self.file_opener)(text)

    def addressed(self) -> Any:
        """Return the module with `address_of` and `look`."""
        return import_module(self.discovery)

    def rehearsal(self) -> Any:
        """Make the kind's `spark.warmup.Rehearsal`."""
        return _loaded(self.warmup)()


FILES = Kind(
    NAMES,
    table_class="eosingest.sources.files.table:FileTable",
    source_factory="eosingest.sources.files.source:source_of",
    scan_factory="eosingest.sources.files.reading.scan:scan_of",
    warmup="eosingest.sources.files.reading.warmup:FileRehearsal",
    file_opener="eosingest.sources.files.listing.named_file:data_file",
    clients={"boto3": "boto3", "urllib3": "urllib3"},
    in_tasks=(
        "eosingest.sources.files.reading.text_reader",
        "eosingest.sources.files.reading.inspect_files",
        "eosingest.sources.files.reading.value_reader",
        "eosingest.sources.files.reading.audit_lines",
        "eosingest.sources.files.reading.audit_json",
        "eosingest.sources.files.reading.audit_csv",
        "eosingest.sources.files.reading.xml_reader",
        "eosingest.sources.files.reading.json_reader",
        "eosingest.sources.files.reading.avro_reader",
    ),
)
TOPICS = Kind(
    ("kafka",),
    table_class="eosingest.sources.topics.table:TopicTable",
    source_factory="eosingest.sources.topics.source:source_of",
    scan_factory="eosingest.sources.topics.reading.scan:scan_of",
    discovery="eosingest.sources.topics.discover",
    in_tasks=("eosingest.sources.topics.reading.reader",),
)
POSTGRES = Kind(
    ("postgres",),
    table_class="eosingest.sources.postgres.table:PostgresTable",
    source_factory="eosingest.sources.postgres.source:source_of",
    scan_factory="eosingest.sources.postgres.reading.scan:scan_of",
    discovery="eosingest.sources.postgres.discover",
    clients={"adbc_driver_postgresql.dbapi": "adbc-driver-postgresql"},
    in_tasks=("eosingest.sources.postgres.reading.reader",),
)
KINDS = (FILES, TOPICS, POSTGRES)
IN_TASKS = tuple(name for kind in KINDS for name in kind.in_tasks)
CLIENTS = {module: package for kind in KINDS for module, package in kind.clients.items()}


def formats() -> tuple[str, ...]:
    """Return the formats of all kinds."""
    return tuple(name for kind in KINDS for name in kind.formats)


def kind_of(format: str) -> Kind:
    """Return the kind that has the format. Raises KeyError if none has it: a loaded spec names no other format."""
    return {name: kind for kind in KINDS for name in kind.formats}[format]


def _loaded(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
