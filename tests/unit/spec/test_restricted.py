"""A spec from a stranger: what it may not do where it is restricted, and that all of it is told without reading anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from psycopg import pq

from eosingest.errors import SpecError
from eosingest.kafka import config, oidc
from eosingest.spec import Spec, load
from eosingest.spec.restricted import _MAY_BE_GIVEN as MAY_BE_GIVEN
from eosingest.spec.restricted import _OF_A_URL as OF_A_URL
from eosingest.spec.restricted import ALLOWED, VARIABLE

SPEC = """\
name = "j"
[source]
format = "text"
path = "data/*.txt"
[sink]
bootstrap_servers = "b:9093"
topic = "t"
"""
LOGIN = 'properties = { "sasl.username" = "${env:LOGIN_NAME}", "sasl.password" = "${file:password}" }\n'


@pytest.fixture(autouse=True)
def _restricted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    monkeypatch.setenv("LOGIN_NAME", "somebody")


def loaded(folder: Path, text: str, *overrides: str) -> Spec:
    (folder / "job.toml").write_text(text)
    return load(folder / "job.toml", params={}, overrides=overrides)


def refused(folder: Path, text: str, *overrides: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        loaded(folder, text, *overrides)
    assert (caught.value.exit_code, caught.value.code) == (2, "restricted")
    assert all(each.line and each.hint for each in caught.value.details)
    return [each.key or "" for each in caught.value.details]


def test_a_plain_spec_is_as_it_was(tmp_path: Path) -> None:
    assert loaded(tmp_path, SPEC).sink.topic == "t"


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ("[record]\nvalue = \"concat(value, '${file:/etc/passwd}')\"\n", "record.value"),
        ("[record]\nkey = \"'${env:HOME}'\"\n", "record.key"),
        ("[record]\nkey = \"'$${env:A}${env:HOME}'\"\n", "record.key"),
        ('[spark]\nmaster = "spark://elsewhere:7077"\n', "spark.master"),
        ('[record.value]\navro.registry.ca_location = "/etc/passwd"\n', "record.value.avro.registry.ca_location"),
        ('[record.key]\navro.registry.password = "${env:HOME}"\n', "record.key.avro.registry.password"),
        ('[record.value]\njson_schema.schema = "/etc/passwd"\n', "record.value.json_schema.schema"),
        ('[record.key]\navro.schema = "../key.avsc"\n', "record.key.avro.schema"),
        ('[spark]\nconf = { "spark.jars.packages" = "a:b:1" }\n', "spark.conf.spark.jars.packages"),
        ('[spark.conf]\nspark.driver.memory = "1g"\n', "spark.conf.spark.driver.memory"),
        ('[sink.properties]\nplugin.library.paths = "a.so"\n', "sink.properties.plugin.library.paths"),
        *(
            (f'[sink.properties]\n"{name}" = "a"\n', f"sink.properties.{name}")
            for name in (
                "ssl.ca.location",
                "ssl.key.location",
                "ssl.certificate.location",
                "ssl.crl.location",
                "ssl.keystore.location",
                "ssl.engine.location",
                "ssl.engine.id",
                "ssl.providers",
                "ssl.ca.certificate.stores",
                "ssl.a.property.to.come",
                "a.property.to.come",
                "SSL.CA.LOCATION",
                "interceptors",
                "https.ca.location",
                "sasl.kerberos.keytab",
                "sasl.kerberos.kinit.cmd",
                "sasl.kerberos.principal",
                "sasl.oauthbearer.assertion.private.key.file",
                "sasl.oauthbearer.assertion.file",
                "sasl.oauthbearer.assertion.jwt.template.file",
                "sasl.oauthbearer.metadata.authentication.type",
                "offset.store.path",
            )
        ),
    ],
)
def test_each_key_is_refused_by_name(tmp_path: Path, more: str, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert refused(tmp_path, SPEC + more) == [key]
    monkeypatch.setenv(VARIABLE, "off")
    try:
        loaded(tmp_path, SPEC + more)
    except SpecError as error:
        assert error.code != "restricted"


def test_all_are_told_at_once_and_what_is_allowed_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = SPEC + LOGIN + '[spark]\nmaster = "local[2]"\n'
    assert refused(tmp_path, text) == ["sink.properties.sasl.username", "sink.properties.sasl.password", "spark.master"]
    monkeypatch.setenv(ALLOWED, "env:LOGIN_NAME, file:password")
    assert refused(tmp_path, text) == ["spark.master"]
    monkeypatch.setenv(ALLOWED, "env:LOGIN_NAMES,env:password")
    assert len(refused(tmp_path, text)) == 3


def test_who_runs_it_may_set_what_the_spec_may_not(tmp_path: Path) -> None:
    made = loaded(tmp_path, SPEC, "spark.master=local[2]", 'sink.properties."ssl.ca.location"=ca.pem')
    assert made.spark.master == "local[2]"
    assert refused(tmp_path, SPEC + LOGIN, "sink.properties.sasl.username=me") == ["sink.properties.sasl.password"]


def test_a_property_of_each_kind_that_reads_nothing_is_as_it_was(tmp_path: Path) -> None:
    text = (
        '[sink.properties]\n"linger.ms" = "${param:linger}"\n"compression.type" = "zstd"\n"socket.keepalive.enable" = true\n'
        '"security.protocol" = "SASL_SSL"\n"sasl.mechanism" = "PLAIN"\n"ssl.ca.location" = "probe"\n"ssl.key.pem" = "KEY"\n'
    )
    (tmp_path / "job.toml").write_text(SPEC + text)
    assert load(tmp_path / "job.toml", params={"linger": "5"}).sink.properties["compression.type"] == "zstd"


def test_every_property_of_both_clients_that_is_no_path_may_be_given() -> None:
    text = {name for name in config._TO_KAFKA_PYTHON if not name.endswith(".location")}
    assert text | oidc.KNOWN | {"ssl.ca.pem", "ssl.certificate.pem", "ssl.key.pem", "https.ca.pem"} <= MAY_BE_GIVEN


def test_a_schema_of_a_registry_may_be_the_latest_or_an_allowed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = '[record.value.avro]\nsubject = "s"\nschema = "{}"\nregistry.url = "http://r"\n'
    assert loaded(tmp_path, SPEC + text.format("latest"))
    assert refused(tmp_path, SPEC + text.format("a.avsc")) == ["record.value.avro.schema"]
    monkeypatch.setenv(ALLOWED, "file:a.avsc")
    assert loaded(tmp_path, SPEC + text.format("a.avsc"))
    assert refused(tmp_path, SPEC + text.format("b.avsc")) == ["record.value.avro.schema"]


def of_a_table(url: str) -> str:
    return SPEC.replace('"text"\npath = "data/*.txt"', f'"postgres"\nurl = "{url}"\ntable = "a.t"\nkey = "k"')


# libpq's list, and what newer versions add.
LIBPQ = [option.keyword.decode() for option in pq.Conninfo.get_defaults()] + ["servicefile", "sslkeylogfile", "to_come"]


@pytest.mark.parametrize("name", sorted({*LIBPQ}.difference(OF_A_URL)))
def test_parameters_of_a_databases_url_that_name_files_servers_and_logins(tmp_path: Path, name: str) -> None:
    assert refused(tmp_path, of_a_table(f"postgresql://u@h/d?{name}=x")) == ["source.url"]
    assert refused(tmp_path, of_a_table(f"postgresql://u@h/d?sslmode=require&{name}=x")) == ["source.url"]


def test_the_parameters_that_are_left_are_these() -> None:
    files = {
        "service",
        "servicefile",
        "passfile",
        "sslcert",
        "sslkey",
        "sslrootcert",
        "sslcrl",
        "sslcrldir",
        "sslkeylogfile",
    }
    assert not {*files, "host", "hostaddr", "options", "dbname", "gssdelegation", "oauth_issuer"}.intersection(OF_A_URL)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://h/d#?sslkey=x",
        "postgresql://u?a@h/d?sslkey=x",
        "postgresql://u?sslmode=require@h/d?sslkey=x",
        "postgresql://u&a@h/d?sslkey=x",
        "postgresql://h/d?ssl%6bey=x",
        "postgresql://h?sslkey=x",
        "postgresql:///?sslkey=x",
        "postgresql://u@%2Ftmp/d",
        "postgresql://u@h,%2ftmp:5432/d",
        "postgresql://u@%40socket/d",
        "postgresql://u@@socket/d",
        "postgresql://%2Ftmp?sslmode=disable",
        "postgresql://db%2C%2Ftmp/d",
        "postgresql:///d",
        "postgresql://u@/d",
        "postgresql://:5432/d",
        "postgresql://h,/d",
        "postgresql://%2C/d",
        "postgresql://[::1],%2Ftmp/d",
    ],
)
def test_ways_to_write_such_a_url(tmp_path: Path, url: str) -> None:
    assert set(refused(tmp_path, of_a_table(url))) == {"source.url"}
    assert set(pq.Conninfo.parse(url.encode())), "libpq takes it"


def test_a_plain_url_is_as_it_was(tmp_path: Path) -> None:
    url = "postgresql://u%2Fv@a:5432,b:5433,[::1]/d?sslmode=verify-full&application_name=a%3Fb&target_session_attrs=any"
    assert loaded(tmp_path, of_a_table(url)).source.format == "postgres"


def test_nothing_is_read_for_a_spec_that_is_refused(tmp_path: Path) -> None:
    """A message about a file would tell a stranger whether it is there."""
    assert refused(tmp_path, SPEC + '[record]\nkey = "${file:there-is-none}"\n') == ["record.key"]
