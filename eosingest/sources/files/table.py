"""Defines `[source]` of a spec whose source is files: its keys, with type, default, description and meaning.

For the spec alone (spec/tables.py): loaded together with a spec, and not by tasks.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field, PrivateAttr, WithJsonSchema

from eosingest.sources import registry
from eosingest.sources.files import stores
from eosingest.sources.files.bytes.codecs import SUFFIXES as CODECS
from eosingest.sources.files.formats import options
from eosingest.sources.files.formats.entry import FileFormat
from eosingest.sources.files.formats.registry import FORMATS, NAMES
from eosingest.sources.files.storage.schemes import are_in_store, is_relative
from eosingest.spec.columns import Columns, columns_of
from eosingest.spec.ddl import normalise_ddl
from eosingest.spec.document import Problem
from eosingest.spec.references import leading_reference
from eosingest.spec.tables import Beside, SourceTable, Table, shown
from eosingest.spec.values import Duration, Flat, Paths, Text, UnknownFields, one_of, one_of_words

_NO_HEADER = "csv-header"


class StorageTable(Table):
    """How a store is reached. For s3:// the AWS SDK finds missing settings in environment, profile or role."""

    endpoint: Text | None = Field(
        default=None,
        description="The store's URL, where it is not that of AWS. For hdfs:// the name node's web address, of several"
        " with commas between them; by default as in HADOOP_CONF_DIR, else the path's host at port 9870.",
    )
    region: Text | None = Field(default=None, description="The bucket's region.")
    access_key: Text | None = Field(default=None, description='The id of an access key, as in "${env:S3_KEY}".')
    secret_key: Text | None = Field(default=None, description='Its secret, as in "${env:S3_SECRET}".')
    session_token: Text | None = Field(default=None, description="The token of temporary credentials.")
    path_style: bool | None = Field(
        default=None,
        description="Whether the bucket is in the URL's path, and not in its host. By default true with an endpoint.",
    )


class FileTable(SourceTable):
    """The files to read."""

    hints: ClassVar[Mapping[str, str]] = {
        _NO_HEADER: "read the file's first line: if it has the columns' names, header = true; if it is a row, header = false"
    }

    unlisted_columns: ClassVar[tuple[str, ...]] = ("_metadata",)

    format: Annotated[str, one_of_words(registry.formats), WithJsonSchema({"type": "string", "enum": list(NAMES)})] = (
        Field(description="How the files are written; json means one record a line.")
    )
    path: Paths = Field(
        description="A file, folder or glob, or a list of them; relative to the spec's folder, or of a store: s3://bucket/*,"
        " hdfs://namenode:8020/folder/*."
    )
    storage: StorageTable | None = Field(default=None, description=StorageTable.__doc__)
    root: Text | None = Field(
        default=None,
        description="The folder that file names are made relative to when they are remembered. By default the spec's "
        "folder for relative paths, none otherwise; needed when path begins with a reference. Pinned for life.",
    )
    recursive: bool = Field(
        default=False,
        description="Read the files of all folders below a folder as well; folders named column=value then give no columns.",
    )
    ddl: Text | None = Field(
        default=None,
        alias="schema",
        description="The columns as Spark DDL: id BIGINT, user STRING. Without it types are inferred from the data.",
    )
    unknown_fields: Annotated[UnknownFields, one_of(UnknownFields)] = Field(
        default="ignore",
        description="A field of JSON or XML that schema does not name: error ends the run before it sends anything, ignore"
        " leaves the field out of the rows.",
    )
    inspect: bool = Field(
        default=True,
        description="Read JSON, CSV and XML once before anything is sent, so that text that is not of the format ends the run"
        " with nothing sent. false reads them once only: such a row is then a bad row, or ends the run where it is met.",
    )
    compression: (
        Annotated[str, one_of_words(lambda: tuple(CODECS)), WithJsonSchema({"type": "string", "enum": list(CODECS)})]
        | None
    ) = Field(
        default=None,
        description="The codec of all files, if their names do not show it. By default the suffix of each name counts.",
    )
    options: Flat = Field(default_factory=dict, description="Options of Spark's reader for the format.")
    min_age: Duration = Field(
        default=0.0,
        description="Leave files alone that were changed less than this long ago: they may still be being written.",
        json_schema_extra=shown("0s"),
    )
    allow_empty: bool | None = Field(
        default=None,
        description="Whether it is fine that no file is there: false ends with exit 2, true with exit 0. By default false, "
        "and true where a glob matches folders without files.",
    )

    _others: Beside | None = PrivateAttr(default=None)

    @classmethod
    def problems_as_written(cls, source: Mapping[str, Any]) -> Iterator[Problem]:
        """Yield a problem if a path begins with a reference and no root defines what file names are relative to."""
        if source.get("root") is not None:
            return
        for path in _paths(source):
            reference = leading_reference(path) if isinstance(path, str) else None
            if reference is not None:
                # A parameter distinguishes sets of files, so it stays in their names; a location on this host does not.
                root = "." if reference.startswith("${param:") else reference
                line = f"root = {json.dumps(root)}"
                text = f"begins with a reference, so say what file names are relative to; add under [source]: {line}"
                yield Problem(("source", "path"), text)
                return

    @classmethod
    def problems(cls, source: dict[str, Any]) -> Iterator[Problem]:
        """Yield a problem for each reader option that is refused, and for a schema if the format has fixed columns."""
        entry, given = FORMATS.get(str(source.get("format"))), source.get("options")
        if entry is not None and not entry.is_text and source.get("compression") is not None:
            yield Problem(
                ("source", "compression"), f"has no effect: {entry.name} is not decompressed as a whole; leave it out"
            )
        yield from stores.problems(_paths(source), source)
        if entry is None:
            return
        has_schema = source.get("schema") is not None
        if isinstance(given, dict):
            for key, text in options.refused_options(entry.name, given, has_schema=has_schema):
                yield Problem(("source", "options", key), text)
            source["options"] = options.canonical_options(entry.name, given)
        if source.get("unknown_fields") == "error":
            yield from _unseen(entry, inspects=source.get("inspect") is not False)
        if "header" in entry.options and not _says_header(given if isinstance(given, dict) else {}):
            yield Problem(
                ("source", "options"),
                "does not say whether a CSV file's first line holds the columns' names; write header = true or header = false",
                code=_NO_HEADER,
            )
        if entry.needs_schema and not has_schema:
            yield Problem(
                ("source", "schema"),
                f"is missing: of {entry.name} only the columns are read that it names",
                hint='write it as Spark DDL, such as schema = "id BIGINT, name STRING"; eosingest init --from FILE writes the'
                " one of a file",
                code="schema-needed",
            )
        if isinstance(ddl := source.get("schema"), str):
            for text in entry.schema_problems(ddl, given if isinstance(given, dict) else {}):
                yield Problem(("source", "schema"), text)
        if entry.columns is not None and has_schema:
            named = ", ".join(f"{name} {kind}" for name, kind in entry.columns.items())
            count = "one column" if len(entry.columns) == 1 else "the columns"
            yield Problem(
                ("source", "schema"),
                f"{entry.name} has {count}, {named}, in addition to those of its folders; drop schema",
            )

    @classmethod
    def columns(cls, source: Mapping[str, Any]) -> tuple[Columns | None, list[Problem]]:
        """Return the format's own columns, or those of the schema."""
        entry, ddl = FORMATS.get(str(source.get("format"))), source.get("schema")
        if entry is not None and entry.columns is not None:
            return Columns({name.lower(): (name, kind.lower()) for name, kind in entry.columns.items()}), []
        if not isinstance(ddl, str):
            return None, []
        found, texts = columns_of(ddl)
        if entry is not None and entry.needs_schema:
            return found, []  # `problems` reports them
        return found, [Problem(("source", "schema"), text) for text in texts]

    @classmethod
    def for_a_look(cls, source: Mapping[str, Any]) -> FileTable | None:
        """Return a table with the keys for a listing, None if `path` is missing, no text, or in a store."""
        paths, root, given = _paths(source), source.get("root"), source.get("options")
        if not paths or not all(isinstance(path, str) for path in paths) or are_in_store(paths):
            return None  # a check of the spec sends no request
        return cls.model_construct(
            format=str(source.get("format")),
            path=tuple(paths),
            root=root if isinstance(root, str) else None,
            recursive=source.get("recursive") is True,
            compression=None,
            options={name: text for name, text in given.items() if isinstance(text, str)}
            if isinstance(given, dict)
            else {},
            min_age=0.0,
            allow_empty=None,
        )

    def with_defaults(self) -> FileTable:
        """Return the table with the reader options that the format has by default here."""
        ours = FORMATS[self.format].defaults_of(self.options)
        return self.model_copy(update={"options": {**self.options, **ours}}) if ours else self

    def beside(self, others: Beside) -> FileTable:
        """Return the table with the resolver of references in `storage`."""
        made = self.model_copy()
        made._others = others
        return made

    def stores(self) -> Mapping[str, Any]:
        """Return the keys of `storage`, with references resolved; they may hold secrets: call it only to connect."""
        given = self.storage.model_dump(exclude_none=True) if self.storage is not None else {}
        texts = {name: text for name, text in given.items() if isinstance(text, str)}
        resolve = self._others.resolve if self._others is not None else lambda properties, key: dict(properties)
        return {**given, **resolve(texts, "source.storage")}

    def default_value(self) -> str:
        """Return the format's own value, or the row as JSON."""
        own = FORMATS[self.format].value
        return super().default_value() if own is None else own

    @property
    def lacks_schema(self) -> bool:
        """Whether the spec gives no schema though it may."""
        return self.ddl is None and FORMATS[self.format].columns is None

    @property
    def given_schema(self) -> str | None:
        """The spec's `schema` as DDL, None if it has none."""
        return self.ddl

    @property
    def row_name(self) -> str | None:
        """The name of the elements that are the rows of XML."""
        return self.options.get("rowTag")

    @property
    def is_of_one_host(self) -> bool:
        """Whether no file is in a store."""
        return not are_in_store(self.path)

    @property
    def is_local_json_lines(self) -> bool:
        """Whether the format is JSON, a file is not a single document, and none is in a store."""
        return self.format == "json" and not FORMATS["json"].is_whole(self.options) and self.is_of_one_host

    def schema_note(self) -> str:
        """Return the format's `schema_note`."""
        return FORMATS[self.format].schema_note

    def places(self) -> tuple[str, ...]:
        """Return the paths, without credentials in them."""
        return tuple(re.sub(r"//[^/@]*@", "//…@", path) for path in self.path)

    def digest_parts(self) -> dict[str, str]:
        """Return format, schema, options and `recursive` by meaning."""
        meant = options.meaningful_options(self.format, self.options, has_schema=self.ddl is not None)
        return {
            "format": self.format,
            "recursive": json.dumps(self.recursive),
            "schema": normalise_ddl(self.ddl or ""),
            "options": json.dumps(meant, sort_keys=True, ensure_ascii=False),
            **({} if self.compression is None else {"compression": self.compression}),
        }

    @property
    def root_as_written(self) -> str:
        """The root of file names: `root`, else "." (the spec's folder) or "/"."""
        if self.root is not None:
            return self.root
        return "." if any(map(is_relative, self.path)) else "/"


def _paths(source: Mapping[str, Any]) -> list[Any]:
    paths = source.get("path")
    return [paths] if isinstance(paths, str) else paths if isinstance(paths, list) else []


def _unseen(entry: FileFormat, *, inspects: bool) -> Iterator[Problem]:
    """Yield why unknown fields would not be found."""
    if entry.drops_unknown and not inspects:
        text = 'the inspection finds unknown fields, and inspect = false leaves it out; set unknown_fields = "ignore"'
        yield Problem(("source", "unknown_fields"), text)
    if not entry.drops_unknown:
        yield Problem(("source", "unknown_fields"), f"has no effect with {entry.name}: it is for json and xml")


def _says_header(given: Mapping[str, str]) -> bool:
    """Say whether an option is called header, or nearly so: a misspelt one is reported separately."""
    return bool(difflib.get_close_matches("header", [name.lower() for name in given], n=1, cutoff=0.8))
