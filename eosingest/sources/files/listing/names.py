"""Says which files are hidden, as for Spark, which names cannot be kept, and how Hadoop spells a path."""

from __future__ import annotations

import os

from eosingest.errors import FatalError
from eosingest.sources.files.storage.schemes import are_in_hdfs

_OBJECT = "s3://"


def is_hidden(name: str) -> bool:
    """Say whether Spark leaves out a file of this name, also if it is named explicitly, or a folder in a tree.

    Spark does enter folders that begin with `_metadata` or `_common_metadata`, for Parquet; they hold no data.
    """
    return name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith("._COPYING_")


def hadoop_text(path: str) -> str:
    """Return a file's path as the text of Hadoop's: `file:/sp ace/ü`, not encoded."""
    if path.startswith(_OBJECT):
        return "s3a://" + path.removeprefix(_OBJECT)
    return path if are_in_hdfs([path]) else f"file:{path}"


def check_readable_name(path: str) -> None:
    """Raise FatalError for an absolute path that is not UTF-8: no offset record could hold its name."""
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise FatalError(
            f"The name {os.fsencode(path)!r} is not UTF-8.",
            code="file-name",
            hint="Rename it, or leave it out by a narrower path in [source].",
        ) from error
