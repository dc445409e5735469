"""The table can fail: with any one check of reading taken out, a case of it is sent wrong, and with the check it is not.

Each switch names the check, how it is taken out, and the cases that need it: the table finds what it should.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eosingest.sources.files import cuts
from eosingest.sources.files.bytes import codecs, magic, text_blocks
from eosingest.sources.files.formats import (
    avro_container,
    csv_check,
    csv_header,
    json_scan,
    text_checks,
    whole_csv,
    whole_text,
)
from eosingest.sources.files.formats.xml import document
from eosingest.sources.files.formats.xml import text as xml_text
from eosingest.sources.files.formats.xml import values as xml_values
from eosingest.sources.files.formats.xml.columns import settings_of
from eosingest.sources.files.listing import partitions
from eosingest.sources.files.reading import (
    columnar_scan,
    columnar_values,
    csv_columns,
    csv_reader,
    csv_scan,
    exact_types,
    inspect_files,
    orc_reader,
    xml_scan,
)
from eosingest.sources.files.reading.columnar_values import Calendars
from eosingest.sources.files.reading.file_scan import FileScan
from eosingest.sources.files.reading.typed_text import TextType
from eosingest.spark import volatile_casts
from tests.support.reading.lab import Lab, lab  # noqa: F401 - a fixture
from tests.support.reading.play import play, sent_wrong
from tests.support.reading.table import Case, named

_MOST = 25  # of a switch's cases that Spark reads: the table is played as a whole elsewhere
Patch = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Switch:
    """A check, what takes it out, and how the ids of cases begin that it is for. `words`: and what they hold.

    `spark`: without it nothing needs a JVM.
    """

    name: str
    patch: Patch
    prefixes: tuple[str, ...]
    words: tuple[str, ...] = ("",)
    spark: bool = True


def _set(target: Any, name: str, value: Any) -> Patch:
    return lambda patch: patch.setattr(target, name, value)


def _both(*patches: Patch) -> Patch:
    def patch_all(patch: pytest.MonkeyPatch) -> None:
        for each in patches:
            each(patch)

    return patch_all


def _nothing(*_: Any, **__: Any) -> None:
    return None


def _any_first_row(file: Any, options: Any, split_size: int | None = None) -> Any:
    return csv_header.first_row(file, options)


def _false(*_: Any, **__: Any) -> bool:
    return False


def _unchecked_blocks(data: bytes, layout: text_blocks.Layout, line: int) -> str:
    return data.decode(layout.encoding, "replace")


def _first_file_speaks_for_all() -> Patch:
    real = columnar_scan.merged
    return _set(columnar_scan, "merged", lambda footers, *more, case: real(footers[:1], *more, case=case))


def _values_without_marks() -> Patch:
    real = TextType.values
    return _set(TextType, "values", lambda self, texts: (real(self, texts)[0], None))


def _replaced(column: pa.Array[Any]) -> pa.Array[Any]:
    """Return a column of strings with other characters for bytes that are not UTF-8."""
    texts = column.cast(pa.binary()).to_pylist()
    return pa.array([None if text is None else text.decode(errors="replace") for text in texts], pa.string())


_NO_LOOK = _set(inspect_files, "look", _nothing)
_DOUBLED = ("doubled", "a quote", "text behind a quote", "space behind a quote", "three", "unclosed")

SWITCHES = [
    # Compressed files
    Switch("first bytes are not looked at", _NO_LOOK, ("text/lines/name/",), spark=False),
    Switch("first bytes are not looked at, by Spark", _NO_LOOK, ("text/spark/name/",), ("as data.txt",)),
    Switch("names are not looked at", _set(magic, "_FOREIGN", {}), ("text/lines/foreign/",), spark=False),
    Switch(
        "what is packed twice is taken",
        _set(codecs, "_refuse_packed_again", _nothing),
        ("text/lines/",),
        ("packed",),
        spark=False,
    ),
    # CSV
    Switch(
        "quotes are not looked at",
        _both(
            _set(csv_check.CsvCheck, "_fields", _nothing), _set(csv_columns, "irregular_lines", lambda *_: list[int]())
        ),
        ("csv/odd/",),
        ("in quotes", "unclosed", *_DOUBLED),
    ),
    Switch("a header may be in any split", _set(csv_scan, "first_row", _any_first_row), ("csv/header/behind",)),
    Switch(
        "what cannot be decoded is replaced",
        _both(
            _set(text_blocks, "_decoded", _unchecked_blocks),
            _set(csv_reader, "_decoded", lambda data, encoding: data.decode(encoding, "replace")),
        ),
        ("csv/encoding/", "csv/odd/latin"),
        ("undecodable", "latin"),
    ),
    Switch(
        "a header in another order is taken",
        _set(csv_scan.CsvScan, "_check_headers", _nothing),
        ("csv/header/reordered", "csv/header/other names"),
    ),
    Switch("texts that are no values are nulls", _values_without_marks(), ("csv/typed/", "json/typed/")),
    # Text
    Switch(
        "a separator may meet itself",
        _set(cuts, "ambiguous_separator", _false),
        ("text/lines/separator/",),
        spark=False,
    ),
    Switch(
        "marks of UTF-16 are data",
        _set(text_blocks, "_without_mark", lambda data, layout: (data, 0)),
        ("csv/encoding/UTF-16",),
        ("a mark",),
    ),
    # Files that are read as a whole
    Switch(
        "a document is not looked at",
        _set(text_checks, "check_json", _nothing),
        ("json/document/a name twice",),
    ),
    Switch(
        "records over lines are not looked at",
        _set(whole_csv.Grammar, "look", _nothing),
        ("csv/whole/odd/",),
        ("unclosed", "crlf rows, not said", "cr rows", "text behind"),
    ),
    Switch(
        "what cannot be decoded is replaced, of whole files",
        _set(whole_text, "_decode", lambda decoder, piece, encoding, *_, **__: piece.decode(encoding, "replace")),
        ("csv/over lines/encoding/",),
        ("windows-1252/undecodable/", "US-ASCII/undecodable/"),
    ),
    # XML
    Switch("a document's end is not waited for", _set(document._Handler, "end", _nothing), ("xml/cut/",), spark=False),
    Switch(
        "entities are followed",
        _set(document._Handler, "_doctype", _nothing),
        ("xml/document/whole/",),
        ("entities of its own", "an unused entity"),
        spark=False,
    ),
    Switch(
        "half a surrogate pair is decoded",
        _set(whole_text, "_decode", lambda decoder, piece, encoding, *_, **__: piece.decode(encoding, "replace")),
        ("xml/encoding/",),
        ("a lead alone", "a trail alone"),
        spark=False,
    ),
    Switch(
        "a declaration may say another encoding",
        _set(xml_text, "_agree", _nothing),
        ("xml/encoding/utf-16",),
        ("declared as UTF-8",),
        spark=False,
    ),
    Switch(
        "a second mark is passed over",
        _set(xml_text, "_without_second_mark", lambda pieces: pieces),
        ("xml/document/whole/two marks",),
        spark=False,
    ),
    Switch(
        "numbers are what Python takes for them",
        _set(xml_values, "_WHOLE", re.compile(r"[+-]?[\d_]+")),
        ("xml/typed/INT", "xml/typed/BIGINT"),
        spark=False,
    ),
    Switch(
        "numbers are rounded",
        _set(xml_values, "_EXACTLY", Context(prec=38)),
        ("xml/typed/DECIMAL(10,2)",),
        spark=False,
    ),
    Switch(
        "folders take the place of elements",
        _set(xml_scan, "settings_of", lambda options, fields, beside: settings_of(options, fields)),
        ("xml/folders/the data has it",),
        spark=False,
    ),
    # Times
    Switch(
        "expressions are filled in with today",
        _set(volatile_casts, "guarded", lambda frame: frame),
        ("json/times/CAST", "json/times/date_format"),
    ),
    # Parquet and ORC
    Switch(
        "types of columns are not compared",
        _set(columnar_scan, "refuse_misread", _nothing),
        ("parquet/type/INT as", "orc/type/INT as"),
    ),
    Switch("ORC's columns go by any place", _set(exact_types, "_problems_by_place", lambda *_: []), ("orc/place/",)),
    Switch(
        "old dates of ORC are read",
        _set(orc_reader.OpenOrc, "calendars", lambda self, place: Calendars()),
        ("orc/old/",),
    ),
    Switch("strings are not checked", _set(columnar_values, "_text", _replaced), ("orc/no utf-8/",)),
    Switch(
        "one file's footer speaks for all",
        _first_file_speaks_for_all(),
        ("orc/files/a column",),
    ),
    # Avro
    Switch(
        "a split begins at any bytes of the marker",
        _set(avro_container, "prove", _nothing),
        ("avro/damage/a block in",),
    ),
    Switch(
        "Avro's types are not compared",
        _set(columnar_scan, "refuse_misread", _nothing),
        (
            "avro/type/int as DATE",
            "avro/type/long as TIMESTAMP",
            "avro/type/stored",
            "avro/given/a field as",
            "avro/union/as",
        ),
    ),
    Switch(
        "a union may lose members",
        _set(exact_types, "_is_union", _false),
        ("avro/union/as",),
    ),
    Switch(
        "one file's schema speaks for all", _first_file_speaks_for_all(), ("avro/files/a column", "avro/files/other")
    ),
    Switch(
        "keys are addresses",
        _set(volatile_casts, "refuse_unwritable_keys", _nothing),
        ("parquet/map keys/", "orc/map keys/"),
    ),
    Switch(
        "names may be there twice",
        _set(json_scan.JsonScan, "_names", _nothing),
        ("json/odd/a name twice",),
    ),
    # Folders
    Switch(
        "folders are in any bytes",
        _set(partitions, "_refuse_other_bytes", _nothing),
        ("csv/folders/%C3",),
    ),
    Switch(
        "folders take the data's place",
        _set(FileScan, "refuse_folders", _nothing),
        ("json/folders/the data", "orc/folders/the data"),
    ),
]


def _cases(switch: Switch) -> list[Case]:
    found = [case for case in named(*switch.prefixes) if any(word in case.id for word in switch.words)]
    return found[:: max(1, len(found) // _MOST)] if switch.spark else found


def _sent_wrong(cases: list[Case], folder: Path, spark: Lab | None) -> list[str]:
    outcomes = play(cases, folder, spark, here=True)
    return [said for case in cases if case.id in outcomes and (said := sent_wrong(case, outcomes[case.id]))]


def _finds(switch: Switch, folder: Path, patch: pytest.MonkeyPatch, spark: Lab | None) -> None:
    cases = _cases(switch)
    assert cases, "the switch is for no case of the table"
    assert _sent_wrong(cases, folder / "with", spark) == []
    switch.patch(patch)
    found = _sent_wrong(cases, folder / "without", spark)
    assert found, f"nothing of the table needs this check: {[case.id for case in cases]}"
    print(f"{switch.name}: {len(found)} of {len(cases)} cases sent wrong, the first: {found[0][:200]}")


@pytest.mark.parametrize("name", [switch.name for switch in SWITCHES if not switch.spark])
def test_without_spark(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when the table has no case any more that a check is for."""
    (switch,) = (each for each in SWITCHES if each.name == name)
    _finds(switch, tmp_path, monkeypatch, None)


@pytest.mark.slow
@pytest.mark.in_turns("one check of files each")
@pytest.mark.parametrize("name", [switch.name for switch in SWITCHES if switch.spark])
def test_with_spark(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lab: Lab) -> None:  # noqa: F811
    """Breaks when the table has no case any more that a check is for."""
    (switch,) = (each for each in SWITCHES if each.name == name)
    _finds(switch, tmp_path, monkeypatch, lab)
