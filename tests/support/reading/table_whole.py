"""The table's files that are read as a whole: JSON documents, CSV of records over several lines, a file as one value.

Most are the files of lines (table_rows.py) once more: as they are, and JSON lines as the elements of an array.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from random import Random

from tests.support.compressed import COMPRESS
from tests.support.reading import table_rows
from tests.support.reading.independent import Columns
from tests.support.reading.table import ONE_SPLIT, Case, one

_MULTI_LINE = {"multiLine": "true"}
_DOCUMENT: Columns = {"n": "BIGINT", "s": "STRING", "x": "DOUBLE"}
_TWO: Columns = {"a": "STRING", "b": "STRING"}


def cases() -> Iterator[Case]:
    for case in _of_one_file(table_rows.cases()):
        (data,) = case.files().values()
        if case.format == "json":
            yield from _documents_of_lines(case, data)
        else:
            yield _rows_over_lines(case, data)
    yield from _documents()
    yield from _rows()
    yield from _compressed()
    yield from _values()


def _of_one_file(cases: Iterator[Case]) -> Iterator[Case]:
    """Yield the cases of lines whose expectation is the independent reader's."""
    for case in cases:
        told = case.expected is None and not case.habit and not case.refused and case.columns is not None
        if (
            told
            and case.split_size == ONE_SPLIT
            and case.where is None
            and case.value is None
            and len(case.files()) == 1
        ):
            yield case


def _id(case: Case, kind: str) -> str:
    return f"{case.format}/{kind}/{case.id.partition('/')[2]}"


def _documents_of_lines(case: Case, data: bytes) -> Iterator[Case]:
    options = {name: value for name, value in case.options.items() if name != "lineSep"} | _MULTI_LINE
    lenient = any(name.startswith("allow") for name in options)
    odd = case.may_refuse or lenient
    yield replace(case, id=_id(case, "document"), options=options, may_refuse=odd, together="")
    (name,) = case.files()
    if name.endswith(tuple(COMPRESS)):
        return
    encoding = options.get("encoding", "UTF-8")
    try:
        text = data.decode("cp850" if encoding == "IBM850" else encoding)
    except (UnicodeDecodeError, LookupError):
        return
    lines = [line for line in text.replace("\r", "\n").split("\n") if line.strip(" \t")]
    array = ("[\n" + ",\n".join(lines) + "\n]\n").encode("cp850" if encoding == "IBM850" else encoding)
    yield replace(case, id=_id(case, "array"), files=one(name, array), options=options, may_refuse=odd, together="")


def _rows_over_lines(case: Case, data: bytes) -> Case:
    """CSV as it is; other ends of rows, escapes and what no quotes are there for may be refused."""
    options = {"lineSep": "\r\n"} if b"\r\n" in data else {}
    options = options | dict(case.options) | _MULTI_LINE
    odd = b"\r" in data or "escape" in options or options.get("quote") == "" or "lineSep" in case.options
    marked = "a mark" in case.id or "another order" in case.id or "utf-16" in case.id
    odd = (
        odd
        or marked
        or "mark alone" in case.id
        or case.id.startswith(("csv/random/", "csv/odd/a nul"))
        or "not said how" in case.id
    )
    return replace(case, id=_id(case, "over lines"), options=options, may_refuse=odd, together="")


# What stands in the file; a question mark: the run may refuse what Python's reader takes.
_ODD_DOCUMENTS: dict[str, bytes] = {
    "an object": b'{\n"n": 1,\n"s": "x"\n}\n',
    "an array": b'[\n{"n":1},\n{"n":2}\n]\n',
    "an empty array": b"[]",
    "an empty array with space": b" [ \n ] \n",
    "empty objects": b"[{},{}]",
    "two objects": b'{"n":1}\n{"n":2}\n',
    "two objects in a line": b'{"n":1}{"n":2}',
    "two arrays": b'[{"n":1}]\n[{"n":2}]',
    "a word behind": b'[{"n":1}] x',
    "a comma behind": b'{"n":1},',
    "a bracket behind": b'[{"n":1}]]',
    "a nul behind": b'[{"n":1}]\0',
    "a nul before": b'\0[{"n":1}]',
    "a nul in a text": b'[{"s":"a\0b"}]',
    "cut behind an element": b'[\n{"n":1},\n{"n":2}',
    "cut behind a comma": b'[\n{"n":1},\n',
    "cut in an element": b'[\n{"n":1},\n{"n":',
    "cut in a text": b'[\n{"n":1},\n{"s":"ab',
    "cut in an object": b'{"n":1,"s":"x"',
    "cut behind a bracket": b"[",
    "damaged": b'[{"n":1},{"n" 2},{"n":3}]',
    "a type that is not its": b'[{"n":1},{"n":"x"},{"n":3}]',
    "a number beyond its type": b'[{"n":1},{"n":99999999999999999999},{"n":3}]',
    "arrays in an array": b'[[{"n":1}],[{"n":2}]]',
    "a number in an array": b'[{"n":1}, 5, {"n":2}]',
    "a null in an array": b'[{"n":1}, null, {"n":2}]',
    "a text in an array": b'[{"n":1}, "x", {"n":2}]',
    "an array in an array": b'[{"n":1},[{"n":2}]]',
    "a comma at the end": b'[{"n":1},]',
    "a comma in an object": b'{"n":1,}',
    "no comma": b'[{"n":1}{"n":2}]',
    "the wrong bracket": b'[{"n":1}}',
    "a number": b"5",
    "null": b"null",
    "a text": b'"x"',
    "white space": b" \n\t ",
    "a mark": b'\xef\xbb\xbf[{"n":1}]',
    "a mark inside": b'\n\xef\xbb\xbf[{"n":1}]',
    "?utf-16 with a mark": '\ufeff[{"n":1,"s":"€"}]'.encode("utf-16-le"),
    "?utf-16": '[{"n":1,"s":"€"}]'.encode("utf-16-le"),
    "?utf-16 the other way": '[{"n":1,"s":"€"}]'.encode("utf-16-be"),
    "?utf-32": '[{"n":1,"s":"€"}]'.encode("utf-32-le"),
    "latin": b'[{"n":1},\n{"n":2,"s":"\xe9"}]',
    "overlong": b'[{"s":"\xc0\xaf"}]',
    "a surrogate": b'[{"s":"\xed\xa0\xbd\xed\xb8\x80"}]',
    "beyond unicode": b'[{"s":"\xf4\x90\x80\x80"}]',
    "half a pair": b'[{"s":"ok"},{"s":"\\ud800x"}]',
    "the other half": b'[{"s":"\\ude00\\ud83d"}]',
    "a pair": b'[{"s":"\\ud83d\\ude00 \\\\ud800"}]',
    "comments": b'/* x */ [{"n":1} /* y */]',
    "single quotes": b"[{'n':1}]",
    "a line feed in a text": b'[{"s":"a\nb"}]',
    "crlf": b'[\r\n{"s":"a\\r\\nb"}\r\n]\r\n',
    "numbers as texts": b'[{"s":1.10},{"s":{"a" : 1 }},{"s":[1, 2]},{"s":true}]',
    "a sequence of text": b'\x1e{"n":1}\n',
    "text like the end": b'[{"s":"]"},{"s":"}]"},{"s":"\\"}"}]',
}


def _documents() -> Iterator[Case]:
    for kind, data in _ODD_DOCUMENTS.items():
        yield Case(
            f"json/whole/odd/{kind.lstrip('?')}", "json", one("a.json", data), _DOCUMENT, _MULTI_LINE,
            may_refuse=kind.startswith("?"),
        )  # fmt: skip
    for number in range(60):
        random = Random(number)
        record = {"n": random.randint(-9, 9), "s": random.choice(["a", 'x"y', "é", "}]{"]), "x": 0.5}
        data = bytearray(json.dumps([record] * 3, ensure_ascii=False, indent=random.choice([None, 1])).encode())
        for _ in range(random.randint(1, 2)):
            data[random.randrange(len(data))] = random.choice(b'{}[]",:\\ \n01ae.\x00\x80\xed/')
        yield Case(
            f"json/whole/random/{number}", "json", one("a.json", bytes(data)), _DOCUMENT, _MULTI_LINE, may_refuse=True
        )
    long = json.dumps([{"n": n, "s": "é" * (n * 37 % 900)} for n in range(1000)]).encode()
    yield Case("json/whole/long/an array", "json", one("a.json", long), _DOCUMENT, _MULTI_LINE)
    yield Case("json/whole/long/cut", "json", one("a.json", long[:-1]), _DOCUMENT, _MULTI_LINE)
    both = {"a.json": b'[{"n":1}]', "b.json": b'{"n":2}\n{"n":3}'}
    yield Case("json/whole/files/the second has two", "json", lambda: both, _DOCUMENT, _MULTI_LINE)


def _rows() -> Iterator[Case]:
    files = {
        "lf": ('1,"a\nb"\n2,c\n', "\n", False), "crlf in quotes, one row": ('1,"a\r\nb"\n', "\n", False),
        "crlf in quotes": ('1,"a\r\nb"\n2,c\n', "\n", False),
        "cr in quotes": ('1,"a\rb"\n2,c\n', "\n", False), "crlf": ('1,"a\nb"\r\n2,c\r\n', "\r\n", False),
        "crlf both": ('1,"a\r\nb"\r\n2,"\r"\r\n', "\r\n", False), "crlf rows, not said": ('1,"a\nb"\r\n2,c\r\n', "\n", True),
        "crlf first, then lf": ('1,a\r\n2,"c\nd"\n', "\r\n", True), "lf first, then crlf": ('1,a\n2,"c\nd"\r\n', "\n", True),
        "cr rows": ('1,"a\rb"\r2,c\r', "\n", True), "a cr in a field": ("1,a\rb\n", "\n", True),
        "blank lines": ('1,"a\n\n  \nb"\n\n\n2,c\n', "\n", False), "ends in quotes": ('"\n","\n"\n"a\n","\nb"\n', "\n", False),
        "a comment in quotes": ('1,"a\n#b"\n', "\n", False), "quotes in quotes": ('1,"a ""x""\n""b"""\n2,""""\n', "\n", False),
        "unclosed": ('1,a\n2,"b\n3,c\n4,d\n', "\n", False), "unclosed, then a quote": ('1,"a\n2,b\n3,"c"\n', "\n", False),
        "text behind": ('1,"a\n"b\n2,c\n', "\n", False), "space behind": ('1,"a\n" \n', "\n", False),
        "a field more": ('1,"a\nb",c\n', "\n", False), "a field less": ('1,"a\nb"\n"2\n"\n', "\n", False),
        "no end": ('1,a\n2,"b\nc"', "\n", False), "delimiters in quotes": ('"a,\n,b",",\n,"\n', "\n", False),
        "a long first row": ("1," + "a" * (1 << 20) + '\n2,"b\r\nc"\n', "\n", False),
        "a long first row, crlf": ("1," + "a" * ((1 << 20) - 3) + '\r\n2,"b\r\nc"\r\n', "\r\n", False),
    }  # fmt: skip
    for (kind, (text, end, odd)), header in itertools.product(files.items(), ("false", "true")):
        options = {"header": header, "lineSep": end, **_MULTI_LINE}
        before = f"a,b{end}" if header == "true" else ""
        yield Case(
            f"csv/whole/odd/{kind}/{header}",
            "csv",
            one("a.csv", (before + text).encode()),
            _TWO,
            options,
            may_refuse=odd,
        )
    for number in range(60):
        random = Random(number)
        pieces = ["a", ",", '"', '"a"', '"\n"', '","', "\n", '""', " ", "é", '"a\n', 'b"']
        data = "".join(random.choices(pieces, k=random.randint(3, 20))).encode()
        options = {"header": "false", **_MULTI_LINE}
        yield Case(f"csv/whole/random/{number}", "csv", one("a.csv", data), _TWO, options)


def _compressed() -> Iterator[Case]:
    random = Random(3)
    words = [f"{number}-{random.randbytes(random.randint(0, 40)).hex()}" for number in range(600)]
    document = json.dumps([{"s": word} for word in words]).encode()
    rows = "".join(f'"{word}\n",{number}\n' for number, word in enumerate(words)).encode()
    kinds = (
        ("json", document, {"s": "STRING"}, _MULTI_LINE, "json"),
        ("csv", rows, _TWO, {"header": "false", **_MULTI_LINE}, "csv"),
        ("text", rows, None, {"wholetext": "true"}, "txt"),
    )
    for (format, data, columns, options, name), suffix in itertools.product(kinds, COMPRESS):
        for kind, packed in damaged(suffix, data, random):
            file = one(f"a.{name}.{suffix}", packed)
            yield Case(
                f"{format}/whole/{suffix}/{kind}",
                format,
                file,
                columns,
                options,
                may_refuse="behind" in kind or "flip" in kind,
            )  # type: ignore[arg-type]


def damaged(suffix: str, data: bytes, random: Random) -> Iterator[tuple[str, bytes]]:
    packed = COMPRESS[suffix](data)
    yield "good", packed
    yield "of nothing", COMPRESS[suffix](b"")
    for cut in (1, 4, 8, 12, len(packed) // 2):
        yield f"cut {cut}", packed[:-cut]
    yield "zeros behind", packed + bytes(8)
    yield "text behind", packed + b"text"
    yield "plain", data
    yield "in two streams", COMPRESS[suffix](data[:1000]) + COMPRESS[suffix](data[1000:])
    for number in range(4):
        flipped = bytearray(packed)
        flipped[random.randrange(20, len(packed))] ^= 1 << random.randrange(8)
        yield f"flipped {number}", bytes(flipped)


_VALUES: dict[str, bytes] = {
    "lines": b"a\r\nb\n\rc\n", "no text": bytes(range(256)), "a mark": b"\xef\xbb\xbfa", "nul": b"\0", "white space": b" \n",
    "utf-16": "\ufeffa".encode("utf-16-le"), "long": b"line\n" * 300_000,
}  # fmt: skip


def _values() -> Iterator[Case]:
    for kind, data in _VALUES.items():
        yield Case(f"text/whole/odd/{kind}", "text", one("a.txt", data), None, {"wholetext": "true"})
        yield Case(f"binaryFile/whole/odd/{kind}", "binaryFile", one("a.bin", data))
    several = {"a": b"1\n2", "b.gz": COMPRESS["gz"](b"x"), "c": b"", "k/d": b"no", "_e": b"no"}
    yield Case(
        "binaryFile/whole/files/as they are", "binaryFile", lambda: several, expected=(several["a"], several["b.gz"])
    )
    yield Case("binaryFile/whole/name/a.zip", "binaryFile", one("a.zip", b"PK\x03\x04 no archive"))
    yield Case("binaryFile/whole/folders", "binaryFile", lambda: {"k=01/a": b"1", "k=x/b": b"2"}, value="concat(k, content)",
               expected=(b"011", b"x2"))  # fmt: skip
    texts = {"a": b"1\n2", "b.gz": COMPRESS["gz"](b"x\n"), "c": b""}
    yield Case(
        "text/whole/files/as they are", "text", lambda: texts, None, {"wholetext": "true"}, expected=(b"1\n2", b"x\n")
    )
