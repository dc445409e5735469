"""The receipt's checksum: order-free, additive, told apart from XOR, and the same numbers as Spark's `xxhash64`."""

from __future__ import annotations

import random

import numpy as np
import pytest

from eosingest.records.checksum import SPARK_EXPRESSION, add, record_hash, signed_hash

MODULUS = 1 << 64
Record = tuple[bytes | None, bytes | None]


def signed(value: int) -> int:
    return value - MODULUS if value >= MODULUS >> 1 else value


def receipt(records: list[Record], checksum: int = 0) -> int:
    return add(checksum, np.array([signed(record_hash(*record)) for record in records], dtype=np.int64))


RECORDS: list[Record] = [(str(n % 7).encode(), f"value {n}".encode()) for n in range(1000)]

# Computed once with Spark 4.0: xxhash64(key IS NULL, key, value) over binary columns.
FROM_SPARK: list[tuple[bytes | None, bytes | None, int]] = [
    (None, None, -6698625589789238999),
    (b"", None, -6955412699463271691),
    (None, b"", -158827558839075212),
    (b"", b"", -3177986837236662963),
    (b"k", b"v", -2897734669524262265),
    (b"v", b"k", -1716371597803428549),
    (b"kv", b"", 6664849129992915566),
    (b"", b"kv", 6854754607238931757),
    (None, b"v", 3845155678150516955),
    (b"v", None, -1156206920656076424),
    (bytes(range(256)), b"\x00\xff" * 50, 1008436130397743146),
]


@pytest.mark.parametrize(("key", "value", "expected"), FROM_SPARK)
def test_record_hash_is_what_spark_computes(key: bytes | None, value: bytes | None, expected: int) -> None:
    assert signed(record_hash(key, value)) == expected


def test_the_expression_the_vectors_were_made_with_is_the_one_in_use() -> None:
    assert SPARK_EXPRESSION == "xxhash64(key IS NULL, key, value)"


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        # Computed once with Spark 4.0: xxhash64 of strings and BIGINTs.
        ((b"",), -7444071767201028348),
        ((b"Spark",), -4294468057691064905),
        ((0,), -5252525462095825812),
        ((-1,), 3858142552250413010),
        (("file:/a b/ünï.jsonl".encode(), 0, 33554432, 1700000000123), -3218343398462213137),
        ((b"file:/x", 1), -7887875747559717324),
    ],
)
def test_signed_hash_is_what_spark_computes(parts: tuple[bytes | int, ...], expected: int) -> None:
    assert signed_hash(parts) == expected


def test_null_and_empty_key_and_value_all_differ() -> None:
    assert len({record_hash(key, value) for key, value, _ in FROM_SPARK}) == len(FROM_SPARK)


def test_order_does_not_matter() -> None:
    shuffled = random.Random(1).sample(RECORDS, len(RECORDS))
    assert shuffled != RECORDS
    assert receipt(shuffled) == receipt(RECORDS)


@pytest.mark.parametrize("cut", [0, 1, 333, 999, 1000])
def test_adds_up_over_any_cut(cut: int) -> None:
    assert receipt(RECORDS[cut:], receipt(RECORDS[:cut])) == receipt(RECORDS)


def test_a_record_written_twice_or_left_out_shows() -> None:
    whole = receipt(RECORDS)
    twice, thrice = receipt([*RECORDS, RECORDS[5]]), receipt([*RECORDS, RECORDS[5], RECORDS[5]])
    assert len({whole, twice, thrice, receipt(RECORDS[1:])}) == 4


def test_duplicates_do_not_cancel() -> None:
    pair: list[Record] = [(b"k", b"v"), (b"k", b"v")]
    assert receipt(pair) == 2 * record_hash(b"k", b"v") % MODULUS != 0


def test_wraps_modulo_2_to_the_64() -> None:
    minus_one = np.array([-1, -1], dtype=np.int64)  # each is 2^64 - 1 unsigned
    assert add(0, minus_one) == MODULUS - 2
    assert add(5, minus_one) == 3
    assert add(MODULUS - 1, np.array([1], dtype=np.int64)) == 0


def test_sum_is_exact_where_floats_would_round() -> None:
    hashes = [record_hash(None, str(n).encode()) for n in range(10_000)]
    column = np.array([signed(value) for value in hashes], dtype=np.int64)
    assert add(7, column) == (7 + sum(hashes)) % MODULUS
    assert add(7, column[::2]) == (7 + sum(hashes[::2])) % MODULUS, "a column that is a view of another"


def test_nothing_adds_nothing() -> None:
    assert add(42, np.array([], dtype=np.int64)) == 42
    assert type(add(42, np.array([1], dtype=np.int64))) is int, "goes into JSON as it is"
