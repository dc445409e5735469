"""Values in Avro read back by a reader that is none of ours: fastavro, by the schema that the registry has under their id."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

from fastavro import schemaless_reader

from tests.support.registry import SchemaRegistry


def avro_decoder(registry: SchemaRegistry, schema: Any) -> Callable[[bytes | None], bytes | None]:
    """Return what makes JSON of a framed value, or raises AssertionError where its id is not the schema's, or bytes are left.

    The registry is asked once for each id, so that it may be away later.
    """
    known: set[int] = set()

    def decode(value: bytes | None) -> bytes | None:
        if value is None:
            return None
        number = int.from_bytes(value[1:5], "big")
        assert value[0] == 0, f"P1: no frame: {value!r}"
        if number not in known:
            found = registry.schema(number)
            assert found == schema, f"P1: a record is by schema {number}, which is {found}"
            known.add(number)
        stream = io.BytesIO(value[5:])
        datum = schemaless_reader(stream, schema, None)
        assert not stream.read(), f"P1: bytes behind the datum: {value!r}"
        return json.dumps(datum).encode()

    return decode
