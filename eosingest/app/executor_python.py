"""Packs a Python for executors into one archive: interpreter, standard library, modules of tasks (`eosingest package`).

Spark unpacks the archive on every executor (`spark.archives`, docs/clusters.md). A virtual environment only refers to its
interpreter; the archive contains the interpreter, which finds its library relative to itself. It also contains the packages of
the extras installed here that tasks need, but not eosingest, which each run sends, nor pyspark, which the cluster has.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from io import BytesIO
from pathlib import Path, PurePosixPath

from eosingest.errors import FatalError
from eosingest.host.paths import unusable
from eosingest.sources.registry import CLIENTS
from eosingest.spark.probe import MODULES

_LIBRARY = PurePosixPath("lib") / f"python{sys.version_info.major}.{sys.version_info.minor}"
_LEFT_OUT = frozenset({"site-packages", "dist-packages", "__pycache__"} | {"test", "tests", "include"})
_NOT_OF_TASKS = frozenset({"idlelib", "tkinter", "turtledemo", "lib2to3", "ensurepip", "pydoc_data"})
_NAME = re.compile(r"[^A-Za-z0-9._-]")  # the first character after the package's name in a requirement
_CHECK_S = 120.0
_STEP = 200  # files between two calls of `check`
# The interpreter may need its shared library, which the archive has in lib/.
_START = """\
#!/bin/sh
here=$(cd "$(dirname "$0")" && pwd -P)
LD_LIBRARY_PATH="$here/../lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" exec "$here/%s" "$@"
"""
_LOOK = """\
import importlib, importlib.metadata, json, sys
modules = json.loads(sys.argv[1])
for name in modules: importlib.import_module(name)
import bz2, ctypes, hashlib, socket, zlib
print(json.dumps({"prefix": sys.prefix, **{p: importlib.metadata.version(p) for p in modules.values()}}))
"""


@dataclass(frozen=True)
class Packed:
    """The tested archive: `bytes` is its size, `packages` maps names to versions, `runs_on` is machine and libc."""

    file: Path
    bytes: int
    python: str
    packages: dict[str, str]
    runs_on: str


def default_name() -> str:
    """Return the default name of the archive."""
    return f"eosingest-python{platform.python_version()}-{platform.machine()}.tar.gz"


def pack(file: Path, check: Callable[[], None]) -> Packed:
    """Write the archive, unpack it in another folder and import the modules of tasks there; then rename it to `file`.

    `check` raises to end the work. Raises FatalError if the packed interpreter does not run from the archive alone.
    """
    file = file.absolute()
    try:
        with tempfile.TemporaryDirectory(prefix=".eosingest-package-", dir=file.parent) as made:
            folder = Path(made)
            _write(folder / "archive", check)
            packages = _tried(folder, check)
            (folder / "archive").replace(file)
    except OSError as error:
        raise unusable(file.parent, error) from error
    libc = " ".join(platform.libc_ver())
    runs_on = f"Linux {platform.machine()}, {libc} or newer" if libc.strip() else platform.platform()
    return Packed(file, file.stat().st_size, platform.python_version(), packages, runs_on)


def _write(file: Path, check: Callable[[], None]) -> None:
    with tarfile.open(file, "w:gz", compresslevel=6, dereference=True) as archive:
        for name, content in _scripts():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755
            archive.addfile(entry, BytesIO(content))
        for index, (source, place) in enumerate(sorted(_files(), key=lambda found: found[1])):
            if index % _STEP == 0:
                check()
            archive.add(source, str(place), recursive=False, filter=_of_nobody)


def _of_nobody(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def _interpreter() -> Path:
    """Return the interpreter's program; in a virtual environment, that of the Python it was made from."""
    return Path(os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable))


def _scripts() -> Iterator[tuple[str, bytes]]:
    content = (_START % f"{_LIBRARY.name}.bin").encode()
    yield "bin/python", content
    yield "bin/python3", content


def _files() -> Iterator[tuple[Path, PurePosixPath]]:
    """Yield every file to pack with its path in the archive."""
    yield _interpreter(), PurePosixPath("bin") / f"{_LIBRARY.name}.bin"
    shared = _shared_library()
    if shared is not None:
        yield shared, PurePosixPath("lib") / shared.name
    library = Path(sysconfig.get_path("stdlib"))
    for folder, folders, names in os.walk(library):
        left_out = _LEFT_OUT | _NOT_OF_TASKS
        folders[:] = [name for name in folders if name not in left_out and not name.startswith("config-")]
        inside = Path(folder).relative_to(library)
        yield from ((Path(folder) / name, _LIBRARY / inside / name) for name in names)
    packages = {package: _installed(package) for package in MODULES.values()}
    for needed in _clients().values():
        packages |= needed
    for installed in packages.values():
        yield from _files_of(installed)


def _of_extras() -> dict[str, str]:
    """Return the modules of extras that tasks need, with their packages: clients of sources, the JSON Schema validator."""
    return {**CLIENTS, "jsonschema_rs": "jsonschema-rs"}


def _clients() -> dict[str, dict[str, Distribution]]:
    """Return the modules of the extras that are installed here by pip, each with the packages that it needs."""
    found = {module: _with_required(package) for module, package in _of_extras().items()}
    return {
        module: needed
        for module, needed in found.items()
        if needed and all(each.files is not None for each in needed.values())
    }


def _with_required(package: str) -> dict[str, Distribution]:
    """Return a package and its installed requirements, without extras: a marker may exclude one that is not installed."""
    found, left = dict[str, Distribution](), [package]
    while left:
        name = left.pop().lower().replace("_", "-").replace(".", "-")
        installed = _found(name)
        if installed is not None and name not in found:
            found[name] = installed
            wanted = (requirement.partition(";") for requirement in installed.requires or ())
            left += [_NAME.split(text.strip(), maxsplit=1)[0] for text, _, marker in wanted if "extra" not in marker]
    return found


def _found(package: str) -> Distribution | None:
    with suppress(PackageNotFoundError):
        return distribution(package)
    return None


def _shared_library() -> Path | None:
    """Return the shared library that the interpreter is linked with; None if it is linked statically."""
    name = sysconfig.get_config_var("INSTSONAME")
    if not sysconfig.get_config_var("Py_ENABLE_SHARED") or not name:
        return None
    folders = (sysconfig.get_config_var("LIBDIR"), f"{sys.base_prefix}/lib", sysconfig.get_config_var("LIBPL"))
    return next((Path(folder) / name for folder in folders if folder and (Path(folder) / name).is_file()), None)


def _installed(package: str) -> Distribution:
    found = _found(package)
    if found is None:
        raise FatalError(
            f"{package} is not installed in the Python that eosingest runs in",
            code="package-missing",
            hint=f"{sys.executable} -m pip install {package}",
        )
    return found


def _files_of(installed: Distribution) -> Iterator[tuple[Path, PurePosixPath]]:
    """Yield a package's files, except its tests, headers and programs."""
    if installed.files is None:
        raise FatalError(
            f"{installed.name} does not say which files it has",
            code="package-missing",
            hint="install it with pip, in a virtual environment",
        )
    for file in installed.files:
        source = Path(str(installed.locate_file(file)))
        if not _LEFT_OUT & set(file.parts) and ".." not in file.parts and source.is_file():
            yield source, _LIBRARY / "site-packages" / PurePosixPath(*file.parts)


def _tried(folder: Path, check: Callable[[], None]) -> dict[str, str]:
    """Unpack the archive and import the modules of tasks from it; return the packages' versions."""
    check()
    there = folder / "unpacked"
    with tarfile.open(folder / "archive") as archive:
        archive.extractall(there, filter="data")
    check()
    modules = {**MODULES, **{module: _of_extras()[module] for module in _clients()}}
    command = [str(there / "bin" / "python"), "-s", "-c", _LOOK, json.dumps(modules)]
    environment = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    try:
        done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=_CHECK_S)
    except subprocess.TimeoutExpired as error:
        raise _does_not_run("it did not end in time") from error
    if done.returncode:
        raise _does_not_run((done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1])
    found: dict[str, str] = json.loads(done.stdout)
    prefix = found.pop("prefix")
    with suppress(OSError):
        if not os.path.samefile(prefix, there):
            raise _does_not_run(f"it takes its library from {prefix}")
    return found


def _does_not_run(why: str) -> FatalError:
    return FatalError(
        f"the packed Python does not run on its own: {why}",
        code="package-broken",
        hint="no archive was written; use a Python built for many machines (conda-pack, or an image with the same Python), see"
        " docs/clusters.md",
    )
