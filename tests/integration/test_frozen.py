"""Signals while no broker answers: a frozen broker keeps its connections, and gives no answer for ever."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from eosingest import broker
from tests.support.commands import finish
from tests.support.harness import COLD, Job
from tests.support.held_runs import start_held
from tests.support.job_checks import assert_exact, assert_positions, open_transactions, write_files
from tests.support.shared_broker import running_broker

WITHIN_S = 10.0  # docs/protocol.md, The driver
_HELD_S = 1.5
_FROZEN_S = _HELD_S + 1.5  # then the run waits for an answer
# Where the run is when the broker freezes; a task is held for longer, in the middle of its transaction.
MOMENTS = {
    "fence": f"driver-after-claim=sleep:{_HELD_S}",
    "read back": f"driver-after-fence=sleep:{_HELD_S}",
    "running": f"driver-before-running=sleep:{_HELD_S}",
    "job": "task-before-commit=sleep:60@2",
    "settling": f"driver-before-verdict=sleep:{_HELD_S}",
    "verdict": f"driver-after-settling=sleep:{_HELD_S}",
}


@pytest.fixture(scope="module")
def frozen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[broker.BrokerStatus]:
    """A broker of this module's own."""
    with running_broker(request.session, tmp_path_factory) as up:
        yield up


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_signal_while_no_broker_answers(frozen: broker.BrokerStatus, tmp_path: Path, moment: str) -> None:
    """Breaks when a run waits for an answer that does not come (30 s and more), or what it left behind holds up the next."""
    name = f"frozen-{moment.replace(' ', '-')}"
    job = Job(tmp_path / name, frozen.bootstrap_servers, name)
    write_files(job, files=1, rows=8_000)
    assert frozen.pid is not None
    process = start_held(job, MOMENTS[moment], env=COLD)
    os.kill(frozen.pid, signal.SIGSTOP)
    try:
        time.sleep(_FROZEN_S)
        process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        done = finish(process)
        took_s = time.monotonic() - began
    finally:
        os.kill(frozen.pid, signal.SIGCONT)

    assert (done.exit_code, done.codes) == (143, ["interrupted"]), done
    assert took_s < WITHIN_S, done
    assert "records are kept" in done.envelope["errors"][0]["hint"]
    assert "Traceback" not in done.text
    again = job.run()
    assert again.exit_code == 0, again
    assert_exact(job)
    assert_positions(job)
    assert open_transactions(job) == []
