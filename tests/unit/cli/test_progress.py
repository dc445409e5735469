"""Progress of a run: a bar on a terminal, a plain line now and then elsewhere, and nothing that ends the run."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from eosingest.cli.progress import Watcher, audit_line, line_of
from eosingest.cli.render import Renderer
from eosingest.errors import SpecError
from eosingest.report.progress import AuditProgress, Progress

MIB = 1 << 20
HALF = Progress(
    records_sent=1_200_345, splits_done=12, splits_planned=40, size_done=12 * MIB, size_planned=40 * MIB, seconds=3.0
)


class Clock:
    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EOSINGEST_PROGRESS_SECONDS", raising=False)


def test_the_line() -> None:
    assert line_of(HALF) == "12 of 40 splits, 1,200,345 records, 400,115 records/s, 00:00:07 left"
    assert line_of(HALF, with_size=True).startswith("12 of 40 splits, 12 MiB of 40 MiB, 1,200,345 records")
    start = Progress(0, 0, 1, 0, MIB, 0.0)
    assert line_of(start) == "0 of 1 split, 0 records, 0 records/s"


def test_the_line_of_an_audit(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    audit = AuditProgress("the topic", "offset", 1_000_000, 4_000_000, 2.0)
    line = "reading the topic: 1,000,000 of 4,000,000 offsets, 500,000 offsets/s, 00:00:06 left"
    assert audit_line(audit) == line
    assert audit_line(AuditProgress("the source", "row", 0, 1, 2.0)) == "reading the source: 0 of 1 row"
    monkeypatch.setenv("EOSINGEST_PROGRESS_SECONDS", "0")
    for quiet in (False, True):
        with Watcher(Renderer("json", quiet=quiet)) as watcher:
            watcher.audited(audit)
    assert capsys.readouterr().err == f"{line}\n"


@pytest.mark.parametrize("output", ["text", "json"])
@pytest.mark.parametrize("forced", ["FORCE_COLOR", "GITHUB_ACTIONS", "TTY_COMPATIBLE"])
def test_off_terminal_one_plain_line_every_30_s(
    output: str, forced: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(forced, "1")
    clock = Clock()
    with Watcher(Renderer(output), now=clock) as watcher:
        for clock.time in range(100, 196):
            watcher.progress(HALF)
    written = capsys.readouterr()
    assert written.out == ""
    assert written.err == f"{line_of(HALF)}\n" * 3


def test_the_interval_can_be_changed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EOSINGEST_PROGRESS_SECONDS", "10")
    clock = Clock()
    with Watcher(Renderer("text"), now=clock) as watcher:
        for clock.time in range(100, 131):
            watcher.progress(HALF)
    assert capsys.readouterr().err.count("\n") == 3


@pytest.mark.parametrize("text", ["often", "-1", "nan", "inf"])
def test_a_bad_interval_is_exit_2(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EOSINGEST_PROGRESS_SECONDS", text)
    with pytest.raises(SpecError, match="EOSINGEST_PROGRESS_SECONDS"):
        Watcher(Renderer("text"))


def test_notes_are_lines_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    with Watcher(Renderer("text")) as watcher:
        watcher.note("taking over from run 3")
    assert capsys.readouterr().err == "note: taking over from run 3\n"


# ---- on a terminal ---------------------------------------------------------------------------------------------------

COLOUR = r"\x1b\[[39]\d(;\d+)*m"
SCRIPT = """
from eosingest.cli.progress import Watcher
from eosingest.cli.render import Renderer
from eosingest.report.progress import AuditProgress, Progress
with Watcher(Renderer("text")) as watcher:
    for done in (0, 10, 20):
        watcher.progress(Progress(done * 1000, done, 40, done << 20, 40 << 20, 2.0))
    watcher.note("above the bar")
    watcher.progress(Progress(30_000, 30, 40, 30 << 20, 40 << 20, 3.0))
    watcher.audited(AuditProgress("the topic", "offset", 7, 9, 1.0))
Renderer("text").line("after the bar")
"""


@pytest.fixture()
def terminal() -> Iterator[tuple[int, int]]:
    ours, theirs = pty.openpty()
    yield ours, theirs
    os.close(ours)


def on_terminal(terminal: tuple[int, int], **environment: str) -> str:
    ours, theirs = terminal
    kept = {name: value for name, value in os.environ.items() if name not in ("CI", "NO_COLOR", "COLUMNS")}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**kept, "TERM": "xterm", "COLUMNS": "140", **environment},
        timeout=60,
    )
    os.close(theirs)
    assert (done.returncode, done.stdout) == (0, b"")
    return os.read(ours, 1 << 20).decode()


def test_a_bar_on_a_terminal(terminal: tuple[int, int]) -> None:
    written = on_terminal(terminal)
    assert "20 of 40 splits, 20 MiB of 40 MiB, 20,000 records, 10,000 records/s, 00:00:02 left" in written
    assert "30 of 40 splits" in written
    assert "reading the topic: 7 of 9 offsets" in written
    assert "note: above the bar\r\n" in written
    assert written.endswith("after the bar\r\n")
    assert "\x1b[?25h" in written, "the cursor is shown again"
    assert re.search(COLOUR, written)


def test_no_color_is_honoured(terminal: tuple[int, int]) -> None:
    written = on_terminal(terminal, NO_COLOR="1")
    assert "20 of 40 splits" in written
    assert not re.search(COLOUR, written)


@pytest.mark.parametrize("environment", [{"CI": "true"}, {"TERM": "dumb"}])
def test_no_bar_in_ci_or_on_a_dumb_terminal(terminal: tuple[int, int], environment: dict[str, str]) -> None:
    assert on_terminal(terminal, **environment) == "note: above the bar\r\nafter the bar\r\n"
