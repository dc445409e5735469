"""Reports keys that a spec from an untrusted author must not have: `EOSINGEST_RESTRICTED=1` (docs/security.md). Pure.

Used by loader.py. Keys that the command line sets (`--set`) come from the user who runs it, and are not checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from eosingest.spec.document import KeyPath, Problem, get
from eosingest.spec.encodings import PLACES
from eosingest.spec.references import references_in

VARIABLE, ALLOWED = "EOSINGEST_RESTRICTED", "EOSINGEST_RESTRICTED_ALLOW"
_CODE = "restricted"
_OFF = ("", "0", "false", "no", "off")
_PROPERTIES = (("sink", "properties"), ("source", "properties"))
# Suffixes of librdkafka properties that make it read a file, load a library or run a command.
_NAMES_A_FILE = (".location", ".keytab", ".paths", ".path", ".file", ".cmd")
_OF_THE_SYSTEM = ("", "probe")
_FILES_OF_LIBPQ = frozenset(
    {"passfile", "service", "servicefile", "sslcert", "sslkey", "sslrootcert", "sslcrl", "sslcrldir"}
)


def problems(
    tables: Mapping[str, Any], environ: Mapping[str, str], is_set: Callable[[KeyPath], bool]
) -> Iterator[Problem]:
    """Yield a problem for each key that a restricted spec may not have; `tables` are as written, references unresolved.

    `is_set` says whether the command line has set a key.
    """
    if environ.get(VARIABLE, "").strip().lower() in _OFF:
        return
    allowed = {name.strip() for name in environ.get(ALLOWED, "").split(",") if name.strip()}
    found = [*_references(tables, (), allowed), *_spark(tables), *_files(tables), *_url(tables)]
    yield from (problem for problem in found if not is_set(problem.path))


def _references(value: Any, path: KeyPath, allowed: set[str]) -> Iterator[Problem]:
    """Yield the references to files and to the environment that are not allowed."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _references(inner, (*path, key), allowed)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _references(inner, (*path, index), allowed)
    elif isinstance(value, str):
        for kind, name in references_in(value):
            if kind != "param" and f"{kind}:{name}" not in allowed:
                text = f"${{{kind}:{name}}} is not allowed in a restricted spec"
                yield Problem(
                    path, text, f"who runs it allows it by {ALLOWED}={kind}:{name}, or gives a --param", _CODE
                )


def _spark(tables: Mapping[str, Any]) -> Iterator[Problem]:
    if get(tables, "spark", "master") is not None:
        yield _refused(("spark", "master"), "spark.master says where the job runs")
    conf = get(tables, "spark", "conf")
    for key in conf if isinstance(conf, dict) else ():
        yield _refused(("spark", "conf", key), "Spark's settings can fetch packages, load classes and run programs")


def _files(tables: Mapping[str, Any]) -> Iterator[Problem]:
    for path in _PROPERTIES:
        properties = get(tables, *path)
        for key, value in properties.items() if isinstance(properties, dict) else ():
            if key.lower().endswith(_NAMES_A_FILE) and value not in _OF_THE_SYSTEM:
                yield _refused((*path, key), "the property names a file of this machine")
    for place in PLACES:
        certificate = (*place, "registry", "ca_location")
        if get(tables, *certificate) is not None:
            yield _refused(certificate, "it names a file of this machine")


def _url(tables: Mapping[str, Any]) -> Iterator[Problem]:
    url = get(tables, "source", "url")
    try:
        names = {name for name, _ in parse_qsl(urlsplit(url).query)} if isinstance(url, str) else set()
    except ValueError:
        return  # the kind's check reports it
    for name in sorted(names & _FILES_OF_LIBPQ):
        yield _refused(("source", "url"), f"{name} names a file of this machine")


def _refused(path: KeyPath, why: str) -> Problem:
    return Problem(
        path, f"not allowed in a restricted spec ({VARIABLE}): {why}", "who runs it may give it by --set", _CODE
    )
