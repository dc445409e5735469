"""Defines the values of an audit of the sink topic: the ranges to read, and the findings. Pure.

    receipts (+ retired) ─▶ expected ─┐
    topic, [start, end) and later ────┼─▶ verdict: verified | mismatch | inconclusive, with findings
    source, split by split ───────────┘

Receipts are sums, so everything that the job wrote is one count and one checksum. If the topic gives the same two, it is
verified. If not, the hashes of its records are counted and compared, with each other or with the source's, and the verdict
claims no more than they prove: what retention, compaction or other producers can explain is inconclusive, never a success.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from eosingest.kafka.ports import OffsetRange
from eosingest.protocol.offsets.record import Audit, OffsetRecord
from eosingest.records.checksum import Totals

VERIFIED = "verified"
MISMATCH = "mismatch"
INCONCLUSIVE = "inconclusive"

LOST = "lost"
DOUBLED = "doubled"
CHANGED = "changed"
FOREIGN = "foreign"
SURPLUS = "surplus"
UNLIKE = "unlike"
UNREAD = "unread"
READERS_DIFFER = "readers-differ"
REMOVED = "removed"


def expected_of(receipts: Iterable[OffsetRecord], audit: Audit) -> Totals:
    """Return the sum of all records that the job has written: its splits' receipts, and retired ones of items sent again."""
    live = sum((Totals(receipt.records, receipt.checksum) for receipt in receipts), Totals())
    return live + Totals(audit.retired_records, audit.retired_checksum)


# ---- ranges to read --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Slice:
    """Offsets [start, end) of a partition, read by one task. `late`: they were written after the job was complete."""

    partition: int
    start: int
    end: int
    late: bool = False


@dataclass(frozen=True)
class Extent:
    """The offsets of a partition to read: the job's records are in [start, end); [end, high_watermark) was written later.

    `begins` is the offset at which the job began to write; `start` is above it if earlier offsets are no longer in the log.
    `end` is above the high watermark if the end of the log, which the job had seen, was lost.
    """

    partition: int
    begins: int
    start: int
    end: int
    high_watermark: int

    @property
    def removed(self) -> int:
        """How many of the job's offsets are no longer in the log."""
        return self.start - self.begins

    def slices(self) -> list[Slice]:
        """Return the ranges to read: the job's, and the late one."""
        parts = [
            Slice(self.partition, self.start, min(self.end, self.high_watermark)),
            Slice(self.partition, max(self.start, self.end), self.high_watermark, late=True),
        ]
        return [part for part in parts if part.start < part.end]


def extents(audit: Audit, ranges: Sequence[OffsetRange]) -> list[Extent]:
    """Return the extents to read. A partition that was added after the job began is read from offset 0."""
    found = []
    for partition, held in enumerate(ranges):
        begins = audit.start[partition] if partition < len(audit.start) else 0
        end = audit.end[partition] if audit.end is not None and partition < len(audit.end) else held.end
        found.append(Extent(partition, begins, max(begins, held.start), end, held.end))
    return found


def shares(parts: Iterable[Slice], tasks: int) -> list[tuple[Slice, ...]]:
    """Assign slices to at most `tasks` tasks, about as many offsets to each; slices are cut where needed."""
    left = list(parts)
    size = -(-sum(part.end - part.start for part in left) // tasks) or 1
    dealt: list[list[Slice]] = []
    room = 0
    for part in left:
        start = part.start
        while start < part.end:
            if not room:
                dealt.append([])
                room = size
            end = min(part.end, start + room)
            dealt[-1].append(Slice(part.partition, start, end, part.late))
            room -= end - start
            start = end
    return [tuple(share) for share in dealt]


# ---- findings --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """Sums of the topic's records: `within` the job's extents, and `late`, after them."""

    within: Totals
    late: Totals = field(default_factory=Totals)

    @property
    def total(self) -> Totals:
        """The sum of both."""
        return self.within + self.late


@dataclass(frozen=True)
class Copies:
    """Equal records in the topic. `copies` is the sum of all records except the first of each hash.

    `of_the_surplus`: if there is one record too many, how many records have the hash that the checksum's difference gives.
    `late`: how many records written after the job was complete equal one of the job's. `examples`: offsets of copies.
    """

    copies: Totals = field(default_factory=Totals)
    of_the_surplus: int = 0
    late: int = 0
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class Missing:
    """Records of a split that are missing from the topic (`kind` lost), or in it too often (doubled), and how many."""

    kind: str
    split: str
    records: int
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class Compared:
    """The comparison of topic and source. `unknown` is the number of records in the topic that the source does not have.

    `unlike` names splits whose rows do not match their receipt; `unread` says, per item, why it could not be compared;
    `differ` says of splits that match it by the reader of a run alone. `whole`: all rows that the receipts cover are still in
    the source.
    """

    missing: tuple[Missing, ...] = ()
    unknown: int = 0
    unknown_examples: tuple[str, ...] = ()
    unlike: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    whole: bool = True
    differ: tuple[str, ...] = ()

    def of(self, kind: str) -> list[Missing]:
        """Return the entries of one kind: lost or doubled."""
        return [entry for entry in self.missing if entry.kind == kind]


@dataclass(frozen=True)
class Circumstances:
    """Other explanations of a difference. `removed`: sentences on records that brokers may have removed. `writers`: producers
    in the topic that are not known as the job's. `others`: the eosingest jobs whose receipts were counted too.
    """

    removed: tuple[str, ...] = ()
    writers: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class Finding:
    """One finding. `kind` is lost, doubled, changed, foreign (another producer's), surplus (doubled or foreign), unlike (a
    split whose rows do not match its receipt), unread (an item that could not be compared), readers-differ (a split that two
    readers read differently) or removed (by the brokers).
    """

    kind: str
    text: str
    records: int = 0
    split: str | None = None
    examples: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the finding as in the JSON report."""
        return {
            "kind": self.kind,
            "text": self.text,
            "records": self.records,
            "split": self.split,
            "examples": list(self.examples),
        }


@dataclass
class Judgement:
    """The verdict of an audit, and its findings."""

    verdict: str = VERIFIED
    findings: list[Finding] = field(default_factory=list)

    def add(self, verdict: str, finding: Finding) -> None:
        """Add a finding. A mismatch remains the verdict if inconclusive findings are added."""
        if self.verdict != MISMATCH:
            self.verdict = verdict
        self.findings.append(finding)

    def count(self, kind: str) -> int:
        """Return the number of records in the findings of a kind: a lower bound."""
        return sum(finding.records for finding in self.findings if finding.kind == kind)
