"""The pieces in which the text of a source's scope is kept, beside the control record that pins it (protocol/scope.py)."""

from __future__ import annotations

from eosingest.protocol.offsets import wire

_WRITTEN = 1


def key(job: str, piece: int) -> bytes:
    """Return the key of a piece, by its number from 0."""
    return wire.encode([job, {"scope": piece}])


def encode(text: str) -> bytes:
    """Return the wire form of a piece."""
    return wire.encode({"v": _WRITTEN, "text": text})


def decode(value: bytes) -> str:
    """Return the text of a piece. Raises FatalError for a newer format version."""
    return str(wire.load(value, "scope")["text"])
