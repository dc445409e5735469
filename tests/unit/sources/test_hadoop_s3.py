"""Hadoop's client of S3: which jars are fetched, how it is told of the store, and what its failures mean."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from eosingest.app.settings import scan_of
from eosingest.errors import FatalError
from eosingest.host import ivy
from eosingest.sources.files.reading import hadoop_s3
from eosingest.sources.files.storage.s3 import S3Storage
from eosingest.spark import jvm
from eosingest.spec import load


@pytest.mark.parametrize(
    "conf",
    [
        {"spark.jars.packages": "org.apache.hadoop:hadoop-aws:3.3.6"},
        {"spark.jars": "/opt/hadoop-aws-3.4.1.jar,/opt/bundle.jar"},
        {"spark.hadoop.fs.s3a.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem"},
    ],
)
def test_a_client_that_the_spec_names_is_not_fetched(conf: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ivy, "fetched", lambda *_: pytest.fail("fetched"))
    assert hadoop_s3.jars(conf) == []


@pytest.mark.parametrize("source", ["json", "text", 'text"\noptions = { wholetext = true }#"', "binaryFile", "parquet"])
def test_what_python_reads_needs_no_client(tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when a run downloads 690 MB that it does not use, as to infer a schema of JSON."""
    monkeypatch.setattr(ivy, "fetched", lambda *_: pytest.fail("fetched"))
    spec = tmp_path / "job.toml"
    spec.write_text(
        f'name = "j"\n[source]\nformat = "{source}"\npath = "s3://b/a"\n'
        '[sink]\nbootstrap_servers = "b:1"\ntopic = "t"\n'
    )
    assert not any(key.startswith("spark.jars") for key in scan_of(load(spec)).spark_conf(1 << 20))


def named(*names: str) -> Callable[[str], list[Path]]:
    return lambda pattern: [Path(name) for name in names if Path(name).match(pattern)]


def test_one_that_is_among_sparks_jars_is_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ivy, "spark_jars", named("/j/hadoop-aws-3.4.1.jar"))
    assert hadoop_s3.jars({}) == []


def test_under_spark_submit_nothing_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ivy, "fetched", lambda *_: pytest.fail("fetched"))
    monkeypatch.setattr("eosingest.spark.spark_defaults.is_submitted", lambda: True)
    assert hadoop_s3.jars({}) == []


@pytest.mark.parametrize(("hadoop", "sdk"), [("3.4.1", "2.24.6"), ("3.4.2", "2.29.52"), ("3.5.0", "2.35.4")])
def test_the_client_is_that_of_sparks_hadoop(
    hadoop: str, sdk: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = []
    monkeypatch.setattr(ivy, "fetched", lambda jars, folder, deadline: asked.append(jars) or tmp_path)
    monkeypatch.setattr(ivy, "spark_jars", named(f"/j/hadoop-client-api-{hadoop}.jar"))
    wanted = {f"{tmp_path}/bundle-{sdk}.jar", f"{tmp_path}/hadoop-aws-{hadoop}.jar"}
    assert wanted <= set(hadoop_s3.jars({}))
    assert f'name="hadoop-aws" rev="{hadoop}"' in asked[0].dependencies[0]


def test_pyspark_has_a_hadoop_whose_client_is_pinned() -> None:
    (jar,) = ivy.spark_jars("hadoop-client-api-*.jar")
    assert jar.stem.rpartition("-")[2] in hadoop_s3._JARS


def test_a_hadoop_of_which_no_client_is_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ivy, "spark_jars", named("/j/hadoop-client-api-9.9.9.jar"))
    with pytest.raises(FatalError, match=r"Hadoop 9\.9\.9, for which") as refused:
        hadoop_s3.jars({})
    assert refused.value.code == "s3a-missing"


def test_jars_of_a_source_stand_beside_those_of_the_spec() -> None:
    conf = {"spark.driver.extraClassPath": "/mine.jar", "spark.jars": "/other.jar"}
    assert jvm.with_jars("local[2]", conf, "/a.jar,/b.jar", []) == {
        "spark.driver.extraClassPath": "/mine.jar:/a.jar:/b.jar"
    }
    assert jvm.with_jars("spark://h:7077", conf, "/a.jar,/b.jar", []) == {"spark.jars": "/other.jar,/a.jar,/b.jar"}
    assert jvm.with_jars("local[2]", conf, "", []) == {}
    assert jvm.with_jars("local[2]", conf, "", ["/c.jar"]) == {"spark.jars": "/other.jar,/c.jar"}
    assert jvm.with_jars("local[2]", {}, "/a.jar", ["/c.jar"]) == {
        "spark.driver.extraClassPath": "/a.jar",
        "spark.jars": "/c.jar",
    }
    assert jvm.with_jars("spark://h:7077", {}, "/a.jar", ["/c.jar"]) == {"spark.jars": "/a.jar,/c.jar"}


def test_it_reaches_the_store_that_was_listed() -> None:
    own = S3Storage(endpoint="http://127.0.0.1:9000", access_key="a", secret_key="s")
    found = hadoop_s3._settings(own, None)
    assert {
        name: found[name] for name in ("endpoint", "path.style.access", "connection.ssl.enabled", "access.key")
    } == {
        "endpoint": "http://127.0.0.1:9000",
        "path.style.access": "true",
        "connection.ssl.enabled": "false",
        "access.key": "a",
    }
    assert found["aws.credentials.provider"].endswith("SimpleAWSCredentialsProvider")
    assert found["input.stream.type"] == "classic", "change detection is tested with this stream"
    for_a_time = hadoop_s3._settings(
        S3Storage(region="eu-west-1", access_key="a", secret_key="s", session_token="t"), None
    )
    assert for_a_time["aws.credentials.provider"].endswith("TemporaryAWSCredentialsProvider")
    assert (for_a_time["endpoint.region"], for_a_time["session.token"]) == ("eu-west-1", "t")
    assert "endpoint" not in for_a_time and "s" not in repr(S3Storage(secret_key="hidden-s")).split("hidden")
    by_chain = hadoop_s3._settings(S3Storage(region="eu-west-1"), None)
    assert by_chain["aws.credentials.provider"].endswith("DefaultCredentialsProvider")
    assert "aws.credentials.provider" not in hadoop_s3._settings(S3Storage(region="eu-west-1"), "the.sites.Provider")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file s3a://b/k. File does", "changed-while-read"),
        ("Caused by: org.apache.hadoop.fs.s3a.RemoteFileChangedException: open `s3a://b/k': Change", "changed-while-read"),
        ("Caused by: java.nio.file.AccessDeniedException: s3a://b/k: getFileStatus on s3a://b/k: 403", "storage-refused"),
        ("Caused by: org.apache.hadoop.fs.s3a.auth.NoAuthWithAWSException: no credentials", "storage-refused"),
        ("Caused by: org.apache.hadoop.fs.s3a.AWSStatus500Exception: open s3a://b/k: 503", "storage-unreachable"),
        ("Caused by: software.amazon.awssdk.core.exception.SdkClientException: Unable to execute", "storage-unreachable"),
        ("Caused by: java.lang.NumberFormatException: x", None),
    ],
)  # fmt: skip
def test_what_a_failure_means(text: str, code: str | None) -> None:
    found = hadoop_s3.failure_of(f"[FAILED_READ_FILE.NO_HINT] while reading file s3a://b/k.\n{text}", "s3://b/k")
    assert (None if found is None else found.code) == code
    if found is not None:
        assert found.message.startswith("s3://b/k: ") and found.hint.startswith("committed records are kept")
