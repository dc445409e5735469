"""Refuses casts to a time whose result depends on today's date: a retried or resumed split must give the same bytes.

When Spark casts a string without a date, `10:30`, to TIMESTAMP, it fills in today's date; when it casts a constant to a time,
it also takes the words 'now', 'today', 'tomorrow' and 'yesterday'.

- In expressions, all casts are found in Spark's analyzed plan. The cast of a constant is checked at once; the cast of a column
  gets a guard, which fails at the row (`guarded`). record_columns.py calls this before the plan is executed.
- In TIMESTAMP columns that JSON and CSV readers fill, the files' text is checked before anything is sent (sources/files/).

The same walk finds each `to_json` for map_keys.py. As in plan_checks.py the plan is reached through py4j, by Spark's internal
API; tests check it against the pinned pyspark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import _parse_datatype_json_string

from eosingest.errors import SpecError
from eosingest.spark.map_keys import refuse_unwritable_argument, refuse_unwritable_keys
from eosingest.spark.parsed_times import PARSERS, Search, UnsearchableError, no_date, search_of

NO_DATE = no_date("^")
NULLS = "__eosingest_nulls"  # a struct of columns that are not read (python_scan.py): all its fields are null
_SAID = "a time without a date, which Spark would take for today's"
_IN_A_TEXT = (
    "the text may have a time without a date, which Spark would take for today's"
    " (read the field as STRING, or set timestampFormat): "
)
_SPECIAL = re.compile(r"\s*(now|today|tomorrow|yesterday)\b.*", re.IGNORECASE | re.DOTALL)
_OF_THE_DAY = "depends on the day of the run, so a retry would send other bytes"
# The result of these functions does not depend on the date of a time.
_DATELESS = frozenset({"Hour", "Minute", "Second", "SecondWithFraction"})
# What Spark takes a name for of which there is no column, or none in this case: spec/expressions.py does not find all.
_OF_THE_SESSION = frozenset(
    {"CurrentUser", "SessionUser", "CurrentTimestamp", "Now", "CurrentDate", "LocalTimestamp", "CurrentTime"}
)
_TO_JSON = ".StructsToJsonEvaluator"  # `to_json`, once Spark has replaced the function
_TIMES = ("timestamp", "timestamp_ntz", "date")


def guarded(frame: DataFrame) -> DataFrame:
    """Return the frame with a guard in every cast of a string to TIMESTAMP, which fails for a string without a date.

    Raises SpecError for a constant whose time depends on when it is read, for a cast that cannot be guarded, and for map
    keys that map_keys.py refuses.
    """
    jvm: Any = frame.sparkSession._jvm
    analyzed = frame._jdf.queryExecution().analyzed()
    plan = jvm.org.apache.spark.sql.catalyst.optimizer.ReplaceExpressions.apply(analyzed)
    found = _Guards(frame.sparkSession)
    guarded_plan = found.of_plan(plan)
    if not found.made:
        return frame
    dataset = jvm.org.apache.spark.sql.classic.Dataset.ofRows(frame.sparkSession._jsparkSession, guarded_plan)
    return DataFrame(dataset, frame.sparkSession)


class _Guards:
    """Walks a logical plan and adds guards to its expressions; `made` counts them."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark, jvm = spark, cast(Any, spark._jvm)
        self._jvm = jvm
        self._expressions = jvm.org.apache.spark.sql.catalyst.expressions
        self.made = 0

    def of_plan(self, node: Any) -> Any:
        below = [self.of_plan(child) for child in _each(node.children())]
        logical = self._jvm.org.apache.spark.sql.catalyst.plans.logical
        before = self.made
        expressions = node.expressions()
        for computed in _but_nulls(expressions.diff(node.output())):  # plain columns have no cast, and may be thousands
            self._of(computed)
        if self.made == before:
            return node.withNewChildren(self._seq(below)) if self.made and below else node
        mine = [self._of(expression) for expression in _each(expressions)]
        kind = node.getClass().getSimpleName()
        if kind == "Project":
            return logical.Project(self._seq(mine), below[0])
        if kind == "Filter":
            return logical.Filter(mine[0], below[0])
        raise _unguarded("inside a generator such as explode", "cast in transform.select, in a separate expression")

    def _of(self, expression: Any, parent: str = "") -> Any:
        kind = expression.getClass().getSimpleName()
        if kind in ("AttributeReference", "Literal"):
            return expression
        if kind in _OF_THE_SESSION:
            raise SpecError(
                f"a name is taken for the function {expression.prettyName()}(), as there is no column of exactly this name",
                code="bad-expression",
                hint="write the column's name as the data has it",
            )
        if kind == "CreateNamedStruct" and expression.valExprs().diff(expression.references().toSeq()).isEmpty():
            return expression  # a struct of columns, such as struct(*)
        children = list(_each(expression.children()))
        mine = [self._of(child, kind) for child in children]
        made = any(one is not other for one, other in zip(mine, children, strict=True))
        if kind == "Cast" and expression.dataType().simpleString() in _TIMES:
            guard = self._guarded_cast(expression, mine[0], parent)
            made, mine = made or guard is not None, mine if guard is None else [guard]
        elif kind in ("Cast", "VariantGet"):
            _refuse_nested(kind, children[0].dataType().simpleString(), expression.dataType().simpleString())
        elif kind == "Invoke" and children[0].dataType().simpleString().endswith(_TO_JSON):
            refuse_unwritable_keys(_parse_datatype_json_string(children[1].dataType().json()))
        elif kind == "FormatString":
            for child in children[1:]:
                refuse_unwritable_argument(_parse_datatype_json_string(child.dataType().json()))
        elif kind in PARSERS and (search := self._search(expression)) is not None:
            made, mine = True, [self._stopping(mine[0], search)]
        return expression.withNewChildren(self._seq(mine)) if made else expression

    def _guarded_cast(self, cast: Any, child: Any, parent: str) -> Any | None:
        """Return the guarded expression to cast in place of `child`; None if the cast needs no guard."""
        from_, to = cast.child().dataType().simpleString(), cast.dataType().simpleString()
        if from_ == "variant" and to == "timestamp":
            raise _unguarded("from VARIANT", "CAST(CAST(… AS STRING) AS TIMESTAMP)")
        if from_.startswith("time(") and to != "date":
            raise _unguarded("from TIME", "write CAST(day || ' ' || CAST(… AS STRING) AS TIMESTAMP)")
        if from_ != "string":
            return None
        if cast.foldable():
            _refuse_constant(_constant(cast.child()), to)
            return None
        if to != "timestamp" or parent in _DATELESS:
            return None
        return self._marked(child)

    def _marked(self, text: Any) -> Any:
        """Return the string, with a prefix if it has no date. No cast accepts the prefix: it fails, and TRY_CAST gives null."""
        self.made += 1
        marked = self._expressions.Concat(self._seq([self._literal(f"{_SAID}: ", text.dataType()), text]))
        return self._expressions.If(self._matches(text, NO_DATE), marked, text)

    def _search(self, parser: Any) -> Search | None:
        try:
            return search_of(parser, self._spark)
        except UnsearchableError as error:
            raise _unguarded(f"by {parser.prettyName()} {error}", "read the field as STRING, and CAST it") from None

    def _stopping(self, text: Any, search: Search) -> Any:
        """Return the string with a check that raises if it has such a time: a parser would give null for other text."""
        self.made += 1
        said = self._expressions.Concat(self._seq([self._literal(_IN_A_TEXT, text.dataType()), text]))
        untyped = self._expressions.RaiseError(said)
        stop = self._expressions.RaiseError(untyped.errorClass(), untyped.errorParms(), text.dataType())
        looked_in = text
        if search.removed is not None:
            removed, kept = (self._literal(part, text.dataType()) for part in (search.removed, search.kept))
            looked_in = self._expressions.RegExpReplace(text, removed, kept)
        return self._expressions.If(self._matches(looked_in, search.found), stop, text)

    def _matches(self, text: Any, pattern: str) -> Any:
        return self._expressions.RLike(text, self._literal(pattern, text.dataType()))

    def _literal(self, text: str, kind: Any) -> Any:
        return self._expressions.Literal(self._jvm.org.apache.spark.unsafe.types.UTF8String.fromString(text), kind)

    def _seq(self, items: list[Any]) -> Any:
        return self._jvm.PythonUtils.toSeq(items)


def _but_nulls(sequence: Any) -> Iterator[Any]:
    """Yield the expressions that are no field of NULLS; these may be thousands, and their texts are one call."""
    texts = str(sequence.mkString("\0")).split("\0")
    skipped = [text.startswith(f"{NULLS}#") for text in texts] if len(texts) == sequence.size() else []
    return (sequence.apply(at) for at in range(sequence.size()) if not skipped or not skipped[at])


def _each(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(index) for index in range(sequence.size()))


def _constant(expression: Any) -> str | None:
    try:
        value = expression.eval(None)
    except Exception as error:
        raise SpecError(
            f"the constant {expression.toString()} is cast to a time, and its value cannot be known before the run",
            code="not-deterministic",
            hint="write the time itself, or hand it in as '${param:name}'",
        ) from error
    return None if value is None else str(value if isinstance(value, str) else value.toString())


def _refuse_constant(text: str | None, to: str) -> None:
    if text is None:
        return
    if _SPECIAL.fullmatch(text) or (to == "timestamp" and re.match(NO_DATE, text)):
        shown = f"'{text.strip()}'"
        raise SpecError(
            f"transform or record casts {shown} to {to.upper()}: that {_OF_THE_DAY}",
            code="not-deterministic",
            hint="hand the time in: TIMESTAMP '${param:time}' and --param time=…;"
            f" if the text is meant: CAST({shown} AS STRING)",
        )


def _refuse_nested(kind: str, from_: str, to: str) -> None:
    if not re.search(r"\btimestamp\b", to):
        return
    if kind == "VariantGet" or "variant" in from_:
        raise _unguarded("from VARIANT", "take it out as STRING and CAST(… AS TIMESTAMP)")
    if from_ != "string" and re.search(r"\bstring\b", from_):
        raise _unguarded(f"inside {from_}", "cast each of its parts: transform(list, x -> CAST(x AS TIMESTAMP))")


def _unguarded(where: str, instead: str) -> SpecError:
    return SpecError(
        f"text is cast to TIMESTAMP {where}: a text without a date, 10:30, would become that time of today",
        code="not-deterministic",
        hint=f"a retried split must give the same bytes again; {instead}",
    )
