"""Lists buckets: by prefix, a thousand keys a request, without a JVM (`places.Places`).

s3://bucket/orders/2026-*/*.jsonl ─▶ ListObjectsV2 with Prefix=orders/2026- ─▶ keys.py ─▶ paths, lengths, ETags
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from eosingest.errors import FatalError, SpecError
from eosingest.host.interruption import never
from eosingest.protocol.source import Version
from eosingest.sources.files.listing import etags, keys
from eosingest.sources.files.listing.globs import is_plain
from eosingest.sources.files.listing.names import is_hidden
from eosingest.sources.files.listing.places import StorePlaces, Written, names_hidden, not_found, only_deeper, waited
from eosingest.sources.files.listing.source_file import SourceFile
from eosingest.sources.files.storage.port import NotAsListedError, Status
from eosingest.sources.files.storage.s3 import S3Storage, explained, parted
from eosingest.sources.files.storage.schemes import S3_URI

_ASKED_ONE_BY_ONE = 16


class S3Places(StorePlaces):
    """Buckets as the source of files lists them."""

    def __init__(self, storage: S3Storage, check: Callable[[], None]) -> None:
        """`check` is called for each request, and raises to end a run that was interrupted."""
        self.storage = storage
        self._check = check

    def parse(self, text: str) -> Written:
        """Parse a path: `s3://` or `s3a://`, bucket, and a glob over keys. Nothing in it is decoded or normalised.

        Raises SpecError for a path that is not in a bucket.
        """
        scheme = S3_URI.match(text)
        if scheme is None:
            raise SpecError(
                f"'{text}' is no path of a bucket, and others of [source] are: s3:// cannot be mixed with other paths.",
                code="path-scheme",
                hint="Give local files and those of a bucket a job each.",
            )
        bucket, _, pattern = text[scheme.end() :].partition("/")
        if not bucket or not is_plain(bucket) or "\0" in text:
            raise SpecError(f"{text!r} in [source] names no bucket.", code="path", hint='Write "s3://bucket/prefix/*".')
        return Written(text, f"s3://{bucket}", pattern.removesuffix("/"), relative=False)

    def look(self, check: Callable[[], None], *, glance: bool = False) -> S3Look:
        """Begin a listing; a `glance` reads one page for each path."""
        return S3Look(self.storage, check, glance=glance)

    def version(self, file: SourceFile, known: Iterable[Version]) -> Version:
        """Return the listed version of an object."""
        return etags.version_of(file)

    def unchanged(self, file: SourceFile, recorded: Sequence[Version]) -> bool:
        """Say whether an object is unchanged since it was recorded; see `etags.unchanged`."""
        self._check()
        return all(map(etags.is_of_object, recorded)) and etags.unchanged(file, recorded, self._check)

    def now(self, paths: builtins.list[str]) -> dict[str, Status]:
        """Return the current status of objects that exist: a few by a request each, many by listing their common prefix."""
        if len(paths) <= _ASKED_ONE_BY_ONE:
            found = {path: head(self.storage, path, self._check) for path in paths}
            return {path: status for path, status in found.items() if status is not None}
        listed, wanted = dict[str, Status](), set(paths)
        for bucket in sorted({parted(path)[0] for path in paths}):
            prefix = _common_beginning([key for of, key in map(parted, paths) if of == bucket])
            with suppress(NotAsListedError):  # there is no such bucket any more
                for path, status in objects(self.storage, bucket, prefix, self._check):
                    if path in wanted:
                        listed[path] = status
        return listed


class S3Look:
    """One listing (`places.Look`). It keeps the status of objects, so that a found one is not requested again."""

    def __init__(self, storage: S3Storage, check: Callable[[], None], *, glance: bool) -> None:
        self.hidden = 0
        self.partial = False
        self._storage = storage
        self._check = check
        self._glance = glance
        self._found: dict[str, Status] = {}
        self._literal: dict[Written, bool] = {}

    def find(self, written: Written, *, recursive: bool, may_match_nothing: bool) -> list[str]:
        """Return the paths of the objects that a path of the spec names; SpecError if it names nothing.

        Raises FatalError if the store refuses, TemporaryError if it does not answer.
        """
        bucket = written.folder.removeprefix("s3://")
        listed = [parted(path)[1] for path in self._list(bucket, written)]
        self._literal[written] = keys.is_literal(written.pattern, listed)
        if written.pattern in listed and is_hidden(written.pattern.rpartition("/")[2]):
            raise names_hidden(written)
        chosen = keys.choose(written.pattern, listed, recursive=recursive)
        self.hidden += chosen.hidden
        files = [f"{written.folder}/{key}" for key in chosen.files]
        files = [path for path in files if not self._is_folder_marker(path)]
        if not self.partial:
            if not chosen.matched and not (may_match_nothing and self.is_glob(written)):
                raise not_found(written, "Nothing was sent. Correct path in [source], or put objects there.")
            if not files and chosen.too_deep:
                raise only_deeper(written)
        return files

    def is_glob(self, written: Written) -> bool:
        """Say whether a path is a glob, and not also an existing name."""
        return not self._literal.get(written, False) and not is_plain(written.pattern)

    def status(self, path: str) -> Status | None:
        """Return the listed status of an object."""
        return self._found[path]

    def _list(self, bucket: str, written: Written) -> list[str]:
        """List the objects that a path may name: a plain one itself and all below it, a glob all with its prefix."""
        plain = is_plain(written.pattern)
        prefix = written.pattern if plain else keys.plain_beginning(written.pattern)
        found = dict[str, Status]()
        try:
            begins = f"{prefix}/" if plain and prefix else prefix
            pages = 1 if self._glance else None
            found.update(objects(self._storage, bucket, begins, self._check, pages=pages, told=self._told))
            alone = head(self._storage, f"s3://{bucket}/{prefix}", self._check) if plain and prefix else None
            if alone is not None:
                found[f"s3://{bucket}/{prefix}"] = alone
        except NotAsListedError as error:
            raise SpecError(
                f"'{written.text}': there is no bucket {bucket}.",
                code="bucket-not-found",
                hint="Nothing was sent. Correct path in [source], or endpoint and credentials in storage.",
            ) from error
        self._found.update(found)
        return list(found)

    def _told(self, ended: bool) -> None:
        self.partial = self.partial or not ended

    def _is_folder_marker(self, path: str) -> bool:
        """Say whether an object is the marker of a folder; FatalError if it has content, since no folder has."""
        if not path.endswith("/"):
            return False
        if self._found[path].length:
            raise FatalError(
                f"{path} is called like a folder, and holds {self._found[path].length:,} bytes.",
                code="file-name",
                hint="Nothing was sent. Give it another name, or leave it out by a narrower path in [source].",
            )
        return True


def objects(
    storage: S3Storage,
    bucket: str,
    prefix: str,
    check: Callable[[], None],
    *,
    pages: int | None = None,
    told: Callable[[bool], None] = lambda ended: None,
) -> Iterator[tuple[str, Status]]:
    """Yield path and status of each object whose key begins with `prefix`, of at most so many `pages`.

    `check` is called while a request waits; `told` with whether these are all. Raises NotAsListedError if there is no such
    bucket, FatalError if the store refuses, TemporaryError if it does not answer.
    """
    asked: dict[str, Any] = {"Bucket": bucket, "Prefix": prefix}

    def ask() -> Any:
        with explained(f"s3://{bucket}/{prefix}"):
            return storage.client().list_objects_v2(**asked)

    seen, page = set[str](), 0
    while True:
        answer = waited(ask, check)
        for found in answer.get("Contents", ()):
            path = f"s3://{bucket}/{found['Key']}"
            yield path, _status(path, found, "Size")
        page += 1
        token = answer.get("NextContinuationToken")
        if not answer.get("IsTruncated"):
            return told(True)
        if page == pages:
            return told(False)
        if not token or token in seen:
            raise FatalError(f"s3://{bucket}/{prefix}: the listing does not end", code="storage-refused")
        seen.add(token)
        asked["ContinuationToken"] = token


def head(storage: S3Storage, path: str, check: Callable[[], None] = never) -> Status | None:
    """Return the current status of an object, None if it does not exist. Raises as `objects` does."""
    bucket, key = parted(path)

    def ask() -> Any:
        with explained(path):
            return storage.client().head_object(Bucket=bucket, Key=key)

    try:
        return _status(path, waited(ask, check), "ContentLength")
    except NotAsListedError:
        return None


def _status(path: str, found: Any, length: str) -> Status:
    etag = found.get("ETag")
    if not etag:
        raise FatalError(
            f"{path}: the store gives no ETag, and without one a changed object cannot be detected",
            code="storage-refused",
            hint="nothing was sent; read from a store that gives ETags",
        )
    return Status(int(found[length]), int(found["LastModified"].timestamp() * 1000), str(etag))


def _common_beginning(texts: Sequence[str]) -> str:
    first, last = min(texts), max(texts)
    same = next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
    return first[: min(same, len(last))]
