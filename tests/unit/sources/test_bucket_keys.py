"""Which objects a path stands for: keys keep every character, and none is left out without being counted."""

from __future__ import annotations

import pytest

from eosingest.errors import SpecError
from eosingest.sources.files.listing import keys

ODD = [
    "a b",
    "p%20q",
    "x+y",
    "ü€😀",
    "h#h",
    "n\nl",
    "q?w",
    "back\\s",
    "d//e",
    "../z",
    "./y",
    "/slash",
    "t\t",
    "w*",
    "[1]",
]


def named(pattern: str, *found: str, recursive: bool = False) -> list[str]:
    return keys.choose(pattern, found, recursive=recursive).files


@pytest.mark.parametrize(
    ("pattern", "found", "expected"),
    [
        ("*.jsonl", ["a.jsonl", "b.csv", "f/c.jsonl"], ["a.jsonl"]),
        ("f/*", ["f/a", "f/b", "g/a", "f"], ["f/a", "f/b"]),
        ("f", ["f/a", "f2/a", "f/g/b"], ["f/a"]),
        ("f", ["f", "f/a"], ["f", "f/a"]),
        ("*", ["x.jsonl/part-0", "x.jsonl/_SUCCESS", "y"], ["x.jsonl/part-0", "y"]),
        ("d", ["d/k=1/a", "d/k=2/b", "d/c"], ["d/c", "d/k=1/a", "d/k=2/b"]),
        ("{a,b/c}/*", ["a/1", "b/c/2", "b/3"], ["a/1", "b/c/2"]),
        ("x[12]", ["x1", "x2", "x3"], ["x1", "x2"]),
        ("x[12]", ["x[12]", "x1"], ["x[12]"]),
        (r"w\*", ["w*", "wx"], ["w*"]),
        ("a//*", ["a//b", "a/b"], ["a//b"]),
        ("?", ["a", "ü", "😀", "ab"], ["a", "ü", "😀"]),
        ("", ["a", "f/b"], ["a"]),
        ("_o/*", ["_o/a", "_p/a"], ["_o/a"]),
    ],
)
def test_what_a_path_names(pattern: str, found: list[str], expected: list[str]) -> None:
    assert named(pattern, *found) == expected


def test_a_tree_has_every_key_however_odd() -> None:
    """Breaks when a name that a disk would not have is lost; `.` and `..` begin with a dot, and count as hidden."""
    found = keys.choose("f", [f"f/{name}" for name in ODD], recursive=True)
    shown = [f"f/{name}" for name in ODD if not name.startswith(".")]
    assert found.files == sorted(shown)
    assert found.hidden == len(ODD) - len(shown)


def test_what_is_left_out_is_counted() -> None:
    found = keys.choose("*", ["_a", ".b", "_c/d", "e/_f", "g/h/i", "j._COPYING_"], recursive=False)
    assert (found.files, found.hidden, found.too_deep) == ([], 5, 1)


@pytest.mark.parametrize("pattern", ["a/**/b", "a[", "{a"])
def test_a_malformed_glob(pattern: str) -> None:
    with pytest.raises(SpecError):
        named(pattern, "a/b")


@pytest.mark.parametrize(
    ("pattern", "expected"), [("a/b*/c", "a/b"), ("a{b,c}", "a"), (r"a\*", "a"), ("a/b", "a/b"), ("", "")]
)
def test_the_prefix_that_is_listed(pattern: str, expected: str) -> None:
    assert keys.plain_beginning(pattern) == expected
