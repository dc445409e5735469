"""What shapes the bytes, by meaning: the parts of the digest that is pinned while any split is half done.

Two specs that give the same records have the same parts, however they are written: defaults are filled in, white space
and comments dropped, aliases folded. Where files lie, how they are cut and where records go is not in it: source root,
split size and topic are pinned on their own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from eosingest.spec.expressions import normalise
from eosingest.spec.model import Spec

# Credentials shape no bytes: one that was renewed must not stop a half done job.
_CREDENTIAL = re.compile(r"secret|password|token|credential|access\.?key|account\.key|\.sas\.", re.IGNORECASE)


def digest_parts(spec: Spec) -> dict[str, str]:
    """Return the named parts of all that shapes the bytes, each as a normal form that is equal for equal meaning.

    Absent expressions are empty strings. The values may hold what references gave: hash them, do not print them.
    """
    record = spec.record
    return {
        **{f"source.{name}": text for name, text in spec.source.digest_parts().items()},
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
