"""Computes the first records of a source with Spark, as a run would send them, without Kafka.

app/preview.py decides which items are shown; record_columns.py computes the records, as in a run, so that the same errors are
found. One session serves all previews.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from eosingest.errors import FatalError, IncompleteError, TemporaryError
from eosingest.host import interruptible
from eosingest.protocol.plan import Plan
from eosingest.records.decoded import decoded
from eosingest.records.json_schema import JsonSchemaCheck, checks_of
from eosingest.report.model import ShownRecord
from eosingest.spark import executors, failures, plan_checks
from eosingest.spark.corrupt_rows import Why
from eosingest.spark.job import SparkLauncher
from eosingest.spark.record_columns import record_frame
from eosingest.spark.record_settings import CORRUPT, HEADER, HEADERS, PARTITION, TIMESTAMP, UNFIT, RecordSettings


class SparkPreviewer(SparkLauncher):
    """A launcher that starts no job of tasks: it makes the record columns and collects a few rows."""

    def open(self, plan: Plan) -> str:
        """Start Spark, make the records of the whole plan, and return the resolved schema as DDL."""
        return interruptible.in_thread(lambda: self._open(plan), self._settings.check, "spark-preview")

    def first_records(self, plan: Plan, schema: str, count: int) -> list[ShownRecord]:
        """Return the first records of the plan's items, at most `count`.

        Raises the errors of errors.py if a row cannot be computed.
        """
        return interruptible.in_thread(
            lambda: self._first_records(plan, schema, count), self._settings.check, "spark-preview"
        )

    def _open(self, plan: Plan) -> str:
        settings = self._settings
        try:
            self._spark = settings.start()
            executors.ready(self._spark, settings.executor_wait_s, settings.note)
        except IncompleteError as error:  # a preview sends nothing that could be incomplete
            raise TemporaryError(error.message, code=error.code, hint="preview again") from error
        self._plan = plan
        try:
            self._session = self._spark.sql()
            frame = record_frame(settings.scan.frame(self._session, plan, None, 1), settings.records)
            plan_checks.check_narrow(frame.records)
        except failures.FROM_THE_JVM as error:
            raise self._explained(error) from error
        self._frame = frame
        return frame.source.schema

    def _first_records(self, plan: Plan, schema: str, count: int) -> list[ShownRecord]:
        settings = self._settings
        assert self._plan is not None, "open comes first"
        try:
            frame = self._frame
            if plan.items != self._plan.items:  # the frame of all items takes half a second, and exists already
                frame = record_frame(settings.scan.frame(self._session, plan, schema, 1), settings.records)
            rows = frame.records.limit(count).collect()
        except failures.FROM_THE_JVM as error:
            raise self._explained(error) from error
        item, checks = plan.pending_items[0].item.name, checks_of(settings.records.json_schemas)
        return [_shown(row.asDict(), item, settings.records, checks, frame.source.why) for row in rows]

    def _explained(self, error: Exception) -> Exception:
        """Make the error for a failure of Spark, as a run does, without its hints about committed records."""
        explained = self._explain(error)
        if isinstance(explained, IncompleteError):
            again = "preview again" if explained.code == "jvm-ended" else "correct the spec"
            kind = TemporaryError if explained.code == "jvm-ended" else FatalError
            return kind(
                explained.message,
                code=explained.code,
                hint=f"nothing was sent; {again}{failures.log_hint(self._settings.log_file)}",
            )
        if explained.code == "bad-data":
            again = f"correct the data or the spec, and preview again{failures.log_hint(self._settings.log_file)}"
            return FatalError(explained.message, code=explained.code, hint=f"nothing was sent; {again}")
        return explained


def _shown(
    columns: dict[str, Any],
    item: str,
    settings: RecordSettings,
    checks: Mapping[str, JsonSchemaCheck],
    why: Why | None,
) -> ShownRecord:
    """Return the record in a row of the record columns; for a corrupt row, its text in place of a record."""
    corrupt = columns.get(CORRUPT)
    unfit = columns.get(UNFIT) or next(
        filter(None, (each.why_not(_bytes(columns[n])) for n, each in checks.items())), None
    )
    encodings = settings.encodings if unfit is None else {}  # a row that does not fit has nothing to decode
    return ShownRecord(
        item=item,
        key=_bytes(columns.get("key")),
        value=_bytes(columns.get("value")),
        headers=tuple(_headers(columns, tuple(settings.headers))),
        timestamp_ms=columns.get(TIMESTAMP),
        partition=columns.get(PARTITION),
        corrupt=bytes(corrupt).decode(errors="replace") if corrupt is not None else None,
        why=why([bytes(corrupt)])[0] if corrupt is not None and why is not None else "",
        unfit=unfit,
        decoded={name: decoded(one, _bytes(columns.get(name))) for name, one in encodings.items()},
    )


def _headers(columns: dict[str, Any], names: tuple[str, ...]) -> Iterator[tuple[str, bytes | None]]:
    for index, name in enumerate(names):
        yield name, _bytes(columns.get(f"{HEADER}{index}"))
    for name, value in columns.get(HEADERS) or ():
        yield name, _bytes(value)


def _bytes(value: Any) -> bytes | None:
    return bytes(value) if value is not None else None
