"""Edits records in the log segments of a broker that is down: a record taken out, a byte changed, with the checksums right.

What a disk or a bug below Kafka's API could do, and no client can. The format is that of Kafka's record batches, version 2;
batches are expected uncompressed.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path

from kafka.record.util import calc_crc32c, decode_varint

_HEADER = struct.Struct(">qiibIhiqqqhii")  # base offset … base sequence, number of records
_CRC_AT, _CRC_FROM, _RECORDS_AT = 17, 21, 61
_CONTROL = 0x20

Record = tuple[bytes | None, bytes | None]
Edit = Callable[[bytes], bytes | None]


def edit_record(data: Path, topic: str, wanted: Record, edit: Edit) -> None:
    """Edit the first record of a topic with this key and value; None takes it out. `data` is the broker's folder."""
    for segment in sorted(data.rglob(f"{topic}-*/*.log")):
        batches = list(_batches(segment.read_bytes()))
        for number, batch in enumerate(batches):
            edited = _edited(batch, wanted, edit)
            if edited is not None:
                segment.write_bytes(b"".join([*batches[:number], edited, *batches[number + 1 :]]))
                drop_indexes(segment.parent)
                return
    raise AssertionError(f"no record {wanted} in {topic}")


def drop_indexes(log: Path) -> None:
    """Remove the indexes of a partition's folder: they point into its files. The broker makes missing ones anew."""
    for pattern in ("*.index", "*.timeindex"):
        for index in log.glob(pattern):
            index.unlink()


def _batches(log: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(log):
        length = 12 + struct.unpack_from(">i", log, at + 8)[0]
        yield log[at : at + length]
        at += length


def _edited(batch: bytes, wanted: Record, edit: Edit) -> bytes | None:
    """Return the batch with the record edited, None where it is not in it. Offsets stay: a gap, as after compaction."""
    header = list(_HEADER.unpack_from(batch))
    assert header[5] & 7 == 0, "compressed"
    if header[5] & _CONTROL:
        return None
    records = list(_records(batch, header[-1]))
    for number, record in enumerate(records):
        if _key_and_value(record) == wanted:
            replaced = edit(record)
            records[number : number + 1] = [] if replaced is None else [replaced]
            header[-1] = len(records)
            header[1] = _RECORDS_AT - 12 + sum(map(len, records))
            made = bytearray(_HEADER.pack(*header) + b"".join(records))
            struct.pack_into(">I", made, _CRC_AT, calc_crc32c(bytes(made[_CRC_FROM:])))
            return bytes(made)
    return None


def _records(batch: bytes, number: int) -> Iterator[bytes]:
    at = _RECORDS_AT
    for _ in range(number):
        length, begins = decode_varint(batch, at)
        yield batch[at : begins + length]
        at = begins + length


def _key_and_value(record: bytes) -> Record:
    _, at = decode_varint(record, 0)
    _, at = decode_varint(record, at + 1)  # behind the attributes: timestamp
    _, at = decode_varint(record, at)  # offset
    key, at = _bytes(record, at)
    value, _ = _bytes(record, at)
    return key, value


def _bytes(record: bytes, at: int) -> tuple[bytes | None, int]:
    length, at = decode_varint(record, at)
    return (None, at) if length < 0 else (record[at : at + length], at + length)
