"""The transactional ids: derived from prefix, job and task number, and from nothing else (their format has a version)."""

from __future__ import annotations


def control_id(prefix: str, job: str) -> str:
    """Return the transactional id of a job's control producer."""
    return f"{prefix}{job}.control"


def task_id(prefix: str, job: str, task: int) -> str:
    """Return the transactional id of a task. No two jobs share one: what follows the job's name is a number or "control"."""
    return f"{prefix}{job}.{task}"
