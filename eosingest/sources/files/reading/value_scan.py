"""Implements `spark.scan.Scan` for files that are one value each: `wholetext` of text, and binaryFile (value_reader.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql.types import StructType

from eosingest.protocol.plan import Plan
from eosingest.sources.files.formats.registry import FORMATS
from eosingest.sources.files.reading.file_scan import FileScan
from eosingest.sources.files.reading.value_reader import CONTENT, TEXT, ValueReader
from eosingest.spark.python_scan import PythonScan

_FILES_A_BATCH = "16"  # where a row is a whole file, Arrow batches of 10,000 rows need too much memory


@dataclass(frozen=True)
class ValueScan(FileScan):
    """How such files are read."""

    def spark_conf(self) -> Mapping[str, str]:
        """Return the setting that limits the memory of a batch."""
        return {"spark.sql.execution.arrow.maxRecordsPerBatch": _FILES_A_BATCH}

    def of(self, plan: Plan, schema: str | None = None) -> PythonScan:
        """Return the scan of the format's columns, followed by the folders' texts. Raises FatalError if a name is in both."""
        columns = FORMATS[self.read.format].columns or {}
        self.refuse_folders(plan, columns)
        _, folders = self.with_folders(StructType(), plan)
        reader = ValueReader(CONTENT if CONTENT in columns else TEXT, folders)
        types = {**columns, **dict.fromkeys((field.name for field in folders.fields), "STRING")}
        return self.scan(reader, types, narrowed=reader.narrowed if CONTENT in columns else None)
