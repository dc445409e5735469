"""What this machine's installation of Spark says beside the spec: its spark-defaults.conf, and so the master.

A leaf under all that need to know where a spec runs (app/, spark/): the file is read here, as Spark reads it, and
no JVM is started for it. Spark itself reads the same file again; what of it is taken, and what ours goes over, is for
spark/jvm.py to say.
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
_FILE = "spark-defaults.conf"
_KEY = re.compile(r"((?:[^\\\s=:]|\\.)+)\s*[=:]?\s*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def is_submitted() -> bool:
    """Say whether spark-submit started this process: its JVM is there, and waits for us."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def spark_master(spec: Spec, submitted: str | None = None) -> str:
    """Return the master to start Spark with: the spec's, else the one that spark-submit was given (`submitted`), else that of
    spark-defaults.conf, else all of this machine's cores.

    Raises SpecError where it is none that Spark knows.
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
    """Raise SpecError where executors on other machines are to find the embedded broker."""
    problem = embedded_problem(master or spark_master(spec), spec.sink.bootstrap_servers)
    if problem is not None:
        raise SpecError(f"sink.bootstrap_servers: {problem}", code="embedded-elsewhere")


def spark_defaults(*, pip_only: bool = False) -> dict[str, str]:
    """Return the settings of spark-defaults.conf; empty where there is none that can be read. `pip_only`: see `conf_folder`."""
    file = defaults_file(pip_only=pip_only)
    try:
        text = file.read_text(encoding="utf-8", errors="replace") if file is not None else ""
    except OSError:
        return {}
    return {key: value for key, value in _properties(text) if key.startswith("spark.")}


def defaults_file(*, pip_only: bool = False) -> Path | None:
    """Return where spark-defaults.conf is looked for."""
    folder = conf_folder(pip_only=pip_only)
    return folder / _FILE if folder is not None else None


def conf_folder(*, pip_only: bool = False) -> Path | None:
    """Return the folder of Spark's configuration: SPARK_CONF_DIR, SPARK_HOME/conf, or conf beside pip's pyspark.

    `pip_only`: SPARK_HOME does not count, as with a local Spark, which always runs pip's.
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
    """Yield key and value of each line, as java.util.Properties reads it; Spark trims the values."""
    for line in _logical_lines(text):
        match = _KEY.fullmatch(line)
        if match is not None:
            yield _unescaped(match[1]), _unescaped(match[2]).strip()


def _logical_lines(text: str) -> Iterator[str]:
    """Yield lines without comments, those that end with a backslash together with the next."""
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
