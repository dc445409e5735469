"""Plays cases of the table (table.py) through the whole reading path (lab.py) and says what is wrong with the outcome.

Cases that Spark reads in the same way are read together, each file's rows told apart by their split; where such a read fails
its halves are read, down to the one case that it fails for. What is expected to fail is read alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from eosingest.errors import EosingestError
from eosingest.sources.files.formats.registry import FORMATS
from eosingest.spec.values import ROW_AS_JSON
from tests.support.reading.independent import same
from tests.support.reading.lab import Asked, Lab, Pending, without_spark
from tests.support.reading.table import Case

REFUSALS = (EosingestError, Py4JError, PySparkException)
_TOGETHER = 64


_HERE = ("orc/old/", "orc/no utf-8/")


@dataclass(frozen=True)
class Outcome:
    """What came of a case: the rows, or why there are none."""

    rows: list[Any] | None
    refusal: str = ""


def asked(case: Case) -> Asked:
    return Asked(
        case.format,
        case.files(),
        case.value or FORMATS[case.format].value or ROW_AS_JSON,
        case.options,
        case.ddl,
        case.where,
        case.split_size,
        case.compression,
    )


def play(cases: Iterable[Case], folder: Path, lab: Lab | None, *, here: bool = False) -> dict[str, Outcome]:
    """Return the outcome of each case, by its id. Without a lab those that Spark would have to read are left out.

    `here`: `_HERE`, and CSV with a schema, are read in this process, with what is patched in it.
    """
    outcomes: dict[str, Outcome] = {}
    batches: dict[str, list[tuple[Case, Pending]]] = {}
    for number, case in enumerate(cases):
        mine = folder / str(number)
        mine.mkdir(parents=True)
        try:
            found = without_spark(asked(case), mine)
        except REFUSALS as error:
            outcomes[case.id] = _refused(error)
            continue
        if not isinstance(found, Pending):
            outcomes[case.id] = Outcome(_rows(case, found))
        elif (lab is None and found.needs_no_jvm) or _is_read_here(case, here=here):
            outcomes[case.id] = _read_in_python(found)
        elif lab is not None:
            batches.setdefault(_batch(case, found), []).append((case, found))
    for batch in batches.values():
        for at in range(0, len(batch), _TOGETHER):
            assert lab is not None
            _read(lab, batch[at : at + _TOGETHER], outcomes)
    return outcomes


def _is_read_here(case: Case, *, here: bool) -> bool:
    """Say whether a case needs no Spark: CSV and some of ORC where that is asked for, and lines that must be refused."""
    is_in_python = case.id.startswith(_HERE) or (case.format == "csv" and bool(case.ddl))
    return (here and is_in_python and not case.value) or (case.format == "text" and case.expectation() is None)


def _batch(case: Case, pending: Pending) -> str:
    """Return what is equal for cases that are read together: not those whose read fails, or whose schema comes of all files."""
    rows_of_text = case.format in ("json", "csv") and not case.refused and "TIMESTAMP" not in (case.ddl or "")
    rows_of_text &= not (case.format == "json" and "multiLine" in case.options)  # a bad value ends the whole read
    a_row_is_bad = rows_of_text and not pending.plan.items[0].item.path.endswith((".gz", ".deflate"))
    rows_of_text |= case.format == "xml"  # what is wrong with it was found before
    alone = len(pending.plan.items) > 1 or (case.expectation() is None and not a_row_is_bad)
    inferred = case.ddl is None and case.format not in ("text", "binaryFile")
    return f"{pending.batch} {case.id if alone or (inferred and not case.together) else case.together}"


def _read(lab: Lab, batch: Sequence[tuple[Case, Pending]], outcomes: dict[str, Outcome]) -> None:
    try:
        found = lab.read([pending for _, pending in batch])
    except REFUSALS as error:
        if len(batch) == 1:
            outcomes[batch[0][0].id] = _refused(error)
            return
        half = len(batch) // 2
        _read(lab, batch[:half], outcomes)
        _read(lab, batch[half:], outcomes)
        return
    for (case, _), (values, corrupt) in zip(batch, found, strict=True):
        outcomes[case.id] = Outcome(None, f"corrupt row {corrupt[0]!r}") if corrupt else Outcome(_rows(case, values))


def _read_in_python(pending: Pending) -> Outcome:
    try:
        return Outcome(pending.rows())
    except REFUSALS as error:
        return _refused(error)


def _refused(error: BaseException) -> Outcome:
    return Outcome(None, f"{type(error).__name__}: {error}"[:2000])


def _rows(case: Case, values: Sequence[bytes | None]) -> list[Any]:
    if case.format in ("text", "binaryFile") or case.value is not None:
        return list(values)
    return [None if value is None else json.loads(value, parse_float=Decimal) for value in values]


def sent_wrong(case: Case, outcome: Outcome) -> str:
    """Say what was sent that is not what the file says; nothing where the rows are exact, or there are none."""
    if outcome.rows is None:
        return ""
    expected = case.expectation()
    if expected is None:
        return f"{case.id}: sent {_shown(outcome.rows)}, and it had to be refused"
    if not same(expected, outcome.rows):
        return f"{case.id}: sent {_shown(outcome.rows)}, and the file says {_shown(expected)}"
    return ""


def refused_wrong(case: Case, outcome: Outcome) -> str:
    """Say of a good file that it was refused; nothing where it was read, or may be refused."""
    if outcome.rows is not None or case.may_refuse or case.expectation() is None:
        return ""
    return f"{case.id}: refused though it is good: {outcome.refusal[:400]}"


def _shown(rows: list[Any]) -> str:
    return f"{len(rows)} rows {rows[:3]!r}"[:300]
