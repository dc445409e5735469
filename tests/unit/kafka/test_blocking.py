"""Which open transactions block a reader, and what is to be done about each, in words."""

from __future__ import annotations

from typing import cast

from eosingest.errors import TemporaryError
from eosingest.kafka.ports import Admin, OpenTransaction
from eosingest.protocol.offsets.blocking import blocked_read


class Brokers:
    """Names these holders, by partition."""

    def __init__(self, holders: dict[int, list[OpenTransaction]]) -> None:
        self._holders = holders

    def open_transactions(self, topic: str, partition: int) -> list[OpenTransaction]:
        assert topic == "offsets"
        return self._holders[partition]


def error_of(*holders: OpenTransaction, elsewhere: dict[int, list[OpenTransaction]] | None = None) -> TemporaryError:
    found = {3: list(holders), **(elsewhere or {})}
    admin = cast(Admin, Brokers(found))
    return blocked_read(admin, "offsets", found, "read to offset 5 of 10", code="offsets-held-up", again="run again")


def test_holders_are_named() -> None:
    error = error_of(OpenTransaction("eosingest.other.3", 5, 71.6), OpenTransaction("foreign", 7, 1))
    assert (error.exit_code, error.code) == (5, "offsets-held-up")
    for word in ("offset 5 of 10", "offsets-3", '"eosingest.other.3" (open for 72 s)', '"foreign" (open for 1 s)'):
        assert word in error.message
    assert "timeout" in error.hint
    assert error.hint.endswith("then run again")


def test_nobody_owns_up() -> None:
    assert "none that the brokers name" in error_of().message


def test_a_hanging_one_is_never_waited_for() -> None:
    """Breaks when a user is sent to wait for a timeout that never comes."""
    error = error_of(OpenTransaction("foreign", 5, 1), OpenTransaction("producer id 9", 7, 300, hanging=True))
    assert '"producer id 9" (open for 300 s, hanging: no coordinator knows of it)' in error.message
    assert "abort --topic offsets --partition 3 --start-offset 7; " in error.hint
    assert "wait" not in error.hint
    assert error.hint.endswith("then run again")


def test_all_that_hang_are_told_at_once() -> None:
    """Breaks when each is only found once the one before it is aborted."""
    one, two = (OpenTransaction("producer id 9", start, 300, hanging=True) for start in (7, 21))
    hint = error_of(one, elsewhere={4: [two]}).hint
    assert "--partition 3 --start-offset 7, and with --partition 4 --start-offset 21; " in hint
