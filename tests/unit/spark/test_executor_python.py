"""What goes into the archive of a Python for executors; that it runs there is for tests/integration/test_clusters.py."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from eosingest.app import executor_python
from eosingest.errors import EosingestError, FatalError
from eosingest.sources.registry import CLIENTS
from eosingest.spark.probe import MODULES


def test_all_that_tasks_import_and_no_more() -> None:
    """Breaks when this environment's other packages, tests or headers make the archive larger."""
    places = [place for _, place in executor_python._files()]
    assert len(places) == len(set(places))
    library = f"lib/python{sys.version_info.major}.{sys.version_info.minor}"
    named = {str(place) for place in places}
    assert {f"{library}/os.py", f"{library}/encodings/utf_8.py"} <= named
    packages = {place.parts[3].split("-")[0].split(".")[0] for place in places if "site-packages" in place.parts}
    assert packages >= {name.split(".")[0] for name in (*MODULES, *CLIENTS)}
    assert packages >= {
        "botocore",
        "s3transfer",
        "jmespath",
        "urllib3",
        "dateutil",
        "adbc_driver_manager",
        "jsonschema_rs",
    }
    assert not packages & {"pytest", "pyspark", "eosingest", "pip"}
    assert not [place for place in places if {"tests", "include", "__pycache__"} & set(place.parts)]


def test_clients_of_extras_that_are_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when an archive cannot be made without all extras, or has half of one."""
    monkeypatch.setitem(CLIENTS, "no_such.module", "no-such-package")
    assert "no_such.module" not in executor_python._clients()
    monkeypatch.delitem(CLIENTS, "boto3")
    places = {place.parts[3] for _, place in executor_python._files() if "site-packages" in place.parts}
    assert not places & {"boto3", "botocore"}


def test_what_is_missing_here_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODULES, "no_such", "no-such-package")
    with pytest.raises(FatalError, match="no-such-package is not installed"):
        list(executor_python._files())


def test_nothing_is_left_where_it_does_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when an archive appears that was not tried, or a temporary folder stays."""
    monkeypatch.setattr(executor_python, "_files", lambda: iter(()))
    with pytest.raises(FatalError) as raised:
        executor_python.pack(tmp_path / "env.tar.gz", lambda: None)
    assert raised.value.code == "package-broken"
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(EosingestError, match="no-such"):
        executor_python.pack(tmp_path / "no-such" / "env.tar.gz", lambda: None)
