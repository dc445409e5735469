"""Finds the storage of a path by its scheme, and the place in a store."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

S3_URI = re.compile(r"s3a?://", re.IGNORECASE)
URI = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):/")
HDFS_URI = re.compile(r"hdfs://", re.IGNORECASE)


def are_in_buckets(paths: Iterable[object]) -> bool:
    """Say whether a path is in a bucket; then all must be (`S3Places.parse`)."""
    return any(isinstance(path, str) and S3_URI.match(path) for path in paths)


def are_in_hdfs(paths: Iterable[object]) -> bool:
    """Say whether a path is in HDFS; then all must be (`HdfsPlaces.parse`)."""
    return any(isinstance(path, str) and HDFS_URI.match(path) for path in paths)


def are_in_store(paths: Iterable[object]) -> bool:
    """Say whether a path is in a store, and not on the local disk."""
    return any(isinstance(path, str) and (S3_URI.match(path) or HDFS_URI.match(path)) for path in paths)


def is_relative(path: str) -> bool:
    """Say whether a path begins in the spec's folder."""
    return not os.path.isabs(path) and URI.match(path) is None


def store_of(path: str) -> str:
    """Return the bucket, or the name node, of a path in a store: `s3://bucket`, `hdfs://name`."""
    return "/".join(path.split("/")[:3])


def below(path: str) -> str:
    """Return the text after the bucket, or the name node, in a path of a store; "/" if it is empty."""
    return path[len(store_of(path)) :] or "/"
