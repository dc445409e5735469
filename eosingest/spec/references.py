"""Resolves the references `${param:x}`, `${env:X}`, `${file:path}` in any string of the spec; `$${` is a literal `${`.

Used when a spec is loaded, for keys that hold no secrets, and by `resolve_properties`, on use, for keys that may hold them.
The value of a reference is used literally: references in it are not resolved, and it is never printed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

# The literal comes first: `$${env:X}` must not match as `$` and a reference. A malformed reference, without colon or closing
# brace, matches too, so that it is reported instead of being taken for text.
_REFERENCE = re.compile(r"(?P<literal>\$\$\{)|\$\{(?P<kind>[a-z]*)(?P<colon>:?)(?P<name>[^{}]*)(?P<close>\}?)")


class UnresolvedError(ValueError):
    """One or more references in a string have no value; the message names them, never a value."""


class References:
    """Resolves references against the given parameters, the environment and files relative to the spec's folder."""

    def __init__(self, params: Mapping[str, str], directory: Path, environ: Mapping[str, str] | None = None) -> None:
        self._params = params
        self._directory = directory
        self._environ = os.environ if environ is None else environ
        self.used_params: set[str] = set()

    def resolve(self, text: str) -> str:
        """Return the text with every reference replaced. Raises UnresolvedError that names all references without a value."""
        problems: list[str] = []

        def replace(match: re.Match[str]) -> str:
            if match["literal"]:
                return "${"
            try:
                return self._value(match)
            except UnresolvedError as error:
                problems.append(str(error))
                return ""

        resolved = _REFERENCE.sub(replace, text)
        if problems:
            raise UnresolvedError("; ".join(problems))
        return resolved

    def _value(self, match: re.Match[str]) -> str:
        kind, name = match["kind"], match["name"]
        if not (match["colon"] and match["close"] and name) or kind not in ("param", "env", "file"):
            raise UnresolvedError(
                'a reference is ${param:name}, ${env:NAME} or ${file:path}; for a literal "${" write "$${"'
            )
        if kind == "file":
            return self._file(name)
        if kind == "env":
            if name not in self._environ:
                raise UnresolvedError(f"${{env:{name}}}: the environment variable is not set")
            return self._environ[name]
        self.used_params.add(name)
        if name not in self._params:
            raise UnresolvedError(f"${{param:{name}}}: the parameter is not given; add --param {name}=…")
        return self._params[name]

    def _file(self, name: str) -> str:
        try:
            return (self._directory / name).read_text(encoding="utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            reason = "it is not UTF-8 text"
        except (OSError, ValueError) as error:
            reason = (getattr(error, "strerror", None) or "it cannot be read").lower()
        raise UnresolvedError(f"${{file:{name}}}: the file cannot be read: {reason}")


def references_in(text: str) -> list[tuple[str, str]]:
    """Return kind and name of each reference in a text, as written; malformed ones too."""
    return [(match["kind"], match["name"]) for match in _REFERENCE.finditer(text) if not match["literal"]]


def leading_reference(text: str) -> str | None:
    """Return the reference with which a text begins, as written, or None. An escaped `$${` is not a reference."""
    match = _REFERENCE.match(text)
    return match[0] if match and not match["literal"] else None
