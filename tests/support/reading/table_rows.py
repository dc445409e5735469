"""The table's CSV and JSON files: dialects, headers, quotes, types, encodings, and rows that are none."""

from __future__ import annotations

import csv
import datetime
import io
import itertools
import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from random import Random
from typing import Any

from tests.support.compressed import COMPRESS
from tests.support.reading.independent import Columns
from tests.support.reading.table import ONE_SPLIT, Case, one

_ABC: Columns = {"a": "STRING", "b": "STRING", "c": "STRING"}
_TWO: Columns = {"a": "STRING", "b": "STRING"}
_NO_HEADER = {"header": "false"}
_SIZES = (ONE_SPLIT, 19)

# Rows that each dialect below can write in a line each.
_FIELDS = [
    ["x", "y", "z"], ["", "b", ""], ["a", "", "1"], ["with, comma", "semi;colon", "tab\tand|pipe"], ['say "hi"', '""', '"'],
    ["it's", "'quoted'", "''"], [" leading", "trailing ", " both "], ["é", "日本", "\U0001f600"],
    ["back\\slash", "\\", "a\\nb"],
    ["#no comment", "-- x", "// y"], ["null", "NULL", "NaN"], ["007", "1.10", "TRUE"], ["\x0b", "a\x85b", "\u2028"],
    ["x" * 150, "y", "z" * 90], ['"', ",", '",'], ["\u00a0", "\u3000x", "\ufeffy"],
]  # fmt: skip


def cases() -> Iterator[Case]:
    yield from _dialects()
    yield from _odd_csv()
    yield from _headers()
    yield from _typed_csv()
    yield from _random_csv()
    yield from _json_kinds()
    yield from _odd_json()
    yield from _typed_json()
    yield from _random_json()
    yield from _encodings()
    yield from _many_files()
    yield from _habits()


# ---- CSV --------------------------------------------------------------------------------------------------------------


def _dialects() -> Iterator[Case]:
    dialects: dict[str, dict[str, str]] = {
        "comma": {}, "semicolon": {"sep": ";"}, "tab": {"sep": "\t"}, "tab in words": {"sep": "\\t"}, "pipe": {"sep": "|"},
        "single quotes": {"quote": "'"}, "backslash": {"escape": "\\"}, "a unit separator": {"sep": "\x1f"},
        "a wide delimiter": {"sep": "§"}, "tilde quotes": {"quote": "~", "sep": ";"},
    }  # fmt: skip
    for (kind, options), end, size in itertools.product(dialects.items(), ("\n", "\r\n", "\r"), _SIZES):
        quoting = csv.QUOTE_ALL if "escape" in options else csv.QUOTE_MINIMAL
        yield Case(
            f"csv/dialect/{kind}/{end!r}/{size}", "csv", one("a.csv", _csv_of(_FIELDS, options, end, quoting)), _ABC,
            {**_NO_HEADER, **options}, size,
        )  # fmt: skip
    for number, row in enumerate(_FIELDS):  # Python escapes outside of quotes as well: that is refused
        data = _csv_of([row], {"escape": "\\"}, "\n")
        yield Case(
            f"csv/dialect/escaped without quotes/{number}", "csv", one("a.csv", data), _ABC, {**_NO_HEADER, "escape": "\\"},
            may_refuse=b"\\" in data,
        )  # fmt: skip
    for quoting, kind in ((csv.QUOTE_ALL, "all quoted"), (csv.QUOTE_NONNUMERIC, "text quoted")):
        data = _csv_of(_FIELDS, {}, "\n", quoting)
        yield Case(f"csv/dialect/{kind}", "csv", one("a.csv", data), _ABC, _NO_HEADER)
    plain = [[field.translate({34: "x", 92: "y", 44: "z", 9: "t"}) for field in row] for row in _FIELDS]
    for kind, options in (
        ("no quotes", {"quote": ""}),
        ("lineSep", {"lineSep": ";"}),
        ("lineSep lf", {"lineSep": "\n"}),
    ):
        rows = [[field.replace(";", ":") for field in row] for row in plain]
        data = options.get("lineSep", "\n").join(",".join(row) for row in rows).encode()
        yield Case(f"csv/dialect/{kind}", "csv", one("a.csv", data), _ABC, {**_NO_HEADER, **options}, 50)


def _csv_of(rows: list[list[str]], options: dict[str, str], end: str, quoting: Any = csv.QUOTE_MINIMAL) -> bytes:
    out = io.StringIO(newline="")
    escape = options.get("escape")
    csv.writer(
        out, delimiter=options.get("sep", ",").replace("\\t", "\t"), quotechar=options.get("quote", '"'), quoting=quoting,
        lineterminator=end, doublequote=escape is None, escapechar=escape,
    ).writerows(rows)  # fmt: skip
    return out.getvalue().encode()


# Kind: bytes, and more options; what the run may refuse although Python's reader takes it, begins with a question mark.
_ODD_CSV: dict[str, tuple[bytes, dict[str, str]]] = {
    "?an end in quotes": (b'1,"x\ny"\n2,z\n', {}),
    "?an end in quotes, fields come out even": (b'1,"one, two\nthree, four"\n', {}),
    "?an end in quotes, first field": (b'"a\nb",c\n', {}),
    "?several ends in quotes": (b'1,"\n\n\n"\n2,b\n', {}),
    "?crlf in quotes": (b'1,"x\r\ny"\r\n', {}),
    "?a lone cr in quotes": (b'1,"x\ry"\n', {}),
    "?an end in quotes, far down": (b"1,x\n" * 500 + b'2,"a\nb,c"\n' + b"3,y\n" * 500, {}),
    "?an end in quotes of another kind": (b"1,'x\ny,z'\n", {"quote": "'"}),
    "?an end in quotes, a delimiter of two": (b'1||"x\ny"\n', {"sep": "|"}),
    "?quoted empty lines": (b'"\n","\n"\n', {}),
    "?a comment in quotes": (b'1,"a\n#b,c"\n', {"comment": "#"}),
    "unclosed at the end": (b'1,x\n2,"y', {}),
    "unclosed in the middle": (b'1,"x\n2,y\n', {}),
    "unclosed first": (b'"1,x\n2,y\n', {}),
    "a quote alone": (b'1,"\n', {}),
    "three quotes": (b'1,"""\n', {}),
    "five quotes": (b'1,"""""\n', {}),
    "four quotes": (b'1,""""\n', {}),
    "six quotes": (b'1,""""""\n', {}),
    "text behind a quote": (b'1,"a"b\n', {}),
    "space behind a quote": (b'1,"a" \n', {}),
    "space before a quote": (b'1, "a"\n', {}),
    "a quote in mid-field": (b'1,5" pipe\n', {}),
    "two quotes in mid-field": (b'1,a "b" c\n', {}),
    "a quoted delimiter": (b'1,"a,b"\n', {}),
    "?a quote doubled, backslash escapes": (b'1,"say ""hi"""\n', {"escape": "\\"}),
    "a quote escaped, doubled is meant": (b'1,"say \\"hi\\""\n', {}),
    "a backslash last": (b'1,"C:\\"\n2,"x"\n', {}),
    "?a backslash last, it escapes": (b'1,"C:\\"\n2,"x"\n', {"escape": "\\"}),
    "a backslash doubled, it escapes": (b'1,"C:\\\\"\n2,"x"\n', {"escape": "\\"}),
    "too few fields": (b"1,x\n2\n3,y\n", {}),
    "too many fields": (b"1,x\n2,y,z\n", {}),
    "a delimiter too many": (b"1,x,\n2,y,\n", {}),
    "blank lines": (b"\n1,x\n\n\n2,y\n\n", {}),
    "blank lines crlf": (b"\r\n1,x\r\n\r\n", {}),
    "only blank lines": (b"\n\n\n", {}),
    "a line of spaces": (b"1,x\n   \n2,y\n", {}),
    "a line of delimiters": (b",\n,\n1,x\n", {}),
    "?a line of empty tabs": (b"1\tx\n\t\n2\ty\n", {"sep": "\t"}),
    "?a line of control characters": (b"1\x01x\n\x01\n", {"sep": "\x01"}),
    "comments": (b"# one\n1,x\n#2,y\n3,z # w\n", {"comment": "#"}),
    "comments where none are": (b"#1,x\n2,y\n", {}),
    "a comment with a quote": (b'#"\n1,x\n', {"comment": "#"}),
    "a comment last": (b"1,x\n#", {"comment": "#"}),
    "a comment of another kind": (b"!1,x\n#2,y\n", {"comment": "!"}),
    "a space before a comment": (b" #1,x\n2,y\n", {"comment": "#"}),
    "a quoted comment": (b'"#1",x\n', {"comment": "#"}),
    "?a nul": (b"1,a\0b\n", {}),
    "?a nul alone": (b"1,\0\n", {}),
    "nul escape": (b'1,"a""b"\n', {"escape": '"'}),
    "latin-1": (b"1,caf\xe9\n", {}),
    "latin-1 in the last field": (b"1,x\n2,\xfc", {}),
    "half a character last": (b"1,x\n2,\xe2\x82", {}),
    "overlong": (b"1,\xc0\xaf\n", {}),
    "a surrogate": (b"1,\xed\xa0\xbd\xed\xb8\x80\n", {}),
    "beyond the last character": (b"1,\xf4\x90\x80\x80\n", {}),
    "mark": (b"\xef\xbb\xbf1,x\n", {}),
    "mark and quote": (b'\xef\xbb\xbf"1","x"\n', {}),
    "mark alone": (b"\xef\xbb\xbf", {}),
    "?utf-16 with a mark": ("1,x\n2,y\n".encode("utf-16"), {}),
    "?utf-16 without": ("1,x\n2,y\n".encode("utf-16-le"), {}),
    "no final end": (b"1,x\n2,y", {}),
    "cr ends": (b"1,x\r2,y\r", {}),
    "mixed ends": (b"1,x\r\n2,y\n3,z\r4,w", {}),
    "two crs": (b"1,x\r\r\n2,y\n", {}),
    "a long line": (b"1," + b"x" * 200_000 + b"\n2,y\n", {}),
    "a long quoted field": (b'1,"' + b'x""' * 50_000 + b'"\n2,y\n', {}),
    "many columns": (b",".join(b"%d" % n for n in range(2000)) + b"\n", {}),
    "vertical tab and form feed": (b"1,x\x0by\n2,\x0c\n", {}),
    "next line and line separator": ("1,x\x85y\n2,\u2028\n".encode(), {}),
    "a wrong delimiter": (b"1;x\n2;y\n", {}),
    "json lines": (b'{"n":1}\n{"n":2}\n', {}),
    "html": (b"<html>\n<p>1,2</p>\n</html>\n", {}),
    "trimmed": (b" 1 , x \n", {"ignoreLeadingWhiteSpace": "false", "ignoreTrailingWhiteSpace": "false"}),
    "a quote inside of a quoted tab file": (b'1\t"x\t""y"""\n', {"sep": "\t"}),
    "quotes of another kind": (b"1,'x,y'\n", {"quote": "'"}),
    "excel's first line": (b"sep=;\n1;x\n", {"sep": ";"}),
}


_FEEDS_ALONE: dict[str, tuple[bytes, tuple[Any, ...]]] = {
    "crlf": (b"1,x\r\n2,y\r\n", ({"a": "1", "b": "x\r"}, {"a": "2", "b": "y\r"})),
    "a cr in a line": (b"1,x\ry\n2,z\n", ({"a": "1", "b": "x\ry"}, {"a": "2", "b": "z"})),
    "a cr in a quoted field": (b'1,"x\ry"\n', ({"a": "1", "b": "x\ry"},)),
}


def _odd_csv() -> Iterator[Case]:
    for kind, (data, rows) in _FEEDS_ALONE.items():
        yield Case(
            f"csv/odd/lineSep is a line feed, {kind}", "csv", one("a.csv", data), _TWO, {**_NO_HEADER, "lineSep": "\n"},
            expected=rows, habit="a carriage return before it is the last field's",
        )  # fmt: skip
    for (kind, (data, more)), size in itertools.product(_ODD_CSV.items(), (ONE_SPLIT, 6)):
        if len(data) / size < 2000:
            yield Case(
                f"csv/odd/{kind.lstrip('?')}/{size}", "csv", one("a.csv", data), _TWO, {**_NO_HEADER, **more}, size,
                may_refuse=kind.startswith("?"),
            )  # fmt: skip


def _headers() -> Iterator[Case]:
    more = {"header": "true"}
    files: dict[str, tuple[bytes, dict[str, str]]] = {
        "plain": (b"a,b\n1,x\n", {}),
        "alone": (b"a,b\n", {}),
        "alone without end": (b"a,b", {}),
        "quoted": (b'"a","b"\n1,x\n', {}),
        "behind blank lines": (b"\n\na,b\n1,x\n", {}),
        "behind comments": (b"# c\na,b\n1,x\n", {"comment": "#"}),
        "behind long comments": (b"# " + b"c" * 300 + b"\na,b\n1,x\n", {"comment": "#"}),
        "behind many blank lines": (b"\n" * 300 + b"a,b\n1,x\n", {}),
        "mark": (b"\xef\xbb\xbfa,b\n1,x\n", {}),
        "mark and quotes": (b'\xef\xbb\xbf"a",b\n1,x\n', {}),
        "crlf": (b"a,b\r\n1,x\r\n", {}),
        "reordered": (b"b,a\n1,x\n", {}),
        "other names": (b"a,c\n1,x\n", {}),
        "too few": (b"a\n1\n", {}),
        "too many": (b"a,b,c\n1,x,y\n", {}),
        "none": (b"1,x\n2,y\n", {}),
        "twice": (b"a,b\na,b\n1,x\n", {}),
        "empty names": (b",\n1,x\n", {}),
        "space in a name": (b"a ,b\n1,x\n", {}),
        "a later row is too long": (b"a,b\n1,x\n2,y,z\n", {}),
        "tabs": (b"a\tb\n1\tx\n", {"sep": "\t"}),
    }
    for (kind, (data, options)), size in itertools.product(files.items(), (ONE_SPLIT, 64, 5)):
        yield Case(
            f"csv/header/{kind}/{size}", "csv", one("a.csv", data), _TWO, {**more, **options}, size,
            may_refuse=size < ONE_SPLIT and ("long" in kind or "many" in kind or "behind" in kind),
        )  # fmt: skip
    for kind, second in {"another order": b"b,a\ny,2\n", "no header": b"2,y\n", "one more": b"a,b,c\n2,y,z\n"}.items():
        yield Case(
            f"csv/header/second file has {kind}", "csv", lambda second=second: {"a.csv": b"a,b\n1,x\n", "b.csv": second},
            _TWO, more, expected=(), refused=True,
        )  # type: ignore[misc]  # fmt: skip
    both = {"a.csv": b"a,b\n1,x\n", "b.csv": b"a,b\n2,y\n"}
    yield Case("csv/header/in every file", "csv", lambda: both, _TWO, more)
    # Without a schema: names that Spark gives, types that it infers (habits, in docs/reading.md).
    given: dict[str, tuple[bytes, list[Any]]] = {
        "empty": (b",a\n0,x\n", [{"_c0": 0, "a": "x"}]),
        "doubled": (b"a,a\n0,x\n", [{"a0": 0, "a1": "x"}]),
        "doubled in another case": (b"a,A\n0,x\n", [{"a0": 0, "A1": "x"}]),
    }
    for kind, (data, rows) in given.items():
        yield Case(
            f"csv/header/name {kind}", "csv", one("a.csv", data), None, more, expected=tuple(rows),
            habit="Columns with an empty or doubled name",
        )  # fmt: skip
    for kind, data in {"other names": b",b\n1,2\n", "another order": b"b,\n2,1\n"}.items():
        yield Case(
            f"csv/header/given names and {kind}", "csv",
            lambda data=data: {"a.csv": b",b\n1,2\n" * (data[:1] == b"b") or b",c\n1,2\n", "b.csv": data},
            None, more, refused=True,
        )  # type: ignore[misc]  # fmt: skip


_VALUES: dict[str, list[str]] = {
    "TINYINT": ["127", "-128", "128", "1.0", "x", "0x1", "1e1", "1 000"],
    "INT": ["0", "-2147483648", "2147483647", "2147483648", "-2147483649", "", "3.7", "12a", "--1"],
    "BIGINT": ["9223372036854775807", "-9223372036854775808", "9223372036854775808", "1e3", "1,5", "Infinity", "1L"],
    "DOUBLE": ["1.5", "-0.25", "1e300", "5", ".5", "5.", "abc", "1.5.5", "1e", "1_000", " 2.5"],
    "BOOLEAN": ["true", "false", "yes", "1", "t"],
    "DECIMAL(10,2)": ["1.25", "-0.5", "7", "1,5", "2,25", "1.234,50", "1,2,3", "12345678901.5", "x", "1 000", "(5)", "1e2"],
    "DATE": ["2020-02-29", "2021-02-29", "0001-01-01", "9999-12-31", "2020-13-01", "20-01-01", "29.02.2020", "now", "today",
             "2020-01-02 10:30", "2020-01-02 x", "2020-01-02T10:30:00Z", "2020-01-02T", "2020-05", "2020"],
    "TIMESTAMP_NTZ": ["2020-05", "202005", "2020-01-02 03:04:05", "10:30"],
    "TIMESTAMP": ["2020-05", " 2020-5", "202005", "199912 ", "2020-01-02 03:04:05",
                  "2020-01-02T03:04:05.123456", "2020-01-02T03:04:05Z", "2020-01-02T03:04:05+01:00",
                  "10:30", "10:30:00", "T10", "1:2", "2020-01-02 25:00:00", "now", "today", "yesterday", " 10:30", "x"],
}  # fmt: skip


def _typed_csv() -> Iterator[Case]:
    """Each value in a row of its own beside text, and among good rows: a value that is not of its type stops the run."""
    for kind, texts in _VALUES.items():
        for text in texts:
            quoted = f'"{text}"' if "," in text else text
            yield Case(
                f"csv/typed/{kind}/{text}", "csv", one("a.csv", f"{quoted},x\n".encode()), {"v": kind, "s": "STRING"},
                _NO_HEADER,
            )  # fmt: skip


def _random_csv() -> Iterator[Case]:
    """Any characters that mean something, in any order."""
    pieces = ["a", "b", ",", '"', '""', '","', "\n", " ", "é", "\\", "\t", "\r\n", "#", ",,", "1"]
    for number in range(60):
        random = Random(number)
        data = "".join(random.choices(pieces, k=random.randint(3, 25))).encode()
        size = random.choice([ONE_SPLIT, 4])
        yield Case(f"csv/random/{number}", "csv", one("a.csv", data), _TWO, _NO_HEADER, size, may_refuse=True)
        rows = [[_word(random) for _ in range(2)] for _ in range(random.randint(1, 5))]
        data = _csv_of(rows, {}, random.choice(["\n", "\r\n"]))
        yield Case(f"csv/random rows/{number}", "csv", one("a.csv", data), _TWO, _NO_HEADER, size, may_refuse=True)


def _word(random: Random) -> str:
    return "".join(random.choices(["a", "b", ",", '"', "é", " ", "\\", "'", "x", "y", "\n"], k=random.randint(0, 5)))


# ---- JSON -------------------------------------------------------------------------------------------------------------

_JSON: Columns = {"n": "BIGINT", "s": "STRING", "x": "DOUBLE", "b": "BOOLEAN", "l": ["BIGINT"], "o": {"s": "STRING"}}
_RECORDS: list[dict[str, Any]] = [
    {"n": 1, "s": "text", "x": 0.5, "b": True, "l": [1, 2], "o": {"s": "in"}},
    {"n": -(2**63), "s": "", "x": -1e-300, "b": False, "l": [], "o": {}},
    {"n": 2**63 - 1, "s": "é日\U0001f600", "x": 1e300, "l": [None, 3]},
    {"s": 'quote " backslash \\ slash / braces }{][ , : end'},
    {"s": "control \x01\x1f tab\t feed\f back\b line\n return\r nul\0"},
    {"s": "\u2028\u2029\x85\ufeff\ufffd\uffff"}, {"o": {"s": '{"s":"}"}'}}, {"n": 0, "x": 0.1}, {"n": None, "s": None}, {},
    {"unknown": [{"a": 1}], "n": 5}, {"x": 5}, {"x": 123456789.123456789}, {"s": "x" * 200},
]  # fmt: skip


def _json_kinds() -> Iterator[Case]:
    writers: dict[str, dict[str, Any]] = {
        "ascii": {}, "utf-8": {"ensure_ascii": False}, "dense": {"separators": (",", ":")}, "sorted": {"sort_keys": True},
        "wide": {"separators": (" ,\t", "  : ")},
    }  # fmt: skip
    for (kind, how), end, size in itertools.product(writers.items(), ("\n", "\r\n", "\r"), (ONE_SPLIT, 37)):
        text = end.join(json.dumps(record, **how) for record in _RECORDS) + end
        yield Case(f"json/kind/{kind}/{end!r}/{size}", "json", one("a.json", text.encode()), _JSON, {}, size)
    for suffix in ("gz", "bz2", "zst", "deflate"):
        data = COMPRESS[suffix]("\n".join(json.dumps(record) for record in _RECORDS).encode())
        yield Case(f"json/kind/{suffix}", "json", one(f"a.json.{suffix}", data), _JSON, {}, 40)
    for separator in (";", "\r\n", "é", "\x1e", "|end|"[1:], "\n\n"):
        text = separator.join(json.dumps({"n": number, "s": "a\nb"}) for number in range(30))
        for size in (ONE_SPLIT, 17):
            yield Case(
                f"json/separator/{separator!r}/{size}", "json", one("a.json", text.encode()), _JSON,
                {"lineSep": separator}, size, may_refuse=size < ONE_SPLIT and separator[0] in separator[1:],
            )  # fmt: skip


_ODD_JSON: dict[str, bytes] = {
    "two objects": b'{"n":1}{"n":2}\n',
    "two objects and a space": b'{"n":1} {"n":2}\n',
    "two objects and a comma": b'{"n":1},{"n":2}\n',
    "a comma": b'{"n":1},\n{"n":2}\n',
    "a semicolon": b'{"n":1};\n',
    "a word behind": b'{"n":1} x\n',
    "a number behind": b'{"n":1}2\n',
    "a brace behind": b'{"n":1}}\n',
    "a bracket behind": b'{"n":1}]\n',
    "a quote behind": b'{"n":1}"\n',
    "a comment behind": b'{"n":1} // x\n',
    "a hash behind": b'{"n":1} # x\n',
    "text behind, far down": b'{"n":1}\n' * 300 + b'{"n":1}{"n":2}\n',
    "text behind nested": b'{"n":1,"o":{"s":"}"}} {"n":2}\n',
    "text behind single quotes": b'{"n":1,"s":"it\'s"}{"n":2}\n',
    "text behind, a mark before": b'\xef\xbb\xbf{"n":1}{"n":2}\n',
    "text behind a cr": b'{"n":1}\r{"n":2} x\r',
    "a nul behind": b'{"n":1}\0\n',
    "a vertical tab behind": b'{"n":1}\x0b\n',
    "a space of another kind behind": '{"n":1}\u00a0\n'.encode(),
    "text behind a mark in the middle": b'{"n":1}\n\xef\xbb\xbf{"n":2}{"n":3}\n',
    "an array and a value": b'[{"n":1},2]\n',
    "an array of numbers": b"[1,2]\n",
    "an array in an array": b'[[{"n":1}]]\n',
    "an array and null": b'[{"n":1},null]\n',
    "an array whose second is bad": b'[{"n":1},{"n":"x"}]\n',
    "an array, text behind": b'[{"n":1}] {"n":2}\n',
    "an array not closed in its line": b'[{"n":1}\n',
    "a text and an object": b'"" {"n":1}\n',
    "null and an object": b'null {"n":1}\n',
    "white space around": b' \t{"n":1} \t\r\n',
    "an array over lines": b'[\n{"n":1},\n{"n":2}\n]\n',
    "an array over lines, packed": b'[{"n":1},\n{"n":2}]\n',
    "a document over lines": b'{\n  "n": 1\n}\n',
    "a document over lines in the middle": b'{"n":1}\n{\n"n":2}\n',
    "an end in a text": b'{"s":"a\nb"}\n',
    "not closed": b'{"n":1\n{"n":2}\n',
    "not closed at the end": b'{"n":1}\n{"n":2',
    "a text not closed": b'{"s":"a}\n',
    "an array not closed": b'{"l":[1,2}\n',
    "a word": b"hello\n",
    "a number": b"1\n",
    "a text": b'"a"\n',
    "null": b"null\n",
    "true": b"true\n",
    "no value": b'{"n":}\n',
    "no colon": b'{"n" 1}\n',
    "a comma too many": b'{"n":1,}\n',
    "a comma too many in an array": b'{"l":[1,]}\n',
    "a comma missing": b'{"n":1 "s":"a"}\n',
    "names without quotes": b"{n:1}\n",
    "a plus": b'{"n":+1}\n',
    "leading zeros": b'{"n":007}\n',
    "hexadecimal": b'{"n":0x10}\n',
    "a point first": b'{"x":.5}\n',
    "a point last": b'{"x":5.}\n',
    "an exponent without digits": b'{"x":1e}\n',
    "NaN in a long": b'{"n":NaN}\n',
    "a bad escape": b'{"s":"\\x"}\n',
    "half an escape": b'{"s":"\\u12"}\n',
    "a control character in a text": b'{"s":"a\x01b"}\n',
    "a tab in a text": b'{"s":"a\tb"}\n',
    "half a pair": b'{"s":"\\ud800"}\n',
    "half a pair and text": b'{"s":"\\ud800x"}\n',
    "the other half": b'{"s":"\\udc00"}\n',
    "halves exchanged": b'{"s":"\\udc00\\ud800"}\n',
    "half a pair in a name": b'{"n":1,"\\ud83d":2}\n',
    "half a pair in upper case": b'{"s":"\\uD83D"}\n',
    "half a pair behind a backslash": b'{"s":"\\\\\\ud83d"}\n',
    "half a pair in a nested text": b'{"o":{"s":"\\ud83d \\ude00"}}\n',
    "a pair": b'{"s":"\\ud83d\\ude00"}\n',
    "a pair that is text": b'{"s":"\\\\ud83d"}\n',
    "latin-1": b'{"s":"caf\xe9"}\n',
    "latin-1 at the end": b'{"s":"caf\xe9',
    "overlong": b'{"s":"\xc0\xaf"}\n',
    "overlong of three": b'{"s":"\xe0\x80\xaf"}\n',
    "overlong nul": b'{"s":"\xc0\x80"}\n',
    "overlong of four": b'{"s":"\xf0\x80\x80\xaf"}\n',
    "a surrogate in bytes": b'{"s":"\xed\xa0\xbd\xed\xb8\x80"}\n',
    "half a surrogate in bytes": b'{"s":"\xed\xa0\x80"}\n',
    "beyond the last character": b'{"s":"\xf4\x90\x80\x80"}\n',
    "five bytes": b'{"s":"\xf8\x88\x80\x80\x80"}\n',
    "half a character": b'{"s":"\xe2\x82"}\n',
    "a byte of none": b'{"s":"\xff"}\n',
    "bad bytes in a name": b'{"n":1,"caf\xe9":2}\n',
    "bad bytes in an unknown field": b'{"n":1,"unknown":"\xe9"}\n',
    "bad bytes between": b'{"n":1,\xc2\xa0"s":"a"}\n',
    "a nul in a text": b'{"s":"a\0b"}\n',
    "a nul escaped": b'{"s":"a\\u0000b"}\n',
    "utf-16 with a mark": '{"n":1}\n{"n":2}\n'.encode("utf-16"),
    "utf-16 without": '{"n":1}\n'.encode("utf-16-le"),
    "utf-32": '{"n":1}\n'.encode("utf-32-be"),
    "mark": b'\xef\xbb\xbf{"n":1}\n',
    "mark alone": b"\xef\xbb\xbf",
    "mark and white space": b"\xef\xbb\xbf \n",
    "blank lines": b'\n{"n":1}\n  \n\t\n{"n":2}\n\n',
    "only blank lines": b"\n \n\r\n",
    "cr ends": b'{"n":1}\r{"n":2}\r',
    "no final end": b'{"n":1}\n{"n":2}',
    "a text as a number": b'{"n":"1"}\n',
    "a text as a boolean": b'{"b":"true"}\n',
    "a point as a long": b'{"n":1.5}\n',
    "an exponent as a long": b'{"n":1e2}\n',
    "a long that is too long": b'{"n":9223372036854775808}\n',
    "a long that is far too long": b'{"n":' + b"9" * 400 + b"}\n",
    "a boolean as a long": b'{"n":true}\n',
    "a long as a boolean": b'{"b":1}\n',
    "an object as an array": b'{"l":{"a":1}}\n',
    "an object as a long": b'{"n":{"a":1}}\n',
    "an array as an object": b'{"o":[1]}\n',
    "a text as an array": b'{"l":"x"}\n',
    "a text in an array of longs": b'{"l":[1,"x"]}\n',
    "a text as a double": b'{"x":"abc"}\n',
    "deep": b'{"n":1,"d":' + b"[" * 500 + b"]" * 500 + b"}\n",
    "a long name": b'{"n":1,"' + b"k" * 40_000 + b'":2}\n',
    "names escaped": b'{"\\u006e":1}\n',
    "names in another case": b'{"N":1}\n',
    "a slash escaped": b'{"s":"a\\/b"}\n',
    "a concatenated row": b'{"n":1}\n{"n":2}{"n":3}\n{"n":4}\n',
    "csv": b"n,s\n1,x\n",
    "a sequence of text": b'\x1e{"n":1}\n\x1e{"n":2}\n',
    "a log line before": b'2020-01-01 {"n":1}\n',
    "javascript": b'var x = {"n":1};\n',
    "html": b"<html></html>\n",
    "python": b"{'n': None}\n",
    "python's words": b'{"b":True}\n',
}


# A column's type, and what stands in the row: read as it is, or refused. Python's words for the rest.
_JSON_VALUES: dict[str, list[str]] = {
    "STRING": ["1", "1.10", "1e400", "1E5", "-0", "true", '{"a" : 1.10}', "[1.0,  2]",
               "0.1234567890123456789012345", '{"b":1,"a":2}', '{"a":"\\u00e9\\n"}', '[null]', '"x"', "1" * 50, "null"],
    "DATE": ['"2020-01-02"', '"2020-01-02 10:30"', '"2020-01-02T10:30:00Z"', '"2020-01-02 x"', '"2020-01-02T"', '"2020-01"',
             '"2020"', '"20200102"', '"18262"', '"now"', '"today"', '"2020-02-30"', '"x"', "5", '""', '"10:30"'],
    "TIMESTAMP": ['"2020-05"', '"202005"',
                  '"2020-01-02 03:04:05"', '"2020-01-02T03:04:05.123456Z"', '"2020-01-02 03:04:05 x"', '"now"', '"x"',
                  '"2020-01-02 03:04:05.1234567"', '"2020-01-02T03:04:05+01:00"', '"2020-01-02 24:00:00"', '""', "true"],
    "TIMESTAMP_NTZ": ['"2020-05"', '"202005"',
                      '"2020-01-02 03:04:05"', '"2020-01-02T03:04:05Z"', '"10:30"', '"now"', '"x"', "5"],
    "DECIMAL(10,2)": ["1.25", "7", '"1.25"', '"1,5"', '"2,25"', '"x"', "12345678901.5", "true"],
    "TINYINT": ["127", "128", "200", "255", "256", "-128", "-129", "1.0", '"1"', '"200"', "1e1", "300", "1000"],
    "SMALLINT": ["32767", "32768", "65535", "-32769", "1.0"],
    "INT": ["2147483647", "2147483648", "1.5", "1.0", '""', "true"],
    "DOUBLE": ["1", "1.5", '"1.5"', '"x"', "true", '""'],
    "BOOLEAN": ["true", "1", '"true"', '"x"', '""'],
    "BINARY": ['"YQ=="', '"a"', "1"],
}  # fmt: skip


def _typed_json() -> Iterator[Case]:
    for (kind, texts), encoding in itertools.product(_JSON_VALUES.items(), ("", "UTF-8")):
        options = {"encoding": encoding} if encoding else {}
        for text in texts if not encoding or kind == "STRING" else []:
            yield Case(
                f"json/typed/{kind}/{text}{' ' * bool(encoding)}{encoding}", "json",
                one("a.json", f'{{"v":{text}}}\n'.encode()), {"v": kind}, options,
            )  # fmt: skip


# What Python's reader takes and the run may not: what is no text of Unicode, what has no meaning in an exact record.
_JSON_MAY_REFUSE = ("utf-16 with a mark", "a nul in a text", "names in another case", "deep")


def _odd_json() -> Iterator[Case]:
    for (kind, data), size in itertools.product(_ODD_JSON.items(), (ONE_SPLIT, 8)):
        if len(data) / size < 2000:
            yield Case(
                f"json/odd/{kind}/{size}", "json", one("a.json", data), _JSON, {}, size,
                may_refuse=kind in _JSON_MAY_REFUSE,
            )  # fmt: skip


def _random_json() -> Iterator[Case]:
    """A record with a byte, or a few, that are others."""
    for number in range(80):
        random = Random(number)
        record = {"n": random.randint(-9, 9), "s": random.choice(["a", 'x"y', "é", "}{"]), "o": {"s": "b"}, "l": [1]}
        data = bytearray((json.dumps(record, ensure_ascii=False) + "\n").encode() * 2)
        for _ in range(random.randint(1, 2)):
            data[random.randrange(len(data))] = random.choice(b'{}[]",:\\ \n01ae.\x00\x80\xed/')
        size = random.choice([ONE_SPLIT, 9])
        yield Case(f"json/random/{number}", "json", one("a.json", bytes(data)), _JSON, {}, size, may_refuse=True)


# ---- both -------------------------------------------------------------------------------------------------------------


def _encodings() -> Iterator[Case]:
    # Encoding: characters of it, bytes that are none of it.
    known: dict[str, tuple[str, bytes]] = {
        "UTF-8": ("é日\U0001f600", b"\xff"), "ISO-8859-1": ("éü\x85\xa0", b""), "windows-1252": ("é€ž", b"\x81"),
        "ISO-8859-15": ("€é", b""), "KOI8-R": ("Жя", b""), "US-ASCII": ("az", b"\x80"), "Shift_JIS": ("日本ｱ", b"\x81"),
        "GBK": ("中文", b"\xff"), "EUC-KR": ("한국", b"\xff"), "UTF-16LE": ("é日\U0001f600", b"\x00\xd8"),
        "UTF-16BE": ("é日\U0001f600", b"\xd8\x00"), "UTF-32LE": ("é\U0001f600", b"\xff\xff\xff\xff"),
        "UTF-32BE": ("é\U0001f600", b"\x00\x11\x00\x00"), "windows-1251": ("Жя", b"\x98"), "IBM850": ("éÿ", b""),
        "windows-1253": ("ΩЖ"[:1], b"\xd2"), "windows-1255": ("א", b"\xd9"), "ISO-8859-8": ("א", b"\xa1"),
    }  # fmt: skip
    for (encoding, (text, bad)), format in itertools.product(known.items(), ("csv", "json")):
        wide = encoding.startswith(("UTF-16", "UTF-32"))
        python = "cp850" if encoding == "IBM850" else encoding
        rows = [f"x{text}{number}" for number in range(30)]
        row = {"csv": "{},b", "json": '{{"a":"{}","b":"b"}}'}[format]
        data = "".join(row.format(each) + "\n" for each in rows).encode(python)
        options = {"encoding": encoding} | ({"lineSep": "\n"} if wide or format == "json" else {})
        options |= _NO_HEADER if format == "csv" else {}
        files = {"good": data, "no end": data.removesuffix("\n".encode(python)), "empty": b""}
        if bad:
            row_of_bad = row.format("BAD").encode(python).replace("BAD".encode(python), bad)
            files["undecodable"] = data + row_of_bad + "\n".encode(python)
            files["undecodable last"] = data + "x".encode(python) + bad
        if wide:
            files["a mark"] = "\ufeff".encode(python) + data
            files["half a unit last"] = data + b"x"
            files["another order of bytes"] = data[::-1] if encoding.startswith("UTF-32") else _swapped(data)
        else:
            files["a mark"] = b"\xef\xbb\xbf" + data
        for (kind, content), size in itertools.product(files.items(), (ONE_SPLIT, 24)):
            yield Case(
                f"{format}/encoding/{encoding}/{kind}/{size}", format, one(f"a.{format}", content), _TWO, options, size,
                may_refuse=kind in ("a mark", "another order of bytes") or (size < ONE_SPLIT and encoding == "UTF-32BE"),
            )  # fmt: skip
    for format, encoding in itertools.product(
        ("csv", "json"), ("UTF-16", "UTF-32", "UTF-16LE", "UTF-16BE", "UTF-32BE", "EUC-JP")
    ):
        text = "1,x\n2,y\n3,ž\n" if format == "csv" else '{"a":"1","b":"x"}\n{"a":"2","b":"y"}\n'
        options = {"encoding": encoding} | (_NO_HEADER if format == "csv" else {})
        yield Case(
            f"{format}/encoding/not said how/{encoding}", format,
            one(f"a.{format}", text.replace("ž", "").encode(encoding)), _TWO, options, may_refuse=True,
        )  # fmt: skip
    for format, text in (("csv", "x\u0a05\u0100y\n"), ("json", '{"a":"\u0a05\u0100","b":"x"}\n')):
        yield Case(
            f"{format}/encoding/UTF-16LE/an end between two characters", format, one("a.x", text.encode("utf-16-le")),
            {"a": "STRING"},
            {"encoding": "UTF-16LE", "lineSep": "\n", **(_NO_HEADER if format == "csv" else {})}, may_refuse=True,
        )  # fmt: skip


def _swapped(data: bytes) -> bytes:
    return b"".join(data[at : at + 2][::-1] for at in range(0, len(data), 2))


def _many_files() -> Iterator[Case]:
    """Several files, and folders that are columns."""
    yield Case(
        "json/files/a bad one among good ones", "json",
        lambda: {**{f"{n}.json": b'{"n":%d}\n' % n for n in range(8)}, "b.json": b'{"n":1}{"n":2}\n'}, {"n": "BIGINT"},
    )  # fmt: skip
    yield Case(
        "csv/files/a bad one among good ones", "csv",
        lambda: {**{f"{n}.csv": b"%d,x\n" % n for n in range(8)}, "b.csv": b'1,"\n'}, _TWO, _NO_HEADER,
    )  # fmt: skip
    yield from _by_compression()
    twins = {
        "in two rows": b'{"a":1}\n{"A":2}\n',
        "in one": b'{"a":1,"A":2}\n',
        "below": b'{"s":[{"a":1}]}\n{"s":[{"A":2}]}\n',
    }
    for kind, data in twins.items():
        yield Case(f"json/files/names in two cases {kind}", "json", one("a.json", data), refused=True)
    yield Case(
        "json/files/empty ones among them", "json", lambda: {"a.json": b"", "b.json": b'{"n":1}\n', "c.json": b""},
        {"n": "BIGINT"},
    )  # fmt: skip
    names = [
        "1",
        "02",
        "1.0",
        "1e3",
        "2026-11-23",
        "2026-11-23 10%3A30%3A00",
        "true",
        "null",
        "-0",
        "0x1",
        "1L",
        "10%3A30",
        "a%20b",
        "é",
        "T10",
    ]
    inner: dict[str, tuple[bytes, dict[str, str]]] = {
        "json": (b'{"n":"x"}\n', {}),
        "csv": (b"n\nx\n", {"header": "true"}),
    }
    others: dict[str, tuple[dict[str, bytes], list[Any] | None]] = {
        "more columns": ({"a.csv": b"1,2\n", "b.csv": b"3,4,5\n"}, None),
        "fewer columns": ({"a.csv": b"1,2\n", "b.csv": b"3\n"}, None),
        "text beside numbers": (
            {"a.csv": b"007\n1.10\n", "b.csv": b"x\n"},
            [{"_c0": "007"}, {"_c0": "1.10"}, {"_c0": "x"}],
        ),
        "numbers beside text": ({"a.csv": b"TRUE\n", "b.csv": b"0x1\n"}, [{"_c0": "TRUE"}, {"_c0": "0x1"}]),
        "a date beside text": ({"a.csv": b"2020-01-02\n", "b.csv": b"x\n"}, [{"_c0": "2020-01-02"}, {"_c0": "x"}]),
    }
    for kind, (given, rows) in others.items():
        yield Case(
            f"csv/files/no schema, {kind}", "csv", lambda given=given: given, None, _NO_HEADER, refused=rows is None,
            expected=tuple(rows or ()), habit="Types are inferred without a schema",
        )  # type: ignore[misc]  # fmt: skip
    yield from in_folders("text", b"x\n", None, value="coalesce(k, 'none')")
    yield Case(
        "json/folders/k=%C3%A9 as INT",
        "json",
        lambda: {"k=%C3%A9/a.x": b'{"n":1}\n'},
        {"n": "INT", "k": "INT"},
        refused=True,
    )
    for format, (data, options) in inner.items():
        for name in names:
            text = _unquoted(name)
            yield Case(
                f"{format}/folders/k={name}", format, lambda name=name, data=data: {f"k={name}/a.x": data}, None, options,
                expected=({"n": "x", "k": text},), habit="they are strings, exactly as they are written",
            )  # type: ignore[misc]  # fmt: skip
        yield Case(
            f"{format}/folders/all", format, lambda data=data: {f"k={name}/a.x": data for name in names}, None, options,
            expected=tuple({"n": "x", "k": _unquoted(name)} for name in sorted(names, key=lambda name: f"k={name}/")),
            habit="they are strings, exactly as they are written",
        )  # type: ignore[misc]  # fmt: skip
        yield from in_folders(format, data, {"n": "x"}, options=options)
        yield Case(
            f"{format}/folders/the data has the column", format, lambda data=data: {"n=1/a.x": data}, None, options,
            refused=True,
        )  # type: ignore[misc]  # fmt: skip
        yield Case(
            f"{format}/folders/none", format, lambda data=data: {"k=__HIVE_DEFAULT_PARTITION__/a.x": data}, None, options,
            expected=({"n": "x", "k": None},), habit="`__HIVE_DEFAULT_PARTITION__`",
        )  # type: ignore[misc]  # fmt: skip
        for kind, files in {
            "of other columns": ("k=1/a.x", "j=1/a.x"), "beside none": ("k=1/a.x", "a.x"), "deeper": ("k=1/a.x", "k=1/j=2/a.x")
        }.items():  # fmt: skip
            yield Case(
                f"{format}/folders/{kind}", format, lambda data=data, files=files: dict.fromkeys(files, data), None, options,
                refused=True,
            )  # type: ignore[misc]  # fmt: skip


def _options_of_json() -> Iterator[Case]:
    decimals = {"prefersDecimal": "true"}
    taken: dict[str, tuple[bytes, str | None, dict[str, str], list[Any], str]] = {
        "exact decimals": (b'{"x":0.12345678901234567890}\n', None, decimals, [{"x": Decimal("0.1234567890123456789")}],
                           "prefersDecimal"),
        "primitives as text": (b'{"x":1.10,"b":true}\n', None, {"primitivesAsString": "true"}, [{"b": "true", "x": "1.10"}],
                               "they are the file's own characters"),
        "single quotes": (b"{'n':1,'s':'a\"b'}\n", "n INT, s STRING", {}, [{"n": 1, "s": 'a"b'}],
                          "Single quotes stand for double ones"),
        "no number": (b'{"x":NaN}\n{"x":-Infinity}\n', "x DOUBLE", {}, [{"x": "NaN"}, {"x": "-Infinity"}],
                      "NaN and Infinity are numbers"),
    }  # fmt: skip
    for kind, (data, schema, options, rows, words) in taken.items():
        yield Case(
            f"json/options/{kind}",
            "json",
            one("a.json", data),
            schema=schema,
            options=options,
            expected=tuple(rows),
            habit=words,
        )
    for kind, data in {"single quotes": b"{'n':1}\n", "no number": b'{"n":1,"x":NaN}\n'}.items():
        option = {"single quotes": "allowSingleQuotes", "no number": "allowNonNumericNumbers"}[kind]
        yield Case(
            f"json/options/{kind} not allowed", "json", one("a.json", data), schema="n INT, x DOUBLE",
            options={option: "false"}, refused=True,
        )  # fmt: skip


# Names of folders, by their values: `%XX` is a byte of UTF-8. Spark makes a character of each, and two of these one.
FOLDERS = {
    "Köln": "k=K%C3%B6ln", "KÃ¶ln": "k=KÃ¶ln", "Zürich": "k=Zürich", "a/b%+c": "k=a%2Fb%25+c", "%C3%B6": "k=%25C3%25B6",
    "%zz%4": "k=%zz%4", "\U0001f600=€": "k=%f0%9F%98%80=%E2%82%AC", "\x00\x7f": "k=%00%7F", "\x85 \xa0": "k=%C2%85%20%C2%A0",
    None: "k=__HIVE_DEFAULT_PARTITION__",
}  # fmt: skip


def in_folders(format: str, data: bytes, row: Mapping[str, Any] | None, **settings: Any) -> Iterator[Case]:
    """Yield the files of the format in folders of all these names. Their only row is `row`; None: the value is k."""

    def found_with(k: str | None) -> Any:
        return (k or "none").encode() if row is None else {**row, "k": k}

    found = tuple(found_with(value) for value, _ in sorted(FOLDERS.items(), key=lambda item: f"{item[1]}/"))
    yield Case(f"{format}/folders/utf-8", format, lambda: {f"{name}/a.x": data for name in FOLDERS.values()},
               expected=found, habit="is a byte of UTF-8", **settings)  # fmt: skip
    yield Case(f"{format}/folders/utf-8, a filter", format, lambda: {f"{name}/a.x": data for name in FOLDERS.values()},
               expected=(found_with("Köln"),), where="k = 'Köln'", habit="is a byte of UTF-8", **settings)  # fmt: skip
    for name in ("k=%E9", "k=%C3", "k=%ED%A0%80", "k=%C0%AF", "%C3%B6=1"):
        yield Case(
            f"{format}/folders/{name}", format, lambda name=name: {f"{name}/a.x": data}, refused=True, **settings
        )  # type: ignore[misc]


def _by_compression() -> Iterator[Case]:
    """Compressed files whose names do not show it, under a codec that the spec names."""
    inner: dict[str, tuple[bytes, Any, dict[str, Any]]] = {
        "json": (b'{"n":"x"}\n' * 40, {"n": "x"}, {"columns": {"n": "STRING"}}),
        "csv": (b"n\n" + b"x\n" * 40, {"n": "x"}, {"columns": {"n": "STRING"}, "options": {"header": "true"}}),
        "text": (b"x\n" * 40, b"x", {}),
        "xml": (
            b"<r>" + b"<row><n>x</n></row>" * 40 + b"</r>",
            {"n": "x"},
            {"columns": {"n": "STRING"}, "options": {"rowTag": "row"}},
        ),
    }
    codecs = {"gzip": "gz", "bzip2": "bz2", "zstd": "zst", "lz4": "lz4", "deflate": "deflate"}
    names = ["a.json", "part-00000", "d.az", "a.bz2", "A.JSON", "ü ö.csv", "a.", "bz"]
    for format, (data, row, settings) in inner.items():
        for codec, suffix in codecs.items():
            packed = COMPRESS[suffix](data)
            for name in names if codec == "gzip" else names[:1]:
                both = {name: packed, f"b.{suffix}": packed}
                yield Case(f"{format}/files/{codec} as {name}", format, lambda both=both: both, compression=codec,
                           expected=(row,) * 80, **settings)  # type: ignore[misc]  # fmt: skip
            yield Case(
                f"{format}/files/{codec} and one that is not", format,
                lambda packed=packed, data=data: {"a.x": packed, "b.x": data}, compression=codec, refused=True, **settings,
            )  # type: ignore[misc]  # fmt: skip
    lines, row, settings = inner["text"]
    yield Case("text/spark/gz/by compression", "text", one("a.x", COMPRESS["gz"](lines)), compression="gzip",
               where="value > ''", expected=(row,) * 40)  # fmt: skip


def _unquoted(name: str) -> str:
    return name.replace("%3A", ":").replace("%20", " ")


def _habits() -> Iterator[Case]:
    """What docs/reading.md names as a habit of the reader."""
    jsons: dict[str, tuple[bytes, str | None, list[Any], str]] = {
        "infinity": (b'{"n":1e400}\n', "n DOUBLE", [{"n": "Infinity"}], "1e400 is Infinity"),
        "rounded": (b'{"n":1.239}\n', "n DECIMAL(10,2)", [{"n": 1.24}], "DECIMAL(10,2) of 1.239 is 1.24"),
        "39 digits": (
            b'{"n":1' + b"0" * 38 + b"}\n",
            None,
            [{"n": f"1{'0' * 38}"}],
            "that a DOUBLE would round are a STRING",
        ),
        "an empty name": (b'{"":1,"n":2}\n', None, [{"n": 2}], "A field with an empty name has no column"),
        "a fraction of many digits": (
            b'{"x":0.1234567890123456789}\n',
            None,
            [{"x": 0.12345678901234568}],
            "a fraction is a DOUBLE of 17 digits",
        ),
        "an array": (b'[{"n":1},{"n":2}]\n', "n INT", [{"n": 1}, {"n": 2}], "A line that is an array gives a record"),
        "an empty array": (b"[]\n", "n INT", [], "A line that is an array gives a record"),
        "unknown fields": (
            b'{"n":1,"m":2}\n',
            "n INT",
            [{"n": 1}],
            "A field of JSON that `source.schema` does not name",
        ),
        "missing fields": (b'{"n":1}\n', "n INT, m INT", [{"n": 1, "m": None}], "the row does not have is null"),
    }
    yield from _options_of_json()
    texts = {"2020-01-02T00:00:00Z": "2020-01-02", "2020-1-2": "2020-01-02", " 2020-01-02 ": "2020-01-02"}
    for text, day in texts.items():
        yield Case(
            f"json/habit/a date {text}", "json", one("a.json", json.dumps({"d": text}).encode()), schema="d DATE",
            expected=({"d": day},), habit="midnight after it and blanks around it are allowed",
        )  # fmt: skip
    for kind, schema in {
        "a date in a struct": "s STRUCT<d: DATE>",
        "in an array": "s ARRAY<DATE>",
        "in a map": "s MAP<STRING, DATE>",
    }.items():
        data = {"s": ["2020-01-02 x"]} if "array" in kind else {"s": {"d": "2020-01-02 x"}}
        yield Case(
            f"json/typed/nested/{kind}", "json", one("a.json", json.dumps(data).encode()), schema=schema, refused=True
        )
    for kind, text in {"more than a date": "2020-01-02 x", "a number": "20200102"}.items():
        yield Case(
            f"json/typed/dateFormat/{kind}", "json", one("a.json", json.dumps({"d": text}).encode()), schema="d DATE",
            options={"dateFormat": "yyyy-MM-dd"}, refused=True,
        )  # fmt: skip
    yield Case(
        "json/typed/dateFormat/as it is written", "json", one("a.json", b'{"d":"20200102"}'), schema="d DATE",
        options={"dateFormat": "yyyyMMdd"}, expected=({"d": "2020-01-02"},), habit="only that pattern is read",
    )  # fmt: skip
    for number in (1577836800123, 1577836800123456, -99999999999999, 9223372036855, 2**63, 253402300800):
        data = f'{{"t":{number}}}'.encode()
        yield Case(f"json/typed/{number} as TIMESTAMP", "json", one("a.json", data), schema="t TIMESTAMP", refused=True)
    for number in (253402300799, 1577836800):
        moment = datetime.datetime.fromtimestamp(number, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.000000Z")
        yield Case(
            f"json/habit/{number} as TIMESTAMP", "json", one("a.json", f'{{"t":{number}}}'.encode()), schema="t TIMESTAMP",
            expected=({"t": moment},), habit="A number is seconds since 1970",
        )  # fmt: skip
    for text, kind in itertools.product(("123456", "12345", "+99999"), ("TIMESTAMP", "TIMESTAMP_NTZ")):
        yield Case(
            f"csv/typed/{text} as {kind}", "csv", one("a.csv", f"{text}\n".encode()), schema=f"t {kind}", refused=True
        )
    yield Case(
        "json/habit/a number as TIMESTAMP", "json", one("a.json", b'{"t":5}'), schema="t TIMESTAMP",
        expected=({"t": "1970-01-01T00:00:05.000000Z"},), habit="A number is seconds since 1970",
    )  # fmt: skip
    for number in ("1.10", "1e400", "-0", '{"a" : 1.10}'):
        yield Case(
            f"json/typed/{number} as text in Latin-1", "json", one("a.json", f'{{"v":{number}}}\n'.encode()), {"v": "STRING"},
            options={"encoding": "ISO-8859-1", "lineSep": "\n"},
        )  # fmt: skip
    for kind, (data, schema, rows, words) in jsons.items():
        yield Case(
            f"json/habit/{kind}", "json", one("a.json", data), schema=schema, expected=tuple(rows), habit=words
        )  # fmt: skip
    yield Case(
        "csv/habit/thousands", "csv", one("a.csv", b'"1,234,567.50"\n"-1,000"\n'), schema="v DECIMAL(10,2)", options=_NO_HEADER,
        expected=({"v": Decimal("1234567.50")}, {"v": -1000}), habit="commas only between thousands",
    )  # fmt: skip
    csvs: dict[str, tuple[bytes, list[Any], str]] = {
        "dates with more": (
            b"2020-01-02 x,1\n2020-01-03,2\n",
            [{"_c0": "2020-01-02 x", "_c1": 1}, {"_c0": "2020-01-03", "_c1": 2}],
            "An inferred column is STRING",
        ),
        "dates with times": (
            b"2020-01-02 10:30,1\n2020-01-03,2\n",
            [{"_c0": "2020-01-02T10:30:00.000000Z", "_c1": 1}, {"_c0": "2020-01-03T00:00:00.000000Z", "_c1": 2}],
            "Types are inferred without a schema",
        ),
        "types": (b"00123,1.10,TRUE\n", [{"_c0": 123, "_c1": 1.1, "_c2": True}], "Types are inferred without a schema"),
        "nulls": (b'a,,""\n', [{"_c0": "a", "_c1": None, "_c2": None}], "An empty field, quoted or not, is null"),
        "times": (b"10:30,1\n", [{"_c0": "10:30", "_c1": 1}], "An inferred column is STRING"),
    }
    for kind, (data, rows, words) in csvs.items():
        yield Case(
            f"csv/habit/{kind}", "csv", one("a.csv", data), None, _NO_HEADER, expected=tuple(rows), habit=words
        )  # fmt: skip
    yield Case(
        "csv/habit/a null in quotes", "csv", one("a.csv", b'NA,"NA"\n'), _TWO, {**_NO_HEADER, "nullValue": "NA"},
        expected=({"a": None, "b": None},), habit="and so is a quoted text that is `nullValue`",
    )  # fmt: skip
    yield Case("json/odd/a number of 1,200 digits", "json", one("a.json", b'{"n":' + b"9" * 1200 + b"}\n"), {"n": "STRING"},
               expected=({"n": "9" * 1200},))  # fmt: skip
    long = b'{"n":"' + b"x" * (21 << 20) + b'"}\n{"n":"y"}\n'
    yield Case("json/odd/a text of 21 MB", "json", lambda: {"a.json.gz": COMPRESS["gz"](long)}, schema="n STRING",
               value="CAST(length(n) AS STRING)", expected=(b"22020096", b"1"))  # fmt: skip
    twice = {"in a row": (b'{"n":1,"n":2}\n', "n INT"), "escaped": (b'{"n":1}\n{"n":1,"\\u006e":2}\n', "n INT"),
             "in a MAP": (b'{"n":{"a":1,"a":2}}\n', "n MAP<STRING, INT>"), "not read": (b'{"m":1,"m":1,"n":2}\n', "n INT"),
             "in an array": (b'{"n":[{"a":1},{"a":1,"b":1 , "a" :2}]}\n', "n ARRAY<STRUCT<a: INT>>")}  # fmt: skip
    for kind, (data, schema) in twice.items():
        yield Case(f"json/odd/a name twice, {kind}", "json", one("a.json", data), schema=schema, refused=True)
        yield Case(f"json/document/a name twice, {kind}", "json", one("a.json", b"[" + data.replace(b"}\n{", b"},\n{") + b"]"),
                   schema=schema, options={"multiLine": "true"}, refused=True)  # fmt: skip
    yield Case(
        "csv/habit/escapes before other characters", "csv", one("a.csv", b'"Surname\\, Firstname","a\\\\b"\n'), _TWO,
        {**_NO_HEADER, "escape": "\\"}, expected=({"a": "Surname\\, Firstname", "b": "a\\b"},),
        habit="In a quoted field `escape` is special before a quote and itself only",
    )  # fmt: skip
    yield Case(
        "csv/habit/escapes outside of quotes", "csv", one("a.csv", b'C:\\dir,"\\""\n'), _TWO, {**_NO_HEADER, "escape": "\\"},
        expected=({"a": "C:\\dir", "b": '"'},), habit="before any other character it is one itself",
    )  # fmt: skip
    for size in (ONE_SPLIT, 8):
        yield Case(
            f"json/habit/a mark before a later row/{size}", "json", one("a.json", b'{"n":1}\n\xef\xbb\xbf{"n":2}\n'),
            {"n": "INT"}, split_size=size, expected=({"n": 1}, {"n": 2}), habit="a byte order mark before any row is taken off",
        )  # fmt: skip
    for text in ("10:30", "T10", "1:2:3", " 10:30"):
        yield Case(
            f"json/times/{text}",
            "json",
            one("a.json", json.dumps({"t": text}).encode()),
            schema="t TIMESTAMP",
            refused=True,
        )
        for value in (
            "CAST(CAST(t AS TIMESTAMP) AS STRING)",
            "date_format(t, 'yyyy')",
            "CAST(to_timestamp(t) AS STRING)",
        ):
            yield Case(
                f"json/times/{value} of {text}", "json", one("a.json", json.dumps({"t": text}).encode()), schema="t STRING",
                value=value, refused=True,
            )  # fmt: skip
