"""What `verify` says, and with which exit code it ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eosingest.cli.verify import result_of
from eosingest.errors import EosingestError, FatalError, MismatchError, TemporaryError
from eosingest.report.model import VerifyReport

REPORT = VerifyReport(
    job="orders",
    topic="orders-topic",
    bootstrap_servers="broker:9092",
    run=3,
    state="complete",
    verdict="verified",
    expected={"records": 1_200, "checksum": "00000000000000ff"},
    found={"records": 1_200, "checksum": "00000000000000ff"},
    found_late={"records": 0, "checksum": "0" * 16},
    counts={"lost": 0, "doubled": 0, "changed": 0, "foreign": 0},
    findings=(),
    partitions=({"partition": 0, "start": 10, "end": 1_300, "high_watermark": 1_310, "removed": 0},),
    source_splits=None,
    source_reader="",
    seconds=2.0,
)
LOST = {
    "kind": "lost",
    "text": "not in the topic",
    "records": 2,
    "split": "data/a, split at byte 0",
    "examples": ["row 7", "row 9"],
}


def test_verified_in_words() -> None:
    assert result_of(REPORT).lines == (
        "orders: verified. 1,200 records read in 2.0 s (600 records/s).",
        "  topic     orders-topic on broker:9092, 1 partition",
        "  receipts  1,200 records, checksum 00000000000000ff, to run 3 (complete)",
        "  found     1,200 records, checksum 00000000000000ff, at 1,300 offsets",
    )


def test_findings_in_words() -> None:
    report = replace(
        REPORT,
        verdict="mismatch",
        findings=(LOST, {**LOST, "kind": "unlike", "records": 0, "text": "other", "examples": [], "split": None}),
        found_late={"records": 1, "checksum": "0" * 15 + "1"},
        source_splits=4,
        source_reader="Python's csv module",
        errors=(MismatchError("2 lost"),),
    )
    assert result_of(report).lines[4:] == (
        "  of these  1 record, checksum 0000000000000001 written after the job was complete",
        "  source    4 splits read again, by Python's csv module",
        "lost: data/a, split at byte 0: 2 records: not in the topic",
        "  row 7; row 9",
        "unlike: other",
    )


def test_many_findings_are_shown_with_verbose_only() -> None:
    report = replace(REPORT, findings=(LOST,) * 23)
    assert result_of(report).lines[-1] == "  and 3 more (--verbose shows them all)"
    assert len(result_of(report, verbose=True).lines) == 4 + 2 * 23


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [
        (None, 0),
        (MismatchError("x"), 4),
        (FatalError("inconclusive: x", code="inconclusive"), 7),
        (TemporaryError("inconclusive: x", code="inconclusive"), 5),
    ],
)
def test_exit_codes(error: EosingestError | None, exit_code: int) -> None:
    result = result_of(replace(REPORT, errors=(error,) if error else ()))
    assert (result.exit_code, result.status) == (exit_code, "error" if exit_code else "success")


def test_the_data_of_the_envelope() -> None:
    data = result_of(replace(REPORT, counts={**REPORT.counts, "lost": 2}, findings=(LOST,))).data
    assert (data["verdict"], data["lost"], data["doubled"], data["records_per_second"]) == ("verified", 2, 0, 600)
    assert data["findings"] == (LOST,)
    assert "errors" not in data
    assert "counts" not in data
