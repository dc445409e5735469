"""The kinds of sources are registered once: each format of a spec is of one, and its parts are where the registry says."""

from __future__ import annotations

from importlib import import_module

import pytest

from eosingest.sources.registry import FORMATS, IN_TASKS, KINDS, Kind, kind_of
from eosingest.spec.sources import source_tables


def test_each_format_of_a_spec_is_of_one_kind() -> None:
    """Breaks when a spec that loads names a source that nobody reads."""
    assert sorted(FORMATS) == sorted({name for kind in KINDS for name in kind.formats})
    assert all(name in kind_of(name).formats for name in FORMATS)
    for kind, table in zip(KINDS, source_tables(), strict=True):
        assert table.model_json_schema()["properties"]["format"]["enum"] == list(kind.formats)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.formats[0])
def test_its_parts_are_there(kind: Kind) -> None:
    for path in (kind.tabled, kind.made, kind.scanned, kind.rehearsed):
        module, name = path.split(":")
        assert callable(getattr(import_module(module), name))
    assert all(import_module(name) for name in IN_TASKS)
