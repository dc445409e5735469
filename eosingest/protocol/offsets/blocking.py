"""Names the open transactions that block a read: of the offsets topic (control_log.py) or the sink (app/verify.py).

A read_committed reader stops at the first open transaction. Most end at their timeout at the latest. A *hanging* one does
not: it is open in the partitions of its records, and no coordinator knows of it (KIP-664), as after brokers lost their
transaction log. Only `kafka-transactions abort` ends it; nothing shows whether it was to be committed or aborted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eosingest.errors import TemporaryError
from eosingest.kafka.ports import Admin, OpenTransaction

_WAIT = "nothing is lost or sent twice: wait for that transaction's timeout, or end its producer"


def blocked_read(
    admin: Admin, topic: str, partitions: Iterable[int], what: str, *, code: str, again: str
) -> TemporaryError:
    """Make the error for a read that open transactions block: their names, and how each of them ends.

    `what` names the failed read; `again` says what to do once they have ended.
    """
    found = {partition: admin.open_transactions(topic, partition) for partition in partitions}
    places = "; ".join(f"{topic}-{partition}: {_names(open_there)}" for partition, open_there in found.items())
    hanging = [(partition, each) for partition, open_there in found.items() for each in open_there if each.hanging]
    hint = abort_hint(topic, hanging) if hanging else _WAIT
    return TemporaryError(f"{what}: open transactions in {places}", code=code, hint=f"{hint}, then {again}")


def _names(transactions: list[OpenTransaction]) -> str:
    return ", ".join(map(_named, transactions)) or "none that the brokers name"


def _named(transaction: OpenTransaction) -> str:
    hanging = ", hanging: no coordinator knows of it" if transaction.hanging else ""
    return f'"{transaction.transactional_id}" (open for {transaction.age_s:.0f} s{hanging})'


def abort_hint(topic: str, hanging: Sequence[tuple[int, OpenTransaction]]) -> str:
    """Say who ends hanging transactions, each given with its partition, and by which command."""
    places = [f"--partition {partition} --start-offset {each.start_offset}" for partition, each in hanging]
    command = f"kafka-transactions --bootstrap-server SERVERS abort --topic {topic} {places[0]}"
    others = "".join(f", and with {place}" for place in places[1:])
    return (
        f"no timeout ends a hanging transaction (KIP-664); an administrator aborts it: {command}{others}; eosingest verify SPEC"
        " shows whether records are lost or doubled"
    )
