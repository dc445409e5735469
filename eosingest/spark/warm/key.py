"""Computes the key that a driver must share with the warm JVM: our code, Python, Java, jars, options, environment.

Libraries of Python are not part of it: each run has a separate daemon, which imports them from the disk. The settings that
a run gives to it (`for_workers`) need not be equal either.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import resource
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import eosingest
from eosingest.spark import class_archive, jvm, spark_defaults
from eosingest.spark.daemon import WORKING_FOLDER

# Only terminals, shells, the command line and our workers read these; pyspark sets the last two in a driver's process.
_NOT_OF_THE_JVM = re.compile(
    r"_|PWD|OLDPWD|SHLVL|TERM|COLORTERM|TERM_(PROGRAM|SESSION).*|COLUMNS|LINES|WINDOWID|TMUX|TMUX_PANE|STY|PS1|HIST\w*"
    r"|LS_COLORS|LESS\w*|PROMPT_COMMAND|SSH_(CLIENT|CONNECTION|TTY|AUTH_SOCK)|XDG_(SESSION_ID|VTNR)|VSCODE_\w+"
    r"|NO_COLOR|FORCE_COLOR|INVOCATION_ID|JOURNAL_STREAM|PYENV_\w+|PYTEST_\w+|EOSINGEST_\w+"
    r"|SPARK_(AUTH_SOCKET_TIMEOUT|BUFFER_SIZE)"
)
# Those of our variables that tasks read. Spark may show the settings of a context, and other variables may hold secrets.
_OF_WORKERS = re.compile(r"EOSINGEST_(FAILPOINT\w*|HOME|IVY_SETTINGS)")
_OF_A_CONTEXT = ("spark.master", "spark.app.name")  # a SparkContext gets them, not the JVM
FOLDER = "working folder"
_URI = re.compile(r"\w+:/\S*")
_NAMES_A_PLACE = re.compile(r"(dirs?|path|(?<!pro)files?|jars|archives|keytab|location|home)$", re.IGNORECASE)
_MAY_NAME_A_PLACE = re.compile(r"(?!.*timezone$)_?(JAVA|JDK|SPARK|PYSPARK|HADOOP|YARN|KRB5|AWS|SSL)", re.IGNORECASE)
_CWD_IF_EMPTY = ("PATH", "PYTHONPATH", "CLASSPATH", "LD_LIBRARY_PATH")
_BETWEEN_PATHS = re.compile(r"[\s,;:=]+")
_CREDENTIALS = ("~/.aws/credentials", "~/.aws/config", "/etc/krb5.conf")


def environment() -> dict[str, str]:
    """Return the environment that a warm JVM gets, and that a driver must have to use it."""
    return {name: value for name, value in os.environ.items() if not _NOT_OF_THE_JVM.fullmatch(name)}


def for_workers() -> dict[str, str]:
    """Return the settings that give the workers of a run what the warm JVM does not have: our variables, the folder."""
    ours = {name: value for name, value in os.environ.items() if _OF_WORKERS.fullmatch(name)}
    return {
        f"spark.executorEnv.{name}": value for name, value in {**ours, WORKING_FOLDER: jvm.folder_that_exists()}.items()
    }


def key(boot: Mapping[str, str], conf: Mapping[str, str]) -> dict[str, str]:
    """Return a hash of each part that must be equal, by its name in messages.

    `boot`: the settings on the command line; `conf`: those of the user. The working folder counts if a path may be relative.
    """
    umask = os.umask(0o077)
    os.umask(umask)
    limits = [resource.getrlimit(each) for each in (resource.RLIMIT_NOFILE, resource.RLIMIT_AS, resource.RLIMIT_NPROC)]
    variables = environment()
    told: dict[str, object] = {
        "eosingest's code": stats(sorted(Path(eosingest.__file__).parent.rglob("*.py"))),
        "Python": [sys.executable, sys.version],
        "Java or Spark's jars": class_archive.stem(),
        **{f"setting {name}": _setting(text) for name, text in boot.items() if name not in _OF_A_CONTEXT},
        "configuration of Spark or Hadoop": stats(_configuration()),
        **{f"environment variable {name}": _setting(value) for name, value in variables.items()},
        "credentials": stats(Path(each).expanduser() for each in _CREDENTIALS),
        "umask, groups, limits or cores": [
            umask,
            os.getegid(),
            os.getgroups(),
            limits,
            sorted(os.sched_getaffinity(0)),
        ],
        "container": [os.readlink(f"/proc/self/ns/{each}") for each in ("mnt", "net", "pid", "user")],
    }
    relative = [name for name, text in (*conf.items(), *boot.items(), *variables.items()) if _has_relative(name, text)]
    if relative:
        told[f"{FOLDER} (which {relative[0]} is relative to)"] = jvm.folder_that_exists()
    return {name: hashlib.sha256(json.dumps(value).encode()).hexdigest() for name, value in told.items()}


def difference(ours: Mapping[str, str], theirs: Mapping[str, str]) -> str | None:
    """Return what differs between two keys, in a few words; None if they are equal."""
    names = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
    return (names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")) if names else None


def _setting(text: str) -> list[str]:
    """Return a setting without the archive of classes, which only saves time; and the state of the files that it names."""
    kept = class_archive.without(text)
    paths = (Path(piece) for piece in _BETWEEN_PATHS.split(kept) if piece.startswith("/"))
    # Not Path.is_dir, which raises for a text that is too long to be a path.
    return [kept, *stats(path for path in paths if not os.path.isdir(path))]


def _has_relative(name: str, text: str) -> bool:
    """Say whether a setting or a variable may name a file by a path relative to the working folder."""
    names_a_place = _NAMES_A_PLACE.search(name)
    if not names_a_place and not _MAY_NAME_A_PLACE.match(name):
        return False
    if name in _CWD_IF_EMPTY and "" in text.split(os.pathsep):
        return True
    pieces = [piece for piece in _BETWEEN_PATHS.split(_URI.sub(" ", text)) if piece and piece[0] not in "/-"]
    return any(names_a_place or "/" in piece or os.path.exists(piece) for piece in pieces)


def _configuration() -> list[Path]:
    named = [spark_defaults.conf_folder(pip_only=True), *spark_defaults.hadoop_folders()]
    return [path for place in named if place for path in sorted(Path(place).glob("*"))]


def stats(paths: Iterable[Path]) -> list[str]:
    """Return path, size and time of each."""
    found = []
    for path in paths:
        try:
            status = path.stat()
            found.append(f"{path} {status.st_size} {status.st_mtime_ns}")
        except OSError:
            found.append(f"{path} -")
    return found
