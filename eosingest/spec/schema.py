"""Generates the JSON Schema of a spec, for editors, from the model, so that the two cannot differ.

It is Draft 07 without `$ref`, which Taplo and other TOML language servers read; they show the descriptions on hover.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from eosingest.spec.model import Spec
from eosingest.spec.sources import source_tables

DRAFT = "http://json-schema.org/draft-07/schema#"
_REFERENCE: dict[str, Any] = {"type": "string", "pattern": r"\$\{"}


def json_schema() -> dict[str, Any]:
    """Return the schema, with the keys as in TOML."""
    schema = _plain_of(Spec)
    kinds = [_plain_of(table) for table in source_tables()]
    described = {"description": schema["properties"]["source"]["description"]}
    schema["properties"]["source"] = kinds[0] if len(kinds) == 1 else {"oneOf": kinds, **described}
    return {"$schema": DRAFT, "title": "eosingest job spec", **schema}


def _plain_of(model: type[BaseModel]) -> dict[str, Any]:
    raw = model.model_json_schema(by_alias=True)
    plain: dict[str, Any] = _plain(raw, raw.get("$defs", {}))
    plain.pop("$defs", None)
    return plain


def _plain(node: Any, definitions: dict[str, Any]) -> Any:
    """Return the schema with each `$ref` replaced by its target, without pydantic's titles, and with `${…}` allowed."""
    if isinstance(node, list):
        return [_plain(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        target = definitions[node["$ref"].rsplit("/", 1)[1]]
        node = {**target, **{key: value for key, value in node.items() if key != "$ref"}}
    plain: dict[str, Any] = {}
    for key, value in node.items():
        if key == "properties":
            plain[key] = {name: _plain(inner, definitions) for name, inner in value.items()}
        elif key not in ("title", "$defs") and not (key == "default" and value is None):
            plain[key] = value if key == "default" else _plain(value, definitions)
    return _without_null(_or_reference(plain))


def _or_reference(node: dict[str, Any]) -> dict[str, Any]:
    """Allow a `${…}` reference in place of a number or of certain strings: an editor does not know its value."""
    notes: dict[str, Any] = {key: node[key] for key in ("description", "default") if key in node}
    rule = {key: value for key, value in node.items() if key not in notes}
    if rule.get("pattern") == _REFERENCE["pattern"]:
        return node
    if "enum" in rule or "pattern" in rule or rule.get("type") in ("integer", "number"):
        return {"anyOf": [rule, _REFERENCE], **notes}
    return node


def _without_null(node: dict[str, Any]) -> dict[str, Any]:
    """Remove `null`, which TOML does not have, from the alternatives, and flatten nested alternatives."""
    if "anyOf" not in node:
        return node
    choices: list[Any] = []
    for choice in node["anyOf"]:
        inner = choice["anyOf"] if set(choice) == {"anyOf"} else [choice]
        choices += [each for each in inner if each != {"type": "null"} and each not in choices]
    rest = {key: value for key, value in node.items() if key != "anyOf"}
    return {**choices[0], **rest} if len(choices) == 1 else {"anyOf": choices, **rest}
