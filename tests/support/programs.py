"""Programs of the system that tests need: `.ci/run` installs them, and a machine without one skips its tests."""

from __future__ import annotations

import os
import shutil

import pytest


def find_program(name: str) -> str:
    """Return the path of a program. Skips the test where it is missing, but for CI, where the test fails."""
    found = shutil.which(name, path=f"{os.environ['PATH']}{os.pathsep}/usr/sbin")
    if found is None:
        missing = f"{name} is not installed: apt-get install {name}"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    return found
