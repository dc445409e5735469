"""Sends requests to WebHDFS, and interprets the answers: by urllib3, which `eosingest[hdfs]` installs.

Used by hdfs.py. Nothing is retried here.
"""

from __future__ import annotations

import functools
import json
import os
import re
from typing import Any
from urllib.parse import urlsplit

from eosingest.errors import EosingestError, FatalError, SpecError
from eosingest.sources.files.storage.port import NotAsListedError, UnreachableError

_CONNECT_S, _READ_S = 5, 30
_POOL = 32  # connections: for checks of many files at a time
_ERROR_BYTES = 1 << 20  # of an answer that is an error
# Names of Hadoop's exceptions that another name node, or a later try, may not give.
_LATER = frozenset({"StandbyException", "RetriableException", "SafeModeException", "ServerTooBusyException"})
_LATER_TEXT = re.compile(r"Could not obtain block|Zero blocklocations|ConnectException")
# Hadoop 3.4; 3.5 says "No active and not excluded nodes contain this block".
_NONE_LEFT = re.compile(r"Failed to find datanode|No active (and not excluded )?nodes contain")
_REFUSED = frozenset({"AccessControlException", "SecurityException", "AuthorizationException"})
# A folder above is a file now; or the file was cut off.
_NOT_THERE = re.compile(r"is not a directory|out of the range")
_BEING_WRITTEN = re.compile(r"is under construction")
_NOT_SUPPORTED = "UnsupportedOperationException"


class BeingWrittenError(Exception):
    """A file is open for writing, so its length and its content are not known."""


class NoneLeftError(UnreachableError):
    """The name node names no data node that has a block, other than the excluded ones."""


class NotSupportedError(Exception):
    """The server does not know the operation."""


def get(url: str, path: str) -> Any:
    """Return an answer of 200 or 307, whose body is not read yet; messages call the file `path`.

    Raises NotAsListedError if nothing exists there, UnreachableError if a later try may succeed, FatalError if the server
    refuses, BeingWrittenError, NotSupportedError.
    """
    pool, failures = _pool(os.getpid())
    try:
        answer = pool.request("GET", url, redirect=False, preload_content=False)
        if answer.status in (200, 307):
            return answer
        body = answer.read(_ERROR_BYTES)
        answer.release_conn()
    except failures as error:
        raise _silent(path, url, error) from error
    raise _error_of(answer.status, body, path, _host(url))


def told(answer: Any, url: str, path: str, key: str) -> Any:
    """Return the value of a key in an answer, as JSON. Raises as `get` does, and FatalError if it is not one of WebHDFS."""
    _, failures = _pool(os.getpid())
    try:
        body = answer.read()
        answer.release_conn()
    except failures as error:
        raise _silent(path, url, error) from error
    try:
        return json.loads(body)[key]
    except (ValueError, KeyError, TypeError) as error:
        raise _no_webhdfs(path, answer.status) from error


def urllib3_of_hdfs() -> Any:
    """Return the module urllib3. Raises SpecError if it is missing."""
    try:
        import urllib3
    except ImportError as error:
        raise SpecError(
            "to read hdfs:// the package urllib3 is needed, and it is not installed",
            code="package-missing",
            hint="pip install 'eosingest[hdfs]'",
        ) from error
    return urllib3


@functools.lru_cache(maxsize=4)
def _pool(process: int) -> tuple[Any, tuple[type[Exception], ...]]:
    """Return the pool for requests, one per process (a fork must not share its connections), and the errors that it raises."""
    urllib3 = urllib3_of_hdfs()
    timeout = urllib3.Timeout(connect=_CONNECT_S, read=_READ_S)
    pool = urllib3.PoolManager(num_pools=64, maxsize=_POOL, retries=False, timeout=timeout)
    return pool, (urllib3.exceptions.HTTPError, OSError)


def _host(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]


def _silent(path: str, url: str, error: Exception) -> UnreachableError:
    return UnreachableError(f"{path}: {_host(url)} does not answer: {error}")


def _error_of(status: int, body: bytes, path: str, host: str) -> Exception:
    """Return our error for an answer that is an error."""
    try:
        said = json.loads(body)["RemoteException"]
        kind, message = str(said["exception"]), (str(said.get("message") or "").splitlines() or [""])[0].rstrip(".")
    except (ValueError, KeyError, TypeError):
        if status == 401:
            return refused(
                path, f"{host} requires Kerberos", "Kerberos is not supported: read by a name node without it"
            )
        if status >= 500:
            return UnreachableError(f"{path}: {host} answers {status}")
        return _no_webhdfs(path, status)
    if kind == "FileNotFoundException" or _NOT_THERE.search(message):
        return NotAsListedError(f"{path}: {message}")
    if _BEING_WRITTEN.search(message):
        return BeingWrittenError(path)
    if _NONE_LEFT.search(message):
        return NoneLeftError(f"{path}: {host}: {message}")
    if kind in _LATER or _LATER_TEXT.search(message):
        return UnreachableError(f"{path}: {host}: {kind}: {message}")
    if kind == _NOT_SUPPORTED:
        return NotSupportedError(f"{path}: {message}")
    if kind in _REFUSED or status == 401:
        return refused(path, f"{kind}: {message}", "give the user of this run the right to read it, and its folders")
    return refused(path, f"{kind}: {message}", "correct path or storage of [source]")


def refused(path: str, said: str, way_out: str) -> EosingestError:
    """Return the error for a refusal by HDFS: its reason (`said`), and what to do."""
    return FatalError(
        f"{path}: HDFS refused: {said}",
        code="storage-refused",
        hint=f"committed records are kept; {way_out}; then run again",
    )


def _no_webhdfs(path: str, status: int) -> EosingestError:
    return refused(
        path,
        f"an answer that is not one of WebHDFS ({status})",
        "let endpoint in storage of [source] name the web address of the name node, such as http://namenode:9870",
    )
