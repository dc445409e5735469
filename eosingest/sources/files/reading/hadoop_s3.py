"""Configures Hadoop's client of S3 (s3a), with which Spark's readers read objects: its jars, and its access to the store.

Between the scan (scan.py) and Spark. The store is the one that was listed: region and address are taken from the client that
listed it. Credentials are set only in Hadoop's configuration: Spark's, which its UI and event log show, has none.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from eosingest.errors import ChangedError, EosingestError, FatalError, TemporaryError
from eosingest.host import ivy
from eosingest.host.paths import cache_directory
from eosingest.sources.files.listing.source_file import SourceFile
from eosingest.sources.files.storage.s3 import S3Storage, parted
from eosingest.spark import spark_defaults
from eosingest.spark.causes import innermost

_FETCH_S = 1800.0
_CLIENT = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_SDK = "software.amazon.awssdk", "bundle"
# The client's classes refer to it, although the stream type that `_settings` selects does not use it.
_STREAMS = "software.amazon.s3.analyticsaccelerator", "analyticsaccelerator-s3"
# The jars of the client, for each version of Hadoop that a pyspark may have, with the AWS SDK that the client names: group,
# artifact, version, SHA-256.
_JARS = {
    "3.4.1": (  # of Spark 4.0
        (
            "org.apache.hadoop",
            "hadoop-aws",
            "3.4.1",
            "01334a07e179cae2b7e251f24857f11e3759108c9d6a79dcbe362a4295227da2",
        ),
        (*_SDK, "2.24.6", "890bf9f2a80488f7a8aa8277d64d13a9ea3a3cdff8607ef3b63a878d8b467b41"),
    ),
    "3.4.2": (  # of Spark 4.1
        (
            "org.apache.hadoop",
            "hadoop-aws",
            "3.4.2",
            "d2d24e6b715b5656b9d238bf13b6682a07e2004dd36aad74a73aeb854319f4d9",
        ),
        (*_SDK, "2.29.52", "62638f33045690c6bc5e496b54b0b2e89a9ad38cbedacdf6e017fea6bc85f55c"),
        (*_STREAMS, "1.2.1", "11029552e37408e41e689b20150f4b372e0b4f232de321ccafd0fcf443cdfb5a"),
    ),
    "3.5.0": (  # of Spark 4.2 and 4.3
        (
            "org.apache.hadoop",
            "hadoop-aws",
            "3.5.0",
            "66bd9eefb938b1a1657487324b63c13df2d8b17164a1dd24e0ef37b905bc5baa",
        ),
        (*_SDK, "2.35.4", "db4b55f24ad1b4e70f17eb1717a4de76a8dadc5a27d764be7c44ff67b2c1c677"),
        (*_STREAMS, "1.3.1", "4959a9747cbb479c73c3ffbcd479bee5b014f8b2880994585a8693fb9d24675e"),
    ),
}
_SIZES = {"3.4.1": "558 MB", "3.4.2": "645 MB", "3.5.0": "690 MB"}
_PACKAGES = (
    '[spark] conf = { "spark.jars.packages" = "org.apache.hadoop:hadoop-aws:VERSION" }, with the VERSION of its Hadoop'
)
_KEPT = "committed records are kept, nothing was sent twice"
# Exceptions of Hadoop's client, by name.
_CHANGED = re.compile(
    r"\bRemoteFileChangedException\b|\[FAILED_READ_FILE\.FILE_NOT_EXIST\]|\bs3a://\S+: .*FileNotFoundException"
)
_CLIENT_ERROR = re.compile(r"\bs3a\.(?:\w+\.)*\w*Exception\b|\bsoftware\.amazon\.awssdk\b|\bAccessDeniedException\b")
_REFUSED = re.compile(r"\bAccessDeniedException\b|\bNoAuthWithAWSException\b|\bCredentialInitializationException\b")
_GIVEN = "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
_GIVEN_FOR_A_TIME = "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider"
_AS_THE_SDK_FINDS_IT = "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"


def jars(conf: Mapping[str, str]) -> list[str]:
    """Return the paths of the jars that Spark needs in addition to its own; they are fetched once, 558 to 690 MB.

    Empty if the spec's `conf` names a hadoop-aws or declares s3a as present (`spark.hadoop.fs.s3a.impl`), or if pyspark's own
    jars have one; also under spark-submit, whose JVM already has its class path. Raises the errors of `ivy.fetched`, and
    FatalError for a Hadoop without pinned jars.
    """
    if "spark.hadoop.fs.s3a.impl" in conf or any("hadoop-aws" in value for value in conf.values()):
        return []
    if ivy.spark_jars("hadoop-aws-*.jar") or spark_defaults.is_submitted():
        return []
    versions = {jar.stem.rpartition("-")[2] for jar in ivy.spark_jars("hadoop-client-api-*.jar")}
    hadoop = next(iter(versions), "")
    if hadoop not in _JARS:
        raise FatalError(
            f"pyspark has Hadoop {hadoop or 'of no version'}, for which eosingest knows no client of S3",
            code="s3a-missing",
            hint=f"nothing was sent; name one: {_PACKAGES}",
        )
    needed = _jars(hadoop)
    libs = ivy.fetched(needed, cache_directory() / f"hadoop-aws-{hadoop}", time.monotonic() + _FETCH_S)
    return [str(libs / name) for name in sorted(needed.pins)]


def spark_conf(conf: Mapping[str, str]) -> dict[str, str]:
    """Return Spark's settings that add the client's jars; see `jars`."""
    return {"spark.jars": ",".join(jars(conf))}


def _jars(hadoop: str) -> ivy.Jars:
    return ivy.Jars(
        what=f"Hadoop's client of S3 {hadoop}",
        size=_SIZES[hadoop],
        dependencies=tuple(
            f'<dependency org="{group}" name="{name}" rev="{version}" transitive="false" conf="default->default"/>'
            for group, name, version, _ in _JARS[hadoop]
        ),
        pins={f"{name}-{version}.jar": digest for _, name, version, digest in _JARS[hadoop]},
        code="s3a",
        hint="nothing was sent; check the network; with a mirror let EOSINGEST_IVY_SETTINGS name an ivysettings.xml; then run"
        " again",
        instead=f"name them for Spark: {_PACKAGES}",
    )


def reach(spark: SparkSession, files: Iterable[SourceFile]) -> None:
    """Configure Hadoop's client for the buckets of these objects; do nothing for other files. May be called again.

    Raises FatalError if Spark's class path has no such client.
    """
    stores = {parted(file.path)[0]: file.storage for file in files if isinstance(file.storage, S3Storage)}
    if not stores:
        return
    jvm: Any = spark._jvm
    try:
        jvm.java.lang.Class.forName(_CLIENT, False, jvm.java.lang.Thread.currentThread().getContextClassLoader())
    except Py4JJavaError as error:
        raise FatalError(
            f"to read objects Spark needs Hadoop's client of S3, and its class path has no {_CLIENT}",
            code="s3a-missing",
            hint=f"nothing was sent; under spark-submit: --packages org.apache.hadoop:hadoop-aws:VERSION; else {_PACKAGES}",
        ) from error
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    for bucket, storage in stores.items():
        for name, value in _settings(storage, conf.get("fs.s3a.aws.credentials.provider")).items():
            conf.set(f"fs.s3a.bucket.{bucket}.{name}", value)


def failure_of(text: str, objects: str) -> EosingestError | None:
    """Return the error for a failure of Hadoop's client in the `text` of Spark's; None for any other failure.

    `objects` names the objects that it may concern.
    """
    if _CHANGED.search(text):
        return ChangedError(
            f"{objects}: changed after it was listed", code="changed-while-read", hint=f"{_KEPT}; then run again"
        )
    if _CLIENT_ERROR.search(text) is None:
        return None
    reason = innermost(text)
    if _REFUSED.search(text):
        return FatalError(
            f"{objects}: the store refused: {reason}",
            code="storage-refused",
            hint=f"{_KEPT}; correct the credentials, or give their user s3:GetObject on the objects; then run again",
        )
    return TemporaryError(
        f"{objects}: the store does not answer: {reason}",
        code="storage-unreachable",
        hint=f"{_KEPT}; check the network, and the store; then run again",
    )


def _settings(storage: S3Storage, provider: str | None) -> dict[str, str]:
    """Return s3a's settings for a bucket. `provider`: the site's credentials provider, kept if the spec has no credentials."""
    client = storage.client()
    address, region = str(client.meta.endpoint_url), str(client.meta.region_name or "")
    settings = {
        "path.style.access": str(storage.by_path).lower(),
        # A stream continues with the same version of the object, or fails.
        "change.detection.source": "etag",
        "change.detection.mode": "server",
        # These two are settings of the classic stream. The default since Hadoop 3.4.3 (HADOOP-19559) uses another library.
        "input.stream.type": "classic",
        # Spark tries a task four times: a run without its store ends within a minute or two, not ten.
        "retry.limit": "4",
        "attempts.maximum": "3",
    }
    if not address.endswith((".amazonaws.com", ".amazonaws.com.cn")):
        settings["endpoint"] = address
        settings["connection.ssl.enabled"] = str(address.startswith("https")).lower()
        settings["endpoint.region"] = region if region not in ("", "aws-global") else "us-east-1"
    elif region not in ("", "aws-global"):
        settings["endpoint.region"] = region
    if storage.access_key:
        settings["access.key"], settings["secret.key"] = storage.access_key, storage.secret_key
        settings["aws.credentials.provider"] = _GIVEN_FOR_A_TIME if storage.session_token else _GIVEN
        if storage.session_token:
            settings["session.token"] = storage.session_token
    elif not provider or _GIVEN in provider:  # Hadoop's own default, which supports no profiles
        settings["aws.credentials.provider"] = _AS_THE_SDK_FINDS_IT
    return settings
