"""Computes the checksum of a receipt: an order-free, additive checksum over the records written, kept with their count.

Each record hashes to XXH64 over (key is null, key, value), chained with seed 42 as Spark's `xxhash64` chains its arguments. A
null adds nothing to the hash; the boolean in front distinguishes a null key from a null value. A split's checksum is the sum of
the unsigned hashes modulo 2^64: never XOR, where a record written twice would cancel. In a run Spark computes the hash as a
column and the task adds it up; `record_hash` is the same in Python, for tests and audits. Headers and timestamp are in a second
sum, of a hash over the record's own hash and them, so that it matters which record carries them. It is 0 if a job gives its
records neither. Topic and partition are in neither sum.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

SEED = 42
MODULUS = 1 << 64
_FLAG = {null: xxhash.xxh64_intdigest(struct.pack("<i", null), seed=SEED) for null in (False, True)}

# The Spark SQL expression of a record's hash over binary columns named key and value.
SPARK_EXPRESSION = "xxhash64(key IS NULL, key, value)"
# Precedes the timestamp in the metadata hash.
TIMESTAMP_MARK = "timestamp"


@dataclass(frozen=True)
class Totals:
    """How many `records`, and the `checksum` over them: the sum of their hashes modulo 2^64.

    `metadata` is the sum over headers and timestamps, if rows of the source are compared with a receipt; else 0.
    """

    records: int = 0
    checksum: int = 0
    metadata: int = 0

    def __add__(self, other: Totals) -> Totals:
        return Totals(
            self.records + other.records,
            (self.checksum + other.checksum) % MODULUS,
            (self.metadata + other.metadata) % MODULUS,
        )

    def __sub__(self, other: Totals) -> Totals:
        return Totals(
            self.records - other.records,
            (self.checksum - other.checksum) % MODULUS,
            (self.metadata - other.metadata) % MODULUS,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the form for a report."""
        return {"records": self.records, "checksum": f"{self.checksum:016x}"}


def record_hash(key: bytes | None, value: bytes | None) -> int:
    """Return the unsigned 64-bit hash of one record."""
    # Spark hashes a boolean as a 4-byte little-endian int.
    digest = xxhash.xxh64_intdigest(struct.pack("<i", key is None), seed=SEED)
    for part in (key, value):
        if part is not None:
            digest = xxhash.xxh64_intdigest(part, seed=digest)
    return digest


def record_hashes(records: Iterable[tuple[bytes | None, bytes | None]]) -> list[int]:
    """Return `record_hash` of many (key, value), three times as fast: without a call of `record_hash` for each."""
    digest, null_key, key_follows = xxhash.xxh64_intdigest, _FLAG[True], _FLAG[False]
    hashes = []
    for key, value in records:
        found = null_key if key is None else digest(key, key_follows)
        hashes.append(found if value is None else digest(value, found))
    return hashes


def value_hashes(values: Sequence[bytes]) -> npt.NDArray[np.int64]:
    """Return the signed hashes of records that have no key, as Spark's column has them."""
    hashes = map(xxhash.xxh64_intdigest, values, itertools.repeat(_FLAG[True]))
    return np.fromiter(hashes, np.uint64, len(values)).view(np.int64)


def metadata_hash(
    record: int, headers: Sequence[tuple[str, bytes | None]], timestamp_ms: int | None, *, has_timestamp: bool
) -> int:
    """Return the unsigned metadata hash of one record, as Spark's column has it (spark/record_columns.py).

    `record` is the record's own hash. A null adds nothing to the hash: a boolean precedes each value.
    """
    digest = xxhash.xxh64_intdigest(struct.pack("<Q", record), seed=SEED)
    parts: list[tuple[str, bytes | None]] = list(headers)
    if has_timestamp:
        parts.append((TIMESTAMP_MARK, None if timestamp_ms is None else struct.pack("<q", timestamp_ms)))
    for name, value in parts:
        for part in (name.encode(), struct.pack("<i", value is None), value):
            if part is not None:
                digest = xxhash.xxh64_intdigest(part, seed=digest)
    return digest


def add(checksum: int, hashes: npt.NDArray[np.int64]) -> int:
    """Add a column of signed hashes, as Spark gives them, to a checksum."""
    return (checksum + int(hashes.view(np.uint64).sum(dtype=np.uint64))) % MODULUS


def signed_hash(parts: tuple[bytes | int, ...]) -> int:
    """Return Spark's `xxhash64` (signed) over strings as UTF-8 bytes and 64-bit integers."""
    digest = SEED
    for part in parts:
        data = part if isinstance(part, bytes) else struct.pack("<q", part)
        digest = xxhash.xxh64_intdigest(data, seed=digest)
    return digest - MODULUS if digest >= MODULUS >> 1 else digest
