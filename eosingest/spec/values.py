"""Defines the types of values in a spec, with validators whose messages use the spec's words.

The keys in model.py have these types: pydantic calls the validators when the loader creates a Spec. References in a value are
resolved before.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from typing import Annotated, Any, Final, Literal, cast

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, WithJsonSchema

from eosingest.errors import SpecError
from eosingest.spec.expressions import unstable
from eosingest.spec.masters import check_master
from eosingest.spec.units import DURATION_PATTERN, SIZE_PATTERN, parse_duration, parse_size

IfRunning = Literal["fence", "fail", "skip"]
Boundary = Literal["limits", "job"]
OnChange = Literal["error", "reingest"]
UnknownFields = Literal["error", "ignore"]
Partitioner = Literal["random", "consistent", "consistent_random", "murmur2", "murmur2_random", "fnv1a", "fnv1a_random"]

# The row as JSON, with times to the microsecond.
ROW_AS_JSON: Final = (
    "to_json(struct(*), map('timestampFormat', 'yyyy-MM-dd\\'T\\'HH:mm:ss[.SSSSSS]XXX',"
    " 'timestampNTZFormat', 'yyyy-MM-dd\\'T\\'HH:mm:ss[.SSSSSS]'))"
)

_NAME_PATTERN = r"^[A-Za-z0-9._-]{1,100}$"
_TOPIC_PATTERN = r"^[A-Za-z0-9._-]{1,249}$"


def one_of(choices: object) -> BeforeValidator:
    """Return a validator for a choice (a Literal), whose message suggests a similar word, as pydantic's own does not."""
    words: tuple[str, ...] = cast(Any, choices).__args__
    return one_of_words(lambda: words)


def one_of_words(known: Callable[[], tuple[str, ...]]) -> BeforeValidator:
    """Return a validator like `one_of`'s for words that are known only when a value is checked."""

    def check(value: object) -> object:
        words = known()
        if value in words:
            return value
        close = difflib.get_close_matches(value.lower(), words, n=1) if isinstance(value, str) else []
        meant = f'; did you mean "{close[0]}"?' if close else ""
        raise ValueError(f"must be one of {', '.join(words)}{meant}")

    return BeforeValidator(check)


def _check_name(value: str) -> str:
    if not re.fullmatch(_NAME_PATTERN, value):
        raise ValueError("must be 1 to 100 of the characters A-Z a-z 0-9 . _ - (it becomes part of transactional ids)")
    return value


def _check_topic(value: str) -> str:
    if not re.fullmatch(_TOPIC_PATTERN, value) or value in (".", ".."):
        raise ValueError("not a topic name: 1 to 249 of the characters A-Z a-z 0-9 . _ -")
    return value


def _check_not_empty(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be empty")
    return value


def _check_prefix(value: str) -> str:
    if len(value) > 200 or not value.isprintable():
        raise ValueError("must be at most 200 printable characters")
    return value


def _check_expression(value: str) -> str:
    try:
        problems = unstable(_check_not_empty(value))
    except SpecError as error:
        raise ValueError(error.message) from None
    if problems:
        raise ValueError("; ".join(problems))
    return value


def _check_count(value: object) -> object:
    """Accept whole numbers, and strings of digits, which references give; neither `true` nor `"1_000"`."""
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]+", value.strip()):
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("must be a whole number")
    return value


def _sorted(headers: dict[str, str]) -> dict[str, str]:
    if any("\0" in name for name in headers):
        raise ValueError("a header's name has the character NUL, at which librdkafka would end it")
    return dict(sorted(headers.items()))


Name = Annotated[str, AfterValidator(_check_name), WithJsonSchema({"type": "string", "pattern": _NAME_PATTERN})]
Prefix = Annotated[str, AfterValidator(_check_prefix)]
Master = Annotated[str, AfterValidator(check_master)]
Text = Annotated[str, AfterValidator(_check_not_empty)]
Expression = Annotated[str, AfterValidator(_check_expression)]
Headers = Annotated[dict[Text, Expression], AfterValidator(_sorted)]
# Tags are no keys of a spec: the loader leaves them out of the paths of problems.
TAGS = ("[table]", "[column]")
HeadersOrColumn = Annotated[
    Annotated[Headers, Tag(TAGS[0])] | Annotated[Expression, Tag(TAGS[1])],
    Discriminator(lambda value: TAGS[isinstance(value, str)]),
]
Topic = Annotated[str, AfterValidator(_check_topic), WithJsonSchema({"type": "string", "pattern": _TOPIC_PATTERN})]
Count = Annotated[int, BeforeValidator(_check_count)]
Size = Annotated[
    int,
    BeforeValidator(parse_size),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": SIZE_PATTERN}]}),
]
Duration = Annotated[
    float,
    BeforeValidator(parse_duration),
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": DURATION_PATTERN}]}),
]
Paths = Annotated[
    tuple[Text, ...],
    BeforeValidator(lambda value: (value,) if isinstance(value, str) else value),
    Field(min_length=1),
    WithJsonSchema(
        {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]},
    ),
]
_FLAT_VALUE = {"type": ["string", "number", "boolean", "object"]}
Flat = Annotated[dict[str, str], WithJsonSchema({"type": "object", "additionalProperties": _FLAT_VALUE})]
