"""Opens objects of an S3 bucket (`port.Storage`): by ranged reads of exactly the listed object (`If-Match`).

    SourceFile ─▶ S3Storage.open ─▶ ObjectStream (object_stream.py) ─▶ get ─▶ GetObject

Uses boto3, which `eosingest[s3]` installs; it is imported for the first request. Listing is in s3_places.py.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BufferedReader
from typing import Any

from eosingest.errors import EosingestError, FatalError, SpecError
from eosingest.sources.files.storage.object_stream import ObjectStream
from eosingest.sources.files.storage.port import NotAsListedError, Stored, UnreachableError

_BUFFER_BYTES = 1 << 20
_CONNECT_S, _READ_S, _ATTEMPTS = 5, 20, 4
_POOL = 32  # connections: for checks of many objects at a time
_GONE = frozenset({"NoSuchKey", "NoSuchBucket", "PreconditionFailed", "404", "412"})
_ELSEWHERE = frozenset(
    {"PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "301"}
)
_LATER = frozenset({"SlowDown", "InternalError", "ServiceUnavailable", "RequestTimeout", "Throttling", "429"})


@dataclass(frozen=True)
class S3Storage:
    """The connection to a store (`port.Storage`). The SDK finds values that are "" or None: environment, profile, role.

    Holds secrets: it is sent in task closures only, and its repr shows none.
    """

    endpoint: str = ""
    region: str = ""
    access_key: str = field(default="", repr=False)
    secret_key: str = field(default="", repr=False)
    session_token: str = field(default="", repr=False)
    path_style: bool | None = None

    @property
    def by_path(self) -> bool:
        """Whether the bucket is in the URL's path, and not in its host."""
        return bool(self.endpoint) if self.path_style is None else self.path_style

    def need_packages(self) -> None:
        """Raise SpecError if boto3 is missing."""
        _boto3()

    def open(self, file: Stored, until: int | None = None) -> BufferedReader:
        """Open an object; see `port.Storage`. No request is sent before it is read."""
        bucket, key = parted(file.path)

        def get(start: int, end: int) -> Any:
            return self._get(bucket, key, file, start, end)

        return BufferedReader(ObjectStream(file.path, get, file.length, until), _BUFFER_BYTES)

    def is_changed(self, file: Stored, opened: BufferedReader) -> bool:
        """Return False: every byte was requested with the listed ETag."""
        return False

    def is_as_listed(self, file: Stored) -> bool:
        """Check whether an object is the listed one; False if it is another one, or gone. Raises as `open` does."""
        bucket, key = parted(file.path)
        try:
            with _explained_on_executors(file.path):
                answer = self.client().head_object(Bucket=bucket, Key=key, IfMatch=file.etag)
        except NotAsListedError:
            return False
        return bool(answer.get("ETag") == file.etag and answer.get("ContentLength") == file.length)

    def client(self) -> Any:
        """Return the client of this process. Raises SpecError if boto3 is missing or cannot use the settings."""
        return _client(self, os.getpid())

    def _get(self, bucket: str, key: str, file: Stored, start: int, end: int) -> Any:
        """Return the body of the bytes [start, end) of the object that was listed; raises as `Storage.open` does."""
        asked = {"Bucket": bucket, "Key": key, "IfMatch": file.etag, "Range": f"bytes={start}-{end - 1}"}
        with _explained_on_executors(file.path):
            answer = self.client().get_object(**asked)
        ranged, whole = f"bytes {start}-{end - 1}/{file.length}", (start, end) == (0, file.length)
        said = answer.get("ContentRange")
        if answer.get("ETag") != file.etag or (said and not str(said).endswith(f"/{file.length}")):
            answer["Body"].close()
            raise NotAsListedError(file.path)
        if said != ranged and not (said is None and whole and answer.get("ContentLength") == end):
            answer["Body"].close()
            raise FatalError(
                f"{file.path}: the request was for {ranged[:60]}, and the store returned {said or 'no range'}",
                code="storage-refused",
                hint="nothing is sent twice; read from a store that answers ranged reads",
            )
        return answer["Body"]


def parted(path: str) -> tuple[str, str]:
    """Return bucket and key of an object's path `s3://bucket/key`; the key keeps every character."""
    bucket, _, key = path.removeprefix("s3://").partition("/")
    return bucket, key


def _boto3() -> Any:
    try:
        import boto3
    except ImportError as error:
        raise SpecError(
            "to read s3:// the package boto3 is needed, and it is not installed",
            code="package-missing",
            hint="pip install 'eosingest[s3]'",
        ) from error
    return boto3


@functools.lru_cache(maxsize=8)
def _client(storage: S3Storage, process: int) -> Any:
    """Make a client, once in a process: a fork must not share its connections."""
    boto3 = _boto3()
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError

    config = Config(
        connect_timeout=_CONNECT_S,
        read_timeout=_READ_S,
        retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
        max_pool_connections=_POOL,
        s3={"addressing_style": "path" if storage.by_path else "auto"},
        # Our own receipts prove the bytes; checksums that other stores do not know are not requested.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    try:
        return boto3.session.Session().client(
            "s3",
            endpoint_url=storage.endpoint or None,
            region_name=storage.region or None,
            aws_access_key_id=storage.access_key or None,
            aws_secret_access_key=storage.secret_key or None,
            aws_session_token=storage.session_token or None,
            config=config,
        )
    except (BotoCoreError, ValueError) as error:
        raise SpecError(
            f"S3 cannot be reached with these settings: {error}", code="storage", hint="correct storage of [source]"
        ) from error


@contextmanager
def explained(path: str) -> Iterator[None]:
    """Turn the client's errors into ours: NotAsListedError, UnreachableError, a FatalError that names the refusal."""
    try:
        yield
    except EosingestError:
        raise
    except Exception as error:
        made = _error_of(error, path)
        if made is None:
            raise
        raise made from error


@contextmanager
def _explained_on_executors(path: str) -> Iterator[None]:
    """As `explained`, where other packages may be installed than on the driver."""
    try:
        with explained(path):
            yield
    except SpecError as error:
        raise FatalError(f"{path}: {error.message}", code=error.code, hint=error.hint) from error


def _error_of(error: Exception, path: str) -> Exception | None:
    """Return our error for one of the client's; None for any other error."""
    from botocore import exceptions

    if isinstance(error, exceptions.ClientError):
        return _answered(error.response, path)
    if isinstance(error, exceptions.ParamValidationError):
        return SpecError(f"'{path}' is not a path in a bucket: {error}", code="path")
    unreached = (exceptions.ConnectionError, exceptions.HTTPClientError, exceptions.ConnectionClosedError)
    if isinstance(error, unreached):
        return UnreachableError(f"{path}: the store does not answer: {error}")
    if isinstance(error, exceptions.BotoCoreError):  # no credentials, half of them, a missing profile
        return FatalError(
            f"{path}: {str(error).rstrip('.')}",
            code="storage-credentials",
            hint="nothing was sent; give storage = { access_key, secret_key } in [source], or what the AWS SDK finds:"
            " environment, profile or role",
        )
    return None


def _answered(response: Any, path: str) -> Exception:
    code = str(response.get("Error", {}).get("Code", ""))
    message = str(response.get("Error", {}).get("Message", "")).rstrip(".") or "no reason given"
    status = int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    if code in _GONE or status in (404, 412):
        return NotAsListedError(f"{path}: {code}")
    if code in _LATER or status >= 500 or status == 429:
        return UnreachableError(f"{path}: the store does not answer: {code}: {message}")
    if code in _ELSEWHERE or status in (301, 307):
        hint = "the bucket is in another region; correct storage.region in [source]"
    elif status in (401, 403) or code in ("ExpiredToken", "InvalidToken", "InvalidAccessKeyId"):
        hint = "correct the credentials, or give their user s3:ListBucket on the bucket and s3:GetObject on its objects"
    else:
        hint = "correct path or storage of [source]"
    return FatalError(
        f"{path}: the store refused: {code}: {message}",
        code="storage-refused",
        hint=f"committed records are kept; {hint}; then run again",
    )
