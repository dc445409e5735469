"""A table of PostgreSQL: `eosingest run` beside a Spark job (its JDBC reader, its Kafka sink), and beside Debezium's snapshot.

    .venv/bin/python -m bench.tables [--rows 2000000] [--rounds 5] [--only NAME …]

Rows of six columns, about 120 bytes as JSON, by a bigint key, in turns, each to a topic of its own; the first round is not
counted. `eosingest run` and the Spark job are whole commands, from start to exit, with `to_json(struct(*))` as the value, or of
a table whose one column beside the key is the document; the Connect worker of Debezium is warm and exactly-once, and its
figure goes from the connector's creation to the last append. "Sending" is from the first to the last append, by the broker.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench import topics
from bench.brokers import running_broker
from bench.connect_worker import Worker
from bench.contenders import KAFKA, LOG4J, PROPERTIES, ROOT, SINK, SPARK, as_toml
from bench.environments import jars, python_with
from bench.turns import measured, rotated, run_eosingest, table
from tests.support.postgres import PASSWORD, Postgres, running_postgres

DEBEZIUM = "3.0.0.Final"
DRIVER = "42.7.4"  # of JDBC
_ROUND_S = 1_200
_PARTS = 8  # ranges of the key that Spark reads
_FETCH = 10_000  # rows at once: the fastest of those that were tried
_DEBEZIUM = "Debezium"

SPEC = (
    """\
name = "{topic}"
[source]
format = "postgres"
{source}table = "{table}"
key = "id"
[record]
{key}value = "{value}"
"""
    + SINK
)
_FILL = """
insert into public.orders
select n, n % 10007, (n % 100000) / 100.0, timestamptz '2026-01-01' + n * interval '1 s', 'user-' || n % 977, repeat('x', 40)
from generate_series(1, {rows}) n
"""
_COLUMNS = "id bigint primary key, customer int, amount numeric(10,2), at timestamptz, name text, note text"
_DOCUMENTS = "insert into public.documents select id, row_to_json(o)::text from public.orders o"
# Table, value, key.
_ROWS = ("public.orders", "to_json(struct(*))", "CAST(id AS STRING)")
_ONE_COLUMN = ("public.documents", "document", None)

Turn = Callable[[str, str, int], None]


def fill(server: Postgres, rows: int) -> None:
    """Write the tables."""
    server.execute(
        f"create table public.orders ({_COLUMNS})",
        _FILL.format(rows=rows),
        "create table public.documents (id bigint primary key, document text)",
        _DOCUMENTS,
        "vacuum analyze",
    )


def ours(server: Postgres, folder: Path, read: str, value: str, key: str | None) -> Turn:
    """Return a turn of `eosingest run`."""

    def turn(servers: str, topic: str, rows: int) -> None:
        spec = folder / f"{topic}.toml"
        spec.write_text(
            SPEC.format(
                topic=topic,
                source=server.source(),
                table=read,
                key=f'key = "{key}"\n' if key else "",
                value=value,
                servers=servers,
                properties=as_toml(PROPERTIES),
            )
        )
        run_eosingest(folder / "home", "run", str(spec))

    return turn


def sparks(server: Postgres, read: str, value: str, key: str | None) -> Turn:
    """Return a turn of a Spark job, which reads ranges of the key and sends them at least once."""

    def turn(servers: str, topic: str, rows: int) -> None:
        python = python_with(f"pyspark=={SPARK}")
        libs = jars(f"org.apache.spark:spark-sql-kafka-0-10_2.13:{SPARK}", f"org.postgresql:postgresql:{DRIVER}")
        order = {
            "format": "jdbc",
            "options": {
                "url": f"jdbc:postgresql://127.0.0.1:{server.port}/postgres",
                "user": "postgres",
                "password": PASSWORD,
                "driver": "org.postgresql.Driver",
                "dbtable": read,
                "partitionColumn": "id",
                "lowerBound": "1",
                "upperBound": str(rows),
                "numPartitions": str(_PARTS),
                "fetchsize": str(_FETCH),
            },
            "path": None,
            "schema": None,
            "where": None,
            "key": key,
            "value": value,
            "topic": topic,
            "properties": {"bootstrap.servers": servers, "buffer.memory": str(64 << 20), **PROPERTIES},
        }
        told = json.dumps(order).encode() + b"\n"
        command = [str(python), str(ROOT / "bench/spark_rounds.py"), str(libs)]
        subprocess.run(command, input=told, check=True, capture_output=True, env={**os.environ, "PYTHONPATH": ""})

    return turn


def debezium(server: Postgres, worker: Worker) -> Turn:
    """Return a turn of Debezium's initial snapshot, its events made plain rows."""

    def turn(servers: str, topic: str, rows: int) -> None:
        if not worker.is_started:
            worker.start(servers)
        name = topic.replace("-", "_")
        config = {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "tasks.max": "1",
            "database.hostname": "127.0.0.1",
            "database.port": str(server.port),
            "database.user": "postgres",
            "database.password": PASSWORD,
            "database.dbname": "postgres",
            "topic.prefix": name,
            "table.include.list": "public.orders",
            "plugin.name": "pgoutput",
            "slot.name": name,
            "slot.drop.on.stop": "true",
            "publication.name": name,
            "publication.autocreate.mode": "filtered",
            "snapshot.mode": "initial_only",
            "snapshot.fetch.size": str(_FETCH),
            "decimal.handling.mode": "string",
            "max.batch.size": "16384",
            "max.queue.size": "65536",
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "key.converter.schemas.enable": "false",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
            "transforms": "plain,to",
            "transforms.plain.type": "io.debezium.transforms.ExtractNewRecordState",
            "transforms.to.type": "org.apache.kafka.connect.transforms.RegexRouter",
            "transforms.to.regex": ".*",
            "transforms.to.replacement": topic,
            "exactly.once.support": "requested",
            **{f"producer.override.{key}": setting for key, setting in PROPERTIES.items()},
        }
        worker.ask("PUT", f"/connectors/{topic}/config", config)
        try:
            topics.wait_until_filled(servers, topic, rows, _ROUND_S, lambda: worker.refuse_failed(topic))
        finally:
            worker.ask("DELETE", f"/connectors/{topic}")
            server.execute(f"drop publication if exists {name}")

    return turn


def debeziums() -> Worker:
    """Make a worker that has Debezium's connector."""
    libs = jars(
        f"org.apache.kafka:connect-runtime:{KAFKA}",
        f"org.apache.kafka:connect-json:{KAFKA}",
        f"org.apache.kafka:connect-transforms:{KAFKA}",
        LOG4J,
    )
    return Worker(libs, jars(f"io.debezium:debezium-connector-postgres:{DEBEZIUM}").glob("*.jar"))


def once(name: str, turn: Turn, servers: str, rows: int) -> tuple[float, float]:
    """Read the table once; return the seconds until the last append, or the command's exit, and those of sending."""
    topic = f"bench-{uuid.uuid4().hex[:10]}"
    read = partial(turn, servers, topic, rows)
    return measured(name, servers, topic, rows, read, to_last_append=name.startswith(_DEBEZIUM))


def main() -> None:
    """Measure in turns, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="*", help="who is measured, by the beginnings of their names")
    arguments = parser.parse_args()
    settings = ("wal_level=logical", "shared_buffers=512MB", "max_wal_size=4GB")
    with running_broker() as (folder, up), running_postgres(*settings) as server, debeziums() as worker:
        fill(server, arguments.rows)
        run_eosingest(folder / "home", "prepare")
        turns: dict[str, Turn] = {
            "eosingest run, to_json": ours(server, folder, *_ROWS),
            "a Spark job, JDBC, to_json": sparks(server, *_ROWS),
            "eosingest run, a column": ours(server, folder, *_ONE_COLUMN),
            "a Spark job, JDBC, a column": sparks(server, *_ONE_COLUMN),
            f"{_DEBEZIUM} {DEBEZIUM}, in transactions": debezium(server, worker),
        }
        if arguments.only:
            turns = {name: turn for name, turn in turns.items() if name.startswith(tuple(arguments.only))}
        figures: dict[str, list[tuple[float, float]]] = {name: [] for name in turns}
        for number in range(1 + arguments.rounds):
            for name in rotated(turns, number):
                took = once(name, turns[name], up.bootstrap_servers, arguments.rows)
                if number:
                    figures[name].append(took)
    print(table(f"{arguments.rows:,} rows", figures, arguments.rows))


if __name__ == "__main__":
    main()
