"""Paths of buckets in a spec: what is refused beside them, and what is wrong with `storage`.

For the table of `[source]` (table.py), before anything is connected.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from eosingest.sources.files.storage.s3 import S3_URI, are_in_buckets
from eosingest.sources.files.whole import is_whole
from eosingest.spec.document import Problem

_ENDPOINT = re.compile(r"https?://[^@/?#\s]+/?", re.IGNORECASE)


def problems(paths: Iterable[Any], source: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what a `[source]` with such paths cannot have, and what is wrong with its `storage`."""
    paths, storage, options = list(paths), source.get("storage"), source.get("options")
    if not are_in_buckets(paths):
        if storage is not None:
            yield Problem(("source", "storage"), "is for paths of buckets (s3://bucket/…), and path names none")
        return
    if not all(isinstance(path, str) and S3_URI.match(path) for path in paths):
        yield Problem(("source", "path"), "names files of a bucket and others: give them a job each")
    is_lines = source.get("format") == "text" and not (isinstance(options, Mapping) and _is_whole(options))
    if is_lines and source.get("schema") is not None:
        yield Problem(("source", "schema"), "text has one column, value STRING; drop schema")
    if isinstance(storage, Mapping):
        yield from _storage(storage)


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
