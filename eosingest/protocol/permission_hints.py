"""Makes hints for permanent refusals by Kafka: the missing right, or the setting that does not fit the brokers. Pure.

For the errors of the driver (control_log.py) and of tasks (retry_policy.py).
"""

from __future__ import annotations

_RIGHTS = {
    "TOPIC_AUTHORIZATION_FAILED": "Write on {sink}, Read and Write on {offsets}",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "Write on all transactional ids that begin with the prefix and the job's name",
}


def hint_of(code: str, sink: str = "the sink topic", offsets: str = "the offsets topic") -> str:
    """Return the hint for a refusal with this code of Kafka (state and remedy), "" for an unknown one.

    `sink` and `offsets` name the topics.
    """
    if code == "INVALID_TRANSACTION_TIMEOUT":
        return (
            "nothing was sent; lower transaction.timeout to the brokers' transaction.max.timeout.ms (15 minutes by default), or"
            " raise that limit"
        )
    rights = _RIGHTS.get(code)
    if rights is None:
        return ""
    return (
        f"committed records are kept, nothing was sent twice; the sink's user needs"
        f" {rights.format(sink=sink, offsets=offsets)}: add it (kafka-acls --add) and run again: it resumes from here"
    )
