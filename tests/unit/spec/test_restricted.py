"""A spec from a stranger: what it may not do where it is restricted, and that all of it is told without reading anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from eosingest.errors import SpecError
from eosingest.spec import Spec, load
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
                "https.ca.location",
                "sasl.kerberos.keytab",
                "sasl.kerberos.kinit.cmd",
                "sasl.oauthbearer.assertion.private.key.file",
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


@pytest.mark.parametrize("name", ["sslkey", "passfile", "service"])
def test_files_that_the_url_of_a_database_names(tmp_path: Path, name: str) -> None:
    text = SPEC.replace(
        '"text"\npath = "data/*.txt"', f'"postgres"\nurl = "postgresql://u@h/d?{name}=x"\ntable = "t"\nkey = "k"'
    )
    assert refused(tmp_path, text) == ["source.url"]


def test_nothing_is_read_for_a_spec_that_is_refused(tmp_path: Path) -> None:
    """A message about a file would tell a stranger whether it is there."""
    assert refused(tmp_path, SPEC + '[record]\nkey = "${file:there-is-none}"\n') == ["record.key"]
