"""A schema registry that asks for a login, is killed, comes back empty, or does not answer: what runs and users see of it."""

from __future__ import annotations

import signal
import time

import pytest

from tests.integration.test_avro import _ROWS, ORDER, decoded, row, write
from tests.support.commands import finish
from tests.support.harness import Job, assert_done, assert_refused, run_text
from tests.support.held_runs import run_killed_at, start_held
from tests.support.registry import SchemaRegistry, guarded

_PASSWORD = "s3cret-of-ann"
# Rows of ORDER fit it, too: only the registry tells that it is another one.
_OTHER = {**ORDER, "fields": [*ORDER["fields"], {"name": "x", "type": ["null", "string"], "default": None}]}


def start_anew(registry: SchemaRegistry) -> None:
    """Let it have nothing in it: its ids begin with 1."""
    registry.kill()
    registry.start()


@pytest.mark.parametrize("login", ["", 'user = "ann", password = "${env:GIVEN}"'], ids=["none", "wrong"])
def test_a_login_that_is_refused(job: Job, registry: SchemaRegistry, login: str) -> None:
    with guarded(registry, "ann", _PASSWORD) as url:
        write(job, registry)
        job.edit_spec(f'url = "{registry.url}"', f'url = "{url}", {login}'.rstrip(", "))
        done = job.run(env={"GIVEN": "wr0ng-of-ann"})
        assert_refused(done, 7, "registry-refused", "record.value.avro.registry", "HTTP 401")
        assert "wr0ng-of-ann" not in done.text
    assert registry.versions(f"{job.name}-value") == []


@pytest.mark.slow
def test_the_right_login(job: Job, registry: SchemaRegistry) -> None:
    """Breaks when a reference is not resolved where the registry is asked, or the password is shown by any command."""
    with guarded(registry, "ann", _PASSWORD) as url:
        write(job, registry)
        job.edit_spec(f'url = "{registry.url}"', f'url = "{url}", user = "ann", password = "${{env:GIVEN}}"')
        env = {"GIVEN": _PASSWORD}
        shown = run_text(job, "preview", env=env)
        done = job.run(env=env)
        assert_done(done, records_sent=_ROWS)
        audit = job.run("verify", "--against-source", env=env)
    assert (shown.exit_code, audit.exit_code) == (0, 0), (shown, audit)
    assert not [one for one in (shown, done, audit) if _PASSWORD in one.text]
    assert decoded(job, registry) == [row(n) for n in range(_ROWS)]


@pytest.mark.slow
@pytest.mark.parametrize("schema", ["order.avsc", "latest"])
def test_a_registry_that_is_set_up_anew(job: Job, registry: SchemaRegistry, schema: str) -> None:
    """It gives the job's id to another schema. Breaks when the job goes on by that one, or not by its own, once it is back."""
    subject = f"{job.name}-value"
    start_anew(registry)
    assert registry.register(subject, ORDER) == 1
    write(job, registry, ORDER if schema != "latest" else schema)
    run_killed_at(job, "task-before-commit@2")
    registry.kill()
    assert_refused(job.run(), 5, "registry-unreachable")
    sent = len(job.records())
    registry.start()
    assert registry.register(subject, _OTHER) == 1
    assert_refused(job.run(), 12, "schema-changed", "schema 1", "is another one now")
    start_anew(registry)
    if schema == "latest":
        assert_refused(job.run(), 2, "schema-missing", subject)
    else:
        assert_refused(job.run(), 12, "schema-changed", "schema 1", "is not there any more")
    assert len(job.records()) == sent
    assert registry.register(subject, ORDER) == 1
    job.run_until_complete()
    assert decoded(job, registry) == [row(n) for n in range(_ROWS)]


@pytest.mark.slow
def test_a_signal_while_the_registry_does_not_answer(job: Job, registry: SchemaRegistry) -> None:
    """Breaks when a run that has claimed its job waits for the registry's answer before it looks at signals."""
    write(job, registry)
    process = start_held(job, "driver-after-claim=sleep:3")
    registry.freeze()
    time.sleep(6)  # it asks once more, behind its claim
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    began = time.monotonic()
    try:
        assert finish(process).exit_code == 128 + signal.SIGTERM
    finally:
        registry.heal()
    assert time.monotonic() - began < 10
