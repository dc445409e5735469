"""Rows of many columns: the calls into the JVM that prepare a job do not grow with the number of columns."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from py4j.clientserver import JavaClient

from eosingest.sources.files.formats import csv_header
from eosingest.sources.files.reading.csv_scan import CsvScan
from eosingest.spark.record_columns import record_frame
from tests.support.reading.lab import Asked, Lab, lab, plan_of, settings_of  # noqa: F401 - a fixture

_RELEASE = "m\n"  # py4j's command that releases a Java object, which follows Python's garbage collector


@pytest.mark.parametrize("where", [None, "c3 > 1"])
@pytest.mark.parametrize("value", ["to_json(struct(*))", "CAST(c1 AS STRING)"])
def test_calls_into_the_jvm_are_few(
    lab: Lab,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    value: str,
    where: str | None,
) -> None:
    calls = {}
    for columns in (10, 300):
        names = [f"c{number}" for number in range(columns)]
        folder = tmp_path / f"{columns}"
        folder.mkdir()
        (folder / "a.csv").write_text(f"{','.join(names)}\n{','.join(map(str, range(columns)))}\n")
        plan = plan_of(folder, "csv")
        schema = ", ".join(f"{name} BIGINT" for name in names)
        settings = settings_of(Asked("csv", {}, value, {"header": "true"}, schema, where))
        with monkeypatch.context() as patch:
            counted: list[Any] = []
            send = JavaClient.send_command

            def counting(*given: Any, send: Any = send, counted: list[Any] = counted, **named: Any) -> Any:
                if not given[1].startswith(_RELEASE):
                    counted.append(given[1])
                return send(*given, **named)

            patch.setattr(JavaClient, "send_command", counting)
            record_frame(CsvScan(settings, settings).frame(lab.spark, plan, None, 1), settings)
        calls[columns] = len(counted)
    assert calls[300] <= calls[10] + 50, calls


def test_names_of_a_wide_header_take_linear_time() -> None:
    header = [f"c{place}" for place in range(50_000)]
    header[7] = header[8]
    began = time.process_time()
    names = csv_header.names_of(header)
    assert time.process_time() - began < 5
    assert (names[7:9], names[9]) == ([f"c8{7}", f"c8{8}"], "c9")
