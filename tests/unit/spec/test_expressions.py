"""Expressions: stars, refused functions and normal forms, each with strings, quotes and comments in the way."""

from __future__ import annotations

import subprocess
import sys

import pytest

from eosingest.errors import SpecError
from eosingest.spec.expressions import expand_star, literal_functions, normalise, tokens, unstable


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("to_json(struct(*))", "to_json(struct(`a`, `b``c`))"),
        ("struct(*, 1 AS n)", "struct(`a`, `b``c`, 1 AS n)"),
        ("struct(1, * )", "struct(1, `a`, `b``c` )"),
        ("xxhash64( /* all */ *)", "xxhash64( /* all */ `a`, `b``c`)"),
        ("*", "`a`, `b``c`"),
        ("a * 2", "a * 2"),
        ("(a) * (b)", "(a) * (b)"),
        ("struct(s.*)", "struct(s.*)"),
        ("concat('(*)', `(*)`, \"(*)\")", "concat('(*)', `(*)`, \"(*)\")"),
        ("f(a) -- (*)", "f(a) -- (*)"),
        ("f(struct(*), struct(*))", "f(struct(`a`, `b``c`), struct(`a`, `b``c`))"),
    ],
)
def test_a_star_argument_becomes_the_columns(expression: str, expected: str) -> None:
    assert expand_star(expression, ["a", "b`c"]) == expected


@pytest.mark.parametrize("expression", ["struct(* EXCEPT (a))", "* except(a)", "struct(* /* x */ Except (a))"])
def test_star_except_is_refused(expression: str) -> None:
    with pytest.raises(SpecError, match="name the columns"):
        expand_star(expression, ["a", "b"])


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("now()", "now()"),
        ("NOW ( )", "now()"),
        ("`now`()", "now()"),
        ("builtin.now()", "now()"),
        ("now/* x */()", "now()"),
        ("current_timestamp", "current_timestamp"),
        ("Current_Date + 1", "current_date"),
        ("current_timestamp()", "current_timestamp()"),
        ("curdate()", "curdate()"),
        ("localtimestamp()", "localtimestamp()"),
        ("unix_timestamp( )", "unix_timestamp() without arguments"),
        ("user()", "user()"),
        ("current_user", "current_user"),
        ("current_timezone()", "current_timezone()"),
        ("concat(id, uuid())", "uuid()"),
        ("rand(42)", "rand()"),
        ("shuffle(a)", "shuffle()"),
        ("aes_encrypt(a, b)", "aes_encrypt()"),
        ("monotonically_increasing_id()", "monotonically_increasing_id()"),
        ("input_file_name()", "input_file_name()"),
        ("version()", "version()"),
        ("_metadata.file_modification_time", "_metadata.file_modification_time"),
        ("_metadata . `file_path`", "_metadata.file_path"),
        ("to_json(_metadata)", "_metadata"),
        ("TIMESTAMP 'now'", "the date 'now'"),
        ("date('today')", "the date 'today'"),
        ("CAST(' Yesterday' AS DATE)", "the date 'yesterday'"),
        ("to_timestamp('now UTC')", "the date 'now'"),
        ("try_cast('now' AS DATE)", "the date 'now'"),
        ("day = 'today'", "the date 'today'"),
        ("'now' > ts", "the date 'now'"),
        ("day IN ('today')", "the date 'today'"),
        ("ts BETWEEN 'yesterday' AND d", "the date 'yesterday'"),
        ("ts BETWEEN d AND 'today'", "the date 'today'"),
        ("'tomorrow'::date", "the date 'tomorrow'"),
        ("to_date('today')", "the date 'today'"),
    ],
)
def test_what_changes_from_try_to_try_is_named_with_an_alternative(expression: str, name: str) -> None:
    problems = unstable(expression)
    assert len(problems) == 1
    assert problems[0].startswith(f"{name} ")
    assert "; " in problems[0]


@pytest.mark.parametrize(
    "expression",
    [
        "user",
        "uuid",
        "version",
        "'now()'",
        '"uuid()"',
        "`now`",
        "`current_date`",
        "r.current_date",
        "current_date.day",
        "ts AS current_timestamp",
        "a -- now()",
        "a /* now() /* uuid() */ now() */",
        "unix_timestamp(ts)",
        "nowhere(1)",
        "_metadata.file_name",
        "_metadata.file_size",
        "event._metadata",
        "r'\\' || now",
        "'now'",
        "kind = CAST('today' AS STRING)",
        "kind = 'today we go'",
        "'today' AS day",
        "concat('today', day)",
        "sha2(to_json(struct(*)), 256)",
    ],
)
def test_columns_strings_and_comments_are_no_calls(expression: str) -> None:
    assert unstable(expression) == []


@pytest.mark.parametrize(
    ("expression", "columns", "expected"),
    [
        ("user", ["id"], ["user"]),
        ("`user`", ["id"], ["user"]),
        ("concat(User, `current_date`)", [], ["user", "current_date"]),
        ("user", ["User"], []),
        ("r.user", ["r"], []),
        ("user.name", ["id"], []),
        ("id AS user", ["id"], []),
        ("'user'", ["id"], []),
        ("transform(a, user -> upper(user))", ["a"], []),
        ("zip_with(a, b, (user, i) -> concat(user, i))", ["a", "b"], []),
        ("inline(a) AS (user, v)", ["a"], []),
        ("from_json(a, 'x INT')::STRUCT<user: STRING>", ["a"], []),
        ("concat(upper(user), (a))", ["a"], ["user"]),
    ],
)
def test_names_that_spark_takes_for_functions(expression: str, columns: list[str], expected: list[str]) -> None:
    assert literal_functions(expression, columns) == expected


def test_every_bad_function_is_told_once() -> None:
    assert len(unstable("concat(now(), uuid(), now())")) == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("concat( a,b )", "concat(a, b)"),
        ("a+b", "a  +\n b"),
        ("a -- why\n + b", "a + b"),
        ("a /* x /* y */ z */ + b", "a+b"),
        ("a>=b", "a >= b"),
        ("f('a  b')", "f( 'a  b' )"),
    ],
)
def test_equal_meaning_is_one_normal_form(one: str, other: str) -> None:
    assert normalise(one) == normalise(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("f('a  b')", "f('a b')"),
        ("f('a -- b')", "f('a')"),
        ("f('a''b')", "f('a' 'b')"),
        ("`a  b`", "`a b`"),
        ("ab", "a b"),
        ("Id", "id"),
        (r"'\'' || 'a  b'", r"'\'' || 'a b'"),
        ("'/*' || a || '*/'", "'/*' || b || '*/'"),
    ],
)
def test_other_meaning_is_another_normal_form(one: str, other: str) -> None:
    assert normalise(one) != normalise(other)


@pytest.mark.parametrize("expression", ["'a", 'f("a)', "`a", "a /* b", "/* /* */", "'a\\'"])
def test_what_is_not_closed_is_refused(expression: str) -> None:
    with pytest.raises(SpecError, match="is not closed"):
        tokens(expression)


def test_raw_strings_do_not_escape() -> None:
    assert [token.text for token in tokens(r"r'\' x R" + r'"\" bar')] == [r"r'\'", "x", r'R"\"', "bar"]


def test_tokens_know_their_place() -> None:
    expression = "a /* c */ * `b c` -- end"
    assert [expression[token.start : token.end] for token in tokens(expression)] == ["a", "*", "`b c`"]


def test_expressions_and_options_come_without_pydantic() -> None:
    program = (
        "import sys, eosingest.spec.expressions; from eosingest.spec import PROTECTED_SPARK_CONF;"
        "sys.exit('pydantic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
