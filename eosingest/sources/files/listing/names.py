"""Maps file names between Python, Hadoop and Spark: which are hidden, which cannot be read, how each of them spells a path.

All rules were measured against Spark 4.0.5 on local files; tests/integration/test_spark_splits.py checks them.
"""

from __future__ import annotations

import os
import re

from eosingest.errors import FatalError
from eosingest.sources.files.storage.schemes import are_in_hdfs, below, store_of

_OBJECT = "s3://"
_GLOB_CHARACTERS = re.compile(r"([\\{}\[\]*?^])")
# Characters that java.net.URI quotes in a path: ASCII outside its legal set, and beyond ASCII only control and space.
_QUOTED_IN_URI = re.compile(
    r"[^A-Za-z0-9_.!~*'():@&=+$,;/\-\u0080-\U0010ffff]|[\u0080-\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
)


def is_hidden(name: str) -> bool:
    """Say whether Spark leaves out a file of this name, also if it is named explicitly, or a folder in a tree.

    Spark does enter folders that begin with `_metadata` or `_common_metadata`, for Parquet; they hold no data.
    """
    return name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith("._COPYING_")


def escape_for_spark(path: str) -> str:
    """Escape the characters that Spark would read as a glob, so that an explicit path means that one file.

    For paths to read only: `basePath` is not globbed and must be given unescaped.
    """
    return _GLOB_CHARACTERS.sub(r"\\\1", path)


def metadata_file_path(path: str) -> str:
    """Return a file's path as Spark's `_metadata.file_path` spells it, half URL-encoded: `file:/sp%20ace/ü`,
    `s3a://bucket/key`, `hdfs://name/path`.

    `PartitionedFile` in a physical plan, and `input_file_name()`, spell it the same except for `file:///` of a local one.
    """
    if path.startswith(_OBJECT):
        return "s3a://" + _QUOTED_IN_URI.sub(_quote, path.removeprefix(_OBJECT))
    if are_in_hdfs([path]):
        return store_of(path) + _QUOTED_IN_URI.sub(_quote, below(path))
    return "file:" + _QUOTED_IN_URI.sub(_quote, path)


def hadoop_text(path: str) -> str:
    """Return a file's path as the text of Hadoop's, unlike `metadata_file_path` not encoded: `file:/sp ace/ü`."""
    if path.startswith(_OBJECT):
        return "s3a://" + path.removeprefix(_OBJECT)
    return path if are_in_hdfs([path]) else f"file:{path}"


def check_hadoop_key(path: str) -> None:
    """Raise FatalError for an object whose key Hadoop's paths cannot have: they would name another object, or none."""
    if any(segment in ("", ".", "..") for segment in path.removeprefix(_OBJECT).split("/")):
        raise FatalError(
            f"{path}: Hadoop's client of S3 takes no key with an empty, '.' or '..' name between its slashes",
            code="file-name",
            hint="nothing of this run was sent; copy the object to another key, or leave it out by a narrower path",
        )


def check_readable_name(path: str) -> None:
    """Raise FatalError for an absolute path that Spark cannot be given: not UTF-8, or with a `:` where Hadoop fails.

    Hadoop takes a `:` in a folder, but not in the file's name, and not if it must look up the path as a glob.
    """
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise FatalError(
            f"The name {os.fsencode(path)!r} is not UTF-8, and Spark cannot open it.",
            code="file-name",
            hint="Rename it, or leave it out by a narrower path in [source].",
        ) from error
    if ":" in path and (":" in os.path.basename(path) or _GLOB_CHARACTERS.search(path)):
        raise FatalError(
            f"{path}: Hadoop cannot read a file with a ':' in its name"
            " (nor one below a folder with a ':' in its name when the path also holds one of \\ { } [ ] * ? ^).",
            code="file-name",
            hint="Rename it, or leave it out by a narrower path in [source].",
        )


def _quote(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode())
