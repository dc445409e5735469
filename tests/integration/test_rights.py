"""A copy of a topic by a user who may do little: what ACLs it needs, and what is said and sent where one of them is missing."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation, AdminClient, ConfigResource, ResourceType

from tests.integration.test_verbs import command
from tests.support.commands import Done, finish
from tests.support.guarded_broker import OFFSETS, PASSWORD, USER, Allowed, GuardedBroker, of_a_job, serving
from tests.support.harness import Job, assert_done, assert_refused, create_topic, end_offsets, read_committed, wait_for
from tests.support.held_runs import Held
from tests.support.kafka_tools import commands_in, run_command
from tests.support.source_topics import SourceTopic, copy_job, numbered

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedBroker]:
    with serving(GuardedBroker(tmp_path_factory.mktemp("guarded"))) as up:
        yield up


class Guarded:
    """A job of the user who logs in, over topics that somebody else has made."""

    def __init__(self, broker: GuardedBroker, folder: Path, name: str) -> None:
        self.broker = broker
        self.job = Job(folder, broker.direct, name)  # its helpers read by the plain listener
        self.source = SourceTopic(broker.direct, f"{name}-from", partitions=2)
        self.source.write(numbered(0, 10))
        create_topic(broker.direct, name, partitions=2)
        copy_job(self.job, self.source)
        login = f'"security.protocol" = "SASL_PLAINTEXT", "sasl.mechanism" = "PLAIN", "sasl.username" = "{USER}"'
        properties = f'properties = {{ {login}, "sasl.password" = "${{env:EOSINGEST_GUARDED_PASSWORD}}" }}'
        servers = f'bootstrap_servers = "{broker.direct}"'
        self.job.edit_spec(f"[sink]\n{servers}", f'[sink]\nbootstrap_servers = "{broker.servers}"\n{properties}')
        self.needed = of_a_job(self.source.name, name, OFFSETS, f"eosingest.{name}.")

    def allow_all_but(self, kind: ResourceType, name: str, *instead: AclOperation) -> None:
        """Let the user do what a job needs, but on this resource only what is said."""
        others = [each for each in self.needed if each[:2] != (kind, name)]
        assert len(others) < len(self.needed), "else nothing is taken away"
        self.broker.allow_only([*others, *((kind, name, operation) for operation in instead)])

    def run(self) -> Done:
        done = finish(self.job.popen(env={"EOSINGEST_GUARDED_PASSWORD": PASSWORD}))
        assert PASSWORD not in done.text
        return done

    def run_refused(self, code: str, *words: str) -> None:
        """Run, and be refused with exit 7; no record is sent, nor one that was aborted."""
        before = end_offsets(self.job.servers, self.job.name)
        assert_refused(self.run(), 7, code, *words)
        assert end_offsets(self.job.servers, self.job.name) == before

    def run_complete(self) -> None:
        """Run with what docs/sources.md says is needed, and no more: all is copied, once."""
        self.broker.allow_only(self.needed)
        assert_done(self.run(), records_sent=10)
        assert [record.value for record in sorted(self.job.records(), key=lambda found: found.value or b"")] == [
            sent.value for sent in numbered(0, 10)
        ]


@pytest.fixture
def job_of_user(guarded: GuardedBroker, tmp_path: Path) -> Guarded:
    return Guarded(guarded, tmp_path, f"rights-{uuid.uuid4().hex[:6]}")


def claims(job: Guarded) -> dict[int, int]:
    return end_offsets(job.broker.direct, OFFSETS)


@pytest.mark.in_turns("one right each")
@pytest.mark.parametrize("instead", [(), (AclOperation.DESCRIBE,)], ids=["not even seen", "seen"])
def test_a_source_that_may_not_be_read(job_of_user: Guarded, instead: tuple[AclOperation, ...]) -> None:
    """It is refused before the job is claimed: an earlier run is not fenced for it."""
    job = job_of_user
    job.allow_all_but(ResourceType.TOPIC, job.source.name, *instead)
    before = claims(job)
    job.run_refused("kafka-refused", job.source.name, "may not be read", "nothing was sent", "--operation Read")
    assert claims(job) == before


@pytest.mark.in_turns("one right each")
def test_a_sink_that_may_not_be_seen(job_of_user: Guarded) -> None:
    job_of_user.allow_all_but(ResourceType.TOPIC, job_of_user.job.name)
    job_of_user.run_refused("broker-refused", job_of_user.job.name, "kafka-acls --add", "run again")


@pytest.mark.in_turns("one right each")
def test_a_sink_that_may_not_be_written(job_of_user: Guarded) -> None:
    """Only a task finds out; with the right added the next run sends all, once."""
    job = job_of_user
    job.allow_all_but(ResourceType.TOPIC, job.job.name, AclOperation.DESCRIBE)
    words = ("nothing was sent twice", f"Write on {job.job.name}", "kafka-acls --add", "run again")
    job.run_refused("TOPIC_AUTHORIZATION_FAILED", *words)
    job.run_complete()


@pytest.mark.in_turns("one right each")
def test_transactional_ids_that_are_not_allowed(job_of_user: Guarded) -> None:
    """None of them; then that of the driver alone, and none of a task."""
    job = job_of_user
    ids = f"eosingest.{job.job.name}."
    job.allow_all_but(ResourceType.TRANSACTIONAL_ID, f"{ids}*")
    before = claims(job)
    job.run_refused("kafka-refused", "claiming the job", "Write on all transactional ids", "kafka-acls --add")
    assert claims(job) == before
    control: Allowed = (ResourceType.TRANSACTIONAL_ID, f"{ids}control", AclOperation.WRITE)
    job.broker.allow_only([*(each for each in job.needed if each[1] != f"{ids}*"), control])
    job.run_refused("broker-refused", f"{ids}0", "kafka-acls --add", "run again")


@pytest.mark.in_turns("one right each")
@pytest.mark.parametrize("left", [AclOperation.WRITE, AclOperation.READ], ids=["not read", "not written"])
def test_an_offsets_topic_that_is_not_open_to_the_user(job_of_user: Guarded, left: AclOperation) -> None:
    """Without either of its two rights nothing is sent, and the topic is named."""
    job = job_of_user
    job.allow_all_but(ResourceType.TOPIC, OFFSETS, left)
    done = job.run()
    assert done.exit_code == 7, done
    (error,) = done.envelope["errors"]
    assert OFFSETS in f"{error['message']} {error['hint']}", error
    assert "run again" in error["hint"], error
    assert not any(end_offsets(job.job.servers, job.job.name).values())
    job.run_complete()


@pytest.mark.in_turns("one right each")
def test_a_topic_that_the_user_may_not_create(job_of_user: Guarded) -> None:
    job = job_of_user
    job.job.edit_spec(f'topic = "{job.job.name}"', f'topic = "{job.job.name}-new"')
    new = f"{job.job.name}-new"
    others = [each for each in job.needed if each[1] != job.job.name]
    topics = [(ResourceType.TOPIC, new, AclOperation.WRITE)]
    job.broker.allow_only([*others, *topics])
    refused = job.run()
    assert_refused(refused, 7, "topic-not-created", "kafka-topics", f"--create --topic {new}")
    job.broker.allow_only([*others, *topics, (ResourceType.TOPIC, new, AclOperation.CREATE)])
    assert_done(job.run(), records_sent=10)
    (command,) = commands_in(refused.envelope["errors"][0]["hint"])
    run_command(command.replace(new, f"{new}er"), job.broker.direct)
    assert topic_settings(job.broker.direct, f"{new}er") == topic_settings(job.broker.direct, new)


def topic_settings(servers: str, topic: str) -> tuple[int, dict[str, str]]:
    """Return a topic's number of partitions and its configuration."""
    admin = AdminClient({"bootstrap.servers": servers})
    (entries,) = [each.result(20) for each in admin.describe_configs([ConfigResource("topic", topic)]).values()]
    partitions = admin.list_topics(topic, timeout=20).topics[topic].partitions
    return len(partitions), {name: entry.value for name, entry in entries.items()}


def with_dead_letters(job: Guarded) -> tuple[str, list[Allowed]]:
    """Let the job's first row have a partition that its topic does not have; return the dead-letter topic, and all rights."""
    dead = f"{job.job.name}-dead"
    create_topic(job.broker.direct, dead)
    job.job.edit_spec("[source]\n", f'on_error = {{ topic = "{dead}", max = 5 }}\n[source]\n')
    job.job.edit_spec("[record]\n", '[record]\npartition = "IF(offset = 0, 99, 0)"\n')
    return dead, [*job.needed, (ResourceType.TOPIC, dead, AclOperation.WRITE)]


@pytest.mark.in_turns("one right each")
def test_a_dead_letter_topic_that_may_not_be_written(job_of_user: Guarded) -> None:
    """Not even seen: refused before anything is sent. Seen: a task finds out, and nothing is sent without its letter."""
    job = job_of_user
    dead, rights = with_dead_letters(job)
    job.broker.allow_only(job.needed)
    job.run_refused("broker-refused", dead, "kafka-acls --add", "run again")
    job.broker.allow_only([*job.needed, (ResourceType.TOPIC, dead, AclOperation.DESCRIBE)])
    assert_refused(job.run(), 7, "TOPIC_AUTHORIZATION_FAILED", f"Write on {job.job.name} and {dead}", "run again")
    assert job.job.records() == []
    job.broker.allow_only(rights)
    assert_done(job.run(), records_sent=9)
    assert len(read_committed(job.broker.direct, dead)) == 1


@pytest.mark.in_turns("one right each")
def test_an_audit_of_dead_letters_that_may_not_be_read(job_of_user: Guarded) -> None:
    job, kind, env = job_of_user, ResourceType.TOPIC, {"EOSINGEST_GUARDED_PASSWORD": PASSWORD}
    dead, rights = with_dead_letters(job)
    job.broker.allow_only(rights)
    assert_done(job.run(), records_sent=9)
    readable = [(kind, name, AclOperation.READ) for name in (job.source.name, OFFSETS, job.job.name)]
    job.broker.allow_only([*readable, (kind, dead, AclOperation.DESCRIBE)])
    assert_refused(job.job.run("verify", env=env), 7, "kafka-refused", dead, "--operation Read")
    job.broker.allow_only([*readable, (kind, dead, AclOperation.READ)])
    done = job.job.run("verify", env=env)
    assert done.exit_code == 0, done


@pytest.mark.in_turns("one right each")
def test_looks_and_audits_need_no_right_to_write(job_of_user: Guarded) -> None:
    job, kind = job_of_user, ResourceType.TOPIC
    job.run_complete()
    env = {"EOSINGEST_GUARDED_PASSWORD": PASSWORD}
    seen = [(kind, job.source.name, AclOperation.READ), (kind, OFFSETS, AclOperation.READ)]
    job.broker.allow_only([*seen, (kind, job.job.name, AclOperation.DESCRIBE)])
    for verb in ("status", "plan"):
        done = job.job.run(verb, env=env)
        assert done.exit_code == 0, done
    job.broker.allow_only([*seen, (kind, job.job.name, AclOperation.READ)])
    done = job.job.run("verify", env=env)
    assert done.exit_code == 0, done


def test_the_page_lists_the_rights_that_these_tests_give() -> None:
    """docs/security.md, the rows of a run: they are those of `of_a_job`, which each test above takes one from."""
    page = (Path(__file__).parents[2] / "docs" / "security.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:4]] for line in page.splitlines() if line.startswith("| run |")]
    rows += (
        [["run", "topic `source`", "Read"]]
        if "| run of a source that is a topic | the source topic | Read |" in page
        else []
    )
    listed = {(re.findall(r"`([^`]+)`", resource)[0], operation) for _, resource, operation in rows}
    given = of_a_job("source", "orders", OFFSETS, "eosingest.orders.")
    assert listed == {(name.removesuffix("*"), operation.name.capitalize()) for _, name, operation in given}
    for row in ("run with `on_error`", "Write"), ("verify of a job that has dead letters", "Read"):
        assert "| {} | the dead-letter topic | {} |".format(*row) in page


@pytest.mark.in_turns("one right each")
def test_a_right_that_is_taken_away_in_mid_run(job_of_user: Guarded) -> None:
    """Behind the look at the source, before tasks read it: the run says so, and the next one sends all."""
    job = job_of_user
    job.broker.allow_only(job.needed)
    held = Held(job.job, "driver-after-running=sleep:8")
    process = job.job.popen(env={"EOSINGEST_GUARDED_PASSWORD": PASSWORD, **held.env})
    wait_for(held.reached, 120)
    job.allow_all_but(ResourceType.TOPIC, job.source.name)
    done = finish(process)
    assert PASSWORD not in done.text
    assert_refused(done, 7, "kafka-refused", job.source.name, "committed records are kept", "needs Read on the topic")
    job.run_complete()


@pytest.mark.slow
def test_init_from_a_broker_that_asks_for_a_login(guarded: GuardedBroker, tmp_path: Path) -> None:
    """An address has no login: it is said how to begin instead, and nothing is written."""
    spec = tmp_path / "job.toml"
    done = command("init", "--from", f"kafka://{guarded.servers}/t", str(spec), "--output", "json")
    assert_refused(done, 7, "broker-unreachable", "requires a login", "nothing was written", "${env:KAFKA_PASSWORD}")
    assert not spec.exists()
