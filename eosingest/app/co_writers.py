"""Reads the receipts of other eosingest jobs that wrote to the audited topic, and whether one of them is writing now.

verify.py reads them if the sums of the topic differ from its job's receipts. audit/co_writers.py selects the jobs.
"""

from __future__ import annotations

from collections.abc import Iterable

from eosingest.app.connection import Connection
from eosingest.audit.co_writers import SisterJob, fold_jobs, sister_jobs
from eosingest.kafka.ports import OffsetRange, TopicDescription
from eosingest.protocol.control_log import ControlLog
from eosingest.protocol.offsets.state import JobState


class OtherJobs:
    """All jobs of the offsets topic, except `job`, that wrote to the sink topic."""

    def __init__(
        self,
        kafka: Connection,
        log: ControlLog,
        offsets_topic: TopicDescription,
        job: str,
        sink: TopicDescription,
        patience_s: float,
    ) -> None:
        """Read nothing yet. A read of the offsets topic fails after `patience_s` seconds without progress."""
        self._kafka, self._log, self._offsets_topic = kafka, log, offsets_topic
        self._job, self._sink, self._patience_s = job, sink, patience_s

    def look(self) -> tuple[tuple[SisterJob, ...], list[OffsetRange]]:
        """Return the jobs, and the sink topic's offset ranges, read after the receipts so that they include their records."""
        states: list[JobState] = []
        for partition in range(self._offsets_topic.partitions):
            reader = self._kafka.reader(partition)
            try:
                with self._log.kafka_errors("reading the offsets topic"):
                    bounds = reader.log_start(), reader.high_watermark()
                    records = reader.read(*bounds, committed=True, deadline_s=self._patience_s)
                    states += fold_jobs(records, reader.place).values()
            finally:
                reader.close()
        ranges = list(self._kafka.admin.offset_ranges(self._sink.name, self._sink.partitions))
        return sister_jobs(states, self._job, self._sink.topic_id, ranges), ranges

    def moved(self, before: Iterable[SisterJob]) -> str | None:
        """Return the name of a job that has written since its receipts were read; None if there is none."""
        known = tuple(before)
        if not known:
            return None
        now = {job.name: job.expected for job in self.look()[0]}
        return next((f"job {job.name}" for job in known if now.get(job.name) != job.expected), None)
