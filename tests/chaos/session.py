"""A session of rounds: clusters kept up between them, one line and one JSON object a round, and the summary.

Spark's JVM is what a round costs most. So the first run of a session, on no fault, leaves an archive of the classes that
it loaded (class data sharing), and every later JVM starts from it in half the time.
"""

from __future__ import annotations

import contextlib
import functools
import json
import shutil
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from tests.chaos.evidence import keep_evidence, markers_were_skipped
from tests.chaos.faults import delete_topic
from tests.chaos.inputs import Servers
from tests.chaos.kinds import Clusters, Kind
from tests.chaos.rounds import Round

_ARCHIVING_S = 120


class Played(NamedTuple):
    """A round that was played: its line, and which promise was broken, if one was."""

    line: str
    wrong: str


class Session:
    """Plays rounds of one seed. Everything lives in a temporary folder, which stays where a promise was broken."""

    def __init__(self, seed: int, report: Path | None = None) -> None:
        self.seed = seed
        self.violations = self.spoilt = 0
        self._report = report
        self.folder = Path(tempfile.mkdtemp(prefix="eosingest-chaos-"))
        self.clusters = Clusters(self.folder / "clusters")
        self.servers = Servers(self.folder / "clusters")
        self._began = time.monotonic()
        self._kinds: Counter[str] = Counter()
        self._runs = self._records = 0

    def __enter__(self) -> Session:
        if self._report is not None:
            self._report.write_text("")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.clusters.stop()
        finally:
            self.servers.stop()
        shutil.rmtree(self.folder / "clusters", ignore_errors=True)
        if not self.violations and not self.spoilt:
            shutil.rmtree(self.folder, ignore_errors=True)

    def play(
        self, number: int, kind: Kind, reads: str = "", bad_rows: bool | None = None, whole: bool | None = None
    ) -> Played:
        """Play one round; what its runs read, and whether it has bad rows or goes in one transaction (`whole`), is drawn.

        Unless we or the kind say it.
        """
        reads, bad_rows = kind.reads or reads, kind.bad_rows or bad_rows
        whole = whole if kind.whole is None else kind.whole
        cluster = self.clusters.get(kind.cluster)
        spark = self.clusters.spark() if kind.on_spark else None
        # A run on a cluster waits longer for its executors than for its own JVM.
        jvm = "" if kind.on_spark else self.jvm
        began, wrong = time.monotonic(), ""
        folder = self.folder / f"round-{number}"
        round = Round(number, self.seed, folder, cluster, self.servers, jvm, spark, reads, bad_rows, whole)
        try:
            round.go(kind.play)
        except Exception as error:
            wrong = str(error) if isinstance(error, AssertionError) else traceback.format_exc()
        spoilt = bool(wrong) and kind.play is not delete_topic and markers_were_skipped(round.cluster, round.job.name)
        self._clear_away(round, wrong)
        if wrong:  # a transaction that hangs would block later jobs, which have no part in it
            self.clusters.drop(kind.cluster)
        return Played(self._note(round, kind, wrong, spoilt, time.monotonic() - began), "" if spoilt else wrong)

    def _clear_away(self, round: Round, wrong: str) -> None:
        """Forget the round, or keep its folder; brokers must be well again for the next one."""
        if wrong:
            (round.folder / "violation.txt").write_text(wrong)
            shutil.rmtree(round.job.folder / "tmp", ignore_errors=True)
            keep_evidence(round.cluster, round.job.name, round.folder)
        else:
            shutil.rmtree(round.folder, ignore_errors=True)
        with contextlib.suppress(Exception):  # the next round's own heal says what is wrong
            self.servers.heal()
            round.cluster.heal()
            round.forget()

    def _note(self, round: Round, kind: Kind, wrong: str, spoilt: bool, seconds: float) -> str:
        self._kinds[kind.name] += 1
        self.violations += bool(wrong) and not spoilt
        self.spoilt += spoilt
        self._runs += len(round.ends)
        self._records += len(round.reader.seen)
        entry = {
            "round": round.number,
            "seed": self.seed,
            "fault": kind.name,
            "reads": round.reads,
            "bad_rows": round.job.bad,
            "whole": round.whole,
            "story": round.story,
            "exits": [end.exit_code for end in round.ends],
            "codes": [end.codes for end in round.ends],
            "run_seconds": [int(end.seconds * 10) / 10 for end in round.ends],
            "records": len(round.reader.seen),
            "seconds": int(seconds * 10) / 10,
            "violation": "" if spoilt else wrong,
            "spoilt": wrong if spoilt else "",
        }
        if self._report is not None:
            with self._report.open("a") as report:
                report.write(json.dumps(entry) + "\n")
        line = (
            f"round {round.number} seed {self.seed} {kind.name}: {_verdict(wrong, spoilt)}, exits"
            f" {' '.join(map(str, round.ends))}, {len(round.reader.seen):,} records, {seconds:.1f} s"
            f" ({'; '.join(round.story)})"
        )
        return f"{line}{_how_to_repeat(round, kind, wrong)}" if wrong else line

    def summary(self) -> str:
        """Return the last line."""
        return (
            f"chaos: {self._kinds.total()} rounds, {len(self._kinds)} kinds of faults, {self._runs} runs,"
            f" {self._records:,} records, {self.violations} violations,"
            f"{f' {self.spoilt} rounds spoilt by KAFKA-20734,' if self.spoilt else ''}"
            f" {(time.monotonic() - self._began) / 60:.0f} min"
        )

    @functools.cached_property
    def jvm(self) -> str:
        """Options for every JVM of Spark: the archive of classes that a first run, on no fault, leaves for the others."""
        archive = self.folder / "spark.jsa"
        option = f"-XX:ArchiveClassesAtExit={archive} -Xlog:disable"
        round = Round(
            0,
            self.seed,
            self.folder / "round-0",
            self.clusters.get("one"),
            self.servers,
            option,
            reads="json",
            bad_rows=False,
            whole=False,
        )
        round.go(_run_and_wait)
        self._clear_away(round, "")
        return f"-XX:SharedArchiveFile={archive} -Xlog:disable" if archive.exists() else "-Xlog:disable"


def _run_and_wait(round: Round) -> None:
    """Run to the end of the JVM, which writes the archive after the driver has ended."""
    run = round.start()
    round.finish(run, {0})
    round.wait_until(lambda: not run.processes(), None, _ARCHIVING_S)


def _verdict(wrong: str, spoilt: bool) -> str:
    if spoilt:
        return "spoilt by KAFKA-20734"
    return "VIOLATION" if wrong else "ok"


def _how_to_repeat(round: Round, kind: Kind, wrong: str) -> str:
    command = (
        f"python -m tests.chaos --seed {round.seed} --round {round.number} --fault {kind.name} --reads {round.reads}"
        f" --bad-rows {'yes' if round.job.bad else 'no'} --whole {'yes' if round.whole else 'no'}"
    )
    return f"\n  {wrong[:1500]}\n  kept in {round.folder}; again with: {command}"
