"""Stores the text of a source's scope in pieces, next to the control record that pins it (protocol/scope.py)."""

from __future__ import annotations

from dataclasses import dataclass

from eosingest.protocol.offsets import wire


@dataclass(frozen=True)
class ScopePiece(wire.Record):
    """A piece of the text of a scope."""

    text: str


def key(job: str, piece: int) -> bytes:
    """Return the key of a piece, by its number from 0."""
    return wire.encode([job, {"scope": piece}])
