"""Writes the texts of an audit: the error for a verdict, and what brokers may have removed. Pure.

classify.py finds the verdict from the numbers; app/verify.py puts these texts into the report.
"""

from __future__ import annotations

from collections.abc import Sequence

from eosingest.audit import receipts
from eosingest.audit.receipts import Extent, Judgement
from eosingest.errors import EosingestError, FatalError, MismatchError, TemporaryError, listed
from eosingest.kafka.ports import TopicDescription

_NAMED_AT_MOST = 5


def still_written(run: str) -> TemporaryError:
    """Make the error for an audit during which a run was writing: `run` names it."""
    return TemporaryError(
        f"inconclusive: {run} is writing: the receipts changed while the topic was read",
        code="inconclusive",
        hint="wait for the run's end, then verify again",
    )


def error_of(verdict: Judgement, topic: str, *, against_source: bool) -> EosingestError | None:
    """Return the error for a verdict, None if it is "verified". `against_source`: the source was read, too."""
    said = [
        f"{found.records:,} {found.kind}: {found.text}" if found.records else found.text for found in verdict.findings
    ]
    text = listed(said, _NAMED_AT_MOST, separator="; ", rest="; and {} more findings")
    if verdict.verdict == receipts.MISMATCH:
        ask = "to find the rows of the source: eosingest verify SPEC --against-source"
        hint = f"verify changes nothing; {'the findings say where' if against_source else ask}"
        return MismatchError(f"topic {topic} does not match the records sent to it: {text}", hint=hint)
    if verdict.verdict == receipts.INCONCLUSIVE:
        return FatalError(
            f"inconclusive: {text}",
            code="inconclusive",
            hint="the topic is neither verified nor known to be wrong; to verify again gives the same result",
        )
    return None


def removed(sink: TopicDescription, extents: Sequence[Extent]) -> list[str]:
    """Return sentences on the job's records that brokers may have removed: retention, deleted records, compaction."""
    found = [
        f"partition {extent.partition} begins at offset {extent.start:,}, {extent.removed:,} offsets after the job's first:"
        " retention or a deletion of records has removed the earlier records"
        for extent in extents
        if extent.removed
    ]
    policy = None if sink.config is None else sink.config.get("cleanup.policy", "")
    if policy is None:
        found.append(f"the configuration of topic {sink.name} may not be read: it may be compacted")
    elif "compact" in policy:
        found.append(
            f"topic {sink.name} is compacted (cleanup.policy={policy}): of equal keys only the last record stays"
        )
    return found


def read_of(extent: Extent) -> dict[str, int]:
    """Return the offsets of a partition that were read, as in the report."""
    return {
        "partition": extent.partition,
        "start": extent.start,
        "end": min(extent.end, extent.high_watermark),
        "high_watermark": extent.high_watermark,
        "removed": extent.removed,
    }
