"""A Spark for the whole module, started when the first kind asks for rows of it; a subject of each kind, a job over it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from eosingest.sources import registry
from eosingest.sources.files.storage import object_stream
from tests.support import hdfs as hadoop
from tests.support import registry as schemas
from tests.support import s3proxy
from tests.support.hdfs import Hdfs
from tests.support.postgres import Postgres, running_postgres
from tests.support.registry import SchemaRegistry
from tests.support.s3proxy import Store
from tests.support.shared_broker import running_broker
from tests.support.sources.buckets import InBucket
from tests.support.sources.by_registry import ByRegistry
from tests.support.sources.in_hdfs import InHdfs
from tests.support.sources.in_process import Life
from tests.support.sources.kinds import KINDS
from tests.support.sources.subject import Subject
from tests.support.sources.tables import Table
from tests.support.sources.topics import OnBroker
from tests.support.warm_spark import warm_spark


@pytest.fixture(scope="module")
def spark() -> Iterator[Callable[[], SparkSession]]:
    with contextlib.ExitStack() as stack:
        made: list[SparkSession] = []

        def get() -> SparkSession:
            if not made:
                made.append(stack.enter_context(warm_spark()))
            return made[0]

        yield get


@pytest.fixture(scope="session")
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Bootstrap servers of a real broker."""
    with running_broker(request.session, tmp_path_factory) as up:
        yield up.bootstrap_servers


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store of objects."""
    with s3proxy.running(tmp_path_factory.mktemp("s3proxy")) as up:
        yield up


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    """A name node and a data node."""
    with hadoop.running(tmp_path_factory.mktemp("hdfs")) as up:
        yield up


@pytest.fixture(scope="session")
def database() -> Iterator[Postgres]:
    """A database."""
    with running_postgres() as up:
        yield up


@pytest.fixture(scope="session")
def schema_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SchemaRegistry]:
    with schemas.running(tmp_path_factory.mktemp("registry")) as up:
        yield up


@pytest.fixture
def small_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows and buffers of stores are small, so that a split is read by many requests."""
    monkeypatch.setattr(object_stream, "_WINDOW_BYTES", 200)
    monkeypatch.setattr(object_stream, "_BEYOND_BYTES", 100)
    monkeypatch.setattr("eosingest.sources.files.storage.s3._BUFFER_BYTES", 100)
    monkeypatch.setattr("eosingest.sources.files.storage.hdfs._BUFFER_BYTES", 100)
    monkeypatch.setattr("eosingest.sources.files.bytes.lines._BLOCK_BYTES", 150)
    monkeypatch.setattr("eosingest.sources.files.bytes.lines.BEYOND_BYTES", 50)


def made_subject(kind: str, folder: Path, request: pytest.FixtureRequest) -> Subject:
    """Make a subject, with the service that it needs."""
    made = KINDS[kind](folder)
    if isinstance(made, OnBroker):
        made.servers = request.getfixturevalue("servers")
    if isinstance(made, InBucket):
        made.store = request.getfixturevalue("store")
    if isinstance(made, InHdfs):
        made.hdfs = request.getfixturevalue("hdfs")
        request.getfixturevalue("monkeypatch").setenv("HADOOP_USER_NAME", hadoop.USER)
    if isinstance(made, Table):
        made.server = request.getfixturevalue("database")
    if isinstance(made, ByRegistry):
        made.registry = request.getfixturevalue("schema_registry")
    return made


@pytest.fixture(params=KINDS)
def subject(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Subject:
    made = made_subject(request.param, tmp_path, request)
    if made.kind is not None:
        monkeypatch.setattr(registry, "KINDS", (*registry.KINDS, made.kind))
    made.create()
    return made


@pytest.fixture
def life(subject: Subject, tmp_path: Path, spark: Callable[[], SparkSession]) -> Life:
    return Life(subject, tmp_path, spark)
