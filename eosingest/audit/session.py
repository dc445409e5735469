"""Runs the Spark session of an audit, in which topic and source are read and compared; raises Spark's failures as our errors.

app/verify.py decides what to read; scan.py reads. All calls of Spark are made in a separate thread, since a call of the JVM
cannot be interrupted: so a signal ends the wait at once.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pyspark.accumulators import Accumulator

from eosingest.audit.receipts import Compared, Copies, Found, Slice, shares
from eosingest.audit.scan import SourceData, TopicData, compare, first_differences
from eosingest.errors import EosingestError, FatalError, IncompleteError, TemporaryError
from eosingest.host import interruptible
from eosingest.kafka.librdkafka import REFUSALS
from eosingest.protocol.plan import Plan
from eosingest.protocol.source import SplitId
from eosingest.records.checksum import Totals
from eosingest.report.progress import AuditProgress
from eosingest.spark import causes, executors, failures, plan_checks
from eosingest.spark.executor_errors import environment_error
from eosingest.spark.job import SparkSettings
from eosingest.spark.record_columns import record_frame
from eosingest.spark.record_settings import CHECKSUM, METADATA, SPLIT

_KAFKA_FAILURE = re.compile(r"KafkaFailure: (\w[\w-]*): (.+)")
_T = TypeVar("_T")
_TELL_EVERY_S = 1.0
# Progress is known only when a task has finished: so a task takes a few seconds, but much longer than its start.
_READ_A_TASK = 4_000_000  # offsets, or rows


@dataclass(frozen=True)
class _Reading:
    """Progress of the current read: finished tasks have read `count` of `planned` offsets or rows."""

    what: str
    unit: str
    count: Accumulator[int]
    planned: int


def _telling(reading: _Reading, check: Callable[[], None], tell: Callable[[AuditProgress], None]) -> Callable[[], None]:
    """Return a function that calls `check`, and reports the progress once a second."""
    began = told = time.monotonic()

    def look() -> None:
        nonlocal told
        check()
        now = time.monotonic()
        if now - told >= _TELL_EVERY_S:
            told = now
            done = min(reading.count.value, reading.planned)  # a task whose output was lost runs twice
            tell(AuditProgress(reading.what, reading.unit, done, reading.planned, now - began))

    return look


class SparkAuditor:
    """One Spark session for one audit. Its methods raise the errors of errors.py."""

    def __init__(self, settings: SparkSettings, tell: Callable[[AuditProgress], None] | None = None) -> None:
        """Start nothing yet. The callback gets the progress about once a second."""
        self._settings = settings
        self._tell = tell
        self._spark: Any = None
        self._session: Any = None
        self._topic: TopicData | None = None
        self._source: SourceData | None = None  # as it was read last
        self._before: SourceData | None = None  # as it was read before that
        self.schema: str | None = None  # the schema by which the source was read, as DDL

    def start(self) -> None:
        """Start Spark."""
        self._in_thread(self._start)

    def _start(self) -> None:
        settings = self._settings
        self._spark = settings.start()
        executors.ready(self._spark, settings.executor_wait_s, settings.note)
        self._session = self._spark.sql()

    def read_topic(self, topic: str, parts: Sequence[Slice], *, patience_s: float) -> Found:
        """Return count and checksum of the slices' records. A read fails after `patience_s` seconds without progress."""
        tasks = max(executors.most_tasks(self._spark), sum(part.end - part.start for part in parts) // _READ_A_TASK)
        dealt = tuple(shares(parts, tasks))
        data = TopicData(self._session, topic, self._settings.client, dealt, patience_s, self._counter())
        self._topic = data
        if not data.shares:
            return Found(Totals())
        return self._in_thread(data.sums, _Reading("the topic", "offset", data.read, data.offsets))

    @property
    def other_reader(self) -> str:
        """The name of the reader that is not the run's; "" if there is none (`Scan.audit_reader`)."""
        return self._settings.scan.audit_reader

    def other_code(self, plan: Plan) -> str:
        """Name the code that only an audit of a plan uses: `other_reader`, or a part of a reader; "" if there is none."""
        return self.other_reader or ("the other decoder of folders' names" if plan.folders else "")

    def read_source(self, plan: Plan, schema: str | None, *, by_other: bool = False) -> dict[SplitId, Totals]:
        """Return count and checksum of the rows of each of the plan's splits, up to the position in its offset record.

        `by_other`: they are read by `other_code`, otherwise as by a run.
        """
        source = self._in_thread(lambda: self._prepare_source(plan, schema, by_other=by_other))
        self._before, self._source = self._source, source
        return self._in_thread(source.sums, _Reading("the source", "row", source.read, source.rows))

    def first_differences(self) -> dict[SplitId, int]:
        """Return the first row, counted from 1, in which the last two reads of the source differ, of each such split."""
        assert self._before is not None and self._source is not None, "read_source comes first, twice"
        before, source = self._before, self._source
        reading = _Reading("the source again, row by row", "row", source.read, source.rows)
        return self._in_thread(lambda: first_differences(before, source), reading)

    def _prepare_source(self, plan: Plan, schema: str | None, *, by_other: bool) -> SourceData:
        settings, slots = self._settings, executors.most_tasks(self._spark)
        scan = settings.scan.for_audit() if by_other else settings.scan
        frame = record_frame(scan.frame(self._session, plan, schema, slots), settings.records)
        self.schema = frame.source.schema
        plan_checks.check_narrow(frame.records)
        splits, partitions = frame.source.verified(frame.records)
        hashes = [name for name in (SPLIT, CHECKSUM, METADATA) if name in frame.records.columns]
        source = SourceData(frame.records.select(*hashes), splits, 1, self._counter())
        tasks = max(slots, source.rows // _READ_A_TASK)
        return replace(source, tasks=max(1, min(partitions, tasks)))

    def compare(self, surplus: Totals, records: int) -> tuple[Copies, Compared]:
        """Compare the topic, hash by hash, with the source if that was read; see `scan.compare`."""
        assert self._topic is not None, "read_topic comes first"
        topic = replace(self._topic, read=self._counter())
        reading = _Reading("the topic again, record by record", "offset", topic.read, topic.offsets)
        return self._in_thread(lambda: compare(self._session, topic, self._source, surplus, records), reading)

    def close(self) -> None:
        """Stop Spark, even while a job runs."""
        if self._spark is not None:
            self._spark.stop()

    def _counter(self) -> Accumulator[int]:
        counter: Accumulator[int] = self._spark.context.accumulator(0)
        return counter

    def _in_thread(self, step: Callable[[], _T], reading: _Reading | None = None) -> _T:
        check = self._settings.check
        if reading is not None and self._tell is not None:
            check = _telling(reading, check, self._tell)
        try:
            return interruptible.in_thread(step, check, "spark-audit")
        except failures.FROM_THE_JVM as error:
            raise self._explain(causes.text_of(error)) from error
        except IncompleteError as error:  # Spark did not start; an audit sends nothing that could be incomplete
            raise TemporaryError(error.message, code=error.code, hint=self._again()) from error

    def _explain(self, text: str) -> EosingestError:
        """Make the error for a failure of Spark: brokers and the JVM may recover, bad data does not."""
        log = failures.log_hint(self._settings.log_file)
        kafka = _KAFKA_FAILURE.search(text)
        if kafka is not None and kafka.group(1) in REFUSALS:
            return FatalError(
                f"the topic could not be read, Kafka refused: {kafka.group(1)}: {kafka.group(2)}",
                code="kafka-refused",
                hint="nothing was changed; the sink's user needs Read on it (kafka-acls --add); then verify again",
            )
        if kafka is not None:
            return TemporaryError(
                f"the topic could not be read: {kafka.group(2)}",
                code="kafka-uncertain",
                hint=self._again(),
            )
        ended = failures.jvm_ended(self._spark and self._spark.process, wait=True)
        if ended is not None:
            return TemporaryError(ended, code="jvm-ended", hint=self._again())
        said = failures.by_a_reader(text)
        if said is not None:
            return said
        environment = environment_error(text, "nothing was judged")
        if environment is not None:
            return environment
        if causes.is_lasting(text):
            return FatalError(
                f"the source could not be read or computed: {causes.innermost(text)}",
                code="bad-data",
                hint=f"verify without --against-source, by the receipts alone{log}",
            )
        bug = failures.bug_in_a_task(text, hint=log.removeprefix("; "))
        return bug or TemporaryError(
            f"the Spark job failed: {causes.innermost(text)}", code="spark-job", hint=f"verify again{log}"
        )

    def _again(self) -> str:
        return f"the topic was not judged; verify again{failures.log_hint(self._settings.log_file)}"
