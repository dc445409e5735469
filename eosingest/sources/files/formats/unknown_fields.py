"""Finds fields of JSON and XML that the schema does not name, before anything is sent: readers leave them out without a word.

For the inspection (inspection.py), if `source.unknown_fields` is "error". msgspec accepts nearly all lines of JSON; Python's
json parses the others, and the fields are named.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from eosingest.errors import SpecError, listed
from eosingest.sources.files.bytes.text_blocks import BadTextError
from eosingest.sources.files.formats.json_text import has_odd_name
from eosingest.spec.ddl import DdlError, Type, parse

_NAMED_AT_MOST = 10
_WAY_ON = 'name them in source.schema, or set source.unknown_fields = "ignore", which leaves them out of the records'
# The fields of a struct with the names in each; of an array or a map, in a tuple, the names in its values; None: any or none.
Names: TypeAlias = "dict[str, Names] | tuple[Names] | None"


@dataclass(frozen=True)
class KnownFields:
    """The fields that a schema names."""

    names: Names


def known_fields(ddl: str) -> KnownFields:
    """Return the fields that a schema names. Raises SpecError for one that is not understood without Spark."""
    try:
        return KnownFields(_names_of(Type("STRUCT", fields=parse(ddl))))
    except DdlError as error:
        raise SpecError(
            f"source.schema: {error}",
            code="bad-expression",
            hint='nothing was sent; write the type otherwise, or set source.unknown_fields = "ignore"',
        ) from None


def _names_of(kind: Type) -> Names:
    """Return the names of a type's fields."""
    if kind.name == "STRUCT":
        return {field.name: _names_of(field.type) for field in kind.fields}
    return None if kind.element is None else (_names_of(kind.element),)


class UnknownFields:
    """The fields that were found, by their paths from the row, with the line of the first one."""

    def __init__(self) -> None:
        self._names: dict[str, None] = {}
        self._line = 0

    def add(self, path: str, line: int) -> None:
        """Add a field."""
        self._line = self._line or line
        self._names[path] = None

    def refuse(self) -> None:
        """Raise BadTextError if a field was found."""
        if self._names:
            words = (
                "a field that source.schema does not name" if len(self._names) == 1 else "fields that it does not name"
            )
            message = f"{words}: {listed(list(self._names), _NAMED_AT_MOST)}"
            raise BadTextError(message, line=self._line, hint=_WAY_ON)


class JsonFields:
    """Compares the fields of JSON with the known ones."""

    def __init__(self, known: KnownFields) -> None:
        self._known = known
        self._found = UnknownFields()

    def in_record(self, record: Any, line: int) -> None:
        """Compare a record that begins in this line."""
        for path in _unknown(record, self._known.names, ""):
            self._found.add(path, line)

    def refuse(self) -> None:
        """See `UnknownFields.refuse`."""
        self._found.refuse()


def _unknown(value: Any, known: Names, path: str) -> Iterator[str]:
    if isinstance(known, tuple):
        for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from _unknown(each, known[0], path)
    elif known is not None and isinstance(value, dict):
        for name, inner in value.items():
            if name not in known:
                yield f"{path}{name}"
            elif (names := known[name]) is not None:
                yield from _unknown(inner, names, f"{path}{name}.")


def decoder_of(names: Names) -> msgspec.json.Decoder[Any]:
    """Return a decoder that rejects other fields, and JSON of another shape."""
    return msgspec.json.Decoder(_type_of(names))


def _type_of(names: Names) -> Any:
    if isinstance(names, dict) and has_odd_name(names):
        return None  # objects are rejected, and parsed by Python
    if isinstance(names, dict):
        places = {f"f{place}": name for place, name in enumerate(names)}
        fields = [(place, _type_of(names[name]), None) for place, name in places.items()]
        return msgspec.defstruct("Row", fields, rename=places, forbid_unknown_fields=True, gc=False) | None
    if isinstance(names, tuple):
        inner = _type_of(names[0])
        return list[inner] | dict[str, inner] | None  # type: ignore[valid-type]
    return msgspec.Raw
