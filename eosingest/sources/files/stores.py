"""Checks paths of stores (buckets, HDFS) in a spec, the keys that are refused with them, and `storage`.

For the table of `[source]` (table.py), before anything is connected.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from eosingest.sources.files.formats.whole import is_whole
from eosingest.sources.files.storage.schemes import HDFS_URI, S3_URI, are_in_buckets, are_in_hdfs
from eosingest.spec.document import Problem

_ENDPOINT = re.compile(r"https?://[^@/?#\s,]+/?", re.IGNORECASE)


def problems(paths: Iterable[Any], source: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the keys that a `[source]` with such paths cannot have, and the faults of its `storage`."""
    paths, storage, options = list(paths), source.get("storage"), source.get("options")
    in_buckets = are_in_buckets(paths)
    if not in_buckets and not are_in_hdfs(paths):
        if storage is not None:
            yield Problem(
                ("source", "storage"), "is for paths of stores (s3://bucket/…, hdfs://…), and path names none"
            )
        return
    scheme, store = (S3_URI, "a bucket") if in_buckets else (HDFS_URI, "HDFS")
    if not all(isinstance(path, str) and scheme.match(path) for path in paths):
        yield Problem(("source", "path"), f"names files of {store} and others: give them a job each")
    is_lines = source.get("format") == "text" and not (isinstance(options, Mapping) and _is_whole(options))
    if is_lines and source.get("schema") is not None:
        yield Problem(("source", "schema"), "text has one column, value STRING; drop schema")
    if isinstance(storage, Mapping):
        yield from _storage(storage) if in_buckets else _name_node(storage)


def _is_whole(options: Mapping[str, Any]) -> bool:
    return is_whole("text", {name: str(value).lower() for name, value in options.items()})


def _storage(storage: Mapping[str, Any]) -> Iterator[Problem]:
    endpoint = storage.get("endpoint")
    if isinstance(endpoint, str) and not _ENDPOINT.fullmatch(endpoint):
        yield Problem(
            ("source", "storage", "endpoint"), "must be a URL without path and user, such as https://host:9000"
        )
    given = {key for key in ("access_key", "secret_key", "session_token") if storage.get(key) is not None}
    missing = {"access_key", "secret_key"} - given if given else set()
    for key in sorted(missing):
        yield Problem(("source", "storage", key), f"is missing, and {sorted(given)[0]} is given")


def _name_node(storage: Mapping[str, Any]) -> Iterator[Problem]:
    for key in sorted(key for key, value in storage.items() if key != "endpoint" and value is not None):
        yield Problem(
            ("source", "storage", key), "is for buckets, and path is of HDFS, which is reached at its endpoint"
        )
    endpoint = storage.get("endpoint")
    if isinstance(endpoint, str) and not all(_ENDPOINT.fullmatch(one.strip()) for one in endpoint.split(",")):
        yield Problem(
            ("source", "storage", "endpoint"),
            "must be the URL of the name node's web address, such as http://namenode:9870; several with commas between them",
        )
