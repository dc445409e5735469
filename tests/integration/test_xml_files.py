"""XML files from the first look to the audit, with a real broker and a real Spark: killed in mid-run, refused, verified."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from typing import Any

import pytest

from tests.support.harness import SPEC, Job, assert_done, assert_refused, end_offsets, topic_exists
from tests.support.held_runs import run_killed_at

ROWS = 60
_SOURCE = """\
format = "xml"
path = "data"
schema = '''
    _id BIGINT, `ns:user` STRING, at TIMESTAMP, price STRUCT<_cur: STRING, _VALUE: DECIMAL(10,2)>, tag ARRAY<STRING>, day DATE
'''
options = {{ rowTag = "ns:order" }}
[transform]
where = "_id % 10 <> 3"
[record]
key = "`ns:user`"
timestamp = "at"
"""
_SPEC = re.sub(r"format = .*(?=\[sink\])", "SOURCE", SPEC, flags=re.DOTALL).replace(
    "max_records = 2000", "max_records = 7"
)


def order(number: int) -> bytes:
    text = (
        f'<ns:order id="{number}"><ns:user>ü{number % 7} &amp; co</ns:user><at>2026-01-02T03:04:05.{number:03}+01:00</at>\n'
        f'<price cur="EUR">{number}.5</price><tag>a</tag><!-- <tag>b</tag> --><tag><![CDATA[<{number}>]]></tag></ns:order >\n'
    )
    return text.encode()


def written(number: int, day: str) -> dict[str, Any]:
    """Return what a record holds of an order."""
    return {
        "_id": number, "ns:user": f"ü{number % 7} & co", "at": f"2026-01-02T02:04:05.{number:03}000Z",
        "price": {"_cur": "EUR", "_VALUE": float(f"{number}.5")}, "tag": ["a", f"<{number}>"], "day": day,
    }  # fmt: skip


def document(numbers: range) -> bytes:
    return b'<?xml version="1.0"?>\n<ns:orders xmlns:ns="urn:x">' + b"".join(map(order, numbers)) + b"</ns:orders>\n"


@pytest.mark.slow
def test_from_the_first_look_to_the_audit(job: Job) -> None:
    """Breaks when rows of XML are lost, doubled or changed behind a kill, or sent before what is wrong was found."""
    for day in ("2026-01-01", "2026-01-02"):
        (job.data / f"day={day}").mkdir()
    (job.data / "day=2026-01-01" / "a.xml").write_bytes(document(range(ROWS)))
    (job.data / "day=2026-01-02" / "b.xml.gz").write_bytes(gzip.compress(document(range(ROWS, 2 * ROWS))))
    cut = job.data / "day=2026-01-02" / "c.xml"
    cut.write_bytes(document(range(3))[:-5])
    job.write_spec(_SPEC.replace("SOURCE", _SOURCE))
    assert job.run("check").exit_code == 0
    assert_refused(job.run(), 7, "bad-data", "day=2026-01-02/c.xml: line 8: it is no well-formed XML")
    assert not topic_exists(job.servers, job.name) or not any(end_offsets(job.servers, job.name).values())
    cut.unlink()
    plan = job.run("plan")
    assert (plan.data["splits_pending"], plan.exit_code) == (2, 0), plan.data
    preview = job.run("preview", "--rows", "2")
    assert preview.exit_code == 0, preview
    assert json.loads(preview.data["records"][1]["value"]) == written(1, "2026-01-01")

    for point in ("task-after-produce@2", "task-after-commit@3"):
        run_killed_at(job, point)
    assert job.run().exit_code == 0

    days = ["2026-01-01"] * ROWS + ["2026-01-02"] * ROWS
    expected = [written(number, day) for number, day in enumerate(days) if number % 10 != 3]
    found = [json.loads(record.value or b"") for record in job.records()]
    assert sorted(found, key=lambda row: row["_id"]) == expected
    assert Counter(record.key for record in job.records()) == Counter(row["ns:user"].encode() for row in expected)
    assert_done(job.run(), 0)
    assert job.run("verify", "--against-source").data["verdict"] == "verified"


def test_a_name_of_rows_that_is_misspelt_is_noted(job: Job) -> None:
    (job.data / "a.xml").write_bytes(b"<rows><row><a>1</a></row></rows>")
    source = (
        'format = "xml"\npath = "data/*"\nschema = "a STRING"\noptions = {{ rowTag = "rwo" }}\n[record]\nvalue = "a"\n'
    )
    job.write_spec(_SPEC.replace("SOURCE", source))
    done = job.run()
    assert_done(done, 0)
    assert "no element <rwo> is at the beginning of a.xml; there are: rows, row, a" in done.stderr
