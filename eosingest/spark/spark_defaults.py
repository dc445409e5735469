"""Reads this machine's spark-defaults.conf, and determines the master from it and the spec.

Used by all code that depends on where a spec runs. The file is parsed as Spark parses it, without a JVM. Spark reads the same
file again when it starts; jvm.py says which of our settings override it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from eosingest.errors import SpecError
from eosingest.spec.masters import embedded_problem, master_problem, with_retries

if TYPE_CHECKING:  # executors have no pydantic
    from eosingest.spec import Spec

DEFAULT_MASTER = "local[*]"
HADOOP_FOLDERS = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")  # variables; Spark puts these folders last on the class path
_FILE = "spark-defaults.conf"
_KEY = re.compile(r"((?:[^\\\s=:]|\\.)+)\s*[=:]?\s*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def is_submitted() -> bool:
    """Say whether spark-submit started this process; its JVM then waits for this process to end."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def spark_master(spec: Spec, submitted: str | None = None) -> str:
    """Return the master to start Spark with: the spec's, else that of spark-submit (`submitted`), else that of
    spark-defaults.conf, else a local one with all cores.

    Raises SpecError for a master that Spark does not know.
    """
    if spec.spark.master is not None:
        return with_retries(spec.spark.master)
    master = submitted or spark_defaults().get("spark.master", DEFAULT_MASTER)
    problem = master_problem(master)
    if problem is not None:
        raise SpecError(
            f"{'spark-submit' if submitted else defaults_file()}: spark.master: {problem}",
            code="spark-master",
            hint='the spec can name another: [spark] master = "local[*]"',
        )
    return with_retries(master)


def refuse_embedded_elsewhere(spec: Spec, master: str | None = None) -> None:
    """Raise SpecError if executors run on other machines: they cannot reach the embedded broker."""
    problem = embedded_problem(master or spark_master(spec), spec.sink.bootstrap_servers)
    if problem is not None:
        raise SpecError(f"sink.bootstrap_servers: {problem}", code="embedded-elsewhere")


def hadoop_folders() -> list[str]:
    """Return the configuration folders of Hadoop and YARN that the environment names."""
    return [os.environ[name] for name in HADOOP_FOLDERS if os.environ.get(name)]


def spark_defaults(*, pip_only: bool = False) -> dict[str, str]:
    """Return the settings of spark-defaults.conf; empty if no such file can be read. `pip_only`: see `conf_folder`."""
    file = defaults_file(pip_only=pip_only)
    try:
        text = file.read_text(encoding="utf-8", errors="replace") if file is not None else ""
    except OSError:
        return {}
    return {key: value for key, value in _properties(text) if key.startswith("spark.")}


def defaults_file(*, pip_only: bool = False) -> Path | None:
    """Return the path of spark-defaults.conf, which need not exist; None if there is no Spark."""
    folder = conf_folder(pip_only=pip_only)
    return folder / _FILE if folder is not None else None


def conf_folder(*, pip_only: bool = False) -> Path | None:
    """Return the folder of Spark's configuration: SPARK_CONF_DIR, SPARK_HOME/conf, or conf in pip's pyspark.

    `pip_only`: ignore SPARK_HOME, as for a local Spark, which always runs pip's pyspark.
    """
    named, home = os.environ.get("SPARK_CONF_DIR"), os.environ.get("SPARK_HOME")
    if named:
        return Path(named)
    if home and not pip_only:
        return Path(home) / "conf"
    found = find_spec("pyspark")  # without importing it
    places = list(found.submodule_search_locations or []) if found is not None else []
    return Path(places[0]) / "conf" if places else None


def _properties(text: str) -> Iterator[tuple[str, str]]:
    """Yield (key, value) of each line, as java.util.Properties parses it; values are trimmed, as Spark does."""
    for line in _logical_lines(text):
        match = _KEY.fullmatch(line)
        if match is not None:
            yield _unescaped(match[1]), _unescaped(match[2]).strip()


def _logical_lines(text: str) -> Iterator[str]:
    """Yield the lines except comments; a line that ends with a backslash is joined with the next."""
    open_line: str | None = None
    for line in re.split(r"\r\n|\r|\n", text):
        stripped = line.lstrip(" \t\f")
        if open_line is None and (not stripped or stripped[0] in "#"):
            continue
        joined = (open_line or "") + stripped
        goes_on = (len(joined) - len(joined.rstrip("\\"))) % 2 == 1
        open_line = joined[:-1] if goes_on else None
        if not goes_on:
            yield joined
    if open_line:
        yield open_line


def _unescaped(text: str) -> str:
    def meant(match: re.Match[str]) -> str:
        code: str = match[1]
        return chr(int(code[1:], 16)) if len(code) == 5 else _ESCAPED.get(code, code)

    return _ESCAPE.sub(meant, text)
