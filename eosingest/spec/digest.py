"""What shapes the bytes, by meaning: the parts of the digest that is pinned while any split is half done.

Two specs that give the same records have the same parts, however they are written: defaults are filled in, white space
and comments dropped, aliases folded. Where files lie, how they are cut and where records go is not in it: source root,
split size and topic are pinned on their own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from eosingest.spec.expressions import Token, normalise, tokens
from eosingest.spec.model import Spec
from eosingest.spec.options import meaningful_options

_TYPES = {
    "INTEGER": "INT",
    "LONG": "BIGINT",
    "SHORT": "SMALLINT",
    "BYTE": "TINYINT",
    "REAL": "FLOAT",
    "DEC": "DECIMAL",
    "NUMERIC": "DECIMAL",
}
# Credentials shape no bytes: one that was renewed must not stop a half done job.
_CREDENTIAL = re.compile(r"secret|password|token|credential|access\.?key|account\.key|\.sas\.", re.IGNORECASE)


def digest_parts(spec: Spec) -> dict[str, str]:
    """Return the named parts of all that shapes the bytes, each as a normal form that is equal for equal meaning.

    Absent expressions are empty strings. The values may hold what references gave: hash them, do not print them.
    """
    source, record = spec.source, spec.record
    options = meaningful_options(source.format, source.options, has_schema=source.ddl is not None)
    return {
        "source.format": source.format,
        # Where it is not asked for there is no such part, as in records of earlier releases.
        **({"source.recursive": "true"} if source.recursive else {}),
        "source.schema": normalise_ddl(source.ddl or ""),
        "source.options": _json(options),
        "transform.where": normalise(spec.transform.where or ""),
        "transform.select": json.dumps([normalise(column) for column in spec.transform.select], ensure_ascii=False),
        "record.key": normalise(record.key or ""),
        "record.value": normalise(record.value),
        "record.headers": _json({name: normalise(expression) for name, expression in record.headers.items()}),
        "record.timestamp": normalise(record.timestamp or ""),
        "record.partition": normalise(record.partition or ""),
        "sink.partitioner": spec.sink.partitioner,
        "spark.conf": _json(_conf_that_shapes(spec.spark.conf)),
    }


def _json(table: Mapping[str, str]) -> str:
    return json.dumps(table, sort_keys=True, ensure_ascii=False)


def _conf_that_shapes(conf: Mapping[str, str]) -> dict[str, str]:
    return {
        key: value
        for key, value in conf.items()
        if key.startswith(("spark.sql.", "spark.hadoop.")) and not _CREDENTIAL.search(key)
    }


def normalise_ddl(ddl: str) -> str:
    """Return a schema in one spelling: types in upper case and by one name, `name: TYPE` as `name TYPE`.

    Names keep their case, because JSON fields and Parquet columns are told apart by it.
    """
    words: list[str] = []
    inside = ["struct"]  # what encloses the token: only in a struct does a comma begin a new name
    at_name = True
    for token in tokens(ddl):
        if token.text == "<":
            inside.append(words[-1].lower())
        elif token.text == "(":
            inside.append("(")
        elif token.text in (">", ")") and len(inside) > 1:
            inside.pop()
        if at_name and token.kind in ("word", "quoted"):
            words.append(_plain_name(token))
            at_name = False
            continue
        if token.text != ":":
            words.append(_TYPES.get(token.text.upper(), token.text.upper()) if token.kind == "word" else token.text)
        at_name = token.text in (",", "<") and inside[-1] == "struct"
    return " ".join(words)


def _plain_name(token: Token) -> str:
    inner = token.text.strip("`")
    return inner if re.fullmatch(r"\w+", inner) else token.text
