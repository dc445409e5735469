"""Tokenizes Spark SQL expressions, to refuse unstable functions, to replace stars, and to normalise.

When a spec is loaded, functions that would give other bytes at a retry are refused by name. Before Spark gets an expression,
its stars are replaced by the visible columns. The normal form is for digests. Only Spark decides on syntax: syntax that is not
understood here is accepted. `eosingest.spark` uses this module, so it imports nothing but the errors.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from eosingest.errors import SpecError

# As in Spark's SqlBaseLexer: both kinds of quotes are strings, a backslash escapes, a doubled quote is a quote,
# in r'…' nothing escapes. Identifiers may begin with a digit.
_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<comment>--(?:\\\r?\n|[^\r\n])*)
      | (?P<opening>/\*)
      | (?P<string>[rR]'[^']*'|[rR]"[^"]*"|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
      | (?P<quoted>`(?:[^`]|``)*`)
      | (?P<word>\w+)
      | (?P<unclosed>['"`])
      | (?P<operator><=>|<>|<=|>=|!=|==|->|=>|\|\||::)
      | (?P<symbol>.)""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A token of an expression with its position. Its kind: string, quoted (`name`), word, operator or symbol."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def name(self) -> str:
        """The name, in lower case, of a word or back-quoted name; "" for other tokens."""
        if self.kind == "quoted":
            return self.text[1:-1].replace("``", "`").lower()
        return self.text.lower() if self.kind == "word" else ""


def tokens(expression: str) -> list[Token]:
    """Return the tokens without white space and comments. Raises SpecError for an unclosed quote or comment."""
    found: list[Token] = []
    at = 0
    while at < len(expression):
        match = _TOKEN.match(expression, at)
        assert match is not None and match.lastgroup is not None  # the last alternative matches any character
        kind, end = match.lastgroup, match.end()
        if kind == "unclosed":
            raise SpecError(f"the {match[0]} at character {at + 1} is not closed", code="bad-expression")
        if kind == "opening":
            end = _end_of_comment(expression, at)
        elif kind not in ("space", "comment"):
            found.append(Token(kind, match[0], at, end))
        at = end
    return found


def _end_of_comment(expression: str, start: int) -> int:
    """Return the index after a /* comment */, which may be nested in Spark."""
    depth = 0
    for match in re.finditer(r"/\*|\*/", expression[start:]):
        depth += 1 if match[0] == "/*" else -1
        if depth == 0:
            return start + match.end()
    raise SpecError(f"the /* at character {start + 1} is not closed", code="bad-expression")


def normalise(expression: str) -> str:
    """Return the normal form, for digests: without comments, with one space between tokens."""
    return " ".join(token.text for token in tokens(expression))


def quote_name(name: str) -> str:
    """Return a column name in back-quotes, with back-quotes inside it doubled."""
    return "`" + name.replace("`", "``") + "`"


def expand_star(expression: str, columns: Sequence[str]) -> str:
    """Return the expression with each star argument replaced by the columns, so that `struct(*)` has no hidden column.

    A star argument is a `*` after `(`, `,` or the start, and before `)`, `,` or the end; multiplications and `s.*` stay.
    Raises SpecError for `* EXCEPT (…)`.
    """
    if "*" not in expression:  # there may be thousands of columns, and of expressions
        return expression
    found = tokens(expression)
    names = ", ".join(map(quote_name, columns))
    pieces, copied = [], 0
    for index, token in enumerate(found):
        if token.text != "*" or (index > 0 and found[index - 1].text not in ("(", ",")):
            continue
        following = found[index + 1] if index + 1 < len(found) else None
        if following is not None and following.name == "except":
            raise SpecError("* EXCEPT (…) cannot be used here; name the columns", code="bad-expression")
        if following is None or following.text in (")", ","):
            pieces += [expression[copied : token.start], names]
            copied = token.end
    return "".join([*pieces, expression[copied:]])


_TIME = "depends on the time of the run"
_RANDOM = "gives another value at every attempt"
_SESSION = "depends on who runs it and where"
_PLACE = "depends on how the source is cut and where it is stored"

_ALTERNATIVES = {
    _TIME: "hand the time in: TIMESTAMP '${param:time}' and --param time=…",
    _RANDOM: "derive it from the row, as in sha2(to_json(struct(*)), 256)",
    _SESSION: "write the value, or hand it in as '${param:name}'",
    _PLACE: "use the columns of the row; for files also _metadata.file_name and _metadata.file_size",
}

# Calls that are refused: all functions of Spark 4.0's registry that depend on more than their arguments.
_FUNCTIONS = {
    **dict.fromkeys(("now", "current_timestamp", "current_date", "curdate", "localtimestamp", "current_time"), _TIME),
    "localtime": _TIME,
    **dict.fromkeys(("uuid", "rand", "randn", "random", "randstr", "uniform", "shuffle", "aes_encrypt"), _RANDOM),
    **dict.fromkeys(("reflect", "try_reflect", "java_method"), _RANDOM),
    **dict.fromkeys(
        ("current_user", "user", "session_user", "current_timezone", "current_database", "current_schema"), _SESSION
    ),
    **dict.fromkeys(("current_catalog", "current_path", "version"), _SESSION),
    **dict.fromkeys(("monotonically_increasing_id", "spark_partition_id", "input_file_name"), _PLACE),
    **dict.fromkeys(("input_file_block_start", "input_file_block_length"), _PLACE),
}
_COLUMNS_FIRST = frozenset({"user", "localtime"})  # as _BARE, but far more often columns
# Functions that Spark accepts without parentheses, too.
_BARE = frozenset(
    {"current_timestamp", "current_date", "current_time", "localtimestamp", "current_user", "session_user"}
)
# Fields of _metadata that stay the same when a file is moved.
_STABLE_METADATA = frozenset({"file_name", "file_size"})

# Spark reads these strings as times wherever it expects a date: TIMESTAMP 'now', but also ts < 'today' (measured).
_SPECIAL_DATE = re.compile(r"""['"]\s*(now|today|tomorrow|yesterday)(\s+\S+)?\s*['"]""", re.IGNORECASE)
# Spark's parser itself fills in today's date in a literal without a date: afterwards it cannot be found in the plan.
_NO_DATE = re.compile(r"""[rR]?['"][\x00-\x20\x7f]*(T[0-9]|[0-9]+:).*""", re.DOTALL)
_TAKES_A_DATE = re.compile(r"(try_)?((to_)?(date|timestamp|timestamp_ntz|timestamp_ltz)|cast)|in|between|and")
_COMPARES = frozenset({"=", "==", "<=>", "<", ">", "<=", ">=", "!=", "<>"})


def unstable(expression: str) -> list[str]:
    """Return a sentence for each part of the expression that would give other bytes at a retry.

    A retried or resumed split must give the same rows and bytes again (docs/protocol.md). To Spark `now()` is deterministic,
    so such functions are found by name. Raises SpecError for an unclosed quote or comment.
    """
    found = tokens(expression)
    sentences = [_unstable_string(found, index) or _unstable_name(found, index) for index in range(len(found))]
    return list(dict.fromkeys(filter(None, sentences)))


def literal_functions(expression: str, columns: Sequence[str]) -> list[str]:
    """Return the names that Spark would resolve to functions because there is no column of that name.

    `user` without parentheses is the column if there is one, else silently current_user(), even in back-quotes (measured).
    Raises SpecError for an unclosed quote or comment.
    """
    found = tokens(expression)
    names = dict.fromkeys(
        token.name
        for index, token in enumerate(found)
        if token.name in _BARE | _COLUMNS_FIRST and _is_a_value(found, index)
    )
    if not names:
        return []
    known = {column.lower() for column in columns}
    known |= {token.name for index, token in enumerate(found) if _text(found, index + 1) in ("->", ":")}
    return [name for name in names if name not in known | _listed(found)]


def _listed(found: list[Token]) -> set[str]:
    """Return the names in lists that declare them: `AS (a, b)`, `(a, b) ->`."""
    names, opened = set[str](), list[int]()
    for index in range(len(found)):
        if _text(found, index) == "(":
            opened.append(index)
        elif _text(found, index) == ")" and opened:
            start = opened.pop()
            if _text(found, start - 1) == "as" or _text(found, index + 1) == "->":
                names |= {token.name for token in found[start + 1 : index]}
    return names


def _text(found: list[Token], index: int) -> str:
    """Return the text of the token at an index, in lower case; "" if there is none."""
    return found[index].text.lower() if 0 <= index < len(found) else ""


def _is_a_value(found: list[Token], index: int) -> bool:
    """Say whether a name is a value: not a field of another name, an alias or a call."""
    return _text(found, index - 1) not in (".", "as") and _text(found, index + 1) not in (".", "(")


def _unstable_name(found: list[Token], index: int) -> str:
    token, name = found[index], found[index].name
    if _text(found, index + 1) == "(":
        if name == "unix_timestamp" and _text(found, index + 2) == ")":
            return _sentence("unix_timestamp() without arguments", _TIME)
        return _sentence(f"{name}()", _FUNCTIONS[name]) if name in _FUNCTIONS else ""
    if token.kind == "word" and name in _BARE and _is_a_value(found, index):
        return _sentence(name, _FUNCTIONS[name]) + f"; a column of that name is written `{name}`"
    if name == "_metadata" and _text(found, index - 1) != ".":
        field = found[index + 2].name if _text(found, index + 1) == "." and index + 2 < len(found) else ""
        if field not in _STABLE_METADATA:
            return _sentence(f"_metadata.{field}".rstrip("."), _PLACE)
    return ""


def _unstable_string(found: list[Token], index: int) -> str:
    if found[index].kind != "string":
        return ""
    if _text(found, index - 1) in ("timestamp", "timestamp_ltz") and _NO_DATE.fullmatch(found[index].text):
        return _sentence(f"the time without a date {found[index].text}", _TIME)
    special = _SPECIAL_DATE.fullmatch(found[index].text)
    if special is None or not _is_read_as_date(found, index):
        return ""
    word = f"'{special[1].lower()}'"
    return _sentence(f"the date {word}", _TIME) + f"; if the text is meant: CAST({word} AS STRING)"


def _is_read_as_date(found: list[Token], index: int) -> bool:
    """Say whether Spark may read a string as a time: DATE '…', to_date('…'), CAST('…' AS DATE), '…'::date, ts < '…'."""
    before, after = _text(found, index - 1), _text(found, index + 1)
    caller = _text(found, index - 2) if before == "(" else before
    if (caller.endswith("cast") and _text(found, index + 2) == "string") or before in (".", "as"):
        return False
    return bool(_TAKES_A_DATE.fullmatch(caller)) or after == "::" or before in _COMPARES or after in _COMPARES


def _sentence(what: str, reason: str) -> str:
    return f"{what} {reason}, so a retry would send other bytes; {_ALTERNATIVES[reason]}"


def as_time(expression: str, *, is_whole: bool) -> str:
    """Return advice on how to convert an expression to a time: for a whole number, one way for each unit that it may have."""
    if not is_whole:
        return f"CAST({expression} AS TIMESTAMP)"
    return (
        f"timestamp_seconds({expression}), timestamp_millis({expression}) or timestamp_micros({expression}), by its unit;"
        f" timestamp_micros({expression} div 1000) where it is in nanoseconds"
    )
