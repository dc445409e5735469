"""Computes the digest of a spec: all that shapes the records' bytes. Pinned from a job's first commit to its completion.

Specs that differ only in spelling have the same digest: defaults are filled in, white space and comments removed, aliases
replaced. Source root, split size and topic are not in it: they are pinned separately.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from eosingest.spec.encodings import LATEST, Encoded
from eosingest.spec.expressions import normalise
from eosingest.spec.model import Spec

# Credentials do not shape bytes: a renewed one must not stop an incomplete job.
_CREDENTIAL = re.compile(r"secret|password|token|credential|access\.?key|account\.key|\.sas\.", re.IGNORECASE)


def digest_parts(spec: Spec) -> dict[str, str]:
    """Return all that shapes the bytes, as named parts in a normal form, which is equal for equal meaning.

    An absent expression is an empty string. Values may contain secrets from references: hash them, do not print them.
    """
    record = spec.record
    return {
        **{f"source.{name}": text for name, text in spec.source.digest_parts().items()},
        "transform.where": normalise(spec.transform.where or ""),
        "transform.select": json.dumps([normalise(column) for column in spec.transform.select], ensure_ascii=False),
        "record.key": _bytes_of(record.key or "", spec.directory),
        "record.value": _bytes_of(record.value, spec.directory),
        "record.headers": _headers(record.headers),
        "record.timestamp": normalise(record.timestamp or ""),
        "record.partition": normalise(record.partition or ""),
        "sink.partitioner": spec.sink.partitioner,
        "spark.conf": _json(_conf_that_shapes(spec.spark.conf)),
    }


def _bytes_of(value: str | Encoded, folder: Path) -> str:
    """Return the normal form of a key or a value. The id of a schema is pinned in addition to the digest."""
    if isinstance(value, str):
        return normalise(value)
    part = value.by
    expression = "columns" if value.avro else "json"
    parts = {"subject": part.subject, "schema": part.text(folder) or LATEST, expression: normalise(part.expression)}
    return _json({f"{part.key}.{name}": text for name, text in parts.items()})


def _headers(headers: Mapping[str, str] | str) -> str:
    if isinstance(headers, str):
        return normalise(headers)
    return _json({name: normalise(expression) for name, expression in headers.items()})


def _json(table: Mapping[str, str]) -> str:
    return json.dumps(table, sort_keys=True, ensure_ascii=False)


def _conf_that_shapes(conf: Mapping[str, str]) -> dict[str, str]:
    return {
        key: value
        for key, value in conf.items()
        if key.startswith(("spark.sql.", "spark.hadoop.")) and not _CREDENTIAL.search(key)
    }
