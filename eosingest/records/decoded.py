"""Decodes encoded keys and values to JSON, for display: with fastavro, which did not encode them."""

from __future__ import annotations

import base64
import io
import json
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

from eosingest.records.encoding import JSON, PREFIX_BYTES, Encoding


def decoded(encoding: Encoding, data: bytes | None) -> str | None:
    """Return a key or a value as JSON text; None for null. Numbers that JSON would not keep are strings, bytes are Base64."""
    if data is None:
        return None
    if encoding.kind == JSON:
        return data[PREFIX_BYTES:].decode()
    import fastavro

    schema = fastavro.parse_schema(json.loads(encoding.schema))
    stream = io.BytesIO(data[PREFIX_BYTES:])
    value = fastavro.schemaless_reader(stream, schema, None)
    if stream.read(1):
        raise ValueError("bytes follow the datum")
    return json.dumps(_plain(value), ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, (Decimal, UUID)):
        return str(value)
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    return value
