"""Themes of schedules: a few faults that are dangerous together, and a world in which they come to something.

A schedule without a theme draws everything (faults.py); what takes several faults at certain places, one after another,
it meets once in a million times. A theme was made for each rule that 20,000 schedules did not miss.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.simulation.network import LATE_COMMIT

KILL_BEFORE_COMMIT = "kill-before-commit"
OFFSETS_TOPIC_LOST = "offsets-topic-lost"
OTHER_OFFSETS_TOPIC, CLAIM_IN_ANOTHER_TOPIC = "other-offsets-topic", "claim-in-another-topic"


@dataclass(frozen=True)
class Theme:
    """Faults, each with the place where it strikes: a fail point, a request, ...; "" is any place.

    The rest is what the world is like: `restarts`: runs of other specs and `--from-scratch` are common; `prompt_starts`:
    the part of attempts that start at once; `slow_input`: the chance that Spark may take long for a batch.
    """

    strikes: tuple[tuple[str, str], ...] = ()
    in_order: bool = False  # each fault once, one after another; otherwise they are drawn
    restarts: bool = False
    many_runs: bool = False
    loses_offsets: bool = False
    prompt_starts: float = 0.8
    slow_input: float = 0.3


NO_THEME = Theme()
_HIGH_WATERMARK = "answer to ListOffsets high watermark"
THEMES = {
    "restarts": Theme(
        (
            (KILL_BEFORE_COMMIT, ""),
            (KILL_BEFORE_COMMIT, ""),
            ("kill-driver", ""),
            ("job-fails", ""),
            ("input-ends", ""),
        ),
        restarts=True,
    ),
    "rivals": Theme(
        (("second-attempt", ""), ("second-attempt", ""), ("freeze", ""), ("foreign-init", "")), prompt_starts=0.4
    ),
    "losses": Theme(
        (("kill-driver", ""), ("kill-driver", "driver-after-fence"), ("second-driver", "")),
        restarts=True,
        loses_offsets=True,
    ),
    "late-commits": Theme(((LATE_COMMIT, ""),), slow_input=0.9),
    "compaction": Theme(
        (
            ("compaction", ""),
            ("compaction", ""),
            ("freeze", _HIGH_WATERMARK),
            ("freeze", _HIGH_WATERMARK),
            ("second-driver", ""),
            ("kill-driver", ""),
        )
    ),
    # A record that pins another spec, with `--from-scratch` in the middle of a job, and is never committed.
    "aborted-pins": Theme(
        (
            ("kill-driver", "task-after-commit"),
            ("compaction", "driver-before-running"),
            (KILL_BEFORE_COMMIT, "driver: EndTxn"),
        ),
        in_order=True,
        restarts=True,
    ),
    # An attempt that starts while its run gives its verdict, and is slow.
    "late-attempts": Theme(
        (
            ("job-fails", "task-after-begin"),
            ("second-attempt", "driver-after-settling"),
            ("freeze", "task-after-check"),
            ("second-attempt", "driver-after-verdict"),
        ),
        in_order=True,
    ),
    # An attempt that looked before its run settled, and looks again when that is compacted away.
    "late-looks": Theme(
        (
            ("job-fails", "task-after-begin"),
            ("second-attempt", "driver-before-verdict"),
            ("freeze", "task-before-init"),
            ("compaction", "driver-after-settling"),
            ("freeze", "driver: DescribeTopic sink"),
            ("freeze", f"task: {_HIGH_WATERMARK}"),
            ("compaction", "driver-after-verdict"),
            ("freeze", "driver-after-claim"),
        ),
        in_order=True,
    ),
    # Another offsets topic under a task that has looked, and a run from scratch that begins in it.
    OTHER_OFFSETS_TOPIC: Theme(
        (
            ("freeze", "task-before-init"),
            (OFFSETS_TOPIC_LOST, ""),
            ("second-driver", ""),
            ("freeze", "driver-after-claim"),
        ),
        in_order=True,
        restarts=True,
        many_runs=True,
        loses_offsets=True,
    ),
    # Another offsets topic between what a run's claim rests on and the claim.
    CLAIM_IN_ANOTHER_TOPIC: Theme(
        (("kill-driver", "task-after-commit"), (OFFSETS_TOPIC_LOST, "driver: Produce offsets-1")),
        in_order=True,
        many_runs=True,
        loses_offsets=True,
    ),
    # An orphan that looked before the next run claimed, and looks again when that claim is compacted away.
    "late-orphans": Theme(
        (
            ("freeze", "task-before-init"),
            ("freeze", "task-before-init"),
            ("kill-driver", ""),
            ("freeze", "driver-before-running"),
            ("freeze", f"task: {_HIGH_WATERMARK}"),
            ("compaction", "driver-after-running"),
        ),
        in_order=True,
        many_runs=True,
    ),
}

# Of schedules that mix runs by parts and runs that send everything in one transaction.
MIXED_THEMES = (
    # A run ends between its commit and its verdict, and the next one before it sends.
    Theme(
        (("kill-driver", "task-after-commit"), ("kill-driver", "driver-after-running")), in_order=True, many_runs=True
    ),
    Theme(
        (("kill-driver", "driver-before-verdict"), ("kill-driver", "task-after-begin")), in_order=True, many_runs=True
    ),
    Theme(
        (("kill-driver", "driver-after-running"), ("kill-driver", "task-after-commit")), in_order=True, many_runs=True
    ),
    # Wherever runs end, also `--from-scratch`, and where gaps are accepted.
    Theme(
        (
            ("kill-driver", "task-after-commit"),
            ("kill-driver", "driver-after-running"),
            ("kill-driver", "driver-after-settling"),
            (KILL_BEFORE_COMMIT, "task: EndTxn"),
            ("job-fails", "task-after-commit"),
            ("second-driver", "task-after-commit"),
        ),
        many_runs=True,
    ),
    Theme(
        (
            ("kill-driver", "task-after-commit"),
            ("kill-driver", "driver-after-running"),
            (KILL_BEFORE_COMMIT, ""),
            ("job-fails", ""),
        ),
        restarts=True,
    ),
)
