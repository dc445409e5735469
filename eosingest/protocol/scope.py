"""Lists a source inside its scope: frozen when splits were planned, so that a rerun cuts the same (docs/protocol.md).

The source makes and reads scopes; the offsets topic keeps their text in pieces. Pure, except that the source is listed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Final

from eosingest.errors import ChangedError, SpecError
from eosingest.protocol import pins
from eosingest.protocol.offsets.record import ControlRecord, ScopePin
from eosingest.protocol.offsets.scope_piece import ScopePiece
from eosingest.protocol.offsets.state import JobState
from eosingest.protocol.source import Purpose, Scope, Snapshot, Source

MOST_BYTES: Final = 4 << 20
# The text is ASCII. Inside a JSON string a byte of it takes two at most, so that a record's value stays below 256 KiB.
PIECE_BYTES: Final = 120 << 10


def snapshot(
    source: Source, control: ControlRecord | None, state: JobState, purpose: Purpose = Purpose.RUN
) -> Snapshot:
    """List the source inside the scope in force; without one, it may freeze a new one of data that no done split covers.

    `control` has the pins, None before there are any; `state` has the offset records and the pieces. Raises ChangedError
    where the scope in force is not whole, or the source does not keep to it.
    """
    in_force = control is not None and pins.in_force(control, state.offsets)
    scope = whole(control.scope, state.scope) if control is not None and in_force and control.scope else None
    snapshot = source.plan(scope, state.offsets.values(), purpose)
    if in_force and snapshot.scope != scope:
        raise _lost("the listing of the source does not keep to the scope that is pinned")
    return snapshot


def pinned(scope: Scope | None) -> tuple[ScopePin | None, tuple[str, ...]]:
    """Return a scope's pin for the control record, and its pieces. Raises SpecError where it is too large to keep."""
    if scope is None:
        return None, ()
    text = json.dumps(scope, separators=(",", ":"), allow_nan=False)
    if len(text) > MOST_BYTES:
        raise SpecError(
            f"the scope that the source has to freeze takes {len(text):,} bytes, and at most {MOST_BYTES:,} are kept",
            code="scope-too-large",
            hint="nothing was sent; let the source be cut into fewer splits",
        )
    pieces = tuple(text[at : at + PIECE_BYTES] for at in range(0, len(text), PIECE_BYTES))
    return ScopePin(_hash(text), len(pieces)), pieces


def whole(pin: ScopePin, pieces: Mapping[int, ScopePiece]) -> Scope:
    """Return the pinned scope from its pieces. Raises ChangedError where they are not those that were written."""
    missing = [number for number in range(pin.pieces) if number not in pieces]
    if missing:
        raise _lost(f"piece {missing[0]} of {pin.pieces} is missing (counted from 0)")
    text = "".join(pieces[number].text for number in range(pin.pieces))
    if _hash(text) != pin.hash:
        raise _lost("its pieces are not those that were written with the control record")
    scope: Scope = json.loads(text)
    return scope


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _lost(why: str) -> ChangedError:
    return ChangedError(
        f"the scope by which the source was cut cannot be used: {why}; with a new scope, rows would be sent again",
        code="scope-lost",
        hint=f"nothing was sent; restore the offsets topic, or take a new job name{pins.from_scratch_hint()}",
    )
