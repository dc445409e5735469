"""Where secrets are not: a run is sampled from its begin to its end, and all that it says and leaves is searched for them."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.test_secured import RECORDS, Locked
from tests.support.guarded_broker import serving
from tests.support.harness import SPEC, run_text
from tests.support.held_runs import Held
from tests.support.kafka_nodes import distinct_ports
from tests.support.locked_broker import ENVIRONMENT, KEY_PASSWORD, PASSWORD, SECRET, LockedBroker
from tests.support.processes import processes_below

pytestmark = [pytest.mark.timeout(600), pytest.mark.in_turns("one login each")]
_BEGINNINGS = {"LOCKED_PASSWORD": "SPARK_", "CLIENT_SECRET": "EOSINGEST_", "KEY_PASSWORD": ""}
PARAMETER = "parameter-not-to-be-shown"
# A line of the client's key, beside the passwords.
Secrets = dict[str, str]


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LockedBroker]:
    with serving(LockedBroker(tmp_path_factory.mktemp("locked"))) as up:
        yield up


class Sampler:
    """Command lines and environments of all that a run starts, and what Spark's UI says of it."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process, self.port = process, port
        self.own = b""
        self.commands: dict[int, bytes] = {}
        self.environments: dict[int, bytes] = {}
        self.ui: dict[str, bytes] = {}

    def until_the_end(self, timeout_s: float = 120) -> None:
        """Sample every 20 ms."""
        deadline = time.monotonic() + timeout_s
        while self.process.poll() is None:
            assert time.monotonic() < deadline
            self.own += self._of(self.process.pid, "cmdline")
            for pid in [child.pid for child in processes_below(self.process.pid)]:
                command = self._of(pid, "cmdline")
                if command and command not in self.own:  # else a fork of the driver, about to become something else
                    self.commands[pid] = self.commands.get(pid, b"") + command
                    self.environments[pid] = self.environments.get(pid, b"") + self._of(pid, "environ")
            self._look_at_ui()
            time.sleep(0.02)

    def _of(self, pid: int, name: str) -> bytes:
        try:
            return Path(f"/proc/{pid}/{name}").read_bytes()
        except OSError:
            return b""

    def _look_at_ui(self) -> None:
        if {"environment", "sql", "jobs", "page"} <= self.ui.keys():
            return
        root = f"http://127.0.0.1:{self.port}"
        try:
            (application,) = json.loads(self._get(f"{root}/api/v1/applications"))
            jobs = json.loads(self._get(f"{root}/api/v1/applications/{application['id']}/jobs"))
            for name in ("environment", "sql?details=true&planDescription=true", "jobs") if jobs else ():
                self.ui[name.partition("?")[0]] = self._get(f"{root}/api/v1/applications/{application['id']}/{name}")
            if jobs:
                self.ui["page"] = self._get(f"{root}/environment/")
        except (OSError, ValueError):
            return

    def _get(self, url: str) -> bytes:
        with urllib.request.urlopen(url, timeout=5) as answer:
            found: bytes = answer.read()
            return found


def shown(secrets: Secrets, place: str, data: bytes) -> list[str]:
    """Return the names of the secrets that are in the data."""
    return [f"{name} in {place}" for name, secret in secrets.items() if secret.encode() in data]


WAYS = {
    "PLAIN": {},
    "OAUTHBEARER": {},
    "mutual, key behind a password": {"ssl.key.password": "${file:key-password}"},
    "mutual, PEM": {},
}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_no_secret_is_shown_while_a_run_works_or_left_behind(locked: LockedBroker, tmp_path: Path, way: str) -> None:
    """In output (also with -v), reports, logs, command lines, children's environment, Spark's UI, event log and plans."""
    made = Locked(locked, tmp_path / "job")
    job, (port,) = made.job, distinct_ports(1)
    (job.folder / "key-password").write_text(f"{KEY_PASSWORD}\n")
    secrets = {"password": PASSWORD, "client secret": SECRET, "key's password": KEY_PASSWORD, "parameter": PARAMETER}
    secrets["key"] = locked.certificates.text("loader.key").splitlines()[3]
    made.come(way, SPEC, but=WAYS[way])
    events = tmp_path / "events"
    events.mkdir()
    ui = {"spark.ui.enabled": "true", "spark.ui.port": str(port), "spark.eventLog.enabled": "true"}
    ui |= {"spark.eventLog.dir": events.as_uri(), "spark.eventLog.compress": "false"}
    job.edit_spec("conf = { ", "conf = { " + ", ".join(f'"{name}" = "{value}"' for name, value in ui.items()) + ", ")
    home = tmp_path / "cache"
    held = Held(job, "task-before-commit=sleep:4")
    named = {name: value for name, value in ENVIRONMENT.items() if f"${{env:{name}}}" in job.spec.read_text()}
    for name in list(named):  # it begins as the variables do that Spark and eosingest read
        job.edit_spec(f"${{env:{name}}}", f"${{env:{_BEGINNINGS[name]}{name}}}")
        named[_BEGINNINGS[name] + name] = named.pop(name)
    job.edit_spec("[sink.properties]\n", '[sink.properties]\n"client.rack" = "${param:secret}"\n')
    environment = {**named, "EOSINGEST_PARAM": f"secret={PARAMETER}", **held.env, "XDG_CACHE_HOME": str(home)}
    process = job.popen("run", "-v", env=environment)
    sampler = Sampler(process, port)
    sampler.until_the_end()
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0, (out, err)
    assert json.loads(out)["data"]["records_sent"] == RECORDS
    found = shown(secrets, "output", (out + err).encode())
    for verb in ("status", "plan", "check", "verify"):
        text = run_text(job, verb, "-v", env=environment)
        assert text.exit_code == 0, text
        found += shown(secrets, f"{verb} -v", text.text.encode())
    found += shown(secrets, "ps", sampler.own)
    for pid, command in sampler.commands.items():
        found += shown(secrets, "ps of a child", command)
        found += shown(secrets, f"environment of {command[:80]!r}", sampler.environments[pid])
    for page, data in sampler.ui.items():
        found += shown(secrets, f"Spark's UI: {page}", data)
    left = [path for folder in (home, events) for path in folder.rglob("*") if path.is_file()]
    for path in left:
        found += shown(secrets, path.name, path.read_bytes())
    assert not found
    # Of each place something was seen, or nothing would have been found in it.
    kinds = b" ".join(sampler.commands.values())
    assert b"java" in kinds and b"eosingest.spark.daemon" in kinds, kinds
    assert {"environment", "sql", "jobs", "page"} <= sampler.ui.keys()
    assert b"spark.eventLog.dir" in sampler.ui["environment"]
    assert any(path.parent.name == "logs" for path in left)
    assert any(b"SparkListenerSQLExecutionStart" in path.read_bytes() for path in events.rglob("*") if path.is_file())
    assert any(b"PYTHON" in data for data in sampler.environments.values())
