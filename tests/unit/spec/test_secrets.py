"""Which variables Spark's JVM and its workers do not get."""

from __future__ import annotations

from pathlib import Path

import pytest

from eosingest.spec import load, resolve_properties
from eosingest.spec.secrets import keep_from_children

SPEC = """\
name = "orders"
[source]
format = "text"
path = "data/*.txt"
[sink]
bootstrap_servers = "b:9093"
topic = "orders"
[sink.properties]
"security.protocol" = "SASL_SSL"
"sasl.mechanism" = "PLAIN"
"sasl.username" = "loader"
"sasl.password" = "${env:NAME}"
"""


@pytest.mark.parametrize(
    "beginning", ["", "EOSINGEST_", "SPARK_", "PYSPARK_", "JAVA_", "HADOOP_", "YARN_", "PYTHON_", "XDG_"]
)
def test_a_secret_may_have_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beginning: str) -> None:
    """Breaks when the name of a variable decides whether `/proc` shows the password to all that Spark starts."""
    name = f"{beginning}DB_PASSWORD"
    monkeypatch.setenv(name, "s3cret")
    (tmp_path / "job.toml").write_text(SPEC.replace("NAME", name))
    spec, environ = load(tmp_path / "job.toml"), {name: "s3cret", "SPARK_HOME": "/spark", f"{beginning}OTHER": "x"}
    keep_from_children(spec, environ)
    assert environ == {"SPARK_HOME": "/spark", f"{beginning}OTHER": "x"}
    assert resolve_properties(spec)["sasl.password"] == "s3cret"


@pytest.mark.parametrize("name", ["HOME", "USER", "SPARK_HOME", "EOSINGEST_HOME"])
def test_what_a_launch_needs_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "/somewhere")
    (tmp_path / "job.toml").write_text(SPEC.replace("NAME", name))
    environ = {name: "/somewhere"}
    keep_from_children(load(tmp_path / "job.toml"), environ)
    assert environ == {name: "/somewhere"}


def test_values_of_the_command_line_are_not_passed_on(tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(SPEC.replace("${env:NAME}", "x"))
    environ = {"EOSINGEST_PARAM": "password=s3cret", "EOSINGEST_SET": "source.password=s3cret", "PATH": "/bin"}
    keep_from_children(load(tmp_path / "job.toml"), environ)
    assert environ == {"PATH": "/bin"}
