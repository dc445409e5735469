"""Where the cache is, by environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from eosingest.host.paths import cache_directory


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("EOSINGEST_HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def test_default_is_below_home(tmp_path: Path) -> None:
    assert cache_directory() == tmp_path / ".cache" / "eosingest"


def test_xdg_cache_home_is_followed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_directory() == tmp_path / "xdg" / "eosingest"


@pytest.mark.parametrize("value", ["", "relative/cache"])
def test_useless_xdg_cache_home_is_ignored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", value)
    assert cache_directory() == tmp_path / ".cache" / "eosingest"


def test_eosingest_home_wins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("EOSINGEST_HOME", "~/mine")
    assert cache_directory() == tmp_path / "mine"


def test_relative_eosingest_home_becomes_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EOSINGEST_HOME", "here")
    assert cache_directory() == tmp_path / "here"
