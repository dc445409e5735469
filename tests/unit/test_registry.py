"""The kinds of sources are registered once: each format of a spec is of one, and its parts are where the registry says."""

from __future__ import annotations

from importlib import import_module
from typing import get_args

import pytest

from eosingest.sources.registry import IN_TASKS, KINDS, Kind, kind_of
from eosingest.spec.model import Source


def test_each_format_of_a_spec_is_of_one_kind() -> None:
    """Breaks when a spec that loads names a source that nobody reads."""
    formats = [name for kind in KINDS for name in kind.formats]
    assert sorted(formats) == sorted(get_args(Source.model_fields["format"].annotation))
    assert all(name in kind_of(name).formats for name in formats)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.formats[0])
def test_its_parts_are_there(kind: Kind) -> None:
    for path in (kind.made, kind.scanned, kind.rehearsed):
        module, name = path.split(":")
        assert callable(getattr(import_module(module), name))
    assert all(import_module(name) for name in IN_TASKS)
