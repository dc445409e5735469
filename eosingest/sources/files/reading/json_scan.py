"""Implements `spark.scan.Scan` for JSON files: Python reads them, and Spark SQL works only on the columns that are used.

source.schema, or the types of all values (json_schema.py) ─▶ JsonReader (json_reader.py) in a PythonScan (spark/python_scan.py)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from eosingest.errors import SpecError
from eosingest.protocol.plan import Plan
from eosingest.sources.files.formats.json_text import has_odd_name
from eosingest.sources.files.reading.audit_json import AuditJsonReader
from eosingest.sources.files.reading.exact_types import type_words
from eosingest.sources.files.reading.file_scan import CASE, is_set
from eosingest.sources.files.reading.folder_columns import FolderColumns
from eosingest.sources.files.reading.inferring_scan import InferringScan
from eosingest.sources.files.reading.json_decoder import unread_type
from eosingest.sources.files.reading.json_reader import JsonReader, JsonSettings
from eosingest.sources.files.reading.json_schema import Inference, JsonTypes, Seen, refuse_alike, struct_of
from eosingest.sources.files.reading.schema_drift import refuse_outgrown
from eosingest.sources.files.reading.schema_types import columns_ddl, ddl_of, from_ddl, names_alike
from eosingest.spark.python_scan import PythonScan
from eosingest.spark.record_columns import naming, refuse_our_names
from eosingest.spark.record_settings import CORRUPT
from eosingest.spark.scan import Tasks


@dataclass(frozen=True)
class JsonScan(InferringScan):
    """How JSON files are read, in a Spark with the spec's `conf`."""

    def check_pinned_schema(self, tasks: Tasks, plan: Plan, pinned: str) -> None:
        """See `schema_drift.refuse_outgrown`; a schema that the spec gives is not checked."""
        if self.read.schema is not None:
            return
        self.refuse_to_infer_again(plan)
        before, by_file = from_ddl(pinned), self._seen(tasks, plan)
        found = self._struct(by_file.values(), before)
        self._check(plan, found)
        columns = {name: self._struct([seen], before) for name, seen in by_file.items()}
        refuse_outgrown(found, before, "json", columns)

    def of(self, plan: Plan, schema: str | None = None) -> PythonScan:
        """Return the schema's columns, followed by those of the folders; a schema in the spec is preferred.

        Raises SpecError if a type is not read.
        """
        with naming("source.schema"):
            given = from_ddl((schema if self.read.schema is None else self.read.schema) or "")
        refuse_our_names("source.schema", given.names)
        _refuse_twins(given, case=is_set(self.conf, "spark.sql.caseSensitive"))
        _refuse_unread(given)
        whole, folders = self.with_folders(given, plan)
        rows = StructType(whole.fields[: len(whole.fields) - len(folders.fields)])
        # A pinned schema has the folders' columns, too: it was inferred from data without them.
        written = frozenset(given.names) if self.read.schema is not None else frozenset[str]()
        names = (each.name for each in folders.fields if each.name in written)
        reader = self._reader(rows, folders, tuple(name for name in names if not has_odd_name([name])))
        types = {each.name: ddl_of(each.dataType) for each in whole.fields}
        return self.scan(reader, types, hidden={CORRUPT: "STRING"}, narrowed=reader.narrowed)

    def _reader(
        self, rows: StructType, folders: FolderColumns, folder_names: tuple[str, ...]
    ) -> JsonReader | AuditJsonReader:
        settings = JsonSettings.of(self.read.options)
        kind = AuditJsonReader if self.audits and self.audit_reader else JsonReader
        return kind(rows, settings, folders, names_once=not self.read.inspects, folder_names=folder_names)

    @property
    def audit_reader(self) -> str:
        """See `scan.Scan`."""
        return "Python's json module" if AuditJsonReader.takes(JsonSettings.of(self.read.options)) else ""

    # ---- without a schema --------------------------------------------------------------------------------------------

    def inferred(self, tasks: Tasks, plan: Plan) -> str:
        """Return the columns with the types of all their values. Raises SpecError if that would read too much."""
        self.refuse_to_infer(plan, lambda split: struct_of(self._types().of(split, blocks=1), self._inference))
        found = self._struct(self._seen(tasks, plan).values())
        self._check(plan, found)
        return columns_ddl(found)

    def _check(self, plan: Plan, found: StructType) -> None:
        """Raise FatalError for names that Spark takes for one, and for a column of the folders."""
        if not is_set(self.conf, CASE):
            refuse_alike(found)
        self.refuse_folders(plan, found.names)

    def _seen(self, tasks: Tasks, plan: Plan) -> dict[str, Seen]:
        """Return what tasks find in each pending file."""
        return self.seen_by_file(tasks, plan, self._types(), Seen.merge)

    def _struct(self, seen: Iterable[Seen], known: StructType | None = None) -> StructType:
        whole = Seen(fields={})
        for each in seen:
            whole.merge(each)
        return struct_of(whole, self._inference, known)

    def _types(self) -> JsonTypes:
        return JsonTypes(JsonSettings.of(self.read.options), self._inference)

    @property
    def _inference(self) -> Inference:
        return Inference.of(self.read.options)


def _refuse_unread(schema: StructType) -> None:
    """Raise SpecError for a column of a type that is not read from JSON."""
    for column in schema.fields:
        unread = unread_type(column.dataType)
        if unread is not None:
            raise SpecError(
                f"source.schema: column {column.name} has the type {type_words(unread)}, which is not read from JSON",
                code="bad-expression",
                hint="nothing was sent; write STRING, which holds the text of any value, and a MAP with keys of STRING",
            )


def _refuse_twins(kind: DataType, *, case: bool) -> None:
    """Raise SpecError for a name that a schema, or a struct in it, has twice. `case`: `a` and `A` are two names."""
    for struct in _structs(kind):
        alike = names_alike(struct.names, case=case)
        if alike is not None:
            raise SpecError(
                f"source.schema: the column {alike[1]} is in it twice",
                code="bad-expression",
                hint="nothing was sent; correct the spec",
            )


def _structs(kind: DataType) -> Iterator[StructType]:
    if isinstance(kind, StructType):
        yield kind
        for each in kind.fields:
            yield from _structs(each.dataType)
    elif isinstance(kind, ArrayType):
        yield from _structs(kind.elementType)
    elif isinstance(kind, MapType):
        yield from _structs(kind.valueType)
