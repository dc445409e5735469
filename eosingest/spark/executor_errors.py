"""Makes the errors for executors whose Python cannot run our tasks, from the probe's results (probe.py) or Spark's error.

Used by executors.py, which sends the probe, and by launcher and audit, whose jobs may fail with them. A retry does not help:
the exit code is 7.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, requires, version

from eosingest.errors import FatalError
from eosingest.spark.probe import Found

_VERSIONS = re.compile(r"Python in worker has different version: (.+?) than that in driver: ([^\s,]+)")
# ENOENT, EPERM, EACCES and ENOEXEC: the program cannot be run. Other errors (EAGAIN, ENOMEM) may not recur at a retry.
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)"[^\n]*?error=(?:1|2|8|13), ([^\n]+)')
_NO_DAEMON = re.compile(r"pyspark\.daemon's (?:stdout|standard output)")
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")


def unfit(found: Iterable[Found]) -> FatalError | None:
    """Return the error for Pythons that lack a module or have too old a version of one, or None."""
    for one in found:
        where = f"the executors' Python ({one.program} on {one.host})"
        if one.missing:
            name, why = next(iter(one.missing.items()))
            modules = "module " + name if len(one.missing) == 1 else f"modules {', '.join(one.missing)}"
            return _environment(f"{where} has no {modules}: {why}", _install(one.missing), "nothing was sent")
        old = [f"{name} {have} (needed: {least} or newer)" for name, have, least in _older(one.versions)]
        if old:
            return _environment(
                f"{where} has {', '.join(old)}", _install(o.split()[0] for o in old), "nothing was sent"
            )
    return None


def no_start(text: str, program: str) -> FatalError | None:
    """Return the error for a first job that failed because the executors' Python did not start, or None."""
    if _NO_DAEMON.search(text) is None:
        return None
    return _environment(
        f"pyspark does not start in the executors' Python ({program})",
        f"try {program} -m pyspark.daemon on an executor, or name a Python that is fit",
        "nothing was sent",
    )


def environment_error(text: str, kept: str) -> FatalError | None:
    """Return the error if Spark failed because executors cannot run our Python, else None. `kept` begins the hint."""
    versions = _VERSIONS.search(text)
    if versions is not None:
        theirs, ours = versions.groups()
        return _environment(
            f"the executors run Python {theirs}, and this run Python {ours}: the minor versions must be the same",
            f"name a Python {ours} that every executor has",
            kept,
        )
    program = _NO_PROGRAM.search(text)
    if program is not None:
        return _environment(
            f"the executors cannot run the Python {program[1]}: {program[2].strip()}",
            "name one that every executor has",
            kept,
        )
    module = _NO_MODULE.search(text)
    if module is not None:
        return _environment(f"the executors' Python has no module {module[1]}", _install([module[1]]), kept)
    return None


def _install(packages: Iterable[str]) -> str:
    return f"install {' '.join(packages)} there, or name a Python that has it"


def _environment(message: str, advice: str, kept: str) -> FatalError:
    return FatalError(
        message,
        code="executor-environment",
        hint=f'{kept}; {advice}: [spark] conf = {{ "spark.pyspark.python" = "/path/python" }}, or PYSPARK_PYTHON where neither'
        " spec nor site has that setting; or send this one along: eosingest package /path/env.tar.gz, then"
        ' { "spark.archives" = "/path/env.tar.gz#env", "spark.pyspark.python" = "./env/bin/python" }',
    )


def _older(versions: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return (name, version, least version) of packages that are older than we require."""
    return [
        (name, have, least)
        for name, least in _least().items()
        for have in [versions.get(name, "")]
        if have and _numbers(have) < _numbers(least)
    ]


def _least() -> dict[str, str]:
    try:
        wanted = requires("eosingest") or []
    except PackageNotFoundError:  # run from a checkout
        return {}
    found = (re.match(r"([\w.-]+)[^;]*?>=\s*([\d.]+)", text) for text in wanted if "extra ==" not in text)
    return {match[1].lower(): match[2] for match in found if match is not None}


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def differences(found: Iterable[Found]) -> list[str]:
    """Return one sentence per library whose version on executors differs from the driver's."""
    return sorted({sentence for one in found for sentence in _differences(one)})


def _differences(one: Found) -> Iterator[str]:
    for name, theirs in one.versions.items():
        try:
            ours = version(name)
        except PackageNotFoundError:
            continue
        if theirs and theirs != ours:
            yield f"{one.program} on {one.host} has {name} {theirs}, this machine {ours}"
