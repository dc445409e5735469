"""Returns the items of a plan as files."""

from __future__ import annotations

from eosingest.protocol.plan import Plan
from eosingest.sources.files.listing.source_file import SourceFile, as_file


def planned_files(plan: Plan) -> list[SourceFile]:
    """Return all files of the plan, done ones too, in its order."""
    return [as_file(entry.item) for entry in plan.items]


def pending_files(plan: Plan) -> list[SourceFile]:
    """Return the files that have to be read, in the plan's order."""
    return [as_file(entry.item) for entry in plan.pending_items]
