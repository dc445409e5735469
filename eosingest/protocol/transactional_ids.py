"""The transactional ids: derived from prefix, job and task number, and from nothing else (their format has a version).

What follows the last dot is a task's number or "control", so that an id tells its stem, prefix and job run together, and all
jobs with ids of one stem share all of their ids. Of one prefix no two jobs have the same stem; of two prefixes they may:
"a." and "b.c", "a.b." and "c".
"""

from __future__ import annotations

from collections.abc import Iterator


def control_id(prefix: str, job: str) -> str:
    """Return the transactional id of a job's control producer."""
    return f"{prefix}{job}.control"


def stem_of(transactional_id: str) -> str:
    """Return prefix and job run together: what stands before the last dot, behind which a job's ids differ."""
    return transactional_id.rpartition(".")[0]


def task_id(prefix: str, job: str, task: int) -> str:
    """Return the transactional id of a task."""
    return f"{prefix}{job}.{task}"


def sharing(prefix: str, job: str) -> Iterator[tuple[str, str]]:
    """Yield every other (prefix, job) that has the same ids. Not each is a name that a job may have."""
    stem = prefix + job
    for cut in range(len(stem)):
        if cut != len(prefix):
            yield stem[:cut], stem[cut:]
