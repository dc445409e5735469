"""Jobs on a broker that is locked: each way in, both planes, with and without Spark; what is said where one is refused."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.commands import Done, finish
from tests.support.guarded_broker import serving
from tests.support.harness import LINES_SPEC, SPEC, Job, assert_done, assert_refused, create_topic, end_offsets
from tests.support.locked_broker import ENVIRONMENT, SECRETS, WAYS, LockedBroker
from tests.support.spark_clusters import LOCAL_CLUSTER, environment, on, spark_home
from tests.support.token_endpoint import AUDIENCE

pytestmark = [pytest.mark.timeout(600), pytest.mark.in_turns("one login each")]
RECORDS = 20


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LockedBroker]:
    with serving(LockedBroker(tmp_path_factory.mktemp("locked"))) as up:
        yield up


class Locked:
    """A job of the user over a topic that is there, by one of WAYS; its rights are those of docs/security.md."""

    def __init__(self, broker: LockedBroker, folder: Path) -> None:
        self.broker = broker
        self.job = Job(
            folder, broker.direct, f"locked-{uuid.uuid4().hex[:6]}"
        )  # its helpers read by the plain listener
        self.job.write_numbers("a.jsonl", range(RECORDS))
        create_topic(broker.direct, self.job.name, partitions=3)
        broker.allow(self.job.name, f"eosingest.{self.job.name}.")
        (folder / "certificates").symlink_to(broker.certificates.folder)

    def come(
        self, way: str, spec: str = LINES_SPEC, *, servers: str = "", but: Mapping[str, str | None] | None = None
    ) -> None:
        """Write the spec for a way; `but` are other values of properties, None for those that are left out."""
        properties: dict[str, str | None] = {**self.broker.properties(way), **(but or {})}
        lines = "".join(f'"{name}" = {json.dumps(value)}\n' for name, value in properties.items() if value is not None)
        self.job.write_spec(spec)
        at = f'bootstrap_servers = "{self.broker.direct}"'
        self.job.edit_spec(at, f'bootstrap_servers = "{servers or self.broker.servers(way)}"')
        self.job.edit_spec("[transaction]\n", f"[sink.properties]\n{lines}[transaction]\n")

    def run(self, verb: str = "run", *arguments: str, env: Mapping[str, str] | None = None) -> Done:
        """Run a verb; no secret is in what it says."""
        done = finish(self.job.popen(verb, *arguments, env={**ENVIRONMENT, **(env or {})}))
        shown = [secret for secret in SECRETS if secret in done.text]
        assert not shown, done
        assert "PRIVATE KEY" not in done.text
        return done

    def refused(self, exit_code: int, code: str, *words: str, env: Mapping[str, str] | None = None) -> None:
        """Run, and be refused with nothing sent; it is said what is safe."""
        assert_refused(self.run(env=env), exit_code, code, "nothing was sent", *words)
        assert not any(end_offsets(self.broker.direct, self.job.name).values())


@pytest.fixture
def locked_job(locked: LockedBroker, tmp_path: Path) -> Locked:
    return Locked(locked, tmp_path)


@pytest.mark.slow_cases("spark*", "lines-tls*", "lines-mutual*", "lines-PLAIN*", "lines-SCRAM-SHA-256*")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("spec", [LINES_SPEC, SPEC], ids=["lines", "spark"])
def test_a_job_from_its_check_to_its_audit(locked_job: Locked, spec: str, way: str) -> None:
    """One and the same properties for both planes; a job that is done again sends nothing."""
    locked_job.come(way, spec)
    assert locked_job.run("check").exit_code == 0
    assert locked_job.run("plan").exit_code == 0
    assert_done(locked_job.run(), records_sent=RECORDS)
    assert sorted(locked_job.job.numbers()) == list(range(RECORDS))
    assert_done(locked_job.run(), records_sent=0)
    status = locked_job.run("status")
    assert (status.exit_code, status.data["state"]) == (0, "complete")
    verified = locked_job.run("verify")
    assert verified.exit_code == 0, verified


@pytest.mark.slow
@pytest.mark.parametrize("way", ["mutual, PEM", "OAUTHBEARER, https"])
@pytest.mark.parametrize("spec", [LINES_SPEC, SPEC], ids=["lines", "spark"])
def test_executors_come_in_by_the_same_properties(
    locked_job: Locked, tmp_path_factory: pytest.TempPathFactory, spec: str, way: str
) -> None:
    """Processes of their own, which have nothing of the driver's environment: what they need travels with the tasks."""
    locked_job.come(way, spec)
    on(locked_job.job, LOCAL_CLUSTER)
    env = environment(spark_home(tmp_path_factory.mktemp("spark")))
    assert_done(locked_job.run(env=env), records_sent=RECORDS)
    assert sorted(locked_job.job.numbers()) == list(range(RECORDS))
    verified = locked_job.run("verify", env=env)
    assert verified.exit_code == 0, verified


WRONG_LOGINS = [
    ("PLAIN", {"LOCKED_PASSWORD": "other-password"}),
    ("SCRAM-SHA-256", {"LOCKED_PASSWORD": "other-password"}),
    ("SCRAM-SHA-512", {"LOCKED_PASSWORD": "other-password"}),
]


@pytest.mark.slow_cases("SCRAM-SHA-256")
@pytest.mark.parametrize(("way", "env"), WRONG_LOGINS, ids=[way for way, _ in WRONG_LOGINS])
def test_a_wrong_password(locked_job: Locked, way: str, env: dict[str, str]) -> None:
    locked_job.come(way)
    words = (locked_job.broker.locked, f"refuses the login by {way}", "sasl.password", "run again")
    locked_job.refused(7, "login-refused", *words, env=env)


def test_a_wrong_client_secret(locked_job: Locked) -> None:
    """The endpoint repeats the secret in its answer, of which no more is shown than the code."""
    locked_job.come("OAUTHBEARER")
    endpoint = locked_job.broker.tokens.url
    words = (endpoint, "HTTP 401, invalid_client", "client.secret", "run again")
    locked_job.refused(7, "token-refused", *words, env={"CLIENT_SECRET": "other-secret"})


def test_a_token_that_the_broker_does_not_take(locked_job: Locked) -> None:
    locked_job.come("OAUTHBEARER")
    tokens = locked_job.broker.tokens
    tokens.audience = "somebody-else"
    try:
        locked_job.refused(7, "login-refused", "OAUTHBEARER", "audience", "run again")
    finally:
        tokens.audience = AUDIENCE


URL = "sasl.oauthbearer.token.endpoint.url"


def test_an_endpoint_that_is_down_or_not_trusted(locked_job: Locked) -> None:
    tokens = locked_job.broker.tokens
    locked_job.come("OAUTHBEARER", but={URL: "http://127.0.0.1:1/token"})
    locked_job.refused(5, "token-endpoint", "http://127.0.0.1:1/token: connection refused", "run again")
    tokens.answer = (503, b"")
    try:
        locked_job.come("OAUTHBEARER")
        locked_job.refused(5, "token-endpoint", "HTTP 503", "run again")
    finally:
        tokens.answer = None
    locked_job.come("OAUTHBEARER, https", but={"https.ca.location": "certificates/other-ca.pem"})
    locked_job.refused(7, "token-refused", "not trusted", "https.ca.location")


TLS_ERRORS: dict[str, tuple[str, dict[str, str | None], tuple[str, ...]]] = {
    "another authority": (
        "tls",
        {"ssl.ca.location": "certificates/other-ca.pem"},
        ("not trusted", "ssl.ca.location"),
    ),
    "no certificate": (
        "mutual",
        {"ssl.certificate.location": None, "ssl.key.location": None},
        ("requires a client certificate", "ssl.certificate.location"),
    ),
    "expired": (
        "mutual",
        {"ssl.certificate.location": "certificates/expired.pem", "ssl.key.location": "certificates/expired.key"},
        ("does not accept the client's certificate", "expired", "-dates"),
    ),
    "of another authority": (
        "mutual",
        {"ssl.certificate.location": "certificates/foreign.pem", "ssl.key.location": "certificates/foreign.key"},
        ("does not accept the client's certificate", "no authority", "-issuer"),
    ),
}


@pytest.mark.parametrize("case", TLS_ERRORS)
def test_certificates_that_are_not_taken(locked_job: Locked, case: str) -> None:
    way, but, words = TLS_ERRORS[case]
    locked_job.come(way, but=but)
    locked_job.refused(7, "broker-unreachable", locked_job.broker.servers(way), *words)


def test_a_certificate_for_another_host(locked_job: Locked) -> None:
    """By the name localhost, for which the broker's certificate is not."""
    at = locked_job.broker.tls.replace("127.0.0.1", "localhost")
    locked_job.come("tls", servers=at)
    locked_job.refused(7, "broker-unreachable", at, "not for this host", "advertised.listeners")


def test_keys_that_cannot_be_used(locked_job: Locked) -> None:
    """A spec's mistake, which `check` finds too: the property is named, no value is shown, nobody asks for a password."""
    missing = {"ssl.ca.location": "certificates/no.pem"}
    for way, but, name, env in (
        ("mutual, key behind a password", {}, "ssl.key.location", {"KEY_PASSWORD": "other-password"}),
        ("mutual, key behind a password", {"ssl.key.password": None}, "ssl.key.location", {}),
        ("tls", missing, "ssl.ca.location", {}),
        ("mutual, PEM", {"ssl.key.pem": "no key"}, "ssl.key.pem", {}),
    ):
        locked_job.come(way, but=but)
        locked_job.refused(2, "bad-property", name, env=env)
        checked = locked_job.run("check", env=env)
        assert (checked.exit_code, checked.codes) == (2, ["bad-property"]), checked


@pytest.mark.parametrize(
    ("but", "words"),
    [
        ({"sasl.mechanism": "GSSAPI"}, "GSSAPI (Kerberos) is not supported"),
        ({"sasl.mechanism": None}, "sasl.mechanism is missing"),
        ({"ssl.keystore.location": "a.p12"}, "convert the PKCS#12 store"),
    ],
)
def test_ways_that_are_not_supported(locked_job: Locked, but: dict[str, str | None], words: str) -> None:
    locked_job.come("PLAIN", but=but)
    for verb in ("check", "run"):
        done = locked_job.run(verb)
        assert (done.exit_code, done.codes) == (2, ["bad-property"]), done
        assert words in done.text
