"""The JSON of the offsets topic: how keys and values are written and parsed, and which format versions are read.

Below record.py and gap.py, whose records these are. Pure.
"""

from __future__ import annotations

import json
from typing import Any, Final

from eosingest.errors import FatalError

FORMAT_VERSION: Final = 5  # the newest that is read


def encode(value: object) -> bytes:
    """Return the wire form of a key or a value."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def load(value: bytes, what: str) -> dict[str, Any]:
    """Parse a value. Raises FatalError, which says `what` it is, for a newer format version: it may mean something else."""
    loaded: dict[str, Any] = json.loads(value.decode())
    version = loaded.pop("v", None)
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise FatalError(
            f"a {what} in the offsets topic has format version {version}; this eosingest reads up to {FORMAT_VERSION}",
            code="newer-format",
            hint="upgrade eosingest; nothing was sent",
        )
    return loaded


def known(cls: type, loaded: dict[str, Any]) -> dict[str, Any]:
    """Drop fields that a later release of the same format version added."""
    names = cls.__dataclass_fields__  # type: ignore[attr-defined]
    if loaded.keys() <= names.keys():
        return loaded
    return {name: value for name, value in loaded.items() if name in names}
