"""What the runs of a round read: files of JSON, their lines, objects in a bucket, files of HDFS, a topic, a table; the same
numbers of each. And what they make of it: text, or Avro by a schema registry.

    drawn by the round's number ─▶ the source is filled ─▶ [source] and [record] of the spec, and where each number lies

A source lies on the round's own brokers, or on a server that all rounds of a session share and no fault hurts. They share
the registry too, which faults_registry.py does hurt.
"""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from eosingest.host.paths import cache_directory
from eosingest.kafka.config import ClientSettings
from eosingest.kafka.kafka_python import KafkaPythonAdmin
from eosingest.spark import avro_jar
from tests.chaos import letters
from tests.support import hdfs, registry, s3proxy
from tests.support.avro_values import avro_decoder
from tests.support.harness import LINES_SPEC, Job
from tests.support.job_checks import Line, source_lines, write_files
from tests.support.postgres import PASSWORD, PASSWORD_IN, Postgres, started_postgres
from tests.support.source_topics import Sent, SourceTopic

# In how many of a hundred rounds each is read. JSON, HDFS and a table go through Spark SQL, the others straight to the
# producer. Values in Avro are made by Spark of any source.
WEIGHTS = {
    "json": 23,
    "lines": 23,
    "bucket": 11,
    "hdfs": 11,
    "topic": 12,
    "table": 8,
    "json-as-avro": 8,
    "table-as-avro": 4,
}
HOME = "home"  # EOSINGEST_HOME of a round's runs, beside the job's folder
ENVIRONMENT = {PASSWORD_IN: PASSWORD, "HADOOP_USER_NAME": hdfs.USER}  # of the runs
SCHEMA = "value.avsc"  # of values in Avro, in the job's folder
_ABORTED = 5  # records of a transaction in the middle of a partition
_BROKERS_DEFAULT = -1  # as many replicas as the cluster has brokers


@dataclass
class Servers:
    """The servers beside Kafka that inputs lie on, each started when a round first needs it."""

    folder: Path
    _stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _postgres: Postgres | None = None
    _store: s3proxy.Store | None = None
    _hdfs: hdfs.Hdfs | None = None
    _registry: registry.SchemaRegistry | None = None

    def postgres(self) -> Postgres:
        """Return the PostgreSQL."""
        if self._postgres is None:
            self._postgres = self._stack.enter_context(started_postgres())
        return self._postgres

    def store(self) -> s3proxy.Store:
        """Return the object store."""
        if self._store is None:
            self._store = self._stack.enter_context(s3proxy.running(self.folder / "store"))
        return self._store

    def hdfs(self) -> hdfs.Hdfs:
        """Return the name node with its data node."""
        if self._hdfs is None:
            folder = self.folder / "hdfs"
            folder.mkdir()
            self._hdfs = self._stack.enter_context(hdfs.running(folder))
        return self._hdfs

    def registry(self) -> registry.SchemaRegistry:
        """Return the schema registry."""
        if self._registry is None:
            folder = self.folder / "registry"
            folder.mkdir(parents=True)
            self._registry = self._stack.enter_context(registry.running(folder))
        return self._registry

    def heal(self) -> None:
        """Wake or start again what a fault has hurt."""
        if self._registry is not None:
            self._registry.heal()

    def stop(self) -> None:
        """Stop those that were started."""
        self._stack.close()


def write(name: str, job: Job, servers: Servers, brokers: str, *, files: int, rows: int) -> None:
    """Write the input `name` of so many files, objects, partitions or ranges of `rows` each, and the job's spec."""
    _WRITERS[name](job, servers, brokers, files, rows)


def forget(name: str, job: Job, servers: Servers, brokers: str) -> None:
    """Delete the topic, the table, the objects or the files that were read; an empty bucket stays."""
    if name == "topic":
        admin, topic = AdminClient({"bootstrap.servers": brokers, "log_level": 0}), _topic_of(job)
        with contextlib.suppress(KafkaException):  # it never was
            admin.delete_topics([topic])[topic].result(10)
    elif name in ("table", "table-as-avro"):
        servers.postgres().execute(f"drop table if exists {_table_of(job)}")
    elif name == "bucket":
        for path in job.data.iterdir():
            servers.store().client.delete_object(Bucket=job.name, Key=f"data/{path.name}")
    elif name == "hdfs":
        servers.hdfs().delete(f"/{job.name}")


def _json(job: Job, servers: Servers, brokers: str, files: int, rows: int) -> None:
    write_files(job, files=files, rows=rows)
    letters.spoil_files(job)


def _lines(job: Job, servers: Servers, brokers: str, files: int, rows: int) -> None:
    job.write_spec(LINES_SPEC)
    _json(job, servers, brokers, files, rows)


def _bucket(job: Job, servers: Servers, brokers: str, files: int, rows: int) -> None:
    store = servers.store()
    bucket = store.bucket(job.name)
    _lines(job, servers, brokers, files, rows)
    for path in job.data.iterdir():
        store.put(bucket, f"data/{path.name}", path.read_bytes())
    job.edit_spec('path = "data/*.jsonl"', f'path = "s3://{bucket}/data/*.jsonl"\n{store.table()}')
    job.lines = [line._replace(file=f"s3://{bucket}/{line.file}") for line in source_lines(job)]


def _in_hdfs(job: Job, servers: Servers, brokers: str, files: int, rows: int) -> None:
    store = servers.hdfs()
    folder = f"{store.address}/{job.name}"
    _json(job, servers, brokers, files, rows)
    for path in job.data.iterdir():
        store.put(f"/{job.name}/data/{path.name}", path.read_bytes())
    job.edit_spec('path = "data/*.jsonl"', f'path = "{folder}/data/*.jsonl"\n{store.table()}')
    job.lines = [line._replace(file=f"{folder}/{line.file}") for line in source_lines(job)]


def _topic(job: Job, servers: Servers, brokers: str, files: int, rows: int) -> None:
    source = SourceTopic(brokers, _topic_of(job), partitions=files, replication_factor=_BROKERS_DEFAULT)
    for partition in range(files):
        numbers = range(partition * rows, (partition + 1) * rows)
        records = [Sent(b"%d" % (number % 100), _value(job, number)) for number in numbers]
        source.write_in_transaction(records[: rows // 2], partition)
        source.write_in_transaction([Sent(None, b'{"n": -7}')] * _ABORTED, partition, commit=False)
        source.write_in_transaction(records[rows // 2 :], partition)
    _put_source(job, f'format = "kafka"\ntopic = "{source.name}"\n[record]\n')
    topic_id = _id_of(brokers, source.name)
    job.lines = [
        Line(f"{topic_id}-{partition}", 0, row + 1, partition * rows + row, _offset_of(row, rows))
        for partition in range(files)
        for row in range(rows)
    ]


def _value(job: Job, number: int) -> bytes:
    return letters.row(number, job.bad[number]).encode() if number in job.bad else b'{"n": %d}' % number


def _offset_of(row: int, rows: int) -> int:
    """Return a record's offset: each transaction has a marker behind it."""
    return row if row < rows // 2 else row + _ABORTED + 2


def _table(job: Job, servers: Servers, brokers: str, files: int, rows: int) -> None:
    server, table = servers.postgres(), _table_of(job)
    server.execute(
        f"create table {table} (n bigint primary key, pad text not null)",
        f"insert into {table} select n, repeat('x', 20) from generate_series(0, {files * rows - 1}) n",
        f"analyze {table}",
    )
    record = '[record]\nkey = "CAST(n % 100 AS STRING)"\nvalue = "CAST(n AS STRING)"\n'
    where = f'{server.source()}table = "{table}"\nkey = "n"\nsplit_rows = {rows}\n'
    _put_source(job, f'format = "postgres"\n{where}{record}')
    ((identity,),) = server.execute(
        "select (select system_identifier from pg_control_system()) || '/' || d.oid || '/'"
        f" || '{table}'::regclass::oid from pg_database d where datname = current_database()"
    )
    job.lines = [
        Line(identity, None if part == 0 else str(part * rows - 1), row + 1, part * rows + row, str(part * rows + row))
        for part in range(files)
        for row in range(rows)
    ]


def _json_as_avro(job: Job, servers: Servers, brokers: str, files: int, rows: int) -> None:
    _json(job, servers, brokers, files, rows)
    _as_avro(job, servers.registry())


def _table_as_avro(job: Job, servers: Servers, brokers: str, files: int, rows: int) -> None:
    _table(job, servers, brokers, files, rows)
    _as_avro(job, servers.registry())


def _as_avro(job: Job, server: registry.SchemaRegistry) -> None:
    """Let the value be the whole row, by a schema that no other job has, and so by an id of its own."""
    fields = [{"name": "n", "type": "long"}, {"name": "pad", "type": "string"}]
    schema = {"type": "record", "name": f"of_{job.name.replace('-', '_')}", "fields": fields}
    (job.folder / SCHEMA).write_text(json.dumps(schema))
    avro = f'{{ subject = "{job.name}-value", schema = "{SCHEMA}", registry = {{ url = "{server.url}" }} }}'
    job.edit_spec('value = "CAST(n AS STRING)"', f"value.avro = {avro}")
    job.decode = avro_decoder(server, schema)
    _share_jar(job.folder.parent / HOME)


def _share_jar(home: Path) -> None:
    """Spare the round, whose home is its own, the fetch of spark-avro."""
    (jar,) = avro_jar.jars({})
    folder = next(parent for parent in Path(jar).parents if parent.parent == cache_directory())
    home.mkdir(exist_ok=True)
    (home / folder.name).symlink_to(folder)


_WRITERS = {
    "json": _json,
    "lines": _lines,
    "bucket": _bucket,
    "hdfs": _in_hdfs,
    "topic": _topic,
    "table": _table,
    "json-as-avro": _json_as_avro,
    "table-as-avro": _table_as_avro,
}


def _put_source(job: Job, text: str) -> None:
    """Replace the tables [source] and [record] of the spec."""
    spec = job.spec.read_text()
    job.spec.write_text(re.sub(r"\[source\]\n.*?(?=\[sink\])", lambda _: f"[source]\n{text}", spec, flags=re.DOTALL))


def _topic_of(job: Job) -> str:
    return f"{job.name}-from"


def _table_of(job: Job) -> str:
    return f"public.{job.name.replace('-', '_')}"


def _id_of(brokers: str, topic: str) -> str:
    admin = KafkaPythonAdmin(ClientSettings(brokers))
    try:
        found = admin.describe_topic(topic)
        assert found is not None
        return found.topic_id
    finally:
        admin.close()
