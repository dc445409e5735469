"""Something is done to what a run reads, at a moment of the run: for the tests of stores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from eosingest.host import failpoints
from tests.support.sources.in_process import Life

MOMENTS = {
    "between plan and read": ("driver-before-running", 1),
    "between begin and read": ("task-after-begin", 1),
    "in mid-read": ("task-before-commit", 2),
    "before the verdict": ("driver-before-verdict", 1),
}
BEFORE_THE_LISTING = ("driver-after-fence", 1)


class Meddler:
    """Does something when a run passes a point for the n-th time."""

    def __init__(self, point: str, hit: int, act: Callable[[], None]) -> None:
        self.point, self.hit, self.act = point, hit, act
        self.passed = 0

    def __call__(self, name: str) -> None:
        if name == self.point:
            self.passed += 1
            if self.passed == self.hit:
                self.act()


def run_meddled(life: Life, meddler: Meddler) -> tuple[int, list[str]]:
    """Run, and return the exit code and the codes of errors."""
    failpoints.handle_with(meddler)
    try:
        ended = life.run()
    finally:
        failpoints.handle_with(None)
    assert meddler.passed >= meddler.hit, "the moment was not reached"
    return ended.exit_code, ended.codes


def assert_noticed(
    life: Life, rows: list[bytes], moment: str, act: Callable[[], None], restore: Callable[[], None]
) -> None:
    """Change what a run reads at one of MOMENTS: it says so, and sends what was listed alone; the next runs send the rest.

    `restore` brings back what can be proven equal.
    """
    point, hit = MOMENTS[moment]
    code, codes = run_meddled(life, Meddler(point, hit, act))
    assert code == 12, (code, codes)
    assert set(codes) <= {"changed-while-read", "source-changed", "incomplete"}, codes
    sent = Counter(life.records())
    assert not sent - Counter(rows), "a byte of something else was sent, or a row twice"
    assert (moment == "in mid-read") <= (0 < sum(sent.values()) < len(rows)), "it is to be in the middle"
    restore()
    assert life.run().exit_code == 0
    assert Counter(life.records()) == Counter(rows)
    assert life.run().rows_sent == 0
