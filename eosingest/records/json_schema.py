"""Checks JSON by its schema: each record before it is sent, in the tasks, and in a preview.

Used by spark/worker.py and app/encodings.py. jsonschema-rs supports drafts 4 to 2020-12; a schema that names none is of the
last. Formats are asserted. Nothing is fetched: a schema must be self-contained. Needs the extra `eosingest[json-schema]`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from eosingest.errors import SpecError
from eosingest.records.encoding import PREFIX_BYTES


class JsonSchemaCheck:
    """Checks values by one schema. Raises SpecError if it is invalid; `named` is its name in that error."""

    def __init__(self, schema: str, named: str) -> None:
        import jsonschema_rs

        try:
            self._validator = jsonschema_rs.validator_for(
                json.loads(schema), mask="the value", validate_formats=True, offline=True
            )
        except ValueError as error:
            why = next(iter(str(error).splitlines()), "")
            raise SpecError(
                f"{named} is not a self-contained JSON Schema: {why}",
                code="bad-schema",
                hint="nothing was sent; correct the schema",
            ) from error

    def why_not(self, data: bytes | None) -> str | None:
        """Return why a framed record does not match the schema, without its values; None if it does, or is null."""
        if data is None:
            return None
        try:
            text = data[PREFIX_BYTES:].decode()
            value = json.loads(text, parse_constant=_refuse, object_pairs_hook=_each_once)
        except (ValueError, RecursionError) as error:
            return f"it is not JSON: {error}"
        try:
            if self._validator.is_valid(value):
                return None
            first = next(iter(self._validator.iter_errors(value)))
        except (ValueError, RecursionError) as error:  # half a surrogate pair, too deep
            return f"it cannot be compared with the schema: {error}"
        place = ".".join(str(part) for part in first.instance_path)
        return f"{place}: {first.message}" if place else str(first.message)


def checks_of(schemas: Mapping[str, str]) -> dict[str, JsonSchemaCheck]:
    """Return the checks by the schemas of `key` and `value`."""
    return {name: JsonSchemaCheck(schema, f"the schema of the {name}") for name, schema in schemas.items()}


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object. Raises ValueError for a repeated name: readers differ in which value they take."""
    made = dict(pairs)
    if len(made) < len(pairs):
        twice = next(name for number, (name, _) in enumerate(pairs) if name in dict(pairs[:number]))
        raise ValueError(f"{twice} appears twice")
    return made


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")
