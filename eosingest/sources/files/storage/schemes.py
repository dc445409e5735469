"""Which storage a path is of, told by its scheme; and where in a store it is."""

from __future__ import annotations

import re
from collections.abc import Iterable

S3_URI = re.compile(r"s3a?://", re.IGNORECASE)
HDFS_URI = re.compile(r"hdfs://", re.IGNORECASE)


def are_in_buckets(paths: Iterable[object]) -> bool:
    """Say whether a path is of a bucket; then all have to be (`S3Places.parse`)."""
    return any(isinstance(path, str) and S3_URI.match(path) for path in paths)


def are_in_hdfs(paths: Iterable[object]) -> bool:
    """Say whether a path is of HDFS; then all have to be (`HdfsPlaces.parse`)."""
    return any(isinstance(path, str) and HDFS_URI.match(path) for path in paths)


def are_in_store(paths: Iterable[object]) -> bool:
    """Say whether a path is of a store, and not of the local disk."""
    return any(isinstance(path, str) and (S3_URI.match(path) or HDFS_URI.match(path)) for path in paths)


def store_of(path: str) -> str:
    """Return the bucket, or the name node, of a path in a store: `s3://bucket`, `hdfs://name`."""
    return "/".join(path.split("/")[:3])


def below(path: str) -> str:
    """Return what stands behind the bucket, or the name node, in a path of a store; "/" where nothing does."""
    return path[len(store_of(path)) :] or "/"
