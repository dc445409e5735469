"""Implements `spark.scan.Scan` for lines of text: Python reads them; Spark computes everything beyond lines.

    lines as they are ─▶ line_reader.py ─▶ task.py            no JVM has rows
    anything else ─────▶ text_reader.py ─▶ PythonScan (spark/python_scan.py) ─▶ Spark SQL ─▶ task.py

An audit cuts the lines by other code (audit_lines.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql.types import StructType

from eosingest.protocol.plan import Plan
from eosingest.sources.files.reading import audit_lines
from eosingest.sources.files.reading.file_scan import FileScan
from eosingest.sources.files.reading.inspect_files import inspect_pending
from eosingest.sources.files.reading.line_reader import LineReader, lines_of
from eosingest.sources.files.reading.text_reader import LINE, CutLines, TextReader
from eosingest.spark.direct import Direct
from eosingest.spark.python_scan import PythonScan, planned_splits
from eosingest.spark.record_settings import RecordSettings
from eosingest.spark.scan import Scan, Tasks
from eosingest.spec.expressions import tokens


@dataclass(frozen=True)
class TextScan(FileScan):
    """How text is read line by line. `cut` cuts lines that Spark SQL gets."""

    cut: CutLines = lines_of

    def direct(self, plan: Plan) -> Direct | None:
        """Return the tasks' reader of lines that go to Kafka as they are, or of bare columns; None for anything else."""
        if self.folders(plan) or not _sends_lines(self.read):
            return super().direct(plan)
        return Direct(LineReader(self._separator), planned_splits(plan), f"{LINE} STRING")

    def inspect(self, tasks: Tasks, plan: Plan) -> None:
        """Check names and first bytes; the tasks find damage when they read."""
        inspect_pending(tasks, self.read, plan, as_lines=True)

    def of(self, plan: Plan, schema: str | None = None) -> PythonScan:
        """Return the scan of the lines, followed by the folders' texts. Raises FatalError for a folder named as the lines."""
        self.refuse_folders(plan, (LINE,))
        columns, folders = self.with_folders(StructType().add(LINE, "string"), plan)
        reader = TextReader(self._separator, folders, self.cut)
        return self.scan(reader, dict.fromkeys(columns.names, "STRING"))

    def for_audit(self) -> Scan:
        """Return the scan that cuts lines, and decodes folders' names, by other code than a run."""
        return replace(self, decode=audit_lines.decoded_again, cut=audit_lines.lines_again)

    @property
    def audit_reader(self) -> str:
        """See `scan.Scan`."""
        return "regular expressions"

    @property
    def _separator(self) -> bytes | None:
        """What ends a line; None for line feeds and carriage returns."""
        separator = self.read.options.get("lineSep")
        return None if separator is None else separator.encode()


def _sends_lines(records: RecordSettings) -> bool:
    """Say whether the records are the lines as they are."""
    return (
        (records.where, records.key, records.timestamp, records.partition) == (None, None, None, None)
        and not records.headers
        and records.select == ("*",)
        and isinstance(records.value, str)
        and [token.name for token in tokens(records.value)] == [LINE]
    )
