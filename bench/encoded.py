"""Whole commands: values as JSON and in Avro by a schema registry, beside Spark's own sink with `to_avro`.

    .venv/bin/python -m bench.encoded [--rows 2000000] [--rounds 5] [--works parquet json]

In turns, each to a topic of its own, after a round that is not counted; the registry is a real one. Spark's job is given the
schema and its id by hand, asks no registry, and sends at least once.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from bench.brokers import running_broker
from bench.contenders import ROOT, SPARK, Order, as_spark
from bench.environments import jars, python_with
from bench.turns import Turn, in_turns, run_eosingest
from bench.works import WORKS, Work
from tests.support.registry import SchemaRegistry, running

_TEXT, _LONG = ("string", "long")
_FIELDS: dict[str, dict[str, str]] = {
    "json": {"id": _LONG, "user": _TEXT, "amount": "double", "note": _TEXT},
    "parquet": {"id": _LONG, "user": _TEXT, "note": _TEXT},
}
_ID = 1  # in what Spark's job sends


def schema_of(work: Work) -> str:
    """Return the schema in which each field may be null, as columns may."""
    fields = [{"name": name, "type": ["null", kind], "default": None} for name, kind in _FIELDS[work.name].items()]
    return json.dumps({"type": "record", "name": "row", "fields": fields})


def ours(home: Path, order: Order) -> None:
    """Run `eosingest run`, values as JSON."""
    run_eosingest(home, "run", str(order.spec()))


def ours_in_avro(home: Path, registry: SchemaRegistry, order: Order) -> None:
    """Run `eosingest run`, values in Avro; the subject is a new one each time."""
    spec = order.spec()
    (spec.parent / "row.avsc").write_text(schema_of(order.work))
    columns = f"struct({', '.join(_FIELDS[order.work.name])})"
    avro = f'schema = "row.avsc", columns = "{columns}", registry = {{ url = "{registry.url}" }}'
    text = spec.read_text()
    line = f'value = "{order.work.value}"'
    assert line in text
    spec.write_text(text.replace(line, f'value.avro = {{ subject = "{order.topic}", {avro} }}'))
    run_eosingest(home, "run", str(spec))


def sparks(order: Order) -> None:
    """Run the Spark job, values in Avro."""
    struct = f"struct({', '.join(_FIELDS[order.work.name])})"
    value = f"concat(X'{_ID:010x}', to_avro({struct}, '{schema_of(order.work)}'))"
    told: dict[str, Any] = as_spark(replace(order, work=replace(order.work, value=value)))
    libs = jars(f"org.apache.spark:spark-sql-kafka-0-10_2.13:{SPARK}", f"org.apache.spark:spark-avro_2.13:{SPARK}")
    command = [str(python_with(f"pyspark=={SPARK}")), str(ROOT / "bench/spark_rounds.py"), str(libs)]
    environment = {**os.environ, "PYTHONPATH": ""}
    subprocess.run(command, input=json.dumps(told).encode() + b"\n", check=True, capture_output=True, env=environment)


def main() -> None:
    """Measure the works one by one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--works", nargs="*", default=list(_FIELDS), choices=list(_FIELDS))
    arguments = parser.parse_args()
    with running_broker() as (folder, up), running(folder) as registry:
        home = folder / "home"
        run_eosingest(home, "prepare")
        turns: dict[str, Turn] = {
            "eosingest run, to_json": partial(ours, home),
            "eosingest run, Avro": partial(ours_in_avro, home, registry),
            "a Spark job with Spark's sink, to_avro": sparks,
        }
        for work in arguments.works:
            made, rows = WORKS[work], arguments.rows
            contenders = {name: (made, turn) for name, turn in turns.items()}
            rounds, counted = arguments.rounds, made.sent(rows)
            in_turns(work, contenders, folder, up.bootstrap_servers, rows=rows, rounds=rounds, counted=counted)


if __name__ == "__main__":
    main()
