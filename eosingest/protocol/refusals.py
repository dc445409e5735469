"""What to do where Kafka refuses for good: which right a job lacks, by the code of the refusal. Pure.

For the errors of the driver (control_log.py) and of tasks (restarts.py).
"""

from __future__ import annotations

_RIGHTS = {
    "TOPIC_AUTHORIZATION_FAILED": "Write on {sink}, Read and Write on {offsets}",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "Write on all transactional ids that begin with the prefix and the job's name",
}


def hint_of(code: str, sink: str = "the sink topic", offsets: str = "the offsets topic") -> str:
    """Return what is safe and what to do behind a refusal with this code of Kafka, "" where no right is missing.

    `sink` and `offsets` name the topics.
    """
    rights = _RIGHTS.get(code)
    if rights is None:
        return ""
    return (
        f"what was committed is kept, nothing was sent twice; the sink's user needs"
        f" {rights.format(sink=sink, offsets=offsets)}: add it (kafka-acls --add) and run again: it goes on from here"
    )
