"""The record of a gap: what was deleted from the source before it was read, and a run was told to go on behind it.

Written with `running` and the moved position (protocol/data_loss.py), kept for the job's life: `status` and `verify` name it.
"""

from __future__ import annotations

from dataclasses import dataclass

from eosingest.protocol.offsets import wire


@dataclass(frozen=True)
class GapRecord(wire.Record):
    """A gap. `name` tells it from the job's others, `text` says what is missing, `size` how much in the source's unit.

    `run` is the run that went on behind it, `time` when (UTC, as text).
    """

    in_key = ("name",)

    name: str
    text: str
    size: int
    run: int
    time: str

    def key(self, job: str) -> bytes:
        """Return the key. A gap that has grown before anything behind it was read has the same one."""
        return wire.encode([job, {"gap": self.name}])
