"""Defines the Spark settings that exactly-once needs, and checks that a running Spark has them.

session.py starts Spark with them and calls the checks. Comments say what would go wrong without a setting. A setting that may
change records belongs in the spec, where it is pinned with the job: set elsewhere, in spark-defaults.conf, core-site.xml or
by spark-submit, it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from eosingest.errors import FatalError
from eosingest.spec.options import protects

MAX_ATTEMPTS = 4
# Defaults that the user may override.
DEFAULTS = {
    "spark.ui.enabled": "false",
    # Otherwise Spark 4 reads only Latin-1, ASCII and UTF; sources/files/formats/encodings.py lists the allowed.
    "spark.sql.legacy.javaCharsets": "true",
}
# Required for every source; a kind of source may require more (`Scan.spark_conf`).
REQUIRED = {
    # One attempt of a task at a time, and partitions as planned.
    "spark.speculation": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.task.maxFailures": str(MAX_ATTEMPTS),
    # The same rows give the same bytes everywhere, and a bad value is an error.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.jsonGenerator.ignoreNullFields": "false",
    "spark.sql.variable.substitute": "false",
    "spark.ui.showConsoleProgress": "false",
}
# Checked in the JVM itself: _JAVA_OPTIONS override the command line, and we did not start spark-submit's JVM.
_LOCALE, _LANGUAGE = "en_US", "the JVM's language"
_CHARSET, _ENCODING = "UTF-8", "the JVM's encoding"
_ZONE = "the JVM's time zone"
_ZONES = ("UTC", "Etc/UTC", "Z", "GMT", "Etc/GMT", "Etc/UCT", "UCT", "Zulu", "Etc/Zulu", "Universal", "Etc/Universal")
# The same for executors: SQL functions, evaluated where rows are computed.
_OF_EXECUTORS = {
    _LANGUAGE: "java_method('java.util.Locale', 'getDefault')",
    _ENCODING: "java_method('java.nio.charset.Charset', 'defaultCharset')",
    _ZONE: "java_method('java.time.ZoneId', 'systemDefault')",
}
# Settings of Spark SQL that no record depends on: planning, caching, catalogs, logging and metrics.
_HARMLESS = re.compile(
    r"spark\.sql\.(?:adaptive\.|artifact\.|autoBroadcastJoinThreshold|broadcastTimeout|catalog\.|catalogImplementation|cbo\.|codegen\.|debug"
    r"|defaultCatalog|event|exchange\.|execution\.|extensions|hive\.|inMemory|join\.|maxPlanStringLength|metadataCache"
    r"|objectHashAggregate\.|optimizer\.|orc\.|parquet\.compression|parquet\.filterPushdown"
    r"|planChangeLog\.|queryExecutionListeners|redaction\.|shuffle|sources\.default$|statistics\.|streaming\.|thriftserver\."
    r"|thriftServer\.|ui\.|warehouse\.dir)"
)


def check_without_session(context: SparkContext, required: Mapping[str, str]) -> None:
    """Check the required settings that need no session. Raises FatalError if one has another value."""
    core = {key: value for key, value in required.items() if not key.startswith("spark.sql.")}
    live = context._conf  # read from the JVM; getConf() would copy it, in hundreds of calls
    _check_settings({key: live.get(key) for key in core}, core)
    jvm: Any = context._jvm
    _check_jvm(
        str(jvm.java.util.Locale.getDefault().toString()),
        str(jvm.java.nio.charset.Charset.defaultCharset().name()),
        str(jvm.java.time.ZoneId.systemDefault().getId()),
    )


def check_with_session(made: SparkSession, required: Mapping[str, str]) -> None:
    """Check all required settings, in the session. Raises FatalError if one has another value."""
    _check_settings({key: made.conf.get(key, None) for key in required}, required)


def check_executors(made: SparkSession, slots: int) -> None:
    """Check time zone, locale and encoding of the executors' JVMs, by a job of `slots` tasks. Raises FatalError."""
    rows = made.range(0, slots, 1, slots).selectExpr(*_OF_EXECUTORS.values()).collect()
    for row in set(rows):  # not distinct(): Spark would use 200 tasks for it
        _check_jvm(*row, where="an executor's ")


def refuse_settings_of_others(context: SparkContext, made: SparkSession, ours: Collection[str]) -> None:
    """Raise FatalError for a setting that may change records and that we did not set: the job does not pin it.

    Such settings come from spark-defaults.conf or spark-submit. `ours` are the keys of all settings we started Spark with.
    """
    jvm: Any = context._jvm
    jvm_conf: Any = context._conf._jconf
    texts = str(jvm_conf.toDebugString()).splitlines()  # one call; getAll() makes three per setting
    keys = {text.partition("=")[0] for text in texts if text.startswith("spark.sql.")}
    for key in sorted(keys.difference(ours)):
        if _HARMLESS.match(key):
            continue
        value = made.conf.get(key, None)
        try:
            default = jvm.org.apache.spark.sql.internal.SQLConf().getConfString(key)
        except Py4JJavaError:  # not a setting of Spark itself: no reader uses it
            continue
        if value != default:
            raise _not_pinned(key, value)


def _check_settings(live: Mapping[str, str | None], required: Mapping[str, str]) -> None:
    for key, value in required.items():
        if live[key] != value:
            raise FatalError(
                f"Spark runs with {key} = {live[key]}, and exactly-once needs {value}",
                code="spark-setting",
                hint="nothing was sent; look for it in spark-defaults.conf and in the environment",
            )


def _check_jvm(language: str, encoding: str, zone: str, *, where: str = "") -> None:
    of = f"{where}JVM" if where else "the JVM"
    names = {key: key.replace("the JVM", of) for key in (_LANGUAGE, _ENCODING, _ZONE)}
    _check_settings({names[_LANGUAGE]: language}, {names[_LANGUAGE]: _LOCALE})
    _check_settings({names[_ENCODING]: encoding}, {names[_ENCODING]: _CHARSET})
    if zone not in _ZONES:
        _check_settings({names[_ZONE]: zone}, {names[_ZONE]: _ZONES[0]})


def _not_pinned(key: str, value: object) -> FatalError:
    takes = f'name it in the spec, [spark] conf = {{ "{key}" = "{value}" }}, where it is pinned with the job'
    return FatalError(
        f"{key} = {value} is set outside of the spec, in spark-defaults.conf, or by spark-submit, and may"
        " change records",
        code="spark-setting",
        hint=f"nothing was sent; {'remove it there' if protects(key) else takes}",
    )
