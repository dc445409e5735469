"""Opens a data file and decompresses it as it is read: gzip, bzip2, zstd or lz4, by its suffix, as in Spark."""

from __future__ import annotations

import bz2
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

from eosingest.errors import FatalError, SpecError
from eosingest.sources.files.bytes import magic
from eosingest.sources.files.bytes.codecs import SUFFIXES

CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".zstd": "zstd", ".lz4": "lz4"}
_MAGIC = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\x28\xb5\x2f\xfd": ".zst", b"\x04\x22\x4d\x18": ".lz4"}
_SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")  # a skippable frame of zstd or lz4, which has no data
_HEAD = 4096
LOOKED_AT_BYTES = 64 << 20


class DataFile(Protocol):
    """A pathlib.Path, or an object with this part of its interface. `str()` of it is its name in messages."""

    @property
    def name(self) -> str:
        """The last part of its path."""

    @property
    def stem(self) -> str:
        """Its name without the last suffix."""

    @property
    def suffix(self) -> str:
        """The last suffix, with its dot."""

    def is_dir(self) -> bool:
        """Say whether it is a folder."""

    def exists(self) -> bool:
        """Say whether it exists."""

    def open(self, mode: Any) -> Any:
        """Open it for reading bytes."""


@dataclass(frozen=True)
class Opened:
    """A file and its first bytes, decompressed. `inner_suffix` is the suffix before the codec's: .csv of a.csv.gz.

    `unnamed`: its name does not show the codec.
    """

    file: DataFile
    codec: str | None
    inner_suffix: str
    head: bytes
    unnamed: bool = False

    @contextmanager
    def stream(self) -> Iterator[BinaryIO]:
        """Context manager: the decompressed bytes as a stream. Raises FatalError for damaged data."""
        with _clear_errors(self.file), _decompressed(self.file, self.codec) as stream:
            yield stream

    def bytes(self) -> tuple[bytes, bool]:
        """Return at most LOOKED_AT_BYTES decompressed bytes, cut at the end of a line, and whether these are all."""
        with self.stream() as stream:
            data = stream.read(LOOKED_AT_BYTES + 1)
        if len(data) <= LOOKED_AT_BYTES:
            return data, True
        return data[: data.rfind(b"\n", 0, LOOKED_AT_BYTES) + 1] or data[:LOOKED_AT_BYTES], False


def opened(file: DataFile) -> Opened:
    """Read the beginning of a file. Raises SpecError if there is no such file, FatalError if it cannot be read."""
    if file.is_dir():
        raise SpecError(f"{file} is a folder", code="not-a-file", hint="name one of its files")
    if not file.exists():
        raise SpecError(f"{file}: no such file", code="not-a-file", hint="name a data file that is there")
    codec = CODECS.get(file.suffix.lower())
    inner = Path(file.stem).suffix.lower() if codec else file.suffix.lower()
    with _clear_errors(file), file.open("rb") as raw:
        start = raw.read(_HEAD)
    first, unnamed = start[:8], False
    if codec is None and (kind := magic.kind_of(start)) in SUFFIXES:
        codec, unnamed = CODECS[SUFFIXES[str(kind)]], True
    found = next((suffix for begin, suffix in _MAGIC.items() if first.startswith(begin)), None)
    if codec in ("zstd", "lz4") and _SKIPPABLE.match(first):
        found = file.suffix.lower()
    if codec is not None and (found is None or CODECS[found] != codec) and first:
        raise FatalError(
            f"{file} is not compressed with {codec}, as its name says",
            code="codec-misnamed",
            hint="rename it as what it is",
        )
    look = Opened(file, codec, inner, b"", unnamed)
    with look.stream() as stream:
        head = stream.read(_HEAD)
    if not head:
        raise FatalError(f"{file} is empty", code="file-empty", hint="name a file with some rows in it")
    return Opened(file, codec, inner, head, unnamed)


def _decompressed(file: DataFile, codec: str | None) -> BinaryIO:
    raw: Any = file.open("rb")
    if codec == "gzip":
        return cast(BinaryIO, gzip.open(raw))
    if codec == "bz2":
        return cast(BinaryIO, bz2.open(raw))
    if codec == "zstd":
        import pyarrow  # takes 0.2 s, which a run that only checks for misspelt columns need not spend

        return cast(BinaryIO, io.BufferedReader(pyarrow.CompressedInputStream(pyarrow.PythonFile(raw), "zstd")))
    if codec == "lz4":
        import lz4.frame

        return cast(BinaryIO, lz4.frame.open(raw))
    return cast(BinaryIO, raw)


@contextmanager
def _clear_errors(file: DataFile) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, RuntimeError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FatalError(
            f"{file} cannot be read: {reason}", code="file-unreadable", hint="is it damaged, or not yours to read?"
        ) from error
