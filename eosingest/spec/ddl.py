"""Normalises the spelling of a schema (Spark DDL) for the digest of a spec, without Spark."""

from __future__ import annotations

import re

from eosingest.spec.expressions import Token, tokens

_TYPES = {
    "INTEGER": "INT",
    "LONG": "BIGINT",
    "SHORT": "SMALLINT",
    "BYTE": "TINYINT",
    "REAL": "FLOAT",
    "DEC": "DECIMAL",
    "NUMERIC": "DECIMAL",
}


def normalise_ddl(ddl: str) -> str:
    """Return the schema in its normal form: types in upper case and without aliases, `name: TYPE` as `name TYPE`.

    Names keep their case, since the names of JSON fields and Parquet columns may differ in case only.
    """
    words: list[str] = []
    inside = ["struct"]  # the types around the token: only in a struct does a name follow a comma
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
