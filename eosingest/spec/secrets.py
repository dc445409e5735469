"""Lists keys that may hold secrets, whose references are resolved on use; hides variables with secrets from child processes.

Used by loader.py, and by the command line once a spec is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, MutableMapping
from typing import Any

from eosingest.spec.encodings import PLACES
from eosingest.spec.model import Spec
from eosingest.spec.references import references_in

LATE = (
    ("sink", "properties"),
    ("source", "properties"),
    ("source", "storage"),
    ("source", "password"),
    *((*place, "registry", name) for place in PLACES for name in ("user", "password")),
)
# Values of `--param` and `--set` (cli/options.py), which may be secrets.
_VALUES = ("EOSINGEST_PARAM", "EOSINGEST_SET")
# Variables that a launch of Java, Spark or Python needs. Each by its name: a secret may have any other, `SPARK_DB_PASSWORD`.
_NEEDED = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|TERM|TZ|TMPDIR|HOSTNAME|LANG|LANGUAGE|LD_(LIBRARY_PATH|PRELOAD)"
    r"|LC_(ALL|COLLATE|CTYPE|MESSAGES|MONETARY|NUMERIC|TIME)|XDG_((CACHE|CONFIG|DATA)_HOME|RUNTIME_DIR)"
    r"|JAVA_HOME|JAVA_TOOL_OPTIONS|JDK_JAVA_OPTIONS|_JAVA_OPTIONS|PYTHON(HOME|PATH)|PYSPARK_(DRIVER_)?PYTHON"
    r"|SPARK_(HOME|CONF_DIR|DIST_CLASSPATH|LOCAL_(DIRS|HOSTNAME|IP)|PUBLIC_DNS|USER|SUBMIT_OPTS|LAUNCHER_OPTS)"
    r"|HADOOP_(HOME|CONF_DIR|USER_NAME)|YARN_CONF_DIR|EOSINGEST_(HOME|SPARK_DIR|IVY_SETTINGS)"
)


def keep_from_children(spec: Spec, environ: MutableMapping[str, str]) -> None:
    """Remove variables that may have secrets from the environment, which Spark's JVM and its workers inherit.

    These are the variables that the keys name by `${env:…}`, except those that a launch needs, and the values of the command
    line. The spec keeps a copy of the environment.
    """
    spec.keep_environment(environ)
    for name in {*_variables(spec), *_VALUES}:
        if not _NEEDED.fullmatch(name):
            environ.pop(name, None)


def _variables(spec: Spec) -> Iterator[str]:
    for path in LATE:
        value: Any = spec
        for name in path:
            value = getattr(value, name, None)
        yield from _named(value)


def _named(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from (name for kind, name in references_in(value) if kind == "env")
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _named(inner)
    elif hasattr(value, "model_dump"):
        yield from _named(value.model_dump())
