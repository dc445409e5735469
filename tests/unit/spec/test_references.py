"""References: what each kind gives, the escape, and errors that name the reference and never a value."""

from __future__ import annotations

from pathlib import Path

import pytest

from eosingest.spec.references import References, UnresolvedError, leading_reference


@pytest.fixture
def references(tmp_path: Path) -> References:
    (tmp_path / "secret").write_text("s3cret\n")
    (tmp_path / "two").write_text("a\nb\r\n\n")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    return References({"date": "2026-11-20", "odd": "${env:HOME}"}, tmp_path, {"USER": "me", "EMPTY": ""})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("data/${param:date}/*", "data/2026-11-20/*"),
        ("${env:USER}@${param:date}", "me@2026-11-20"),
        ("${env:EMPTY}", ""),
        ("${file:secret}", "s3cret"),
        ("${file:two}", "a\nb"),
        ("$${env:USER}", "${env:USER}"),
        ("$$", "$$"),
        ("^a$|$b", "^a$|$b"),
        ("${param:odd}", "${env:HOME}"),
    ],
)
def test_references_are_replaced_once(references: References, text: str, expected: str) -> None:
    assert references.resolve(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("${env:NOPE}", "${env:NOPE}: the environment variable is not set"),
        ("${param:nope}", "add --param nope=…"),
        ("${file:nope}", "${file:nope}: the file cannot be read: no such file"),
        ("${file:binary}", "not UTF-8"),
        ("${param.date}", "a reference is ${param:name}"),
        ("${HOME}", "a reference is ${param:name}"),
        ("${env:}", "a reference is ${param:name}"),
        ("${env:USER", "a reference is ${param:name}"),
        ("${vault:x}", "a reference is ${param:name}"),
    ],
)
def test_what_has_no_value_is_named(references: References, text: str, message: str) -> None:
    with pytest.raises(UnresolvedError) as caught:
        references.resolve(f"sekret {text}")
    assert message in str(caught.value)
    assert "sekret" not in str(caught.value)


def test_all_unset_references_of_a_string_are_named(references: References) -> None:
    with pytest.raises(UnresolvedError, match=r"A.*not set.*B.*not set"):
        references.resolve("${env:A}${env:B}")


def test_used_parameters_are_remembered(references: References) -> None:
    references.resolve("${param:date} $${param:odd}")
    assert references.used_params == {"date"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [("${env:D}/x", "${env:D}"), ("x/${env:D}", None), ("$${env:D}", None), ("", None), ("${param:a}", "${param:a}")],
)
def test_a_leading_reference_is_seen(text: str, expected: str | None) -> None:
    assert leading_reference(text) == expected
