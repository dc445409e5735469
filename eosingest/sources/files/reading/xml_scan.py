"""Implements `spark.scan.Scan` for XML files: Python reads them, and Spark SQL works only on the resulting columns.

    source.schema, options, folders of the plan ─▶ XmlReader (xml_reader.py) in a PythonScan (spark/python_scan.py)

Spark's own reader is not used: it compares characters and parses no XML, so that rows are silently lost, made up and changed.
"""

from __future__ import annotations

from dataclasses import dataclass

from eosingest.errors import SpecError
from eosingest.protocol.plan import Plan
from eosingest.sources.files.formats.xml.columns import settings_of
from eosingest.sources.files.formats.xml.document import XmlCheck
from eosingest.sources.files.formats.xml.schema import parse
from eosingest.sources.files.reading.file_scan import FileScan
from eosingest.sources.files.reading.folder_columns import FolderColumns
from eosingest.sources.files.reading.inspect_files import inspect_pending
from eosingest.sources.files.reading.planned_files import pending_files
from eosingest.sources.files.reading.schema_types import from_ddl
from eosingest.sources.files.reading.xml_reader import XmlReader
from eosingest.spark.python_scan import PythonScan
from eosingest.spark.record_columns import naming, refuse_our_names
from eosingest.spark.scan import Tasks
from eosingest.spec.ddl import Field, Type


@dataclass(frozen=True)
class XmlScan(FileScan):
    """How XML files are read. The spec gives the schema."""

    def inspect(self, tasks: Tasks, plan: Plan) -> None:
        """Read all pending files to their ends, with the parser and types of the run; see `inspect_files.inspect_pending`."""
        reader = self._reader(plan)
        reader.folders.check(pending_files(plan))
        check = XmlCheck(reader.settings, self.read.refuses_unknown)
        inspect_pending(tasks, self.read, plan, as_lines=False, check=check)

    def of(self, plan: Plan, schema: str | None = None) -> PythonScan:
        """Return the schema's columns, followed by those of the folders.

        Raises SpecError if Spark reads other columns from the spec's schema, or none.
        """
        given = self._given()
        with naming("source.schema"):
            of_spark = from_ddl(self.read.schema or "")
        if of_spark != from_ddl(", ".join(field.ddl for field in given)):
            raise SpecError(
                f"source.schema: Spark reads it as {of_spark.simpleString()}, and eosingest does not",
                code="bad-expression",
                hint="nothing was sent; write names in back-quotes, and leave out everything after a type",
            )
        reader = self._reader(plan)
        columns = {field.name: field.type.ddl for field in (*reader.settings.fields, *reader.folders.fields)}
        return self.scan(reader, columns)

    def _reader(self, plan: Plan) -> XmlReader:
        given = self._given()
        types = {field.name.lower(): field for field in given}
        folders = tuple(types.get(name.lower(), Field(name, Type("STRING"))) for name in self.folders(plan))
        nested = [folder for folder in folders if folder.type.element is not None or folder.type.fields]
        if nested:
            raise SpecError(
                f"source.schema: {nested[0].name} is a column of folders, and can be no {nested[0].type.name}",
                code="bad-expression",
                hint="nothing was sent; correct the spec",
            )
        beside = {folder.name for folder in folders}
        rows = [field for field in given if field.name not in beside]
        settings = settings_of(self.read.options, rows, (field.name for field in given if field.name in beside))
        return XmlReader(settings, FolderColumns(folders, self.decode))

    def _given(self) -> tuple[Field, ...]:
        given = parse(self.read.schema or "")
        refuse_our_names("source.schema", [field.name for field in given])
        return given
