"""Formats whose files are one row each (text files as values, binaryFile): killed again and again, each file is sent once."""

from __future__ import annotations

import random
import re

import pytest

from tests.support.harness import SPEC, Job, assert_done, assert_refused
from tests.support.held_runs import run_killed_at

FILES = 120
KILLED_AT = ("task-after-produce@2", "task-before-commit@2", "task-after-commit@2", "driver-before-verdict")
_SPEC = re.sub(r"format = .*(?=\[sink\])", "SOURCE", SPEC, flags=re.DOTALL).replace(
    "max_records = 2000", "max_records = 4"
)
SOURCES = {
    "wholetext": 'format = "text"\npath = "data/*"\noptions = {{ wholetext = true }}\n',
    "binaryFile": 'format = "binaryFile"\npath = "data/*"\n',
}


def contents(kind: str) -> dict[str, bytes]:
    """Return what the files hold: bytes of all kinds, line ends, and quotes; text is UTF-8."""
    chance = random.Random(kind)
    if kind == "binaryFile":
        return {f"f-{number:03}.bin": chance.randbytes(chance.randint(1, 9000)) for number in range(FILES)}
    words = ("a\r\nb", 'q"q', "ü😀", "\ufeff", "\0", "\n\n", "  ")
    return {
        f"f-{number:03}.txt": "".join(chance.choices(words, k=500)).encode() + str(number).encode()
        for number in range(FILES)
    }


@pytest.mark.slow
@pytest.mark.parametrize("kind", SOURCES)
def test_each_file_is_sent_once(job: Job, kind: str) -> None:
    """Breaks when a split of one row is marked done without its record, sent again behind a kill, or changed on its way."""
    files = contents(kind)
    for name, content in files.items():
        (job.data / name).write_bytes(content)
    job.write_spec(_SPEC.replace("SOURCE", SOURCES[kind]))
    plan = job.run("plan")
    assert (plan.data["splits_pending"], plan.exit_code) == (FILES, 0), plan.data

    for point in KILLED_AT:
        run_killed_at(job, point)
    done = job.run()

    assert done.exit_code == 0, done
    assert sorted(record.value or b"" for record in job.records()) == sorted(files.values())
    assert_done(job.run(), 0)
    assert job.run("verify", "--against-source").data["verdict"] == "verified"
    first = job.data / min(files)
    first.write_bytes(files[min(files)] + b"!")
    assert_refused(job.run(), 12, "source-changed", min(files))
