"""Converts TOML to the frozen `Spec` of a job. The rules about a spec are here, except those of the kinds of source (sources/).

No other package parses TOML. `loader.py` loads a file; `model.py` has the keys. Names are imported on first use, so that
`eosingest.spec.expressions` and `.options`, which the Spark side needs, can be imported without pydantic.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eosingest.spec.digest import digest_parts
    from eosingest.spec.loader import load
    from eosingest.spec.model import (
        Create,
        Record,
        Sink,
        Spark,
        Spec,
        Transaction,
        Transform,
        resolve_properties,
    )
    from eosingest.spec.options import PROTECTED_SPARK_CONF, protects
    from eosingest.spec.schema import json_schema
    from eosingest.spec.template import TEMPLATE, job_name, spec_for, spec_for_table, spec_for_topic, toml_string

__all__ = [
    "PROTECTED_SPARK_CONF",
    "TEMPLATE",
    "Create",
    "Record",
    "Sink",
    "Spark",
    "Spec",
    "Transaction",
    "Transform",
    "digest_parts",
    "job_name",
    "json_schema",
    "load",
    "protects",
    "resolve_properties",
    "spec_for",
    "spec_for_table",
    "spec_for_topic",
    "toml_string",
]

_HOME = {
    **dict.fromkeys(("Create", "Record", "Sink", "Spark", "Spec", "Transaction", "Transform"), "model"),
    "resolve_properties": "model",
    **dict.fromkeys(("PROTECTED_SPARK_CONF", "protects"), "options"),
    **dict.fromkeys(
        ("TEMPLATE", "job_name", "spec_for", "spec_for_table", "spec_for_topic", "toml_string"), "template"
    ),
    "digest_parts": "digest",
    "json_schema": "schema",
    "load": "loader",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value
