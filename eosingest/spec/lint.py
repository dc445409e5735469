"""Checks a spec's expressions without Spark: syntax, unknown columns, types that are impossible where they are used.

    schema ─▶ columns ─▶ where ─▶ select ─▶ columns of the record ─▶ key, value, headers, timestamp, partition

For `check`, which is offline. sqlglot parses Spark's dialect, but not exactly as Spark does. So only definite problems are
reported, and syntax that sqlglot is known not to parse is accepted. No spec that Spark accepts may be refused.
"""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from eosingest.errors import SpecError
from eosingest.spec.columns import Columns
from eosingest.spec.document import KeyPath, Problem, Table, get
from eosingest.spec.encodings import PLACES
from eosingest.spec.expressions import as_time, literal_functions, tokens
from eosingest.spec.sources import source_table

_WHOLE = ("tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long")
_NUMBERS = (*_WHOLE, "float", "real", "double", "decimal", "dec", "numeric")
_TIMES = ("date", "timestamp", "timestamp_ntz", "timestamp_ltz")
_NESTED = ("array", "map", "struct")
_TEXTS = ("string", "varchar", "char", "character", "binary")
_KNOWN_TYPES = (*_NUMBERS, *_TIMES, *_NESTED, *_TEXTS, "boolean")
# Words that sqlglot may parse as columns although they are units of time or sides of trim.
_UNITS = re.compile(
    r"year|years|quarter|quarters|month|months|week|weeks|day|days|dayofyear|hour|hours|minute|"
    r"minutes|second|seconds|millisecond|milliseconds|microsecond|microseconds|nanosecond|both|leading|"
    r"trailing"
)
# Syntax of Spark that sqlglot does not know: a:b of variants, parameters. (Also >>>, and X '00' with a space.)
_NOT_ITS_OWN = frozenset(":?@$#")
_NEARLY = 0.75  # least similarity of a name to count as misspelt if there may be unknown columns
# Valid names of columns in Spark that are keywords to sqlglot.
_WORDS_OF_SQL = re.compile(
    r"all|any|case|comment|cross|describe|distinct|end|exists|explain|from|full|group|having|inner|"
    r"into|join|lateral|left|limit|natural|on|order|outer|right|select|set|show|table|then|truncate|"
    r"union|update|use|using|values|when|where|window|with"
)


def expression_problems(tables: Table, folders: Mapping[str, str] | None) -> Iterator[Problem]:
    """Yield the problems of schema and expressions. `folders` maps the files' k=v columns to types; None: not known.

    Tables of a wrong type and unclosed quotes are ignored here: the rules of the model report them.
    """
    columns, unlisted, wrong = _source_columns(tables, folders)
    yield from wrong
    where = get(tables, "transform", "where")
    if isinstance(where, str):
        yield from _Expression(("transform", "where"), where, columns).problems(_never_a_condition)
    seen = columns
    select = get(tables, "transform", "select")
    if isinstance(select, list) and all(isinstance(each, str) for each in select):
        found = _Select(select, columns, unlisted)
        yield from found.problems
        seen = found.columns
    yield from _record_problems(tables, seen)


def _source_columns(
    tables: Table, folders: Mapping[str, str] | None
) -> tuple[Columns | None, tuple[str, ...], list[Problem]]:
    """Return the columns that expressions may name (None if only Spark knows them), those that `*` does not contain, and
    the problems of the schema.
    """
    source = tables.get("source")
    source = source if isinstance(source, dict) else {}
    table = source_table(source)
    columns, wrong = table.columns(source)
    unlisted = table.unlisted_columns
    if columns is None:
        return None, unlisted, wrong
    columns.sure, columns.unlisted = folders is not None or not table.more_columns, unlisted
    return columns.with_types(folders or {}), unlisted, wrong


def _record_problems(tables: Table, columns: Columns | None) -> Iterator[Problem]:
    record = get(tables, "record")
    if not isinstance(record, dict):
        return
    named: list[tuple[KeyPath, Any, Any]] = [(("record", key), record.get(key), rule) for key, rule in _RULES.items()]
    headers = record.get("headers")
    if isinstance(headers, dict):
        named += [(("record", "headers", str(name)), text, _not_bytes) for name, text in headers.items()]
    elif isinstance(headers, str):
        named.append((("record", "headers"), headers, _not_headers))
    for place in PLACES:
        key, rule = _ENCODED[place[-1]]
        named.append(((*place, key), get(tables, *place, key), rule))
    for path, text, rule in named:
        if isinstance(text, str):
            yield from _Expression(path, text, columns).problems(rule)


def _not_bytes(expression: str, type_: str) -> tuple[str, str] | None:
    if type_ in _TEXTS:
        return None
    return f"{expression} is of type {type_}, not string or binary", f"write CAST({expression} AS STRING)"


def _not_a_struct(expression: str, type_: str) -> tuple[str, str] | None:
    if type_ == "struct":
        return None
    return f"{expression} is of type {type_}, not a struct", "write struct(*), or struct(a, b AS c)"


def _not_headers(expression: str, type_: str) -> tuple[str, str] | None:
    if type_ == "array":
        return None
    text = f"{expression} is of type {type_}, not ARRAY<STRUCT<key STRING, value BINARY>>"
    return text, f'write headers = {{ name = "{expression}" }} for a header of this name'


def _not_a_time(expression: str, type_: str) -> tuple[str, str] | None:
    if type_ in _TIMES:
        return None
    instead = as_time(expression, is_whole=type_ in _WHOLE)
    return f"{expression} is of type {type_}, not timestamp or date", f"write {instead}"


def _not_a_number(expression: str, type_: str) -> tuple[str, str] | None:
    if type_ in _WHOLE:
        return None
    return f"{expression} is of type {type_}, not integer", f"write CAST({expression} AS INT)"


def _never_a_condition(expression: str, type_: str) -> tuple[str, str] | None:
    if type_ not in (*_NUMBERS, *_TIMES, *_NESTED, "binary"):
        return None
    return f"{expression} is of type {type_}, not boolean", "write a condition, as in amount > 0"


_ENCODED = {"avro": ("columns", _not_a_struct), "json_schema": ("json", _not_bytes)}
_RULES = {
    "key": _not_bytes,
    "value": _not_bytes,
    "timestamp": _not_a_time,
    "partition": _not_a_number,
}


class _Expression:
    """One expression of the spec, parsed by sqlglot if it can."""

    def __init__(self, path: KeyPath, text: str, columns: Columns | None) -> None:
        self._path = path
        self._text = text
        self._columns = columns
        try:
            self.tree, self.syntax_error = _parsed(text, columns)
        except SpecError:  # an unclosed quote
            self.tree, self.syntax_error = None, ""

    def problems(self, rule: Any = None, aliases: Collection[str] = ()) -> Iterator[Problem]:
        """Yield the problems; none if the expression was not understood.

        `rule` returns the problem with a result of a given type, or None; `aliases` are further names that it may use.
        """
        columns = self._columns
        if self.syntax_error:
            yield self._problem(f"not an expression of Spark SQL: {self.syntax_error}", code="bad-expression")
        if self.tree is None:
            return
        alias = _alias(self.tree)
        if rule is not None and alias is not None:
            yield self._problem(
                f"{self._text}: a name for the result has no place here",
                hint=f"or is an operator or a comma missing before {alias}?",
            )
            return
        if columns is None:
            return
        unknown = list(self._unknown(columns, aliases))
        yield from unknown
        type_ = _type_of(self.tree, columns) if not unknown and rule is not None else ""
        said = rule(self._text, type_) if type_ in _KNOWN_TYPES else None
        if said is not None:
            yield self._problem(said[0], hint=said[1])

    def _unknown(self, columns: Columns, aliases: Collection[str]) -> Iterator[Problem]:
        known = {*columns.types, *map(str.lower, aliases)}
        functions = literal_functions(self._text, [*columns.names, *aliases]) if columns.sure else []
        for name in functions:
            yield self._problem(f"there is no column {name}; Spark would take it for the function {name}()")
        for name in _roots(self.tree, self._text):
            if name.lower() in known or name.lower() in columns.unlisted or name in functions:
                continue
            close = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.6 if columns.sure else _NEARLY)
            if close:
                meant = columns.types[close[0]][0] if close[0] in columns.types else close[0]
                yield self._problem(f"there is no column {name}; did you mean {meant}?", code="unknown-column")
            elif columns.sure:
                yield self._problem(
                    f"there is no column {name}; the columns are {', '.join(columns.names)}", code="unknown-column"
                )

    def _problem(self, text: str, *, hint: str = "", code: str = "bad-expression") -> Problem:
        return Problem(self._path, text, hint=hint, code=code)


class _Select:
    """The expressions of `select`, and the columns that they make, for the record's expressions."""

    def __init__(self, expressions: Sequence[str], source: Columns | None, unlisted: tuple[str, ...]) -> None:
        self.problems: list[Problem] = []
        self.columns: Columns | None = Columns(sure=source is not None and source.sure, unlisted=unlisted)
        aliases: list[str] = []
        for index, text in enumerate(expressions):
            expression = _Expression(("transform", "select", index), text, source)
            # An expression may use the aliases of the expressions before it.
            self.problems += expression.problems(aliases=aliases)
            self._see(text, expression.tree, source)
            if expression.tree is not None and _alias(expression.tree) is not None:
                aliases.append(str(_alias(expression.tree)))

    def _see(self, text: str, tree: Any, source: Columns | None) -> None:
        """Add the columns that an expression makes. If these are not known, all columns become unknown."""
        if self.columns is None:
            return
        name = _output_name(tree)
        if text.strip() == "*" and source is not None:
            self.columns.types.update(source.types)
        elif name is not None:
            inner = tree.this if _alias(tree) is not None else tree
            self.columns.add(name, _type_of(inner, source) if source is not None else "")
        else:
            self.columns = None


def _parsed(text: str, columns: Columns | None) -> tuple[Any, str]:
    """Return sqlglot's tree, or None; and the syntax error, "" unless it is certain."""
    from sqlglot.errors import ParseError, TokenError

    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
    error = ""
    for each in dict.fromkeys((text, _with_quoted_names(text, columns))):
        for dialect in ("spark", "databricks"):
            try:
                return _one_expression(each, dialect), ""
            except (ParseError, TokenError) as failure:
                error = error or _in_words(failure)
            except Exception:
                return None, ""
    return None, "" if _is_sparks_own(text) else error


def _one_expression(text: str, dialect: str) -> Any:
    """Parse the text after SELECT: alone, a column named `use` or `comment` would be parsed as a statement.

    Raises sqlglot's errors.
    """
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import ParseError

    tree = sqlglot.parse_one(f"SELECT\n{text}\n", dialect=dialect)
    more = [name for name, value in tree.args.items() if value and name not in ("expressions", "kind")]
    if not isinstance(tree, exp.Select) or len(tree.expressions) != 1 or more:
        raise ParseError("more than one expression")
    inner = tree.expressions[0]
    inner.pop()
    return inner


def _with_quoted_names(text: str, columns: Columns | None) -> str:
    """Return the expression with back-quotes, which Spark does not need, around columns with the names of keywords."""
    found = tokens(text)
    pieces, copied = [], 0
    for index, token in enumerate(found):
        call = index + 1 < len(found) and found[index + 1].text == "("
        word = token.text.lower()
        is_name = word in columns.types if columns is not None else _WORDS_OF_SQL.fullmatch(word)
        if token.kind == "word" and is_name and not call:
            pieces += [text[copied : token.start], f"`{token.text}`"]
            copied = token.end
    return "".join([*pieces, text[copied:]])


def _is_sparks_own(text: str) -> bool:
    """Say whether the text has syntax of Spark that sqlglot is known not to accept."""
    found = tokens(text)
    after_x = any(token.kind == "string" and before.text.lower() == "x" for before, token in pairwise(found))
    return after_x or ">>>" in text or any(token.text in _NOT_ITS_OWN for token in found)


def _in_words(failure: Exception) -> str:
    """Return sqlglot's message without its class names."""
    details = (getattr(failure, "errors", None) or [{}])[0]
    near = str(details.get("highlight") or "").strip()
    where = f" at {near!r}" if near else ""
    if "Required keyword" in str(failure):
        return f"something is missing{where}"
    if "Expecting )" in str(failure):
        return f"a ) is missing{where}"
    return f"not understood{where}"


def _alias(tree: Any) -> str | None:
    from sqlglot import exp

    return tree.alias if isinstance(tree, exp.Alias) and tree.alias else None


def _output_name(tree: Any) -> str | None:
    """Return the name of the column that an expression of `select` makes; None if it is not certain that there is one."""
    from sqlglot import exp

    if tree is None or tree.find(exp.Star, exp.Explode, exp.Inline, exp.Posexplode) is not None:
        return None
    alias = _alias(tree)
    if alias is not None:
        return alias
    return tree.name if isinstance(tree, exp.Column) else None


def _roots(tree: Any, text: str) -> list[str]:
    """Return the names that must be columns: of `a.b.c` the first; not parameters of lambdas, units, or in subqueries."""
    from sqlglot import exp

    if tree.find(exp.Select, exp.Subquery, exp.Placeholder, exp.Parameter, exp.Kwarg) is not None:
        return []
    parameters = _lambda_parameters(text)
    names = []
    for column in tree.find_all(exp.Column):
        first = column.parts[0]
        name = first.name
        unit = _UNITS.fullmatch(name.lower()) is not None and column.parent is not tree.parent
        if name and name != "*" and name.lower() not in parameters and not unit and _stands_in(text, name):
            names.append(name)
    return list(dict.fromkeys(names))


def _stands_in(text: str, name: str) -> bool:
    """Say whether a name is a word in the text: sqlglot parses other tokens as columns, too."""
    return any(token.name == name.lower() for token in tokens(text))


def _lambda_parameters(text: str) -> set[str]:
    """Return the names before each `->`: `x -> …`, `(x, y) -> …`."""
    found = tokens(text)
    names: set[str] = set()
    for index, token in enumerate(found):
        if token.text != "->" or index == 0:
            continue
        at = index - 1
        names.add(found[at].name)
        if found[at].text == ")":
            while at > 0 and found[at].text != "(":
                at -= 1
                names.add(found[at].name)
    return names


def _type_of(tree: Any, columns: Columns) -> str:
    """Return the type of a simple expression in lower case; "" for others."""
    from sqlglot import exp

    if isinstance(tree, exp.Paren):
        return _type_of(tree.this, columns)
    if isinstance(tree, exp.Column) and len(tree.parts) == 1:
        return columns.types.get(tree.name.lower(), ("", ""))[1]
    if isinstance(tree, exp.Cast):
        return re.split(r"\W", tree.to.sql(dialect="spark").lower(), maxsplit=1)[0]
    if isinstance(tree, exp.Literal):
        return "string" if tree.is_string else "int" if tree.this.isdigit() else ""
    conditions = (
        exp.EQ,
        exp.NEQ,
        exp.GT,
        exp.GTE,
        exp.LT,
        exp.LTE,
        exp.NullSafeEQ,
        exp.And,
        exp.Or,
        exp.Is,
        exp.Boolean,
    )
    return "boolean" if isinstance(tree, conditions) else ""
