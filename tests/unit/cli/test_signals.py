"""Signals, each in a process of its own: the first is remembered, the second ends at once, our handlers stay."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import eosingest

START = """
import os, signal, sys, threading, time
from eosingest.cli.render import Renderer
from eosingest.cli.signals import Signals
signals = Signals(Renderer("text").line_from_signal_handler)
signals.install()
signals.install()
"""
FIRST = "note: stopping after a clean abort; a second signal ends at once\n"


def process(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", START + script], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_is_remembered_and_said(number: signal.Signals) -> None:
    done = process(f"""
print(signals.received())
os.kill(os.getpid(), {int(number)})
print(signals.received(), signals.received())
""")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"None\n{int(number)} {int(number)}\n", FIRST)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_the_second_ends_at_once(number: signal.Signals, code: int) -> None:
    done = process(f"""
os.kill(os.getpid(), signal.SIGINT)
time.sleep(0.6)
os.kill(os.getpid(), {int(number)})
time.sleep(30)
""")
    assert (done.returncode, done.stderr) == (code, FIRST)


def test_a_command_of_nohup_outlives_its_terminal() -> None:
    """Breaks when SIGHUP ends a run that nohup has started."""
    ignored = f"import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n{START}"
    script = "os.kill(os.getpid(), signal.SIGHUP)\nprint(signals.received())"
    done = subprocess.run([sys.executable, "-c", ignored + script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "None\n", "")


def test_one_ctrl_c_that_comes_twice_is_one() -> None:
    done = process("""
os.kill(os.getpid(), signal.SIGINT)
os.kill(os.getpid(), signal.SIGINT)
print(signals.received())
""")
    assert (done.returncode, done.stdout, done.stderr) == (0, "2\n", FIRST)


def test_a_replaced_handler_is_put_back_by_asking() -> None:
    done = process("""
signal.signal(signal.SIGINT, signal.default_int_handler)
print(signals.received())
os.kill(os.getpid(), signal.SIGINT)
print(signals.received())
""")
    assert (done.returncode, done.stdout) == (0, "None\n2\n")


def test_asking_from_another_thread_touches_no_handler() -> None:
    done = process("""
signal.signal(signal.SIGTERM, signal.SIG_DFL)
asking = threading.Thread(target=lambda: print(signals.received()))
asking.start()
asking.join()
print(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)
""")
    assert (done.returncode, done.stdout, done.stderr) == (0, "None\nTrue\n", "")


def test_a_signal_in_the_middle_of_writing_does_no_harm() -> None:
    done = process("""
killer = threading.Thread(target=lambda: (time.sleep(0.1), os.kill(os.getpid(), signal.SIGINT)))
killer.start()
while signals.received() is None:
    print("x" * 1000, file=sys.stderr, flush=True)
killer.join()
""")
    assert done.returncode == 0
    assert "RuntimeError" not in done.stderr
    assert FIRST.strip() in done.stderr


def test_what_spark_submit_passes_on_is_the_same_signal_once() -> None:
    """Breaks when a terminal's Ctrl-C, which reaches both processes, ends the run at once, or when a second one does not."""
    done = process(f"""
os.kill(os.getpid(), signal.SIGINT)
time.sleep(0.6)
signals.take_relayed({int(signal.SIGINT)})
signals.take_relayed({int(signal.SIGHUP)})
print(signals.received(), flush=True)
time.sleep(0.6)
signals.take_relayed({int(signal.SIGINT)})
print("not reached")
""")
    assert (done.returncode, done.stdout, done.stderr) == (130, "2\n", FIRST)


def test_what_spark_submit_alone_receives() -> None:
    done = process(f"""
signals.take_relayed({int(signal.SIGTERM)})
print(signals.received())
""")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{int(signal.SIGTERM)}\n", FIRST)


def test_what_spark_submit_passes_on_behind_the_result() -> None:
    done = process(f"""
from eosingest.cli.signals import ignore_signals
ignore_signals()
for _ in range(2):
    signals.take_relayed({int(signal.SIGTERM)})
print("told")
""")
    assert (done.returncode, done.stdout, done.stderr) == (0, "told\n", "")


def test_spark_submit_with_a_python_that_lacks_eosingest_is_told_in_one_line() -> None:
    """Breaks when the first thing that a person sees is a traceback, or exit 1, which means a bug of ours."""
    script = Path(eosingest.__file__).parent / "spark_submit" / "application.py"
    done = subprocess.run([sys.executable, "-I", "-S", script, "run", "x"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (7, "")
    assert "has no module eosingest" in done.stderr
    assert "PYSPARK_DRIVER_PYTHON" in done.stderr
    assert "Traceback" not in done.stderr
