"""What a JVM of Spark is started with."""

from __future__ import annotations

import pytest

from eosingest.spark.session import _java_options

DRIVER = "spark.driver.extraJavaOptions"


@pytest.mark.parametrize(
    ("master", "given", "wanted"),
    [
        ("local[2]", "", "-Duser.timezone=UTC -XX:+UseParallelGC"),
        ("local[2]", "-Xss4m", "-Xss4m -Duser.timezone=UTC -XX:+UseParallelGC"),
        ("local[2]", "-XX:+UseG1GC", "-XX:+UseG1GC -Duser.timezone=UTC"),
        ("local[2]", "-Xss4m -XX:+UseZGC", "-Xss4m -XX:+UseZGC -Duser.timezone=UTC"),
        ("spark://host:7077", "", "-Duser.timezone=UTC"),
    ],
)
def test_the_collector_is_the_users_to_choose(master: str, given: str, wanted: str) -> None:
    """Breaks when two collectors are named: such a JVM does not start."""
    options = _java_options(master, {DRIVER: given} if given else {})
    assert options == {DRIVER: wanted, "spark.executor.extraJavaOptions": "-Duser.timezone=UTC"}


def test_the_collector_may_be_chosen_among_default_options() -> None:
    assert (
        _java_options("local[2]", {"spark.driver.defaultJavaOptions": "-XX:+UseG1GC"})[DRIVER] == "-Duser.timezone=UTC"
    )


@pytest.mark.parametrize("name", ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS"])
def test_the_collector_may_be_chosen_in_the_environment(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "-Xss4m -XX:+UseSerialGC")
    assert _java_options("local[2]", {})[DRIVER] == "-Duser.timezone=UTC"
