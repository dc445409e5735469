"""Fences transactional ids over kafka-python, hundreds in flight: afterwards no earlier producer of them can commit.

For `KafkaPythonAdmin.fence`, which the driver calls at a run's beginning and when its job has ended (docs/protocol.md).
kafka-python has no fence call: its private `_find_coordinator_ids`, `_manager` and `_net` send InitProducerId for each id.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import kafka.errors as kafka_errors
from kafka import KafkaAdminClient
from kafka.protocol.metadata import CoordinatorType
from kafka.protocol.producer.transaction import InitProducerIdRequest

from eosingest.errors import TemporaryError

_AT_ONCE = 500  # ids a round: signals are handled between rounds; a broker answers a connection's requests one by one


class Fencing:
    """One call of `fence`; its methods run in the client's network thread."""

    def __init__(self, client: KafkaAdminClient, servers: str, check: Callable[[], None]) -> None:
        """Send nothing yet. `servers` are named in errors; `check` is called between rounds, and raises to end the wait."""
        self._client = client
        self._servers = servers
        self._check = check

    async def fence(self, wanted: list[str], timeout_s: float) -> None:
        """Fence every id, some hundreds a round, until each is really fenced. Raises TemporaryError at the timeout."""
        deadline = time.monotonic() + timeout_s
        left = wanted
        while left:
            self._check()
            asked, later = left[:_AT_ONCE], left[_AT_ONCE:]
            again = await self._round(asked)
            left = later + again
            if left and time.monotonic() > deadline:
                raise TemporaryError(
                    f"{self._servers}: {len(left)} transactional ids could not be fenced in {timeout_s:.0f} s"
                    f" ({left[0]} …): the transaction coordinator is not available or a transaction is stuck",
                    code="fence-timeout",
                    hint="nothing was sent; check the cluster's transaction coordinators, then run again",
                )
            if len(again) == len(asked):
                await self._client._net.sleep(0.05)

    async def _round(self, wanted: list[str]) -> list[str]:
        """Send InitProducerId once for every id; return the ids to retry.

        Their coordinator moves or loads (COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR), or it still
        ends a transaction of theirs (CONCURRENT_TRANSACTIONS).
        """
        try:
            nodes = await self._client._find_coordinator_ids(wanted, key_type=CoordinatorType.TRANSACTION)
        except kafka_errors.RetriableError:
            return wanted
        futures = [(name, self._client._manager.send(_init_producer_id(name), node_id=nodes[name])) for name in wanted]
        again = []
        for name, future in futures:
            try:
                code = (await future).error_code
                if code:
                    raise kafka_errors.for_code(code)(name)
            except kafka_errors.RetriableError as error:
                again.append(name)
                if not isinstance(error, kafka_errors.ConcurrentTransactionsError):
                    self._client._manager.cluster._coordinators.pop((CoordinatorType.TRANSACTION, name), None)
        return again


def _init_producer_id(transactional_id: str) -> InitProducerIdRequest:
    """Make the request that fences an id: without producer id and epoch, so that the broker bumps the epoch.

    No transaction is ever begun under that epoch; the transaction timeout need only be one that every broker allows.
    """
    return InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=1_000, producer_id=-1, producer_epoch=-1
    )
