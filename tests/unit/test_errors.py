"""The error tree: exit codes as documented, pickling with every field, and which code wins."""

from __future__ import annotations

import itertools
import pickle
import re
from typing import Any

import pytest

from eosingest import errors
from eosingest.errors import EosingestError, InterruptedRunError, SpecError, listed, worst_exit_code
from eosingest.kafka.ports import FailureKind, KafkaFailure
from eosingest.protocol.task import AttemptLostError

CLASSES: list[type[EosingestError]] = [
    value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, EosingestError)
]
ARGUMENTS: dict[type[EosingestError], dict[str, Any]] = {
    InterruptedRunError: {"signal_number": 15},
    SpecError: {"problems": ["line 3: no such key", "ünï"]},
}

DOCUMENTED = {
    "EosingestError": 1,
    "SpecError": 2,
    "IncompleteError": 3,
    "MismatchError": 4,
    "TemporaryError": 5,
    "FencedError": 6,
    "FatalError": 7,
    "NoSuchJobError": 10,
    "ActiveRunError": 11,
    "ChangedError": 12,
    "InterruptedRunError": 128 + 15,
}


def make(error_class: type[EosingestError], **more: str) -> EosingestError:
    return error_class("what happened", **ARGUMENTS.get(error_class, {}), **more)


def test_every_class_has_the_exit_code_of_the_readme() -> None:
    assert {cls.__name__: make(cls).exit_code for cls in CLASSES} == DOCUMENTED


def test_no_two_classes_share_exit_code_or_word() -> None:
    made = [make(cls) for cls in CLASSES]
    assert len({error.exit_code for error in made}) == len(made)
    assert len({error.code for error in made}) == len(made)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", error.code) for error in made)


def test_the_drawing_on_top_of_the_module_is_the_tree() -> None:
    drawn = dict(re.findall(r"[─ ] ?(\w+Error) +(\d+\S*)", errors.__doc__ or ""))
    assert drawn == {**{name: str(code) for name, code in DOCUMENTED.items()}, "InterruptedRunError": "128+N"}


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("error_class", [*CLASSES, AttemptLostError])
def test_pickles_with_every_field(error_class: type[EosingestError], protocol: int) -> None:
    error = make(error_class, code="some-word", hint="do this next")
    again = pickle.loads(pickle.dumps(error, protocol))
    assert type(again) is error_class
    assert again.__dict__ == error.__dict__
    assert (str(again), again.args, again.exit_code) == (str(error), error.args, error.exit_code)
    assert (again.message, again.code, again.hint) == ("what happened", "some-word", "do this next")


def test_fields_of_single_classes_survive() -> None:
    spec = pickle.loads(pickle.dumps(make(SpecError)))
    assert spec.problems == ["line 3: no such key", "ünï"]
    interrupted = pickle.loads(pickle.dumps(InterruptedRunError("stopped", signal_number=2)))
    assert (interrupted.signal_number, interrupted.exit_code) == (2, 130)


def test_problems_are_a_list_of_the_errors_own() -> None:
    problems = iter(["a", "b"])
    assert SpecError("two", problems=problems).problems == ["a", "b"]
    assert SpecError("none").problems == []


def test_without_a_code_the_class_gives_its_word() -> None:
    assert errors.FatalError("x").code == "fatal"
    assert errors.FatalError("x", code="").code == "fatal"
    assert errors.FatalError("x", code="topic-missing").code == "topic-missing"


def test_kafka_failure_pickles() -> None:
    failure = pickle.loads(pickle.dumps(KafkaFailure(FailureKind.FENCED, "_FENCED", "by another")))
    assert (failure.kind, failure.code, failure.detail) == (FailureKind.FENCED, "_FENCED", "by another")
    assert str(failure) == "_FENCED: by another"


# When several apply: signal > 6 > 7 > 12 > 4 > 3 > 5; a bug comes right behind the signal.
ORDER = [143, 1, 6, 7, 12, 4, 3, 5, 0]


@pytest.mark.parametrize(("stronger", "weaker"), list(itertools.combinations(ORDER, 2)))
def test_precedence_of_two(stronger: int, weaker: int) -> None:
    assert worst_exit_code([stronger, weaker]) == stronger
    assert worst_exit_code([weaker, stronger, weaker]) == stronger


@pytest.mark.parametrize(
    ("codes", "worst"),
    [
        ([], 0),
        ([0, 0], 0),
        ([3], 3),
        ([5, 3, 12, 7], 7),
        ([5, 3, 12, 7, 6, 130], 130),
        ([2], 2),
        ([10, 3], 3),
        ([130, 143], 143),
        ([128], 128),
    ],
)
def test_precedence(codes: list[int], worst: int) -> None:
    assert worst_exit_code(codes) == worst
    assert worst_exit_code(iter(reversed(codes))) == worst


def test_of_a_long_list_the_first_are_named_and_the_rest_counted() -> None:
    """Breaks when a message grows with the files, or when one is neither named nor counted."""
    texts = [f"file {{{number}}}" for number in range(1_003)]
    assert listed(texts[:3], 3) == "file {0}, file {1}, file {2}"
    assert listed(texts, 2) == "file {0}, file {1} and 1001 more"
    assert listed(texts, 1, separator="; ", rest="; and {:,} more files") == "file {0}; and 1,002 more files"
    assert listed([], 3) == ""
