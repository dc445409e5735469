"""Refuses brokers that are too old or too new for a run, and reads the names that newer brokers add.

kafka-python 3.0.12 raises ValueError for a number or name that its enumerations do not have, although the protocol lets a
broker add some with any release: API keys (93 and more in Kafka 4.4), operations of ACLs, sources and types of settings,
states of transactions. Nothing here depends on them, so they are read as UNKNOWN.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from kafka.admin import ACLOperation, TransactionState
from kafka.admin._configs import ConfigResourceType, ConfigSourceType, ConfigType
from kafka.protocol.admin import (
    CreateTopicsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    ListTransactionsRequest,
)
from kafka.protocol.consumer.offsets import ListOffsetsRequest, OffsetForLeaderEpochRequest
from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest
from kafka.protocol.producer.transaction import InitProducerIdRequest

from eosingest.errors import FatalError

OLDEST = "3.3"  # the oldest that is tested (tests/integration/test_broker_versions.py)
TOO_OLD_HINT = f"nothing was sent; eosingest needs Apache Kafka {OLDEST} or newer"
# Without these no run is safe; older brokers lack transactions, or cannot list open ones (KIP-664; Kafka 3.0).
_NEEDED = (
    InitProducerIdRequest,
    DescribeClusterRequest,
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    ListTransactionsRequest,
)
# The control plane's other requests.
_ALSO_SENT = (
    CreateTopicsRequest,
    DescribeConfigsRequest,
    FindCoordinatorRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetForLeaderEpochRequest,
)


def refuse_unusable(servers: str, known: Mapping[int, tuple[int, int]]) -> None:
    """Raise FatalError where the brokers' API keys and versions (ApiVersions) lack a request that is needed.

    A newer Kafka may have dropped the versions that kafka-python speaks (KIP-896).
    """
    missing = [_name(each) for each in _NEEDED if each.API_KEY not in known]
    if missing:
        raise FatalError(
            f"{servers}: the brokers do not support {', '.join(missing)}", code="broker-too-old", hint=TOO_OLD_HINT
        )
    sent = (each for each in (*_NEEDED, *_ALSO_SENT) if each.API_KEY in known)
    dropped = [_name(each) for each in sent if known[each.API_KEY][0] > each.max_version]
    if dropped:
        raise FatalError(
            f"{servers}: the brokers no longer support any version of {', '.join(dropped)} that this eosingest uses",
            code="broker-too-new",
            hint="nothing was sent; install a newer eosingest, then run again",
        )


def _name(request: Any) -> str:
    return str(request.name).removesuffix("Request")


def read_unknown_names() -> None:
    """Let kafka-python read values that its enumerations lack as UNKNOWN."""
    for names in (ACLOperation, ConfigResourceType, ConfigSourceType, ConfigType, TransactionState):
        names._missing_ = classmethod(_unknown)


def _unknown(names: Any, value: object) -> Enum | None:
    """Return UNKNOWN for a value as a broker sends it, None (no member) for a name in capitals as kafka-python looks it up."""
    return None if isinstance(value, str) and value in names.__members__ else names.UNKNOWN
