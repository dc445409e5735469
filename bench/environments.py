"""What the contenders need beside eosingest: Python environments and jars of their own, fetched once into the user's cache."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from eosingest.host.java import find_java
from eosingest.host.paths import cache_directory

FOLDER = cache_directory() / "bench"


def python_with(*packages: str) -> Path:
    """Return the Python of an environment that has these packages and nothing else."""
    folder = FOLDER / _name("python", packages)
    ready = folder / "ready"
    if not ready.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        pip = [str(folder / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *packages], check=True)
        ready.touch()
    return folder / "bin/python"


def jars(*coordinates: str) -> Path:
    """Return a folder with these jars ("group:name:version") and all that they need, without Scala's and Spark's own."""
    folder = FOLDER / _name("jars", coordinates)
    libs = folder / "libs"
    if not libs.exists():
        folder.mkdir(parents=True, exist_ok=True)
        wanted = "".join(
            f'<dependency org="{group}" name="{name}" rev="{version}" conf="default->default"/>'
            for group, name, version in (coordinate.split(":") for coordinate in coordinates)
        )
        file = folder / "ivy.xml"
        file.write_text(
            '<ivy-module version="2.0"><info organisation="bench" module="bench"/>'
            f'<configurations><conf name="default"/></configurations><dependencies>{wanted}</dependencies></ivy-module>'
        )
        fresh = folder / "fresh"
        command = [str(find_java()), "-jar", str(_ivy()), "-ivy", str(file), "-confs", "default", "-novalidate"]
        command += ["-cache", str(folder / "cache"), "-retrieve", f"{fresh}/[artifact]-[revision].[ext]"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        fresh.rename(libs)
    return libs


def _ivy() -> Path:
    """Return the Ivy jar that pyspark ships."""
    spec = find_spec("pyspark")
    assert spec is not None and spec.submodule_search_locations
    return sorted(Path(spec.submodule_search_locations[0]).glob("jars/ivy-*.jar"))[-1]


def _name(kind: str, what: tuple[str, ...]) -> str:
    return f"{kind}-{hashlib.sha256(' '.join(what).encode()).hexdigest()[:12]}"
