"""Rounds whose runs send everything in one transaction, or nothing (`transaction.boundary = "job"`).

    drawn by seed and number ─▶ boundary, limits that are large enough ─▶ runs that are slow enough to be met in the middle

A load of this size is sent within a moment. So Spark takes its time over some rows, in small batches, where it computes them,
and each run that is not held elsewhere waits once in mid-transaction.
"""

from __future__ import annotations

import random
import re

from tests.support.harness import Job

SHARE = 0.2  # of the rounds
TOO_LARGE = 7, "too-large-for-one-transaction"
MORE_TIME_S = 3  # than a transaction of a part of the load is given
ONCE_AND_AGAIN = "task-after-produce"  # the one point that a task passes several times in its only transaction
_IN_MID_RUN = (
    "task-after-begin",
    "task-after-begin",
    ONCE_AND_AGAIN,
    ONCE_AND_AGAIN,
    "task-before-offsets",
    "task-before-commit",
    "task-after-commit",
)
KEY_BEGIN = 'key = "'
_KEY = 'key = "CAST(n % 100 AS STRING)"'  # of each input whose rows Spark computes
_SLOW_ROWS = 20
_BATCH = 400  # rows that Spark hands over at once


def order(job: Job, chance: random.Random, rows: int) -> None:
    """Let the spec say that all of the `rows` go in one transaction, whose limits they just keep or do not come near."""
    job.edit_spec("[transaction]\n", '[transaction]\nboundary = "job"\n')
    limit(job, chance.choice((rows, rows, 1_000_000)))
    if _KEY in job.spec.read_text() and chance.random() < 0.8:
        slow = f"n % {rows // _SLOW_ROWS} = 7 THEN substr(sha2(repeat(CAST(n AS STRING), 4000000), 256), 1, 2)"
        job.edit_spec(_KEY, f'key = "CASE WHEN {slow} ELSE CAST(n % 100 AS STRING) END"')
        job.edit_spec("conf = {", f'conf = {{ "spark.sql.execution.arrow.maxRecordsPerBatch" = "{_BATCH}",')


def set_boundary(job: Job, name: str) -> None:
    """Let the spec say so, whatever it said before."""
    spec = re.sub(r"boundary = .*\n", "", job.spec.read_text())
    job.spec.write_text(spec.replace("[transaction]\n", f'[transaction]\nboundary = "{name}"\n'))


def limit(job: Job, records: int, size: str = "256MiB") -> None:
    """Let the spec say how much a transaction may have."""
    spec = re.sub(r"max_bytes = .*\n", "", job.spec.read_text())
    job.spec.write_text(re.sub(r"max_records = \d+", f'max_records = {records}\nmax_bytes = "{size}"', spec))


def held_points(chance: random.Random) -> str:
    """Draw where a run waits in mid-transaction, or behind it, and for how long."""
    point = chance.choice(_IN_MID_RUN)
    hit = chance.randint(1, 4) if point == ONCE_AND_AGAIN else 1
    seconds = chance.choice((0.1, chance.uniform(0.3, 1.5)))  # while a task waits, Spark goes on
    return f"{point}=sleep:{seconds:.1f}@{hit}"
