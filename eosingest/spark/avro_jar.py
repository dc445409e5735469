"""Fetches spark-avro, the jar with Spark's function `to_avro`, once: 90 KB, pinned; the writer is in Spark's own jars.

Used if a key or a value is in Avro (encoded_columns.py).
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from eosingest.errors import FatalError
from eosingest.host import ivy
from eosingest.host.paths import cache_directory
from eosingest.spark import spark_defaults

_FETCH_S = 120.0
_OF_4_2 = ("4.2.0", "4c186cedc03cbe4ee356a94b32232b347ef48611c3209400b3a77e4fe4abff4f")
# By Spark's minor version: the newest jar for it at Maven Central, and its SHA-256.
_JARS = {
    "4.0": ("4.0.2", "fd102b6c6754f72f53a01ac882f0da2b1a6f9f02127647ac3e1f0ca951d4433b"),
    "4.1": ("4.1.1", "6a19d90bc3b6e88d8db0fa36a19273aa10fea2dbd7a62bb60e4cedd73051b32d"),
    "4.2": _OF_4_2,
    "4.3": _OF_4_2,  # there was no 4.3.0 yet
}
_PACKAGES = (
    '[spark] conf = { "spark.jars.packages" = "org.apache.spark:spark-avro_2.13:VERSION" }, with the VERSION of Spark'
)


def jars(conf: Mapping[str, str]) -> list[str]:
    """Return the path of the jar, fetched once, in a list.

    The list is empty if the spec's `conf` names one or pyspark has it, and under spark-submit, whose JVM already has its class
    path. Raises the errors of `ivy.fetched`, and FatalError for a Spark for which none is pinned.
    """
    if (
        any("spark-avro" in value for value in conf.values())
        or ivy.spark_jars("spark-avro_*.jar")
        or spark_defaults.is_submitted()
    ):
        return []
    versions = {jar.stem.rpartition("-")[2] for jar in ivy.spark_jars("spark-sql_*.jar")}
    minor = ".".join(next(iter(versions), "").split(".")[:2])
    if minor not in _JARS:
        raise FatalError(
            f"this is Spark {minor or 'of no version'}, for which eosingest knows no spark-avro",
            code="avro-missing",
            hint=f"nothing was sent; name one: {_PACKAGES}",
        )
    version, digest = _JARS[minor]
    needed = ivy.Jars(
        what=f"spark-avro {version}",
        size="90 KB",
        dependencies=(
            f'<dependency org="org.apache.spark" name="spark-avro_2.13" rev="{version}" transitive="false"'
            ' conf="default->default"/>',
        ),
        pins={f"spark-avro_2.13-{version}.jar": digest},
        code="avro",
        hint="nothing was sent; check the network; with a mirror let EOSINGEST_IVY_SETTINGS name an ivysettings.xml; then run"
        " again",
        instead=f"name it for Spark: {_PACKAGES}",
    )
    libs = ivy.fetched(needed, cache_directory() / f"spark-avro-{version}", time.monotonic() + _FETCH_S)
    return [str(libs / name) for name in needed.pins]
