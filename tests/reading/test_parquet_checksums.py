"""Parquet's page checksums: a flipped byte in any page that carries one never reaches a record."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from eosingest.errors import FatalError
from tests.support.reading.lab import Lab, lab  # noqa: F401 - a fixture

_ROWS = 400
_TABLE = pa.table({"s": [f"v{n % 50:04d}" for n in range(_ROWS)], "n": [n * 7919 for n in range(_ROWS)]})
_EXPECTED = [b'{"s":"v%04d","n":%d}' % (n % 50, n * 7919) for n in range(_ROWS)]


@pytest.mark.in_turns("one way to write pages each")
@pytest.mark.parametrize("dictionary", [True, False], ids=["dictionary", "plain"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["snappy", "NONE", "gzip", "zstd"])
def test_a_flipped_byte_in_a_page_is_found(lab: Lab, codec: str, version: str, dictionary: bool) -> None:  # noqa: F811
    """Data pages of both versions, dictionary pages, codecs, several row groups: the records are right, or there are none."""
    out, found = io.BytesIO(), 0
    parquet.write_table(
        _TABLE, out, compression=codec, data_page_version=version, use_dictionary=dictionary,
        write_page_checksum=True, row_group_size=_ROWS // 2, data_page_size=512, write_statistics=False,
    )  # fmt: skip
    good = out.getvalue()
    footer = int.from_bytes(good[-8:-4], "little") + 8
    for at in range(50, len(good) - footer, (len(good) - footer) // 2):
        flipped = bytearray(good)
        flipped[at] ^= 0x10
        try:
            assert lab.values("parquet", bytes(flipped)) == _EXPECTED, at
        except FatalError as error:
            found += "CRC checksum verification failed" in error.message
    assert found > 0
