"""`init --from FILE`: what is found out of a file, and that the spec that is written is one that `check` takes."""

from __future__ import annotations

import bz2
import csv
import datetime
import gzip
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import lz4.frame
import pyarrow
import pytest
import tomli
from pyarrow import orc, parquet

from eosingest.cli import main as cli
from eosingest.errors import FatalError
from eosingest.sniff import Found, sniff
from eosingest.sniff.column_typos import misspelt
from eosingest.spec import load
from tests.support.programs import find_program


def gzipped(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)  # the same in each process: it is in the names of the tests


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EOSINGEST_HOME", str(tmp_path / "home"))


def found(name: str, content: bytes | str) -> Found:
    file = Path(name)
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return sniff(file)


KEY = "CAST(id AS STRING)"

# ---- CSV -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "options", "schema", "key"),
    [
        ("a.csv", "id,name,price\n1,x,2.5\n2,y,\n", {"header": True}, "id BIGINT, name STRING, price DOUBLE", KEY),
        ("a.csv", "zip,n\n00123,1\n99999,2\n", {"header": True}, "zip STRING, n BIGINT", None),
        ("a.csv", "a;b\n1,5;x\n2,5;y\n", {"header": True, "sep": ";"}, "a STRING, b STRING", None),
        ("a.tsv", "a\tb, c\n1\tx\n", {"header": True, "sep": "\t"}, "a BIGINT, `b, c` STRING", None),
        ("a.csv", "a|b\n1|true\n2|false\n", {"header": True, "sep": "|"}, "a BIGINT, b BOOLEAN", None),
        ("a.csv", "1,x\n2,y\n", {"header": False}, "column_1 BIGINT, column_2 STRING", None),
        ("a.csv", "name,city\nann,rome\nbob,oslo\n", {"header": True}, "name STRING, city STRING", None),
        ("a.csv", "a,b\na,b\na,c\n", {"header": False}, "column_1 STRING, column_2 STRING", None),
        ("a.csv", 'id,t\n1,"he said ""hi"", left"\n', {"header": True, "escape": '"'}, "id BIGINT, t STRING", KEY),
        ("a.csv", 'id,t\n1,"a \\"b\\", c"\n2,x\n', {"header": True, "escape": "\\"}, "id BIGINT, t STRING", KEY),
        ("a.csv", "\ufeffid,t\r\n1,x\r\n", {"header": True}, "id BIGINT, t STRING", KEY),
        ("a.csv", "day,at\n2026-01-01,10:30\n", {"header": True}, "day STRING, at STRING", None),
        ("a.csv", "name,code,1960,1961,1962\nAruba,ABW,4.8,4.6,\nx,y,,,\n", {"header": True},
         "name STRING, code STRING, `1960` DOUBLE, `1961` DOUBLE, `1962` STRING", None),
        ("a.csv", "x,1,2,3\ny,4,5,6\n", {"header": False},
         "column_1 STRING, column_2 BIGINT, column_3 BIGINT, column_4 BIGINT", None),
        ("a.csv", "x,1,2,4\ny,1,2,3\n", {"header": False},
         "column_1 STRING, column_2 BIGINT, column_3 BIGINT, column_4 BIGINT", None),
        ("a.csv", "'a'\t'b'\n1\t2\n3\t4\n", {"header": True, "sep": "\t"}, "`'a'` BIGINT, `'b'` BIGINT", None),
        ("a.csv", "'a','b'\n1,x\n", {"header": False}, "column_1 STRING, column_2 STRING", None),
        ("a.csv", "n.a.,x\n1,x\n", {"header": False}, "column_1 STRING, column_2 STRING", None),
        ("a.csv", "lat,n\n3.4530000000000003,1\n", {"header": True}, "lat DOUBLE, n BIGINT", None),
        ("a.csv", "x_id,y\n1.5,1\n", {"header": True}, "x_id DOUBLE, y BIGINT", None),
        ("a.csv", "big,n\n12345678901234567890,+5\n", {"header": True}, "big STRING, n STRING", None),
        ("a.csv", "user_id,n\nu1,\n,2\n", {"header": True}, "user_id STRING, n BIGINT", None),
        ("a.csv", "user,order\nu1,1\n", {"header": True}, "`user` STRING, `order` BIGINT", None),
        ("a.csv", '"1","say \\"hi\\" now"\n', {"header": False, "escape": "\\"}, "column_1 BIGINT, column_2 STRING", None),
        ("a.csv", '"a\nb",c\r\n1,2\r\n', {"header": True, "escape": '"', "multiLine": True, "lineSep": "\r\n"},
         "`a\nb` BIGINT, c BIGINT", None),
    ],
)  # fmt: skip
def test_csv(name: str, content: str, options: dict[str, Any], schema: str, key: str | None) -> None:
    what = found(name, content)
    assert (what.format, what.options, what.schema, what.key) == ("csv", options, schema, key)


VALUES = {
    "BIGINT": [str(number) for number in range(-1_500, 1_500)],
    "DOUBLE": [f"{number / 7:.{number % 13}f}" for number in range(1, 3_000)],
    "BOOLEAN": ["true", "false"] * 1_500,
}
DECIMALS = ("-0", "7.0", "5.00e-7", "1e300", "0.30000000000000004")
FITS = {"": tuple(VALUES), "7": ("BIGINT", "DOUBLE"), "9223372036854775807": ("BIGINT",), "true": ("BOOLEAN",)}
FITS |= dict.fromkeys(DECIMALS, ("DOUBLE",))
ODD = [
    "007",
    "+7",
    "7.",
    ".5",
    "0x7",
    "inf",
    "nan",
    "1e999",
    "1e-400",
    "9223372036854775808",
    " 7",
    "True",
    "7\n",
    "１",
]
FITS |= dict.fromkeys([*ODD, "0.1000000000000000055", "12345678901234567000", "2026-01-01"], ())


@pytest.mark.parametrize(("last", "fits"), FITS.items())
def test_a_type_restores_each_value(last: str, fits: tuple[str, ...]) -> None:
    """Breaks when a type changes one value far from the first rows, or when few values are judged by other rules than many."""
    for kind, values in VALUES.items():
        for texts in (values, values[:900]):
            with Path("a.csv").open("w", newline="") as file:
                csv.writer(file).writerows([["x", "y"], *([text, "t"] for text in [*texts, last])])
            column = (sniff(Path("a.csv")).columns or ())[0]
            expected = kind if kind in fits else "DOUBLE" if kind == "BIGINT" and "DOUBLE" in fits else "STRING"
            assert (column.type, column.always) == (expected, last not in ("", "nan"))


@pytest.mark.parametrize("times", [1, 1_500])
def test_whole_numbers_with_a_negative_zero(times: int) -> None:
    """Breaks when -0, which only a double restores, has a double round the others, which were not looked at again."""
    for number, kind in (("123456789012345678", "STRING"), ("123", "DOUBLE")):
        Path("a.csv").write_text("x,y\n" + f"{number},t\n" * times + "-0,t\n")
        assert (sniff(Path("a.csv")).columns or ())[0].type == kind


def test_python_reads_no_value_that_a_type_does_not_restore() -> None:
    """Breaks when pyarrow and Python's csv see other rows, or a double is not the decimal in the file."""
    digits = random.Random(34)
    texts = [
        f"{digits.random() * 10 ** digits.randrange(-6, 6):.{places}{form}}"
        for places in range(1, 20)
        for form in "fge"
    ]
    for at, text in enumerate(texts):
        with Path("a.csv").open("w", newline="") as file:
            csv.writer(file).writerows([["x", "y"], *([text, 'say "hi",\r\n'] for text in texts[at : at + 3])])
        with Path("a.csv").open(newline="") as file:
            exact = all(Decimal(repr(float(row["x"]))) == Decimal(row["x"]) for row in csv.DictReader(file))
        assert (text, sniff(Path("a.csv")).columns[0].type) == (text, "DOUBLE" if exact else "STRING")  # type: ignore[index]


def test_the_cost_of_a_large_csv() -> None:
    """Breaks when Python judges each value, or when pandas or a client of Kafka, which take as long, is imported."""
    rows = "".join(f'{row},name {row},{row / 100:.2f},"a ""b"" {row}",true,2026-01-01\n' for row in range(80_000))
    Path("a.csv").write_text("id,name,price,note,ok,day\n" + rows)
    program = """if True:
        import sys, time
        from pathlib import Path
        from eosingest.cli import main
        import pyarrow.csv
        from eosingest.sniff import csv, sniff
        def cost(call):
            start = time.process_time()
            call()
            return time.process_time() - start
        parsed = min(cost(lambda: pyarrow.csv.read_csv("a.csv")) for _ in range(5))
        assert main.exit_code_of(["init", "--from", "a.csv"]) == 0
        assert not {"pandas", "kafka", "confluent_kafka"} & set(sys.modules)
        print(min(cost(lambda: sniff(Path("a.csv"))) for _ in range(5)) / parsed)
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split()[-1]) < 12


def test_a_word_for_no_value_is_said_and_left_as_it_is() -> None:
    what = found("a.csv", "id,n,t\n1,5,NA\n2,NA,x\nNA,7,y\n")
    assert what.schema == "id STRING, n STRING, t STRING"
    assert what.key is None
    (note,) = what.notes
    assert 'nullValue = "NA" into options, and into the schema: id BIGINT, n BIGINT' in note


def test_csv_in_latin_1_is_read_as_such_and_said() -> None:
    what = found("a.csv", "id,ort\n1,Düren\n".encode("latin-1"))
    assert what.options["encoding"] == "ISO-8859-1"
    assert "not UTF-8" in what.notes[0]
    assert found("b.csv", "id,t\n1,“x”\n".encode("cp1252")).options["encoding"] == "windows-1252"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("1,x\n2,y\n", "If it is a header, write header = true and leave the schema out"),
        ("name,city\nann,rome\n", "if it is data, header = false"),
        ("-0.5 1\n0.2 2\n", "there is one column"),
        ("lat,n\n48.05380860000000412,1\n", "stay text: lat (48.05380860000000412)"),
        (",".join("abcdefg") + "\n" + ",".join(["0.10000000000000000001"] * 7) + "\n", "and 2 more"),
    ],
)
def test_what_was_guessed_of_a_csv_is_said(content: str, words: str) -> None:
    """Breaks when a first row is lost as a header, or numbers become texts, without a word."""
    assert any(words in note for note in found("a.csv", content).notes)
    assert found("b.csv", "id,name\n1,x\n2,y\n").notes == ()


@pytest.mark.parametrize(
    ("content", "schema"),
    [
        ("a,a\n1,2\n", "a0 BIGINT, a1 BIGINT"),
        ("id,ID,x\n007,2,3\n", "id0 STRING, ID1 BIGINT, x BIGINT"),
        (",a\n0,1\n", "`_c0` BIGINT, a BIGINT"),
        ("a|b|\n1|2|\n", "a BIGINT, b BIGINT, `_c2` STRING"),
    ],
)
def test_a_header_with_a_name_twice_or_none(content: str, schema: str) -> None:
    """Breaks when Spark infers the types of such a file, which changes values: 007 would be 7."""
    what = found("a.csv", content)
    assert (what.schema, len(what.notes)) == (schema.replace("`", ""), 1)
    with pytest.raises(FatalError, match="names twice"):
        found("b.csv", "a,a,a0\n1,2,3\n")


TITLE = "Report of 2026\n\n"


@pytest.mark.parametrize(
    ("name", "content", "left"),
    [
        ("a.csv", f"{TITLE}id,name,n\n1,x,2\n2,y,3\n", "id,name,n\n1,x,2\n2,y,3\n"),
        ("a.csv", "Report;\nid;name;n\n1;x;2\n", "id;name;n\n1;x;2\n"),
        ("a.csv", "id,n\n1,2\n2,3\nTotal: 2\n", "id,n\n1,2\n2,3\n"),
        ("a.csv", "sep=;\r\nid;n\r\n1;x\r\n", "id;n\r\n1;x\r\n"),
        ("-a.csv", 'id,t\n1,"x\ny"\n3,4\n\ntotal\n', 'id,t\n1,"x\ny"\n3,4\n'),
        ("a.csv.gz", f"{TITLE}a,b\n1,2\n", "a,b\n1,2\n"),
    ],
)
def test_the_command_that_removes_a_title_or_a_total(name: str, content: str, left: str) -> None:
    """Breaks when the command fails, overwrites a file, or leaves other rows than those that are even."""
    raw = gzipped(content.encode()) if name.endswith(".gz") else content.encode()
    with pytest.raises(FatalError) as caught:
        found(name, raw)
    command, _, then = str(caught.value.hint).partition(", then: eosingest init --from ")
    done = subprocess.run(command.rpartition(": ")[2], shell=True, capture_output=True, timeout=60)
    assert done.returncode == 0, (done.stderr, command)
    assert (Path(name).read_bytes(), Path(then).read_bytes()) == (raw, left.encode())
    assert sniff(Path(then)).columns


@pytest.mark.parametrize("content", ["a,b\n1,2\n3\n4,5\n6,7\n", "a,b\n1\n2,3\n4\n", "a\nb,c\n"])
def test_rows_that_differ_elsewhere_are_no_title(content: str) -> None:
    with pytest.raises(FatalError) as caught:
        found("a.csv", content)
    assert "correct the row" in str(caught.value.hint)


def test_a_total_with_as_many_fields_is_said() -> None:
    (note,) = found("a.csv", "id,name,n\n1,x,2\n2,y,3\nTotal,,5\n").notes
    assert note.startswith("only the last row has no number in id:")
    assert found("b.csv", "id,n\nx,2\nTotal,5\nTotal,5\n").notes == found("c.csv", "id,n\n1,2\n2,3\n").notes == ()


DELIMITED = {
    "stops.txt": 'stop_id,stop_name,stop_lat\nS1,Main St,48.1\nS2,"Oak, 2nd",48.2\n',
    "agency.txt": "agency_id,agency_name,agency_url\nDTA,Demo,http://google.com\n",
    "part.tbl": "1|goldenrod lavender|901.00|ly. slyly ironi|\n2|blush thistle|902.00|lar accounts amo|\n",
    "a.dat": "1\tx\ty\n2\tz\tw\n",
    "noname": "a;b\n1;2\n",
    "pairs.txt": "1,2,x\n3,4,y\n",
}
LINES = {
    "a.log": "2026-11-28 02:31:38,123 INFO started\n2026-11-28 02:31:39,456 INFO ended\n",
    "b.txt": "Dear Ann,\nthis is a text, of course.\n",
    "c.txt": "Hello, all, friends\nGood day, to, you\n",
    "d.txt": "one\ntwo\n",
    "e.txt": "a,b,c\n",
    "f.log": "GET /a 200\nGET /b 404\n",
}


@pytest.mark.parametrize("name", [*DELIMITED, *LINES])
def test_a_csv_file_is_recognised_by_its_content(name: str) -> None:
    """Breaks when the header of a delimited file is sent as a record, or lines of a text are cut at their commas."""
    what = found(name, {**DELIMITED, **LINES}[name])
    assert what.format == ("csv" if name in DELIMITED else "text")
    assert ("taken for csv" in "".join(what.notes)) == (name in DELIMITED)


def test_single_quotes() -> None:
    what = found("a.csv", "a,b\n'1, x','it''s'\n2,y\n")
    assert (what.options, what.schema) == ({"header": True, "quote": "'"}, "a STRING, b STRING")
    assert found("b.csv", "a,b\nit's,1\n'x',2\n").options == {"header": True}


@pytest.mark.parametrize(
    ("name", "content", "schema"),
    [
        ("a.json", '[\n {"a": 1, "b": "x"},\n {"a": 2.5}\n]\n', "a DOUBLE, b STRING"),
        ("a.json", '[{"a": 1}]', "a BIGINT"),
        ("a.json", '{\n "a": {"b": [1]}\n}\n', "a STRUCT<b: ARRAY<BIGINT>>"),
        ("a.csv", 'id,t\n1,"two\nlines"\n', "id BIGINT, t STRING"),
        ("a.csv", 'id,t\r\n1,"two\r\nlines"\r\n', "id BIGINT, t STRING"),
    ],
)
def test_files_that_are_read_as_a_whole(name: str, content: str, schema: str) -> None:
    """Breaks when a document, or a value of several lines, is taken for rows of one line."""
    what = found(name, content)
    assert (what.options["multiLine"], what.schema) == (True, schema)
    assert what.options.get("lineSep") == ("\r\n" if "\r" in content else None)
    assert any("by one task" in note for note in what.notes)


@pytest.mark.parametrize(
    ("name", "content", "code", "words"),
    [
        ("a.csv", "a,b\n1,2\n3\n", "corrupt-row", "row 3 has 1 fields, the first one 2"),
        ("a.csv", "a,b\n1,2\n".encode("utf-16"), "encoding", "UTF-16"),
        ("a.csv", b"", "file-empty", "is empty"),
        ("a.json", '[\n {"a": 1},\n 5]', "json-array", "jq -c '.[]' a.json > a.jsonl"),
        ("a.json", '[{"a": 1}, {"a"', "json-array", "one JSON array"),
        ("a.json", '{\n "a": 1\n}\n{\n "a": 2\n}\n', "json-lines", "jq -c . a.json > a.jsonl"),
        ("a.jsonl", '{"a": 1}\n{"a"\n', "corrupt-row", "line 2 is not JSON"),
        ("a.jsonl", '{"a": 1}\n3\n', "corrupt-row", "line 2 is no JSON object"),
        ("a.jsonl", b'{"a": "\xff"}\n', "encoding", "not UTF-8"),
        ("a.jsonl", '{"a": "\\ud83d\\ude00"}\n{"a": "\\ud800"}\n', "corrupt-row", "line 2 has half a surrogate pair"),
        ("a.jsonl", '{"\\uDC00": 1}\n', "corrupt-row", "line 1 has half a surrogate pair"),
        ("a.json", '[{"a": {"\\ud800": 1}}]\n', "corrupt-row", "the document has half a surrogate pair"),
        ("a.parquet", "id,name\n1,x\n", "format-unknown", "no parquet file"),
        ("a.parquet", b"PAR1 and no end", "file-unreadable", "its end cannot be read"),
        ("a.zip", b"PK\x03\x04" + bytes(50), "format-unknown", "unzip -n "),
        ("a.csv.gz", "a,b\n1,2\n", "codec-misnamed", "not compressed with gzip"),
        ("a.csv.bz2", bz2.compress(b"a,b\n" * 1000)[:-20], "file-unreadable", "cannot be read"),
        ("a.csv.gz", gzipped(b"a,b\n" * 1000)[:-9], "file-unreadable", "cannot be read"),
        ("a.avro", "id,name\n1,x\n", "format-unknown", "no avro file"),
        ("a.xlsx", b"PK\x03\x04", "format-unknown", "Excel"),
    ],
)
def test_what_cannot_be_read_is_said_with_a_way_out(name: str, content: bytes | str, code: str, words: str) -> None:
    with pytest.raises(FatalError) as caught:
        found(name, content)
    assert caught.value.code == code
    assert words in f"{caught.value.message}; {caught.value.hint}"
    assert caught.value.hint


WIDE = ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be")
TEXTS = {
    "a.log": "eins\r\nzwei ü\r\n",
    "b.log": "один\nдва\n",
    "c.log": "上海中文\n不同\n",
    "a.txt": "one line",
    "a.csv": "id;ort\n1;Düren\n",
    "a.jsonl": '{"a": "ü\U0001f600"}\n',
    "-a.csv": "a,b\n1,2\n",
    "noname": '{"a": 1}\n',
}


@pytest.mark.parametrize("encoding", [*WIDE, "utf-16-be with a mark"])
@pytest.mark.parametrize("name", [*TEXTS, "a.csv.gz"])
def test_utf_16_and_utf_32_are_converted_by_the_command_of_the_hint(name: str, encoding: str) -> None:
    """Breaks when half characters become records, or the command fails, overwrites a file, or makes another text."""
    text = TEXTS[name.removesuffix(".gz")]
    raw = f"\ufeff{text}".encode("utf-16-be") if "mark" in encoding else text.encode(encoding)
    content = gzipped(raw) if name.endswith(".gz") else raw
    with pytest.raises(FatalError) as caught:
        found(name, content)
    assert caught.value.code == "encoding"
    command, _, then = str(caught.value.hint).partition(", then: eosingest init --from ")
    before = {path.name for path in Path().iterdir()}
    done = subprocess.run(command, shell=True, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    (made,) = {path.name for path in Path().iterdir()} - before
    assert Path(then.strip("'")).name == made
    assert (Path(name).read_bytes(), Path(made).read_bytes().decode("utf-8-sig")) == (content, text)
    sniff(Path(made))


@pytest.mark.parametrize(
    "content",
    [
        b"a log\nwith a \0 zero byte\n",
        b"two\0\n\0\0lines\n",
        "Düren\n".encode("latin-1"),
        b"\xef\xbb\xbfx\n",
        b"\0" * 64,
    ],
)
def test_other_bytes_are_lines_as_they_are(content: bytes) -> None:
    assert found("a.log", content).format == "text"


@pytest.mark.parametrize("name", ["a.xml", "noname"])
def test_xml_in_utf_16(name: str) -> None:
    text = '<?xml version="1.0" encoding="UTF-16"?><r><i><a>1</a></i><i><a>ü</a></i></r>'
    assert found(name, text.encode("utf-16")).schema == "a STRING"


# ---- JSON ----------------------------------------------------------------------------------------------------------


def test_json_lines() -> None:
    rows = [
        {"id": 1, "n": 1, "x": {"a": 1, "b c": None}, "l": [1, 2.5], "o": [], "b": True, "m": 1, "u": None, "e": {}},
        {"id": 2, "n": 1.5, "x": {"a": "t"}, "l": None, "b": False, "m": "two", "user": "u", "big": 2**70},
    ]
    what = found("a.json", "".join(json.dumps(row) + "\n" for row in rows))
    assert what.schema == (
        "id BIGINT, n DOUBLE, x STRUCT<a: STRING, `b c`: STRING>, l ARRAY<DOUBLE>, o ARRAY<STRING>, b BOOLEAN, m STRING,"
        " u STRING, e STRUCT<>, `user` STRING, big STRING"
    )
    assert what.key == "CAST(id AS STRING)"


def test_a_number_that_a_double_would_change_stays_as_it_is_written() -> None:
    assert (
        found("a.jsonl", '{"a": 0.1234567890123456789, "b": 0.5, "c": 1e3}\n').schema == "a STRING, b DOUBLE, c DOUBLE"
    )


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(
    ("numbers", "kind"),
    [
        (("123456789012345678", "1.5"), "STRING"),  # a double has 123456789012345680
        (("123456789012345678", "1", "1.5"), "STRING"),
        (("-123456789012345", "1.5"), "DOUBLE"),
        (("123456789012345678", "1"), "BIGINT"),
        (("123456789012345.123456789012345", "1.5"), "STRING"),
        (("0.000000000000001", "1"), "DOUBLE"),
    ],
)
def test_no_number_is_changed_by_the_other_ones_of_its_column(numbers: tuple[str, ...], kind: str, order: int) -> None:
    """Breaks when whole numbers that a double rounds are DOUBLE since the column has a fraction."""
    numbers = numbers[::order]
    assert found("a.jsonl", "".join(f'{{"v": {number}}}\n' for number in numbers)).schema == f"v {kind}"
    assert found("b.jsonl", f'{{"v": [{", ".join(numbers)}]}}\n').schema == f"v ARRAY<{kind}>"
    assert found("a.xml", f"<r>{''.join(f'<i><v>{number}</v></i>' for number in numbers)}</r>").schema == f"v {kind}"
    assert found("a.csv", "v,w\n" + "".join(f"{number},x\n" for number in numbers)).schema == f"v {kind}, w STRING"


@pytest.mark.parametrize("exponent", ["400", "-400", "9" * 20, "-" + "9" * 20])
def test_an_exponent_beyond_that_of_a_double(exponent: str) -> None:
    """Breaks when such a number is sent as Infinity or 0, or `init` ends with a traceback."""
    assert found("a.csv", f"v,w\n1e{exponent},x\n2.5,y\n").schema == "v STRING, w STRING"
    assert found("a.jsonl", f'{{"v": 1e{exponent}}}\n{{"v": 2.5}}\n').schema == "v STRING"


@pytest.mark.parametrize("digits", [20, 4_300, 4_301, 100_000])
@pytest.mark.parametrize("form", ['{{"a": -{}}}', '[{{"a": {}}}]'])
def test_whole_numbers_of_any_length_are_kept_as_texts(digits: int, form: str) -> None:
    """Breaks when Python makes an integer of them, which it refuses above 4,300 digits."""
    assert found("a.json", form.format("9" * digits) + "\n").schema == "a STRING"


def test_a_file_name_that_is_not_utf_8(capsys: pytest.CaptureFixture[str]) -> None:
    name = os.fsdecode(b"caf\xe9.jsonl")
    Path(name).write_text('{"a": 1}\n')
    assert cli.exit_code_of(["init", "--from", name]) == 7
    assert "is not UTF-8" in capsys.readouterr().err


def test_fields_that_differ_by_case_alone_or_have_no_name() -> None:
    what = found("a.jsonl", '{"a": 1, "A": 2}\n')
    assert (what.schema, what.conf, len(what.notes)) == ("a BIGINT, A BIGINT", {"spark.sql.caseSensitive": "true"}, 1)
    what = found("a.jsonl", '{"s": {"": 1, "b": 2}}\n')
    assert (what.schema, what.conf, what.drops_fields, len(what.notes)) == ("s STRUCT<b: BIGINT>", {}, True, 1)
    assert found("a.jsonl", '{"": 1}\n').columns is None


def test_what_becomes_a_text_is_said() -> None:
    """Breaks when a number or an object of JSON becomes a text without a word."""
    deep = "[" * 120 + "]" * 120
    rows = f'{{"n":[1e999],"m":{{"x":1}},"t":"x","u":null,"d":{deep}}}', '{"n":[1],"m":{"x":"y"},"t":"y","u":null}'
    numbers, several, nested = found("a.jsonl", "\n".join(rows)).notes
    assert "numbers that neither BIGINT nor DOUBLE" in numbers and "written: n;" in numbers
    assert "several types" in several and several.endswith(": m.x")
    assert "nested too deep" in nested and nested.endswith(": d")
    assert found("a.jsonl", '{"t":"x","n":1.5,"l":[1],"o":{"a":1}}\n').notes == ()


# ---- others ----------------------------------------------------------------------------------------------------------


def test_lines_of_text() -> None:
    what = found("app.log", "one\ntwo\n")
    assert (what.format, what.options, what.columns, what.key) == ("text", {}, None, None)
    assert found("noname", '{"a": 1}\n').format == "json"


TABLE = pyarrow.table(
    {
        "id": pyarrow.array([1], pyarrow.int32()),
        "d": pyarrow.array([Decimal("1.50")], pyarrow.decimal128(10, 2)),
        "t": pyarrow.array([datetime.datetime(2026, 1, 1)], pyarrow.timestamp("us", "UTC")),
        "l": pyarrow.array([["x"]], pyarrow.list_(pyarrow.string())),
        "s": pyarrow.array([{"a": 1.5}]),
        "day": pyarrow.array([datetime.date(2026, 1, 1)]),
    }
)
DDL = "id INT, d DECIMAL(10,2), t TIMESTAMP, l ARRAY<STRING>, s STRUCT<a: DOUBLE>, day DATE"


def test_footers() -> None:
    parquet.write_table(TABLE, "a.parquet")
    orc.write_table(TABLE, "a.orc")
    assert (sniff(Path("a.parquet")).schema, sniff(Path("a.parquet")).key) == (DDL, "CAST(id AS STRING)")
    assert sniff(Path("a.orc")).schema == DDL


def test_avro_carries_its_schema() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}
    with Path("data").open("wb") as file:
        fastavro.writer(file, schema, [{"id": 1}], "deflate")
    assert (sniff(Path("data")).format, sniff(Path("data")).schema) == ("avro", None)


@pytest.mark.skipif(not hasattr(pyarrow, "uuid"), reason="pyarrow writes no UUID before 18")
def test_int96_is_a_timestamp_and_a_uuid_a_string() -> None:
    """Breaks when `init` takes INT96 as nanoseconds, or a UUID as a type that Spark does not have."""
    ids = pyarrow.array([bytes(16)], pyarrow.uuid())
    table = pyarrow.table({"t": pyarrow.array([0], pyarrow.timestamp("ns")), "u": ids})
    parquet.write_table(table, "a.parquet", use_deprecated_int96_timestamps=True)

    what = sniff(Path("a.parquet"))

    assert [column.type for column in what.columns] == ["TIMESTAMP", "STRING"]
    assert (what.conf, what.notes) == ({}, ())


def test_nanoseconds_get_the_setting_that_reads_them_and_times_are_said() -> None:
    table = pyarrow.table(
        {
            "at": pyarrow.array([1], pyarrow.timestamp("ns")),
            "clock": pyarrow.array([1], pyarrow.time64("us")),
        }
    )
    parquet.write_table(table, "a.parquet")
    what = sniff(Path("a.parquet"))
    assert what.conf == {"spark.sql.legacy.parquet.nanosAsLong": "true"}
    assert any("the column clock" in note for note in what.notes)
    assert any("nanoseconds" in note and " div 1000)" in note for note in what.notes)


def zstd(data: bytes) -> bytes:
    sink = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return bytes(sink.getvalue())


@pytest.mark.parametrize(
    ("suffix", "compress"), [(".gz", gzipped), (".bz2", bz2.compress), (".zst", zstd), (".lz4", lz4.frame.compress)]
)
def test_compressed(suffix: str, compress: Callable[[bytes], bytes]) -> None:
    assert found(f"a.csv{suffix}", compress(b"id,n\n1,2\n")).schema == "id BIGINT, n BIGINT"
    assert found(f"a.jsonl{suffix}", compress(b'{"id": "x"}\n')).schema == "id STRING"
    assert found(f"a.log{suffix}", compress(b"x\n")).format == "text"
    codec = {".gz": "gzip", ".bz2": "bzip2", ".zst": "zstd", ".lz4": "lz4"}[suffix]
    assert (
        found("part-0", compress(b'{"id": "x"}\n')).compression,
        found(f"b.log{suffix}", compress(b"x")).compression,
    ) == (
        codec,
        None,
    )


# ---- the spec ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("orders.csv", "id,name,price\n1,x,2.5\n"),
        ("or ders [1] ${x}.csv", 'id;t\n1;"a ""b"""\n'),
        ("data/x.tsv", "a\tb\n1\t2\n"),
        ("x.jsonl", '{"id": 1, "user": "u", "a b": [1]}\n'),
        ("x.log", "one\n"),
        ("x.csv.gz", gzipped(b"a,b\n1,2\n")),
        ("x.csv", gzipped(b"a,b\n1,2\n")),
        ("größe.csv", "größe,n\nx,1\n"),
    ],
)
def test_check_takes_the_spec(name: str, content: bytes | str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
    assert cli.exit_code_of(["init", "--from", name]) == 0
    assert "eosingest preview eosingest.toml" in capsys.readouterr().out
    assert cli.exit_code_of(["check", "eosingest.toml"]) == 0, Path("eosingest.toml").read_text()
    spec = load(Path("eosingest.toml"))
    assert spec.source.path == (name,)
    assert cli.exit_code_of(["plan", "eosingest.toml", "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["data"]["files"][0]["name"] == name


def test_for_a_file_elsewhere_the_path_is_absolute(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    assert cli.exit_code_of(["init", "jobs/daily/", "--from", "a.csv"]) == 0
    assert tomli.loads(Path("jobs/daily/eosingest.toml").read_text())["source"]["path"] == str(tmp_path / "a.csv")


def test_a_folder_that_is_not_there_is_made(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.exit_code_of(["init", "new/dir/"]) == 0
    assert Path("new/dir/eosingest.toml").is_file()
    assert Path("new/dir/eosingest.schema.json").is_file()
    assert "wrote new/dir/eosingest.toml" in capsys.readouterr().out


def test_nothing_is_overwritten(capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.csv").write_text("a,b\n1,2\n")
    Path("eosingest.toml").write_text("mine")
    assert cli.exit_code_of(["init", "--from", "a.csv"]) == 2
    assert Path("eosingest.toml").read_text() == "mine"
    assert cli.exit_code_of(["init", "--from", "missing.csv"]) == 2
    assert "no such file" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["check", "plan", "preview", "run", "status", "verify"])
def test_data_in_the_place_of_a_spec_is_told(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("or ders.csv").write_text("a,b\n1,2\n")
    assert cli.exit_code_of([verb, "or ders.csv"]) == 2
    said = capsys.readouterr().err
    assert "or ders.csv is data, not a spec" in said
    assert "eosingest init --from 'or ders.csv'" in said


@pytest.mark.parametrize(
    "name", ["a.jsonl", "a.json", "a b.jsonl", "it's.jsonl", "$HOME.jsonl", "-a.jsonl", "a.b.jsonl"]
)
@pytest.mark.parametrize(
    "content", ['{"id":1}{"id":2}\n{"id":3}{"id":4}\n', '[\n{"id":1},\n{"id":2}\n,3]\n', '{\n"id":1}\n{"id":2}']
)
def test_the_command_of_a_hint_overwrites_no_file(name: str, content: str) -> None:
    """Breaks when the command writes to its own input, to another file that exists, or makes no file that `init` reads."""
    jq = find_program("jq")
    Path(name).write_text(content)
    others = {other: f"of the user: {other}" for other in ("a.jsonl", "a-1.jsonl") if other != name}
    for other, text in others.items():
        Path(other).write_text(text)
    with pytest.raises(FatalError) as caught:
        sniff(Path(name))
    command = str(caught.value.hint).partition(", then: ")[0]
    environment = {"PATH": f"{Path(jq).parent}:/usr/bin:/bin", "HOME": "/nowhere"}
    done = subprocess.run(command, shell=True, env=environment, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert Path(name).read_text() == content
    assert {other: Path(other).read_text() for other in others} == others
    (made,) = {path.name for path in Path().iterdir()} - {name, *others}
    rows = [json.loads(line) for line in Path(made).read_text().splitlines()]
    assert [row for row in rows if isinstance(row, dict)][:2] == [{"id": 1}, {"id": 2}]


@pytest.mark.parametrize("opened,closed", [('{"a":', "}"), ("[", "]")])
@pytest.mark.parametrize("levels", [150, 600, 1_200, 100_000])
def test_values_that_are_nested_deep(levels: int, opened: str, closed: str) -> None:
    """Breaks with a RecursionError: what Python cannot parse is a corrupt row, what a schema cannot describe a STRING."""
    text = f'{{"id":1,"d":{opened * levels}1{closed * levels}}}\n'
    try:
        assert found("a.jsonl", text).schema.startswith("id BIGINT, d ")
    except FatalError as error:
        assert (error.code, levels > 600) == ("corrupt-row", True)
        assert "line 1 is nested too deep" in error.message
    Path("a.jsonl").write_text(text)
    assert misspelt(Path("a.jsonl"), "json", ["id", "d"]) is None


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('[\n {"a": 1}\n]\n', "jq -c '.[]'"),
        ('{\n "a": 1\n}\n', "jq -c ."),
        ('[{"a": 1}]\n', None),  # a line that Spark reads as the rows of the array
        ('{"a": 1}\n', None),
        ("", None),
    ],
)
def test_check_says_of_json_that_is_not_lines(
    content: str, words: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("a.json").write_text(content)
    Path("job.toml").write_text(
        'name = "j"\n[source]\nformat = "json"\npath = "a.json"\n[sink]\nbootstrap_servers = "a:1"\ntopic = "t"\n'
    )
    assert cli.exit_code_of(["check", "job.toml"]) == 0
    said = capsys.readouterr().err
    assert (words in said) if words else ("jq" not in said)


# ---- XML -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "tag", "schema", "key"),
    [
        ('<c><book id="1"><t>x</t></book><book id="2"><t>y</t><p>1.5</p></book></c>', "book",
         "_id BIGINT, t STRING, p DOUBLE", "CAST(_id AS STRING)"),
        ("<c><head><v>1</v></head><r><a>1</a><b/><b>2</b></r><r><a>x</a></r></c>", "r", "a STRING, b ARRAY<BIGINT>", None),
        ("<rss><channel><title>t</title><item><ok>true</ok></item><item/></channel></rss>", "item", "ok BOOLEAN", None),
        ('<c><r><p cur="EUR">5</p><o><m n="1"/></o></r><r/></c>', "r",
         "p STRUCT<_cur: STRING, _VALUE: BIGINT>, o STRUCT<m: STRUCT<_n: BIGINT>>", None),
        ("<c><r><id>007</id></r><r><id>8</id></r></c>", "r", "id STRING", "id"),
        ("<c><r><ns:a xmlns:ns='u'>1</ns:a></r><r/></c>", "r", "`ns:a` BIGINT", None),
        ('<c xmlns:xsi="u"><r xsi:type="t"><a xsi:nil="true"/></r><r><a>1</a></r></c>', "r", "a BIGINT", None),
        ('<c xmlns:s="http://www.w3.org/2001/XMLSchema-instance"><r s:type="t"><a s:nil="true"/></r><r><a>1</a></r></c>',
         "r", "a BIGINT", None),
        ('<c xmlns:s="http://www.w3.org/2001/XMLSchema-instance"><r xmlns:s="u" s:x="1"><a>1</a></r><r/></c>',
         "r", "`_s:x` BIGINT, a BIGINT", None),
        ('<c xmlns:s="http://www.w3.org/2001/XMLSchema-instance"><r s="1"><a>1</a></r><r/></c>',
         "r", "_s BIGINT, a BIGINT", None),
        ("<r><a>1</a><b>2</b></r>", "r", "a BIGINT, b BIGINT", None),
        ('<c><r xmlns="u" xmlnsx="1"><a>1</a></r><r/></c>', "r", "_xmlnsx BIGINT, a BIGINT", None),
    ],
)  # fmt: skip
def test_xml(content: str, tag: str, schema: str, key: str | None) -> None:
    what = found("a.xml", content)
    assert (what.format, what.options, what.schema, what.key) == ("xml", {"rowTag": tag}, schema, key)
    assert cli.exit_code_of(["init", "--from", "a.xml", "--force"]) == 0
    assert cli.exit_code_of(["check", "eosingest.toml"]) == 0
    assert load(Path("eosingest.toml")).source.given_schema == schema
    assert found("b", f'<?xml version="1.0"?>\n{content}').options == {"rowTag": tag}


@pytest.mark.parametrize(
    "content", ["<a><b></a>", "<a/>", '<!DOCTYPE a [<!ENTITY e "x">]><a>&e;</a>', "text", "<a>" * 300]
)
def test_xml_that_a_run_would_not_read(content: str) -> None:
    with pytest.raises(FatalError):
        found("a.xml", content)


@pytest.mark.parametrize(
    ("row", "options", "schema"),
    [
        ("<_>1</_><x>2</x>", {"attributePrefix": "@"}, "`_` BIGINT, x BIGINT"),
        ('<_a b="1">2</_a>', {"attributePrefix": "@"}, "`_a` STRUCT<`@b`: BIGINT, `_VALUE`: BIGINT>"),
        ('<_VALUE b="1">2</_VALUE>', {"attributePrefix": "@", "valueTag": "#VALUE"},
         "`_VALUE` STRUCT<`@b`: BIGINT, `#VALUE`: BIGINT>"),
        ('<a VALUE="1">2</a>', {"valueTag": "#VALUE"}, "a STRUCT<`_VALUE`: BIGINT, `#VALUE`: BIGINT>"),
    ],
)  # fmt: skip
def test_xml_with_names_that_would_mean_attributes(row: str, options: dict[str, str], schema: str) -> None:
    """Breaks when `init` writes a spec by which a run refuses the file, or takes an element for an attribute."""
    what = found("a.xml", f"<r><i>{row}</i><i>{row}</i></r>")
    assert what.options == {"rowTag": "i", **options}
    assert (what.schema or "").replace("`", "") == schema.replace("`", "")
    assert cli.exit_code_of(["init", "--from", "a.xml", "--force"]) == 0
    assert cli.exit_code_of(["check", "eosingest.toml"]) == 0


def test_xml_with_names_that_differ_by_case_alone() -> None:
    for row in ("<a>1</a><A>2</A>", '<s b="1" B="2"/>'):
        with pytest.raises(FatalError, match="are one column to Spark"):
            found("a.xml", f"<r><i>{row}</i><i>{row}</i></r>")
