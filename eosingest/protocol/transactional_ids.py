"""Derives the transactional ids from prefix, job and task number alone.

The part of an id after its last dot is a task's number or "control". The part before it is the id's *stem*: the prefix and
the job's name, joined. Jobs of one stem share all of their ids. Two jobs have the same stem only if their prefixes differ: the
prefix "a." with job "b.c", and the prefix "a.b." with job "c".
"""

from __future__ import annotations

from collections.abc import Iterator


def control_id(prefix: str, job: str) -> str:
    """Return the transactional id of a job's control producer."""
    return f"{prefix}{job}.control"


def stem_of(transactional_id: str) -> str:
    """Return the stem of an id: prefix and job joined, the part before the last dot."""
    return transactional_id.rpartition(".")[0]


def task_id(prefix: str, job: str, task: int) -> str:
    """Return the transactional id of a task."""
    return f"{prefix}{job}.{task}"


def sharing(prefix: str, job: str) -> Iterator[tuple[str, str]]:
    """Yield every other (prefix, job) that has the same ids; some are not valid job names."""
    stem = prefix + job
    for cut in range(len(stem)):
        if cut != len(prefix):
            yield stem[:cut], stem[cut:]
