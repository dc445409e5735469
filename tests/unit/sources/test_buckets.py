"""`[source]` of a spec whose files are in buckets: what is refused, and where secrets are."""

from __future__ import annotations

import socket
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from eosingest.app.settings import source_of
from eosingest.errors import FatalError, SpecError
from eosingest.sources.files.listing.places import Written
from eosingest.sources.files.listing.s3_places import S3Places
from eosingest.sources.files.source import FileSource
from eosingest.sources.files.storage.s3 import S3Storage
from eosingest.spec import Spec, digest_parts, load
from tests.support.builders import source_file

SECRET = "a-secret-that-nobody-may-print"
STORAGE = 'storage = { endpoint = "http://127.0.0.1:1", access_key = "${env:KEY}", secret_key = "${env:SECRET}" }'


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "the-id")
    monkeypatch.setenv("SECRET", SECRET)


def spec(folder: Path, source: str, format: str = "text") -> Spec:
    file = folder / "job.toml"
    sink = '[sink]\nbootstrap_servers = "b:1"\ntopic = "t"\n'
    file.write_text(f'name = "j"\n[source]\nformat = "{format}"\n{source}\n{sink}')
    return load(file)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ('path = ["s3://b/a", "c"]', "give them a job each"),
        ('path = "data"\nstorage = { region = "x" }', "for paths of stores"),
        ('path = "s3://b/a"\nstorage = { acces_key = "x" }', 'did you mean "access_key"'),
        ('path = "s3://b/a"\nstorage = { access_key = "x" }', "storage.secret_key: is missing"),
        ('path = "s3://b/a"\nstorage = { session_token = "x" }', "storage.access_key: is missing"),
        ('path = "s3://b/a"\nstorage = { endpoint = "http://me:pw@h" }', "without path and user"),
        ('path = "s3://b/a"\nstorage = { endpoint = "h:9000" }', "must be a URL"),
        ('path = "s3://b/a"\noptions = { wholetext = true, lineSep = "x" }', "no effect with wholetext"),
        ('path = "s3://b/a"\nschema = "value STRING"', "drop schema"),
        ('path = "s3://b/a"\noptions = { lineSep = "" }', "must not be empty"),
    ],
)
def test_what_is_refused(tmp_path: Path, source: str, said: str) -> None:
    with pytest.raises(SpecError) as caught:
        spec(tmp_path, source)
    assert said in caught.value.message


@pytest.mark.parametrize("format", ["json", "csv", "parquet", "orc", "avro", "binaryFile"])
def test_all_formats_are_taken(tmp_path: Path, format: str) -> None:
    spec(tmp_path, 'path = "s3a://b/a"' + ("\noptions = { header = true }" if format == "csv" else ""), format)


@pytest.mark.parametrize("path", ["s3://", "s3:///key", "s3://b*/key"])
def test_a_path_without_a_bucket(tmp_path: Path, path: str) -> None:
    with pytest.raises(SpecError, match="names no bucket"):
        source_of(spec(tmp_path, f'path = "{path}"'))


def test_secrets_are_resolved_late_and_shown_nowhere(tmp_path: Path) -> None:
    found = spec(tmp_path, f'path = "s3://b/a"\n{STORAGE}')
    source = source_of(found)
    assert isinstance(source, FileSource)
    assert isinstance(source._places, S3Places)
    storage = source._places.storage
    assert (storage.access_key, storage.secret_key) == ("the-id", SECRET)
    item = source_file("s3://b/a")
    for shown in (found, found.source, storage, item, digest_parts(found), source):
        assert SECRET not in f"{shown!r} {shown}"
    assert SECRET not in str(vars(found.source))


def test_storage_is_not_in_the_digest(tmp_path: Path) -> None:
    """A store that moved, or a renewed credential, must not stop a half done job."""
    plain = digest_parts(spec(tmp_path, 'path = "s3://b/a"'))
    assert digest_parts(spec(tmp_path, f'path = "s3://b/a"\n{STORAGE}')) == plain


def test_without_boto3_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(SpecError) as caught:
        source_of(spec(tmp_path, 'path = "s3://b/a"\nstorage = { region = "no-boto" }')).check()
    assert (caught.value.exit_code, caught.value.code) == (2, "package-missing")
    assert caught.value.hint == "pip install 'eosingest[s3]'"


def test_an_executor_without_boto3_ends_its_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    file = replace(source_file("s3://b/a"), path="s3://b/a", etag='"x"')
    with pytest.raises(FatalError) as caught, S3Storage(region="executor").open(file) as opened:
        opened.read()
    assert (caught.value.code, caught.value.hint) == ("package-missing", "pip install 'eosingest[s3]'")


def test_a_store_that_is_silent_does_not_hold_up_a_signal() -> None:
    """Breaks when a run waits for a request's own timeout before it hears that it was interrupted."""

    class InterruptedError_(Exception):
        pass

    with socket.create_server(("127.0.0.1", 0)) as silent:
        storage = S3Storage(f"http://127.0.0.1:{silent.getsockname()[1]}", "r", "key", "secret")
        began = time.monotonic()

        def check() -> None:
            if time.monotonic() - began > 0.5:
                raise InterruptedError_

        with pytest.raises(InterruptedError_):
            S3Places(storage, check).look(check).find(
                Written("s3://b/x*", "s3://b", "x*", relative=False), recursive=False, may_match_nothing=False
            )
        assert time.monotonic() - began < 10
