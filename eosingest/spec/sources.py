"""Which kind's table `[source]` is: between the loader and the kinds' own tables (sources/registry.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eosingest.sources import registry
from eosingest.spec.tables import SourceTable


def source_table(source: Mapping[str, Any]) -> type[SourceTable]:
    """Return the kind's table for a `[source]` as it was read; where its format is of no kind, one that says so."""
    named = source.get("format")
    kind = registry.kind_of(named) if isinstance(named, str) and named in registry.formats() else registry.FILES
    table: type[SourceTable] = kind.table()
    return table


def source_tables() -> list[type[SourceTable]]:
    """Return the tables of all kinds."""
    return [kind.table() for kind in registry.KINDS]
