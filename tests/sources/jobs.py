"""Jobs of real processes over a subject of the conformance suite: the spec, and what holds when all of it is sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from tests.sources.subject import Subject
from tests.support.harness import Job, assert_done, end_offsets


def job_over(
    subject: Subject, folder: Path, servers: str, name: str, *, master: str = "local[2]", conf: str = ""
) -> Job:
    """Create the source, and return a job over it whose transactions have ten records. `conf` is of Spark."""
    job = Job(folder, servers, f"{name.replace('.', '-')}-{folder.name[-4:]}")
    subject.create()
    sink = f'bootstrap_servers = "{servers}"\ntopic = "{job.name}"\ncreate = {{ partitions = 3 }}\n'
    transaction = '[transaction]\ntimeout = "10s"\nmax_records = 10\n'
    spark = f'[spark]\nmaster = "{master}"\nconf = {{ {conf} }}\n'
    job.spec.write_text(f'name = "{job.name}"\n{subject.spec()}\n[sink]\n{sink}{transaction}{spark}')
    return job


def assert_sent_once(job: Job, subject: Subject, env: Mapping[str, str] | None = None) -> None:
    """Each row is in the topic once; another run sends nothing, and `verify --against-source` agrees."""
    assert Counter(subject.row(record.key, record.value) for record in job.records()) == Counter(subject.rows())
    ends = end_offsets(job.servers, job.name)
    assert_done(job.run(env=env), records_sent=0)
    assert end_offsets(job.servers, job.name) == ends
    verified = job.run("verify", "--against-source", env=env)
    assert (verified.exit_code, verified.data["verdict"]) == (0, "verified"), verified
