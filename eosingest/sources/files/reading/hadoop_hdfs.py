"""Configures Hadoop's client of HDFS, with which Spark's readers read files there, and classifies its failures.

Between the scan (scan.py) and Spark. pyspark has the client; settings are the site's (`HADOOP_CONF_DIR`, `spark.hadoop.…`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from eosingest.errors import ChangedError, EosingestError, FatalError, TemporaryError
from eosingest.spark.causes import innermost

_KEPT = "committed records are kept, nothing was sent twice"
# After a failure of a data node the client requests the file's blocks again: they are gone if the file was deleted or rewritten
# meanwhile. A file that is shorter than listed was truncated.
_CHANGED = re.compile(
    r"\[FAILED_READ_FILE\.FILE_NOT_EXIST\]|FileNotFoundException: File does not exist: /|Blocklist for \S+ has changed"
    r"|Cannot seek after EOF|Attempted to read past end of file"
)
_REFUSED = re.compile(r"\bAccessControlException\b|\bAuthorizationException\b")
_CLIENT_ERROR = re.compile(
    r"\borg\.apache\.hadoop\.hdfs\.(?:\w+\.)*\w*Exception\b|\borg\.apache\.hadoop\.ipc\.\w*Exception\b"
    r"|Call From \S+ to \S+ failed|Could not obtain block|\b(?:UnknownHost|Standby|ConnectTimeout)Exception\b"
)
# Spark tries a task four times: a run without its name node ends within a minute or two, not in twenty.
_SETTINGS = {
    "spark.hadoop.ipc.client.connect.max.retries": "5",
    "spark.hadoop.ipc.client.connect.max.retries.on.timeouts": "2",
}


def spark_conf(conf: Mapping[str, str]) -> dict[str, str]:
    """Return Spark's settings for the client."""
    return dict(_SETTINGS)


def failure_of(text: str, files: str) -> EosingestError | None:
    """Return the error for a failure of Hadoop's client in the `text` of Spark's; None for any other failure.

    `files` names the files that it may concern.
    """
    if _REFUSED.search(text):
        return FatalError(
            f"{files}: HDFS refused: {innermost(text)}",
            code="storage-refused",
            hint=f"{_KEPT}; give the user of this run the right to read the files; then run again",
        )
    if _CHANGED.search(text):
        return ChangedError(
            f"{files}: changed after it was listed", code="changed-while-read", hint=f"{_KEPT}; then run again"
        )
    if _CLIENT_ERROR.search(text) is None:
        return None
    return TemporaryError(
        f"{files}: HDFS does not answer: {innermost(text)}",
        code="storage-unreachable",
        hint=f"{_KEPT}; check the network, name node and data nodes; then run again",
    )
