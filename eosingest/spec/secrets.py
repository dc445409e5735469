"""Lists keys that may hold secrets, whose references are resolved on use; hides their variables from child processes.

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
# Environment variables that Java, Spark and Python need.
_NEEDED = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|TERM|TZ|LANG|TMPDIR|HOSTNAME|(LC_|JAVA|JDK_|_JAVA|SPARK|PYSPARK|PYTHON|HADOOP|YARN|LD_|XDG_|EOSINGEST).*"
)


def keep_from_children(spec: Spec, environ: MutableMapping[str, str]) -> None:
    """Remove variables that these keys name by `${env:…}` from the environment, which Spark's JVM and its workers inherit.

    The spec keeps a copy of the environment. Variables that Java, Spark and Python need are not removed.
    """
    spec.keep_environment(environ)
    for name in set(_variables(spec)):
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
