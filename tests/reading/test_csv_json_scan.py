"""The look through CSV and JSON text: what Spark would read otherwise than it is written is refused, with its line."""

from __future__ import annotations

import contextlib
import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from eosingest.errors import FatalError
from eosingest.sources.files.formats.csv_header import first_row, names_of
from eosingest.sources.files.formats.inspection import inspect
from eosingest.sources.files.formats.json_names import lines_to_parse, with_names_twice
from eosingest.sources.files.formats.options import refused_options
from eosingest.sources.files.formats.text_checks import BadTextError, check_text
from eosingest.sources.files.listing.source_file import SourceFile
from tests.support.builders import source_file

DOUBLED = {"escape": '"'}
ESCAPED = {"escape": "\\"}
BIG = 1 << 20


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


def found(format: str, data: bytes, options: dict[str, str]) -> BadTextError | None:
    """Return what is wrong, the same in pieces of whatever size."""
    seen: list[BadTextError | None] = []
    for size in (BIG, 7, 1):
        try:
            check_text(pieces(data, size), format, options)
            seen.append(None)
        except BadTextError as bad:
            seen.append(bad)
    assert len({None if bad is None else (bad.message.split(":")[0], bad.line) for bad in seen}) == 1, seen
    return seen[0]


# (data, options, line, words of message and hint)
REFUSED_CSV: list[tuple[bytes, dict[str, str], int, str]] = [
    (b'id,note\n1,"hello\nfoo,bar"\n2,ok\n', DOUBLED, 2, "does not end in its line"),
    (b'1,"one, two\nthree, four"\n', DOUBLED, 1, "does not end"),
    (b'"one\ntwo"\n', DOUBLED, 1, "does not end"),
    (b'a\n"two', DOUBLED, 2, "does not end"),
    (b'a,"b\r\nc"\r\n', DOUBLED, 1, "does not end"),
    (b'a\rb\r"c\rd"\r', DOUBLED, 3, "does not end"),
    (b'a,"""\nb"\n', DOUBLED, 1, "does not end"),
    (b'"a","b""\nc"\n', DOUBLED, 1, "does not end"),
    (b'a,"b \\" c\nd"\n', ESCAPED, 1, "does not end"),
    (b'x,"C:\\"\ny,z\n', ESCAPED, 1, "source.options.escape = '\"'"),
    (b"a,'b\nc'\n", {"quote": "'"}, 1, "does not end"),
    (b'a||"b\nc"\n', {"sep": "||", **DOUBLED}, 1, "does not end"),
    (b'a\t"b\nc"\n', {"sep": "\\t", **DOUBLED}, 1, "does not end"),
    (b'a, "b\nc"\n', {"ignoreLeadingWhiteSpace": "true", **DOUBLED}, 1, "does not end"),
    (b'a,"b;x\nc";', {"lineSep": ";", **DOUBLED}, 1, "does not end"),
    ('a,«b\nc«\n'.encode(), {"quote": "«", "escape": "«"}, 1, "does not end"),
    ('é,"b\nc"\n'.encode("latin-1"), {"encoding": "ISO-8859-1", **DOUBLED}, 1, "does not end"),
    ('a,"b\nc"\n'.encode("utf-16-le"), {"encoding": "UTF-16LE", "lineSep": "\n", **DOUBLED}, 1, "does not end"),
    (b'#"x\n"a\n', {"comment": "#", **DOUBLED}, 2, "does not end"),
    (b'1,Ann\n2,"he said ""hi"", then left"\n', ESCAPED, 2, "source.options.escape = '\"'"),
    (b'2,"say ""hi"""\n', ESCAPED, 1, "source.options.escape = '\"'"),
    (b'2,"a"b\n', DOUBLED, 1, "not escaped"),
    (b'1,"\\""\n2,say \\"hi\\"\n', {"escape": "\\"}, 2, "an escape outside of quotes"),
    (b'"\\"",a\\,b\n', {"escape": "\\"}, 1, "an escape outside of quotes"),
    (b"a\n\\\\server\n", {"escape": "\\"}, 2, "an escape outside of quotes"),
    (b"a^;b\n", {"escape": "^", "sep": ";"}, 1, "an escape outside of quotes"),
    (b'2,"a" ,b\n', DOUBLED, 1, "ignoreTrailingWhiteSpace"),
    (b"caf\xe9\n", {}, 1, "no UTF-8: caf\\xe9"),
    (b"a\nb,\xed\xa0\x80\n", {}, 2, "no UTF-8"),
    (b"\xc0\xaf\n", {"encoding": "UTF-8"}, 1, "no UTF-8"),
    (b"a\x80\n", {"encoding": "US-ASCII"}, 1, "no US-ASCII"),
    (b"a\n\x81\n", {"charset": "windows-1252"}, 2, "no windows-1252"),
    (b"\xff\xfea\x00,\x00b\x00\n\x00", {}, 1, "no UTF-8"),
    (b"a\x00,\x00b\x00\n\x00", {}, 1, "iconv -f UTF-16"),
    ("\ufeffa\n".encode("utf-16-le"), {"encoding": "UTF-16LE", "lineSep": "\n"}, 1, "byte order mark"),
]  # fmt: skip
TAKEN_CSV: list[tuple[bytes, dict[str, str]]] = [
    (b'id,note\n1,"a, ""b"" c"\n"",""""\n', DOUBLED),
    (b'a,"b \\" c","\\\\"\n', ESCAPED),
    (b'a,"b \\" c, \\\\","d"\nC:\\dir\\file,"x"\n', {"escape": "\\"}),
    (b'say \\"hi\\",a\\,\\\\\n', {}),
    (b'#\\"\na\n', {"escape": "\\", "comment": "#"}),
    (b'5" pipe,a"b,""c\n'.replace(b',""c', b""), {}),
    (b"no quote at all, it's\n", {}),
    (b'"open\nhere"\n', {"quote": ""}),
    (b'#"open\n\na\n', {"comment": "#"}),
    (b"\n\r\n\na\n\n", {}),
    (b" a\n\tb\n", {}),
    (b'a,"b" \n', {"ignoreTrailingWhiteSpace": "true"}),
    (b"a\n   \nb\n", {}),
    (b"\t\t\na\tb\tc\n", {"sep": "\t"}),
    (b"caf\xe9\n", {"encoding": "ISO-8859-1"}),
    (b"\xef\xbb\xbfa,b\n1,2", {}),
    ("a,ž\nb\n".encode("utf-16-be"), {"encoding": "UTF-16BE", "lineSep": "\n"}),
    ("é,\u20ac,\U0001f600\n".encode(), {}),
    (b"", {}),
]  # fmt: skip


def test_csv() -> None:
    for data, options, line, words in REFUSED_CSV:
        bad = found("csv", data, options)
        assert bad is not None, data
        assert bad.line == line, (data, bad.line)
        assert words in f"{bad.message} {bad.hint}", (data, bad.message, bad.hint)
    for data, options in TAKEN_CSV:
        assert found("csv", data, options) is None, data


def test_two_characters_that_look_like_an_end_of_line() -> None:
    """Gurmukhi's third letter and a capital A with a macron, in UTF-16LE, hold the bytes of a line feed between them."""
    data = "id\n\u0a05\u0100x\n".encode("utf-16-le")
    for format in ("csv", "json"):
        bad = found(format, data, {"encoding": "UTF-16LE", "lineSep": "\n"})
        assert bad is not None
        assert "look like an end of line" in bad.message


def test_a_header_after_the_first_split(tmp_path: Path) -> None:
    options = {"header": "true", "comment": "#"}

    def header(data: bytes, split_size: int | None) -> list[str | None] | None:
        (tmp_path / "a.csv").write_bytes(data)
        return first_row(listed_file(tmp_path / "a.csv"), options, split_size)

    for start in (b"#" * 3000 + b"\n", b"\n" * 3000, b"# x\r\n" * 600):
        with pytest.raises(FatalError, match="header begins at byte 3,00"):
            header(start + b"a,b\n1,2\n", 1024)
        assert header(start + b"a,b\n1,2\n", 4096) == header(start + b"a,b\n1,2\n", None) == ["a", "b"]
    at_the_border = b"#" * 1023 + b"\n" + b"a,b\n1,2\n"  # a line that begins at a split's end is that split's
    assert header(at_the_border, 1024) == ["a", "b"]
    with pytest.raises(FatalError, match="byte 1,025"):
        header(b"#" + at_the_border, 1024)


REFUSED_JSON: list[tuple[bytes, dict[str, str], int, str]] = [
    (b'[\n{"n":1},\n{"n":2}\n]\n', {}, 1, "jq -c '.[]'"),
    (b'\n  [{"n":1},\n{"n":2}]', {}, 2, "jq -c '.[]'"),
    (b'{\n  "n": 1\n}\n', {}, 1, "jq -c ."),
    (b'{"n":1}\n{"n":1}{"n":2}\n', {}, 2, 'value: {"n":2}'),
    (b'{"n":1},\n{"n":2}\n', {}, 1, "value: ,"),
    (b'{"n":{"m":1}},{"n":2}\n', {}, 1, "value: ,{"),
    (b'{"n":[1]}]\n', {}, 1, "value: ]"),
    (b'{"n":"}"}}\n', {}, 1, "value: }"),
    (b'{}\n[1] x\n', {}, 2, "value: x"),
    (b'{"n":1}\r\n{"n":{}} // x\r\n', {}, 2, "value: // x"),
    (b'{"n":{"m":1}};{"n":{"m":1}} 7;', {"lineSep": ";"}, 2, "value: 7"),
    (b'{"n":1}\n\xef\xbb\xbf{"n":2}{"n":3}\n', {}, 2, 'value: {"n":3}'),
    (b'{"s":"\\ud800x"}\n', {}, 1, "surrogate"),
    (b'{"s":"ok"}\n{"s":"\\uDE00\\uD83D"}\n', {}, 2, "surrogate"),
    (b'{"s":"\\\\\\ud83d"}\n', {}, 1, "surrogate"),
    (b'{"s":"\x81"}\n', {"encoding": "windows-1252", "lineSep": "\n"}, 1, "no windows-1252"),
    ('{"n":1}\n'.encode("utf-16-le"), {}, 1, "zero byte"),
]  # fmt: skip
TAKEN_JSON: list[tuple[bytes, dict[str, str]]] = [
    (b'{"n":1}\n\n  \n{"n":{"m":[{}]}} \t\r\n[{"n":1},{"n":2}]\n', {}),
    (b'{"s":"}{ \\" ]["}\n{"s":"\\\\","t":{}}\n', {}),
    (b'{"s":"\\ud83d\\uDE00 \\\\ud800"}\n', {}),
    (b"{'s':'}{','t':{}}\n", {}),
    (b'{"n":1}\n{"n" BROKEN\n{"n":"open }\n', {}),  # corrupt rows
    (b'{"s":"caf\xe9"}\n{"s":"x\xc0\xaf"}\n{"s":"\xed\xa0\xbd\xed\xb8\x80"}\n', {}),
    (b'\xef\xbb\xbf{"n":1}', {}),
    (b"", {}),
]


def test_json() -> None:
    for data, options, line, words in REFUSED_JSON:
        bad = found("json", data, options)
        assert bad is not None, data
        assert bad.line == line, (data, bad.line)
        assert words in f"{bad.message} {bad.hint}", (data, bad.message, bad.hint)
    for data, options in TAKEN_JSON:
        assert found("json", data, options) is None, (data, found("json", data, options))


def _value(chance: random.Random, depth: int = 0) -> object:
    kind = chance.random() if depth < 3 else 1.0
    if kind < 0.3:
        return {chance.choice('ab"}{\\'): _value(chance, depth + 1) for _ in range(chance.randint(0, 3))}
    if kind < 0.5:
        return [_value(chance, depth + 1) for _ in range(chance.randint(0, 3))]
    return chance.choice([1, "x", '"', "}{", "]\\", '\\"', None, "a,b"])


def test_json_text_behind_a_value_as_pythons_decoder_sees_it() -> None:
    chance, decoder = random.Random(20), json.JSONDecoder()
    for _ in range(1500):
        lines = ['{"first":1}']
        for _ in range(chance.randint(1, 5)):
            line = json.dumps({"k": _value(chance)}) + chance.choice(["", " "])
            lines.append(line + chance.choice(["", "", "", "", ",", "{}", "}", "]", " x", line]))
        data = "\n".join(lines)
        behind = [bool(line.strip()[decoder.raw_decode(line.strip())[1] :].strip()) for line in lines]
        bad = found("json", data.encode(), {})
        assert (bad.line if bad is not None else None) == (behind.index(True) + 1 if True in behind else None), data


# Strings, as names and as values.
_STRINGS = [
    *("a", "b", "ab", "", "n", "\\u006e", '\\"', '\\"a', "\\\\", ":", "a:", " a", " :", '{\\"', "}", "{", "'", "é"),
    *("a_long_name_that_ends_alike_1", "a_long_name_that_ends_alike_2", "a_lone_name_that_ends_alike_1"),
]


def _written(chance: random.Random, depth: int = 0) -> str:
    """Return an object, whose names may be there twice."""

    def text() -> str:
        return (
            f'"{chance.choice(_STRINGS)}"' if chance.random() < 0.9 else chance.choice(("'a'", "'b\"'", "'}'", "'{a'"))
        )

    def blank() -> str:
        return chance.choice(("", "", "", "", "", " ", "\t", "  ", "\r"))

    def value() -> str:
        kind = chance.random() if depth < 3 else 1.0
        if kind < 0.25:
            return _written(chance, depth + 1)
        if kind < 0.4:
            return f"[{','.join(_written(chance, depth + 1) for _ in range(chance.randint(0, 3)))}]"
        return chance.choice(("1", "null", text()))

    fields = (f"{blank()}{text()}{blank()}:{blank()}{value()}{blank()}" for _ in range(chance.randint(0, 4)))
    return f"{{{','.join(fields)}}}"


def _has_a_name_twice(line: str) -> bool:
    found: list[int] = []

    def pairs(names: list[tuple[str, object]]) -> None:
        found.append(len(names) - len(dict(names)))

    with contextlib.suppress(ValueError):
        json.loads(line, object_pairs_hook=pairs)
    return any(found)


def test_names_that_are_there_twice_as_pythons_decoder_sees_them() -> None:
    """Breaks when a line is passed over that has a name twice in an object."""
    chance, refused = random.Random(35), 0
    for _ in range(3000):
        some = [_written(chance) for _ in range(chance.randint(1, 4))]
        lines = [
            chance.choice(some) if chance.random() < 0.5 else _written(chance) for _ in range(chance.randint(1, 9))
        ]
        lines = [*lines, chance.choice(("", "x", '{"a', '{"a":"', "[]")), chance.choice(some)]
        twice = {number for number, line in enumerate(lines) if _has_a_name_twice(line)}
        assert twice <= set(lines_to_parse("\n".join(lines).encode())), lines
        refused += len(twice)
        spread = [line.replace(":", ":\n") for line in lines]
        for texts in (lines, spread):
            twice = {number for number, line in enumerate(texts) if _has_a_name_twice(line)}
            assert twice <= with_names_twice([line.encode() for line in texts]), texts
    assert refused > 1000


def test_lines_of_few_names() -> None:
    """All pairs and triples: breaks when the names of one line are taken for those of several that are alike."""
    fields = ['"a": 1', '"b":1', '"a":{"a":1}']
    lines = [f"{{{', '.join(some)}}}" for length in range(4) for some in itertools.product(fields, repeat=length)]
    doubled = {line for line in lines if _has_a_name_twice(line)}
    short = [line for line in lines if line.count(",") < 2]
    for some in (*itertools.product(lines, repeat=2), *itertools.product(short, repeat=3)):
        twice = {number for number, line in enumerate(some) if line in doubled}
        assert twice <= set(lines_to_parse("".join(f"{line}\n" for line in some).encode())), some


def test_lines_that_are_not_parsed_for_names() -> None:
    """Breaks when lines are parsed that have a name once in each of several objects, which takes five times as long."""
    usual = [
        {"id": 1, "to": {"id": 2, "it's": "a{"}, "items": [{"id": 3}, {"id": 4}]},
        {"id": 1, "text": 'say "hi": it\'s {"id":1}\\', "x": "'"},
        {"a_long_name_that_ends_alike_1": 1, "a_long_name_that_ends_alike_2": 2},
        {},
    ]
    for rows in (usual, *([row] for row in usual)):
        for separators in ((",", ":"), (", ", ": ")):
            text = "".join(json.dumps(row, separators=separators) + "\n" for row in rows)
            assert lines_to_parse(text.encode()) == [], text


def test_names_that_are_there_twice_far_down() -> None:
    """Breaks when only a part of a file is looked through (W10)."""
    good = b'{"n":1,"m":"x"}\n' * 100_000
    for end in (b"\n", b"\r\n", b"\r", b";\n"):
        options = {"lineSep": ";\n"} if end == b";\n" else {}
        data = good.replace(b"\n", end) + b"{'n':1,'n':2}".replace(b"'", b'"' if end != b"\r" else b"'")
        with pytest.raises(BadTextError, match='an object has the name "n" twice') as raised:
            check_text(pieces(data, BIG), "json", options)
        assert raised.value.line == 100_001


def listed_file(path: Path) -> SourceFile:
    """A file as its listing has it."""
    status = path.stat()
    return source_file("data/a b.csv", status.st_size, path=str(path), mtime_ms=status.st_mtime_ns // 1_000_000)


def test_the_inspection_names_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "a b.csv"
    path.write_bytes(b'1,2\n3,"4\n')
    file = listed_file(path)
    finding = inspect(file, "csv", {}, BIG)
    assert finding is not None
    assert str(finding).startswith("data/a b.csv: line 2: a quoted field does not end")


@pytest.mark.parametrize(
    ("encoding", "line_sep", "words"),
    [
        ("UTF-16", "\n", "UTF-16LE or UTF-16BE"),
        ("utf-16le", None, "lineSep"),
        ("UTF-32BE", None, "lineSep"),
        ("EUC-JP", "\n", "iconv"),
        ("nonsense", "\n", "iconv"),
        ("UTF-16LE", "\n", None),
        ("latin1", None, None),
        ("windows-1252", None, None),
        ("utf8", None, None),
    ],
)
def test_encodings_that_may_be_named(encoding: str, line_sep: str | None, words: str | None) -> None:
    for format in ("csv", "json"):
        options = {"encoding": encoding} | ({} if line_sep is None else {"lineSep": line_sep})
        said = dict(refused_options(format, options, has_schema=False))
        assert (words in said["encoding"]) if words else not said, said


def test_names_that_spark_gives_to_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    for header, columns in [
        (b",a,b\n", ["_c0", "a", "b"]),
        (b"a,a,b\n", ["a0", "a1", "b"]),
        (b"# x\n\na,A,\n", ["a0", "A1", "_c2"]),
        (b'"","x, y"\n', ["_c0", "x, y"]),
        (b"\n", []),
    ]:
        path.write_bytes(header)
        options = {"comment": "#", "header": "true"}
        file = listed_file(path)
        assert names_of(first_row(file, options) or []) == columns, header
