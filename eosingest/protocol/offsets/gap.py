"""Defines the record of a gap: source data deleted before it was read, which a run with `--accept-gap` skipped.

Written with `running` and the moved position (protocol/data_loss.py), kept until `--from-scratch`: `status`, `verify` name it.
"""

from __future__ import annotations

from dataclasses import dataclass

from eosingest.protocol.offsets import wire


@dataclass(frozen=True)
class GapRecord(wire.Record):
    """A gap. `name` is unique in the job, `text` describes the missing data, `size` is how much in the source's unit.

    `run` is the run that skipped it, `time` when (UTC, as text).
    """

    in_key = ("name",)

    name: str
    text: str
    size: int
    run: int
    time: str

    def key(self, job: str) -> bytes:
        """Return the key. A gap that grows before data after it is read keeps its key."""
        return wire.encode([job, {"gap": self.name}])
