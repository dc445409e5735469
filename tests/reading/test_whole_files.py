"""Files that are read as a whole: what is refused of them, in which words and at which line; the same in pieces of any size."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import tracemalloc
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from random import Random

import pytest

from eosingest.sources.files.formats.inspection import look, needs_inspection
from eosingest.sources.files.formats.text_checks import BadTextError
from eosingest.sources.files.formats.whole_csv import Grammar, whole_rows
from eosingest.sources.files.formats.whole_json import check_json
from eosingest.sources.files.source import FileSource
from tests.support.reading.lab import Lab, lab  # noqa: F401 - a fixture

Check = Callable[[Iterable[bytes], Mapping[str, str]], None]
DOUBLED = {"escape": '"'}


def found(check: Check, data: bytes, options: Mapping[str, str]) -> BadTextError | None:
    """Return what is wrong, the same in pieces of whatever size."""
    seen: list[BadTextError | None] = []
    for size in (1 << 18, 7, 1):
        try:
            check((data[at : at + size] for at in range(0, len(data), size)), options)
            seen.append(None)
        except BadTextError as bad:
            seen.append(bad)
    assert len({None if bad is None else (bad.message.split(":")[0], bad.line) for bad in seen}) == 1, seen
    return seen[0]


@pytest.mark.parametrize(
    ("data", "line", "words"),
    [
        (b'{"n":1}\n{"n":2}\n', 2, 'text after the document: {"n":2}'),
        (b'{"n":1}\n{"n":2}\n', 2, "multiLine out"),
        (b'[\n{"n":1}\n]\n\nx', 5, "text after the document"),
        (b'[\n{"n":1},\n5\n]', 3, "element 2 of the array is no object: 5"),
        (b'[\n{"n":1}\n{"n":2}\n]', 3, "neither ',' nor ']' follows element 1 of the array"),
        (b'[\n{"n":1},\n{"n" 2}]', 3, "element 2 of the array is no JSON: expecting ':'"),
        (b'[\n{"n":1},\n{"s":"ab', 3, "the file ends inside of it"),
        (b'[\n{"n":1},\n', 3, "element 2 of the array is no JSON: the file ends inside of it"),
        (b'{"n":\n', 2, "the file ends inside of it"),
        (b" \n ", 2, "no JSON document"),
        (b"\n5", 2, "neither an object nor an array"),
        (b'[{"s":"\\ud800"}]', 1, "half a surrogate pair"),
        (b'[{"s":1},\n{"s":"\xe9"}]', 2, "no UTF-8"),
        ('[{"n":1}]'.encode("utf-16-le"), 1, 'encoding = "UTF-16LE"'),
        (b"\xef\xbb\xbf", 1, "byte order mark"),
        (b'[{"n":' + b"[" * 3000, 1, "nested too deep"),
    ],
)
def test_documents_that_are_refused(data: bytes, line: int, words: str) -> None:
    bad = found(check_json, data, {})
    assert bad is not None
    assert bad.line == line, bad.message
    assert words in f"{bad.message}; {bad.hint}"


def test_words_that_are_no_numbers_of_the_standard() -> None:
    data = b'[{"x":NaN},{"x":-Infinity}]'
    assert found(check_json, data, {}) is None
    bad = found(check_json, data, {"allowNonNumericNumbers": "false"})
    assert bad is not None
    assert "NaN" in bad.message


def check_csv(pieces: Iterable[bytes], options: Mapping[str, str]) -> None:
    for _ in whole_rows(pieces, options):
        pass


@pytest.mark.parametrize(
    ("data", "options", "line", "words"),
    [
        (b'1,"a\n2,b\n3,c\n', DOUBLED, 1, "does not end"),
        (b'1,"a\n"\n2,"b\n\n', DOUBLED, 3, "does not end"),
        (b'1,"a\nb" \n', DOUBLED, 2, "text after the field"),
        (b'1,"a\nb"c\n', DOUBLED, 2, "text after the field"),
        (b'1,"a ""b\n""c"\n', {"escape": "\\"}, 1, "escape = '\"'"),
        (b'1,"a\nb"\r\n2,c\r\n', DOUBLED, 2, 'lineSep = "\\r\\n"'),
        (b"1,a\r\n2,c\r\n", DOUBLED, 1, 'lineSep = "\\r\\n"'),
        (b'1,"a"\r\n2,c\n', {**DOUBLED, "lineSep": "\r\n"}, 2, 'lineSep = "\\n"'),
        (b"1,a\r2,b\r", DOUBLED, 1, "a carriage return outside of quotes"),
        (b'#"\n1,a\n2,"b', {**DOUBLED, "comment": "#"}, 3, "does not end"),
        (b'"a\n",b\\"\n', {"escape": "\\"}, 2, "an escape outside of quotes"),
        (b"a,b\xe9\n", DOUBLED, 1, "no UTF-8"),
    ],
)
def test_rows_that_are_refused(data: bytes, options: dict[str, str], line: int, words: str) -> None:
    bad = found(check_csv, data, options)
    assert bad is not None
    assert bad.line == line, bad.message
    assert words in f"{bad.message}; {bad.hint}"


def test_what_is_taken_is_a_table_to_pythons_strict_reader() -> None:
    """Breaks when a text passes that Python's csv refuses, or that has another row's end and no quotes."""
    random, taken = Random(5), 0
    pieces = ["a", '"', '""', ",", "\n", "\r\n", "\r", " ", '"a"', '"\n"', "é", '","', '"\n', '\n"']
    for _ in range(6000):
        text = "".join(random.choices(pieces, k=random.randint(1, 9)))
        end = random.choice(["\n", "\r\n"])
        if found(check_csv, text.encode(), {**DOUBLED, "lineSep": end}) is None:
            taken += 1
            list(csv.reader(io.StringIO(text, newline=""), strict=True))
            assert '"' in text or not set(text.replace(end, "")) & set("\r\n"), text
    assert taken > 1000


def test_the_first_row_may_go_over_lines() -> None:
    options = {**DOUBLED, "comment": "#"}
    for data, row in ((b'\n\n# x\n"a\nb",c\n1,2\n', '"a\nb",c'), (b"a,b", "a,b"), (b"# x\n", ""), (b"", "")):
        for size in (100, 1):
            pieces = (data[at : at + size] for at in range(0, len(data), size))
            rows = (found for text in whole_rows(pieces, options) for found in Grammar.of(options).each(text))
            assert next(rows, "") == row


def test_memory_does_not_grow_with_the_file() -> None:
    """Breaks when the check of CSV keeps more of a file than the record at hand; its reader keeps no more either."""
    many = 60_000

    def rows() -> Iterable[bytes]:
        for number in range(many):
            yield b'%d,"%s\n"\n' % (number, b"x" * 400)

    tracemalloc.start()
    check_csv(rows(), DOUBLED)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 6 << 20, most  # of 25 MB


def test_a_value_has_a_longest_length(tmp_path: Path) -> None:
    """A file of 2 GiB is refused by its length, before any of it is read."""
    path = tmp_path / "a.bin"
    for format, options in (("binaryFile", {}), ("text", {"wholetext": "true"})):
        for length, refused in (((1 << 31) - 1, False), (1 << 31, True)):
            path.touch()
            os.truncate(path, length)
            (file,) = (
                FileSource(format=format, paths=["*"], directory=tmp_path, root=None, min_age_s=0, options=options)
                .plan()
                .items
            )
            finding = look(file, format, options)  # type: ignore[arg-type]
            assert (finding is not None) is refused
            assert not refused or "2,147,483,647 bytes" in str(finding)
            assert not file.splittable  # type: ignore[attr-defined]
    assert needs_inspection("text", {"wholetext": "true"}, "a.gz")
    assert not needs_inspection("binaryFile", {}, "a.bz2")


def test_documents(lab: Lab) -> None:  # noqa: F811
    """An element that is no row of the schema is a corrupt row, with its own text; the others are rows."""
    schema = "n BIGINT, s STRING, o STRUCT<m: INT>"
    good = json.dumps([{"n": number, "o": {"m": 1}} for number in range(50)]).encode()
    several = {"a.json": good, "b c.json": b'[{"n":1},\n{"s":"x"},\n{"n":\n"many"},{"n":2}]'}
    with pytest.raises(ValueError, match=re.escape(repr(b'{"n":\n"many"}'))):
        lab.values("json", several, schema=schema, options={"multiLine": "true"})
    with pytest.raises(ValueError, match=re.escape(repr(b'{"o":{"m":"x"}}'))):
        lab.values("json", b'[{"o":{"m":"x"}}]', schema=schema, options={"multiLine": "true"})
    assert len(lab.values("json", good, schema=schema, options={"multiLine": "true"})) == 50
    assert (
        lab.values("json", b'[{"n":1},{"n":2}]', "'ping'", schema=schema, options={"multiLine": "true"})
        == [b"ping"] * 2
    )
