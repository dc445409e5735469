"""What an audit of the sink topic proves: receipts against records, and what a difference is. Pure.

    receipts (+ retired) ─▶ expected ─┐
    topic, [start, end) and later ────┼─▶ verdict: verified | mismatch | inconclusive, with findings
    source, split by split ───────────┘

Receipts are sums, so the job's whole is one count and one checksum. Where those are found there is nothing more to ask.
Where not, the hashes of the records are counted, against each other or against the source's, and the judgement says no
more than they prove: what retention, compaction or other writers can explain is inconclusive, never a success.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from eosingest.kafka.protocols import OffsetRange
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
REMOVED = "removed"


def expected_of(receipts: Iterable[OffsetRecord], audit: Audit) -> Totals:
    """Return what the job has written: the receipts of its splits, and of what was sent again as a whole since."""
    live = sum((Totals(receipt.records, receipt.checksum) for receipt in receipts), Totals())
    return live + Totals(audit.retired_records, audit.retired_checksum)


# ---- what to read ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Slice:
    """Offsets [start, end) of a partition for one task to read. `late`: written after the job was complete."""

    partition: int
    start: int
    end: int
    late: bool = False


@dataclass(frozen=True)
class Extent:
    """A partition as it is to be read: the job's records lie in [start, end), and [end, high_watermark) was written later.

    `begins` is where the job began to write; `start` is above it where the partition no longer holds all of that.
    `end` is above the high watermark where a part of the log that the job had seen is gone.
    """

    partition: int
    begins: int
    start: int
    end: int
    high_watermark: int

    @property
    def removed(self) -> int:
        """How many offsets from the job's first on the partition no longer holds."""
        return self.start - self.begins

    def slices(self) -> list[Slice]:
        """Return what there is to read."""
        parts = [
            Slice(self.partition, self.start, min(self.end, self.high_watermark)),
            Slice(self.partition, max(self.start, self.end), self.high_watermark, late=True),
        ]
        return [part for part in parts if part.start < part.end]


def extents(audit: Audit, ranges: Sequence[OffsetRange]) -> list[Extent]:
    """Return what to read of each partition; one that was added after the job began belongs to it from 0 on."""
    found = []
    for partition, held in enumerate(ranges):
        begins = audit.start[partition] if audit.start is not None and partition < len(audit.start) else 0
        end = audit.end[partition] if audit.end is not None and partition < len(audit.end) else held.end
        found.append(Extent(partition, begins, max(begins, held.start), end, held.end))
    return found


def shares(parts: Iterable[Slice], tasks: int) -> list[tuple[Slice, ...]]:
    """Deal slices out to at most so many tasks, as many offsets to each, cutting where need be."""
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


# ---- what was found --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """The records of the topic: within the job's extents, and behind them."""

    within: Totals
    late: Totals = field(default_factory=Totals)

    @property
    def total(self) -> Totals:
        """Both."""
        return self.within + self.late


@dataclass(frozen=True)
class Copies:
    """What the topic says of itself. `copies` counts and sums up every record but the first of its kind.

    `of_the_surplus` is how many records have the hash that would explain one record too many. `late` is how many of those
    written after the job was complete equal one of its own. `examples` say where the copies are.
    """

    copies: Totals = field(default_factory=Totals)
    of_the_surplus: int = 0
    late: int = 0
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class Missing:
    """Records of the source that the topic lacks (lost), or holds too often (doubled): how many, in which split."""

    kind: str
    split: str
    records: int
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class Compared:
    """What topic and source say of each other. `unknown` counts the topic's records that the source does not have.

    `unlike` names splits whose rows do not give their receipt; `unread` says, per item, why the source could not be asked.
    `whole`: every record that the receipts speak of has its row in the source as it is now.
    """

    missing: tuple[Missing, ...] = ()
    unknown: int = 0
    unknown_examples: tuple[str, ...] = ()
    unlike: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    whole: bool = True

    def of(self, kind: str) -> list[Missing]:
        """Return the entries of one kind: lost, or doubled."""
        return [entry for entry in self.missing if entry.kind == kind]


@dataclass(frozen=True)
class Circumstances:
    """What else may explain a difference: `removed` in words, `start_known`, `writers` that are not the job's.

    `others` names the jobs of ours that were counted with it.
    """

    removed: tuple[str, ...] = ()
    start_known: bool = True
    writers: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class Finding:
    """One thing that was found. `kind` is lost, doubled, changed, foreign, or: surplus (doubled or foreign), unlike (a split
    that does not give its receipt), unread (an item that could not be compared), removed (by the brokers).
    """

    kind: str
    text: str
    records: int = 0
    split: str | None = None
    examples: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the form for a report."""
        return {
            "kind": self.kind,
            "text": self.text,
            "records": self.records,
            "split": self.split,
            "examples": list(self.examples),
        }


@dataclass
class Judgement:
    """The verdict and what it rests on."""

    verdict: str = VERIFIED
    findings: list[Finding] = field(default_factory=list)

    def add(self, verdict: str, finding: Finding) -> None:
        """Take a finding in. A mismatch that is proven stays one, whatever else is inconclusive."""
        if self.verdict != MISMATCH:
            self.verdict = verdict
        self.findings.append(finding)

    def count(self, kind: str) -> int:
        """Return how many records the findings of a kind speak of: at least so many."""
        return sum(finding.records for finding in self.findings if finding.kind == kind)
