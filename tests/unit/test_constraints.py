"""The two sets of versions that tests run on: constraints-oldest.txt is what pyproject.toml promises."""

from __future__ import annotations

import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]


def pins(name: str) -> dict[str, Version]:
    """Return the version of each package of a file of constraints."""
    found = (line.split("==") for line in (ROOT / name).read_text().split())
    return {canonicalize_name(package): Version(version) for package, version in found}


def test_the_oldest_versions_are_those_that_are_promised() -> None:
    """Breaks when a lower bound changes and `make test-oldest` still plays another version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    oldest, newest = pins("constraints-oldest.txt"), pins("constraints.txt")
    for text in [*project["dependencies"], *(text for name in extras if name != "dev" for text in extras[name])]:
        needed = Requirement(text)
        package = canonicalize_name(needed.name)
        (lowest,) = (Version(one.version) for one in needed.specifier if one.operator == ">=")
        assert oldest[package].release[: len(lowest.release)] == lowest.release, text
        assert newest[package] in needed.specifier, text
