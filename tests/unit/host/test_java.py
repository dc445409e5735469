"""Which Java is taken, and what is said where there is none: with made-up Java folders, without a JVM."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from eosingest.errors import FatalError
from eosingest.host.java import find_java, java_major_version

MakeJava = Callable[..., Path]


@pytest.fixture
def make_java(tmp_path: Path) -> MakeJava:
    """Make a Java folder; its program prints `says`, and fails where nothing should have started it."""

    def make(name: str, *, release: str = "", says: str = "") -> Path:
        java = tmp_path / name / "bin" / "java"
        java.parent.mkdir(parents=True)
        java.write_text(f"#!/bin/sh\necho '{says}' >&2\n" if says else "#!/bin/sh\nexit 1\n")
        java.chmod(0o755)
        if release:
            (tmp_path / name / "release").write_text(f'IMPLEMENTOR="X"\nJAVA_VERSION="{release}"\n')
        return java

    return make


@pytest.mark.parametrize(("version", "major"), [("17.0.15", 17), ("21", 21), ("1.8.0_392", 8), ("25-ea", 25)])
def test_version_is_read_from_the_release_file_without_starting_it(
    make_java: MakeJava, version: str, major: int
) -> None:
    assert java_major_version(make_java("jdk", release=version)) == major


def test_version_is_asked_for_without_a_release_file(make_java: MakeJava) -> None:
    assert java_major_version(make_java("jdk", says='openjdk version "21.0.2" 2024-01-16')) == 21


def test_java_that_says_nothing_counts_as_missing(make_java: MakeJava) -> None:
    with pytest.raises(FatalError) as caught:
        java_major_version(make_java("stub"))
    assert caught.value.code == "java-missing"


def test_java_home_wins_over_path(make_java: MakeJava, monkeypatch: pytest.MonkeyPatch) -> None:
    home, other = make_java("home", release="21.0.1"), make_java("other", release="17.0.1")
    monkeypatch.setenv("PATH", str(other.parent))
    monkeypatch.setenv("JAVA_HOME", str(home.parent.parent))
    assert find_java() == home
    monkeypatch.delenv("JAVA_HOME")
    assert find_java() == other


def test_old_java_is_refused_with_what_to_install(make_java: MakeJava, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java("jdk", release="11.0.2").parent.parent))
    with pytest.raises(FatalError, match="is Java 11") as caught:
        find_java()
    assert caught.value.code == "java-too-old"
    assert "17" in caught.value.hint


def test_java_home_without_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(FatalError, match="JAVA_HOME is") as caught:
        find_java()
    assert caught.value.code == "java-missing"
    assert str(tmp_path) in caught.value.message


def test_no_java_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FatalError, match="no java on the PATH") as caught:
        find_java()
    assert caught.value.code == "java-missing"
    assert "install" in caught.value.hint
