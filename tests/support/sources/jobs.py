"""Jobs of real processes over a subject of the conformance suite: the spec, and what holds when all of it is sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from tests.support.harness import Job, assert_done, create_topic, end_offsets, read_committed
from tests.support.sources.subject import Subject, on_error, sink_creation, transaction


def job_over(
    subject: Subject, folder: Path, servers: str, name: str, *, master: str = "local[2]", conf: str = ""
) -> Job:
    """Create the source, and return a job over it whose transactions have ten records, or all. `conf` is of Spark."""
    job = Job(folder, servers, f"{name.replace('.', '-')}-{folder.name[-4:]}")
    subject.create()
    if subject.dead_config is not None:
        create_topic(servers, _dead(job), config=subject.dead_config)
    sink = f'bootstrap_servers = "{servers}"\ntopic = "{job.name}"\n{sink_creation(subject, 3)}'
    ends = f'[transaction]\ntimeout = "10s"\n{transaction(subject, 10)}'
    spark = f'[spark]\nmaster = "{master}"\nconf = {{ {conf} }}\n'
    source = f"{on_error(subject, _dead(job))}{subject.spec()}"
    job.spec.write_text(f'name = "{job.name}"\n{source}\n[sink]\n{sink}{ends}{spark}')
    return job


def assert_sent_once(job: Job, subject: Subject, env: Mapping[str, str] | None = None) -> None:
    """Each row is in the topic once, or a dead letter; another run sends nothing, and `verify --against-source` agrees."""
    assert_all_sent(job, subject)
    letters = _letters(job, subject)
    ends = _ends(job, subject)
    again = job.run(env=env)
    assert_done(again, records_sent=0)
    assert (again.data["dead_letters"], again.data["dead_letters_total"]) == (0, len(letters))
    assert _ends(job, subject) == ends
    verified = job.run("verify", "--against-source", env=env)
    assert (verified.exit_code, verified.data["verdict"]) == (0, "verified"), verified
    assert (verified.data["dead_letters"] or {}).get("found", 0) == len(letters)


def assert_nothing_sent(job: Job, subject: Subject) -> None:
    """No row is in the topic, and no letter in the other, once what is open there is decided."""
    assert (_records(job, subject), _letters(job, subject)) == ([], [])


def assert_all_sent(job: Job, subject: Subject) -> None:
    """Each row is in the topic once, or a dead letter."""
    records, letters = _records(job, subject), _letters(job, subject)
    assert Counter(letters) == Counter(filter(subject.is_dead, subject.rows()))
    assert Counter(records + letters) == Counter(subject.rows())


def _records(job: Job, subject: Subject) -> list[bytes]:
    return [subject.row(record.key, record.value) for record in job.records()]


def _dead(job: Job) -> str:
    return f"{job.name}-dead"


def _letters(job: Job, subject: Subject) -> list[bytes]:
    """Return the rows that became dead letters. The headers of each name job, topic and reason; no two are of the same row."""
    if subject.dead_config is None:
        return []
    found = read_committed(job.servers, _dead(job))
    told = [{name.removeprefix("eosingest."): value for name, value in record.headers} for record in found]
    wanted = {"job": job.name, "topic": job.name, "code": subject.dead_code}
    assert not told or {(name, each[name]) for each in told for name in wanted} == {
        (name, text.encode()) for name, text in wanted.items()
    }
    assert len({(each["split"], each["row"]) for each in told}) == len(told)
    return [subject.row_of_letter(record.key, record.value) for record in found]


def _ends(job: Job, subject: Subject) -> list[dict[int, int]]:
    topics = [job.name] if subject.dead_config is None else [job.name, _dead(job)]
    return [end_offsets(job.servers, topic) for topic in topics]
