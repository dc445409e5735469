"""Waits until the last stable offset reaches the end of the audited range: no transaction below it is open.

Called by app/verify.py (sink topic) and dead_letters.py (dead-letter topic): `read_committed` reads stop at open transactions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from eosingest.protocol.offsets.blocking import blocked_read

if TYPE_CHECKING:
    from eosingest.kafka.kafka_python import KafkaPythonAdmin
    from eosingest.kafka.ports import TopicDescription

_AGAIN_S = 0.2


def wait_until_decided(
    admin: KafkaPythonAdmin,
    topic: TopicDescription,
    ends: Mapping[int, int],
    what: str,
    *,
    patience_s: float,
    check: Callable[[], None],
) -> None:
    """Wait until every transaction below the ends, by partition, is committed or aborted. `check` is called while waiting.

    Raises TemporaryError that names the transactional ids that stay open for `patience_s` seconds; `what` cannot be read then.
    """
    deadline = time.monotonic() + patience_s
    while True:
        stable = admin.last_stable_offsets(topic.name, topic.partitions)
        undecided = [partition for partition, end in ends.items() if stable[partition] < end]
        if not undecided:
            return
        check()
        if time.monotonic() > deadline:
            text = f"inconclusive: the {what} cannot be read to its end"
            raise blocked_read(admin, topic.name, undecided, text, code="topic-held-up", again="verify again")
        time.sleep(_AGAIN_S)
