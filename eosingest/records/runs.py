"""Finds runs of equal values in a column: the consecutive rows of a batch that are of one split."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt


def runs(values: npt.NDArray[Any]) -> Iterator[tuple[int, int]]:
    """Yield [start, end) of each run of equal values."""
    if len(values):
        bounds = [0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)]
        yield from itertools.pairwise(bounds)
