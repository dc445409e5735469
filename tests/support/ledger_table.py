"""`[source]` of a spec whose source is ledgers (ledger.py)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, WithJsonSchema

from eosingest.spec.tables import SourceTable
from eosingest.spec.values import Text


class LedgerTable(SourceTable):
    """The ledgers to read."""

    format: Annotated[str, WithJsonSchema({"type": "string", "enum": ["ledger"]})] = Field(description="Always ledger.")
    folder: Text = Field(description="Where they lie, relative to the spec's folder.")
