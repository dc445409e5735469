"""Files from the field: `check` takes the spec that `init --from` writes, and a run by it sends exactly the file's values.

The reading path alone, without a broker (lab.py). The values are those of Python's json, csv and ElementTree; a value that is
sent as another kind of value than the file has, such as a number as a text, must be named in a note of `init`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from eosingest.app.settings import scan_of, source_of
from eosingest.cli import main as cli
from eosingest.errors import EosingestError
from eosingest.protocol.plan import make_plan
from eosingest.sniff import input as sniffed
from eosingest.spark.record_columns import CORRUPT, record_frame
from eosingest.spark.settings import record_settings
from eosingest.spec import load
from tests.support.reading.lab import Lab, _lines, lab  # noqa: F401 - a fixture


@dataclass(frozen=True)
class Written:
    """What `init` wrote: the spec, and its notes."""

    spec: Path
    notes: str

    @property
    def text(self) -> str:
        return self.spec.read_text()


def written(name: str, content: bytes, folder: Path, capsys: pytest.CaptureFixture[str]) -> Written:
    """Run `init --from` and `check`."""
    (folder / name).write_bytes(content)
    spec = folder / "job.toml"
    assert cli.exit_code_of(["init", "--from", str(folder / name), str(spec), "--output", "json"]) == 0, (
        capsys.readouterr()
    )
    notes = json.loads(capsys.readouterr().out.splitlines()[-1])["data"]["notes"]
    assert cli.exit_code_of(["check", str(spec)]) == 0, capsys.readouterr()
    return Written(spec, "\n".join(notes))


def values(file: Path, lab: Lab) -> list[bytes | None]:  # noqa: F811
    """Return the values of the records that a run by a spec sends. Raises what a run ends with."""
    spec = load(file)
    source, scan, records = source_of(spec), scan_of(spec), record_settings(spec, {})
    plan = make_plan(source, {}, spec.source.split_size, source.list())
    direct: Any = scan.direct(plan)
    scan.inspect(lab.spark.sparkContext, plan, direct=direct is not None, slots=2)
    if direct is not None:
        return _lines(plan, None)
    for name, value in spec.spark.conf.items():
        lab.spark.conf.set(name, value)
    try:
        frame = record_frame(scan.frame(lab.spark, plan, None, 1), records)
        rows = frame.records.coalesce(1).collect()
    finally:
        for name in spec.spark.conf:
            lab.spark.conf.unset(name)
    assert not [row for row in rows if CORRUPT in row and row[CORRUPT] is not None]
    return [None if row["value"] is None else bytes(row["value"]) for row in rows]


# ---- fields that the beginning of a file does not have -------------------------------------------------------------

LATE = {
    "a.jsonl": (
        b'{"id":1}\n' * 40,
        b'{"id":1,"late":{"x":1}}\n',
        "line 41: a field that source.schema does not name: late",
    ),
    "b.jsonl": (
        b'{"s":{"a":1}}\n' * 40,
        b'{"s":{"a":1,"b":2}}\n',
        "line 41: a field that source.schema does not name: s.b",
    ),
    "a.xml": (
        b"<r>\n" + b"<i><a>1</a></i>\n" * 40,
        b'<i><a>1</a><b c="1"/></i></r>\n',
        "line 42: a field that source.schema",
    ),
}


@pytest.mark.parametrize("name", LATE)
def test_a_field_after_the_part_that_init_read(
    name: str,
    lab: Lab,  # noqa: F811
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Breaks when it is left out of the records without a word, or the way on that the hint names is none."""
    first, last, words = LATE[name]
    monkeypatch.setattr(sniffed, "LOOKED_AT_BYTES", 300)
    monkeypatch.setattr("eosingest.sniff.xml.LOOKED_AT_BYTES", 300)
    wrote = written(name, first + last, tmp_path, capsys)
    assert "a later row with another field ends a run before it sends anything" in wrote.notes
    with pytest.raises(EosingestError) as raised:
        values(wrote.spec, lab)
    assert words in raised.value.message
    assert 'set source.unknown_fields = "ignore"' in raised.value.hint
    wrote.spec.write_text(wrote.text.replace('unknown_fields = "error"', 'unknown_fields = "ignore"'))
    sent = values(wrote.spec, lab)
    assert len(sent) == 41 and len(set(sent)) == 1
