"""The data file that `init --from` names: on this machine, or in a bucket; and what a spec can say of one in a bucket."""

from __future__ import annotations

import re
from typing import Any

from eosingest.errors import SpecError
from eosingest.sniff.found import Found
from eosingest.sources import registry

_COLUMN = re.compile(r"(?:CAST\()?(\w+)(?: AS STRING\))?")


def data_file(text: str) -> Any:
    """Return what a path names, to be looked at by `sniff`."""
    return registry.FILES.data_file(text)


def as_in_bucket(found: Found, path: str) -> tuple[Found, str | None]:
    """Return what was found as it is read of a bucket, and the key: JSON lines are lines.

    Raises SpecError for what is not read of one.
    """
    if found.format in ("text", "xml"):
        return found, found.key
    if found.format != "json" or found.options:
        raise SpecError(
            f"{path} is {found.format}, and of a bucket only lines of text and xml are read in this version",
            code="storage-format",
            hint="copy it to a disk, then: eosingest init --from FILE",
        )
    column = _COLUMN.fullmatch(found.key or "")
    note = "of a bucket, JSON lines are read as text: each is a record as it is, and get_json_object takes values out of it"
    lines = Found("text", whole=found.whole, notes=(*found.notes, note))
    return lines, f"get_json_object(value, '$.{column[1]}')" if column is not None else None
