"""What a JVM of Spark is started with, and what is said where it does not start."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import UnsupportedOperationException

from eosingest.spark.session import _java_options, _not_started

DRIVER = "spark.driver.extraJavaOptions"

SAME = "-Duser.timezone=UTC -Duser.language=en -Duser.country=US -Dfile.encoding=UTF-8"


@pytest.mark.parametrize(
    ("master", "given", "wanted"),
    [
        ("local[2]", "", f"{SAME} -XX:+UseParallelGC"),
        ("local[2]", "-Xss4m", f"-Xss4m {SAME} -XX:+UseParallelGC"),
        ("local[2]", "-XX:+UseG1GC", f"-XX:+UseG1GC {SAME}"),
        ("local[2]", "-Xss4m -XX:+UseZGC", f"-Xss4m -XX:+UseZGC {SAME}"),
        ("spark://host:7077", "", SAME),
    ],
)
def test_the_collector_is_the_users_to_choose(master: str, given: str, wanted: str) -> None:
    """Breaks when two collectors are named: such a JVM does not start."""
    options = _java_options(master, {DRIVER: given} if given else {})
    assert options == {DRIVER: wanted, "spark.executor.extraJavaOptions": SAME}


def test_the_collector_may_be_chosen_among_default_options() -> None:
    assert _java_options("local[2]", {"spark.driver.defaultJavaOptions": "-XX:+UseG1GC"})[DRIVER] == SAME


@pytest.mark.parametrize("name", ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS"])
def test_the_collector_may_be_chosen_in_the_environment(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "-Xss4m -XX:+UseSerialGC")
    assert _java_options("local[2]", {})[DRIVER] == SAME


def test_a_java_that_is_too_new_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when the only words are Hadoop's, which tell nobody what to do; what Java 25 says, as it was seen."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").touch(0o755)
    (tmp_path / "release").write_text('JAVA_VERSION="25.0.1"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    error = _not_started("local[*]", None, UnsupportedOperationException("getSubject is not supported"), None)
    assert error.code == "java-too-new"
    assert "does not run on Java 25" in error.message
    assert "JAVA_HOME" in error.hint
