"""One spec, two clients: which property becomes what, what is refused, and that no secret is ever shown."""

from __future__ import annotations

import pytest
from kafka import KafkaAdminClient

from eosingest.errors import SpecError
from eosingest.kafka import config, oidc
from eosingest.kafka.config import ClientSettings, kafka_python, refuse_one_sided
from eosingest.kafka.librdkafka import check_properties
from eosingest.kafka.producer import ProducerSettings

SECRET = "hunter2-äöü"

MAPPINGS = [
    ("security.protocol", "SSL", "security_protocol", "SSL"),
    ("security.protocol", "ssl", "security_protocol", "SSL"),
    ("sasl.mechanism", "PLAIN", "sasl_mechanism", "PLAIN"),
    ("sasl.mechanisms", "scram-sha-512", "sasl_mechanism", "SCRAM-SHA-512"),
    ("sasl.username", "User", "sasl_plain_username", "User"),
    ("sasl.password", "PassWord", "sasl_plain_password", "PassWord"),
    ("ssl.ca.location", "/ca.pem", "ssl_cafile", "/ca.pem"),
    ("ssl.certificate.location", "/cert.pem", "ssl_certfile", "/cert.pem"),
    ("ssl.key.location", "/key.pem", "ssl_keyfile", "/key.pem"),
    ("ssl.key.password", "PassWord", "ssl_password", "PassWord"),
    ("ssl.crl.location", "/crl.pem", "ssl_crlfile", "/crl.pem"),
    ("ssl.endpoint.identification.algorithm", "https", "ssl_check_hostname", True),
    ("ssl.endpoint.identification.algorithm", "none", "ssl_check_hostname", False),
    ("ssl.endpoint.identification.algorithm", "NONE", "ssl_check_hostname", False),
    ("client.id", "me", "client_id", "me"),
]


def settings(servers: str = "a:9092", **properties: str) -> ClientSettings:
    return ClientSettings(servers, {name.replace("__", "."): value for name, value in properties.items()})


@pytest.mark.parametrize(("name", "value", "theirs", "expected"), MAPPINGS)
def test_each_property_under_kafka_pythons_name(name: str, value: str, theirs: str, expected: object) -> None:
    made = kafka_python(ClientSettings("a:9092", {name: value}))
    assert made == {"bootstrap_servers": ["a:9092"], theirs: expected}
    assert refuse_one_sided({name: value}) == []


def test_the_table_is_tested_as_a_whole_and_its_names_are_kafka_pythons() -> None:
    assert {(name, theirs) for name, _, theirs, _ in MAPPINGS} == set(config._TO_KAFKA_PYTHON.items())
    assert {theirs for _, _, theirs, _ in MAPPINGS} <= set(KafkaAdminClient.DEFAULT_CONFIG)


def test_servers_are_a_list() -> None:
    assert kafka_python(settings("a:9092, b:9093 ,[::1]:9094"))["bootstrap_servers"] == [
        "a:9092",
        "b:9093",
        "[::1]:9094",
    ]


@pytest.mark.parametrize("name", ["linger.ms", "compression.type", "queue.buffering.max.kbytes", "debug"])
def test_properties_of_the_data_plane_do_not_concern_the_admin_client(name: str) -> None:
    made = ClientSettings("a:9092", {name: "5"})
    assert kafka_python(made) == {"bootstrap_servers": ["a:9092"]}
    assert made.librdkafka()[name] == "5"


@pytest.mark.parametrize(
    ("name", "value", "instead"),
    [
        ("ssl.keystore.location", SECRET, "ssl.key.location"),
        ("enable.ssl.certificate.verification", "false", "ssl.ca.location"),
        ("ssl.keystore.password", SECRET, "ssl.key.location"),
        ("ssl.cipher.suites", SECRET, "no counterpart"),
        ("sasl.oauthbearer.config", SECRET, "oidc"),
        ("sasl.oauthbearer.assertion.algorithm", SECRET, "no counterpart"),
        ("enable.sasl.oauthbearer.unsecure.jwt", "true", "oidc"),
        ("https.ca.other", SECRET, "no counterpart"),
        ("sasl.kerberos.keytab", SECRET, "SCRAM-SHA-512"),
        ("sasl.mechanism", "GSSAPI", "confluent-kafka"),
        ("security.protocol", "SASL_SSL", "sasl.mechanism is missing"),
        ("sasl.mechanisms", "made-up", "PLAIN"),
    ],
)
def test_a_property_that_one_client_cannot_honour_is_refused(name: str, value: str, instead: str) -> None:
    (problem,) = refuse_one_sided({name: value})
    assert name in problem or name == "security.protocol"
    assert instead in problem
    assert SECRET not in problem


def test_all_problems_are_told_at_once_and_none_shows_a_value() -> None:
    made = settings(ssl__keystore__password=SECRET, sasl__mechanism=SECRET, sasl__password=SECRET)
    with pytest.raises(SpecError) as caught:
        kafka_python(made)
    assert (caught.value.exit_code, len(caught.value.problems)) == (2, 2)
    assert SECRET not in f"{caught.value!r} {caught.value} {caught.value.problems} {caught.value.hint}"


def test_nothing_creates_topics_by_looking() -> None:
    made = settings(allow__auto__create__topics="true", bootstrap__servers="elsewhere:1").librdkafka()
    assert made["allow.auto.create.topics"] is False
    assert made["bootstrap.servers"] == "a:9092"


def test_the_users_properties_go_to_librdkafka_as_they_are() -> None:
    properties = {name: value for name, value, _, _ in MAPPINGS}
    made = ClientSettings("a:9092", properties).librdkafka()
    assert properties.items() <= made.items()


def test_no_secret_in_what_is_printed() -> None:
    client = settings(sasl__password=SECRET, ssl__key__password=SECRET)
    for shown in (repr(client), str(client), repr(ProducerSettings(client, "topic", 60)), repr([client])):
        assert SECRET not in shown
        assert "a:9092" in shown


def test_settings_are_equal_by_what_they_hold() -> None:
    assert settings(sasl__password="a") != settings(sasl__password="b"), "the repr hides it, the comparison does not"


OIDC = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.client.id": "me",
    "sasl.oauthbearer.client.secret": SECRET,
    "sasl.oauthbearer.token.endpoint.url": "https://host/token",
    "https.ca.location": "/ca.pem",
}


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("sasl.oauthbearer.method", "default", 'must be "oidc"'),
        ("sasl.oauthbearer.client.id", "", "is missing"),
        ("sasl.oauthbearer.client.secret", "", "is missing"),
        ("sasl.oauthbearer.token.endpoint.url", "", "is missing"),
        ("sasl.oauthbearer.token.endpoint.url", "file:///etc/passwd", "https://"),
        ("sasl.oauthbearer.token.endpoint.url", f"https://me:{SECRET}@host/token", "must not have a login"),
        ("sasl.oauthbearer.token.endpoint.url", "https://host:port/token", "is not a URL"),
        ("sasl.oauthbearer.grant.type", "urn:ietf:params:oauth:grant-type:jwt-bearer", "client_credentials"),
        ("sasl.oauthbearer.extensions", SECRET, "NAME=VALUE"),
    ],
)
def test_a_login_by_tokens_that_cannot_work(name: str, value: str, said: str) -> None:
    assert refuse_one_sided(OIDC) == []
    (problem,) = refuse_one_sided({**OIDC, name: value})
    assert name in problem
    assert said in problem
    assert SECRET not in problem


def test_librdkafka_takes_each_known_property_of_tokens() -> None:
    """Breaks when a name is misspelt, or one that the wheels do not have is let through."""
    values = {name: OIDC.get(name, "a=b") for name in oidc.KNOWN} | {
        "sasl.oauthbearer.grant.type": "client_credentials"
    }
    assert check_properties(ClientSettings("", {**OIDC, **values, "https.ca.location": "probe"})) is None
