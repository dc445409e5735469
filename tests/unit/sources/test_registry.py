"""The kinds of sources are registered once: each format of a spec is of one, and its parts are where the registry says."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from eosingest.errors import SpecError
from eosingest.sources import registry
from eosingest.sources.registry import IN_TASKS, KINDS, Kind, formats, kind_of
from eosingest.spec import digest_parts, json_schema, load
from eosingest.spec.sources import source_tables
from tests.support.ledger import LEDGERS
from tests.support.ledger_table import LedgerTable


def test_each_format_of_a_spec_is_of_one_kind() -> None:
    """Breaks when a spec that loads names a source that nobody reads."""
    assert sorted(formats()) == sorted({name for kind in KINDS for name in kind.formats})
    assert all(name in kind_of(name).formats for name in formats())
    for kind, table in zip(KINDS, source_tables(), strict=True):
        assert table.model_json_schema()["properties"]["format"]["enum"] == list(kind.formats)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.formats[0])
def test_its_parts_are_there(kind: Kind) -> None:
    for path in filter(None, (kind.table_class, kind.source_factory, kind.scan_factory, kind.warmup)):
        module, name = path.split(":")
        assert callable(getattr(import_module(module), name))
    assert all(import_module(name) for name in IN_TASKS)


def test_a_kind_brings_its_own_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Breaks when a kind needs a change of the spec's own modules for its keys to be known, checked and described."""
    monkeypatch.setattr(registry, "KINDS", (*registry.KINDS, LEDGERS))
    file = tmp_path / "job.toml"
    rest = 'split_size = "2KiB"\n[sink]\nbootstrap_servers = "embedded"\ntopic = "t"\n'
    file.write_text(f'name = "j"\n[source]\nformat = "ledger"\nfolder = "data"\n{rest}')
    spec = load(file)
    assert isinstance(spec.source, LedgerTable)
    assert (spec.source.folder, spec.source.split_size, spec.source.given_schema) == ("data", 2048, None)
    assert digest_parts(spec)["source.format"] == "ledger"
    assert not {"source.schema", "source.options"} & digest_parts(spec).keys()
    assert spec.record.value == spec.source.default_value()
    shapes = json_schema()["properties"]["source"]["oneOf"]
    assert ["folder" in shape["properties"] for shape in shapes] == [False, False, False, True]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('format = "ledger"\nfoldr = "data"', 'source.foldr: unknown key; did you mean "folder"?'),
        ('format = "ledger"\npath = "data"\nfolder = "data"', "source.path: unknown key"),
        ('format = "ledger"', "source.folder: missing"),
        ('format = "ledger"\nfolder = 1', "source.folder: must be a string in quotes"),
        ('format = "ledgers"\npath = "data"', 'did you mean "ledger"?'),
        ('format = "json"\nfolder = "data"', "source.folder: unknown key"),
    ],
)
def test_what_is_wrong_with_it_is_said_by_its_own_keys(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, table: str, said: str
) -> None:
    monkeypatch.setattr(registry, "KINDS", (*registry.KINDS, LEDGERS))
    file = tmp_path / "job.toml"
    file.write_text(f'name = "j"\n[source]\n{table}\n[sink]\nbootstrap_servers = "embedded"\ntopic = "t"\n')
    with pytest.raises(SpecError) as caught:
        load(file)
    assert said in caught.value.message
