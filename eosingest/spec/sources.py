"""Finds the class of the table `[source]` by its kind: the loader's access to sources/registry.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eosingest.sources import registry
from eosingest.spec.tables import SourceTable


def source_table(source: Mapping[str, Any]) -> type[SourceTable]:
    """Return the class of a `[source]` by its `format`; for an unknown format, a class that reports that."""
    named = source.get("format")
    kind = registry.kind_of(named) if isinstance(named, str) and named in registry.formats() else registry.FILES
    table: type[SourceTable] = kind.table()
    return table


def source_tables() -> list[type[SourceTable]]:
    """Return the classes of `[source]` of all kinds."""
    return [kind.table() for kind in registry.KINDS]
