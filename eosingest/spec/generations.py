"""Generations of defaults: the defaults changed once, and a job that has sent something keeps those that it began with.

A spec is loaded with the newest generation, or with the one that it names; the control record pins a job's generation
(docs/protocol.md, What is pinned).

| generation | `escape` of csv | `record.value` where the spec has none | columns of `k=v` folders without a type |
|---|---|---|---|
| 1 | a backslash, as Spark has it | `to_json(struct(*))`: times to the millisecond | inferred from pending folders |
| 2 | the quote itself, doubled, as RFC 4180 has it | the same, with times to the microsecond | strings |
"""

from __future__ import annotations

from typing import Final

FIRST: Final = 1  # that of control records that name none
NEWEST: Final = 2
KNOWN: Final = range(FIRST, NEWEST + 1)

_VALUES = {
    1: "to_json(struct(*))",
    2: "to_json(struct(*), map('timestampFormat', 'yyyy-MM-dd\\'T\\'HH:mm:ss[.SSSSSS]XXX',"
    " 'timestampNTZFormat', 'yyyy-MM-dd\\'T\\'HH:mm:ss[.SSSSSS]'))",
}


def default_value(generation: int) -> str:
    """Return the default of `record.value`: the row as JSON. A kind of source may have another default."""
    return _VALUES[generation]


def spark_conf(generation: int) -> dict[str, str]:
    """Return the generation's Spark settings; the spec's own override them."""
    return {"spark.sql.sources.partitionColumnTypeInference.enabled": "true"} if generation == 1 else {}
