"""Objects that are overwritten, deleted or put again at every moment of a run: what was listed is sent, once, or nothing.

    before the plan, between plan and read, in mid-read, before the verdict, between runs

Windows and buffers are small here, so that a split is read by many requests.
"""

from __future__ import annotations

import gzip
import io
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from eosingest.app.settings import source_of
from eosingest.cli.init import _spec_text
from eosingest.errors import ChangedError, EosingestError, FatalError, SpecError, TemporaryError
from eosingest.host.interruption import never
from eosingest.protocol.plan import make_plan
from eosingest.sources.files.listing import s3_places
from eosingest.sources.files.listing.s3_places import S3Places
from eosingest.sources.files.reading.folder_columns import FolderColumns
from eosingest.sources.files.reading.value_reader import ValueReader
from eosingest.sources.files.source import FileSource
from eosingest.sources.files.storage.s3 import S3Storage
from eosingest.spark.python_scan import planned_splits
from eosingest.spec import load
from tests.sources.conftest import made_subject
from tests.support.s3proxy import ACCESS_KEY, SECRET_KEY, Store
from tests.support.sources.in_process import Life
from tests.support.sources.in_store import Contents, lines_of
from tests.support.sources.kinds import TextInBucket
from tests.support.sources.meddling import BEFORE_THE_LISTING, MOMENTS, Meddler, assert_noticed, run_meddled
from tests.support.sources.subject import Subject


@pytest.fixture(params=["text.s3"])
def subject(request: pytest.FixtureRequest, tmp_path: Path) -> Subject:
    made = made_subject(request.param, tmp_path, request)
    made.create()
    return made


class Objects(Contents):
    """The two objects of a subject."""

    subject: TextInBucket

    def lengthen(self) -> None:
        self.put(lambda data: data + b"one more line\n")

    def shorten(self) -> None:
        self.put(lambda data: data[:100])

    def put_again_in_parts(self) -> None:
        for item, data in self.data.items():
            self.subject.store.put_in_parts(self.subject.bucket, self.subject.key(item), data, 8 << 20)


@pytest.mark.in_turns("one change each")
@pytest.mark.usefixtures("small_reads")
@pytest.mark.parametrize("subject", ["text.s3", "json.s3"], indirect=True)
@pytest.mark.parametrize("what", ["overwrite", "lengthen", "shorten", "delete", "put_again_in_parts"])
@pytest.mark.parametrize("moment", MOMENTS)
def test_what_changes_in_a_run_is_noticed(life: Life, subject: TextInBucket, moment: str, what: str) -> None:
    """And nothing but what was listed is sent. What was put back, or is proven equal, is sent to its end, each row once."""
    objects = Objects(subject)
    restore = objects.restore if what != "put_again_in_parts" else lambda: None
    assert_noticed(life, subject.rows(), moment, getattr(objects, what), restore)


@pytest.mark.usefixtures("small_reads")
@pytest.mark.parametrize("moment", MOMENTS)
def test_equal_bytes_with_the_same_etag_are_the_same_object(life: Life, subject: TextInBucket, moment: str) -> None:
    point, hit = MOMENTS[moment]
    assert run_meddled(life, Meddler(point, hit, Objects(subject).put_again)) == (0, [])
    assert Counter(life.records()) == Counter(subject.rows())


@pytest.mark.parametrize("what", ["overwrite", "lengthen", "delete"])
def test_before_the_plan_it_is_what_it_is(life: Life, subject: TextInBucket, what: str) -> None:
    """Between the check and the listing behind the claim: the run sends what it lists."""
    objects = Objects(subject)
    ended = run_meddled(life, Meddler(*BEFORE_THE_LISTING, getattr(objects, what)))
    if what == "delete":
        assert (ended[0], life.records()) == (2, [])
        return
    assert ended == (0, [])
    got = subject.store.client.get_object
    now = [got(Bucket=subject.bucket, Key=subject.key(item))["Body"].read() for item in objects.data]
    assert Counter(life.records()) == Counter(b"".join(now).splitlines())


@pytest.mark.parametrize("half", [True, False])
@pytest.mark.parametrize("what", ["overwrite", "lengthen", "shorten"])
def test_what_was_overwritten_between_runs_is_changed(life: Life, subject: TextInBucket, what: str, half: bool) -> None:
    if half:
        life.run_killed_at("task-before-commit", 2)
    else:
        assert life.run().exit_code == 0
    before, objects = life.records(), Objects(subject)
    getattr(objects, what)()
    ended = life.run()
    if half and what == "lengthen":  # what was sent of it stays as it was
        assert ended.exit_code == 0
        assert Counter(life.records()) == Counter([*subject.rows(), *[b"one more line"] * len(objects.data)])
        return
    assert (ended.exit_code, ended.codes, life.records()) == (12, ["source-changed"], before)
    objects.restore()
    assert life.run().exit_code == 0
    assert Counter(life.records()) == Counter(subject.rows())


def test_what_was_put_again_with_equal_bytes_goes_on_in_mid_split(life: Life, subject: TextInBucket) -> None:
    """Its ETag cannot be brought back: what is sent is proven, and the rest goes out under the new one."""
    life.run_killed_at("task-before-commit", 2)
    Objects(subject).put_again_in_parts()
    assert life.run().exit_code == 0
    assert Counter(life.records()) == Counter(subject.rows())
    Objects(subject).put_again()
    assert life.run().rows_sent == 0


def test_what_was_deleted_half_sent_has_vanished(life: Life, subject: TextInBucket) -> None:
    life.run_killed_at("task-before-commit", 2)
    item = subject.items()[0]
    subject.remove(item)
    ended = life.run()
    assert (ended.exit_code, ended.codes) == (12, ["source-vanished"])


# ---- listing -------------------------------------------------------------------------------------------------------


def source(store: Store, *paths: str, storage: S3Storage | None = None, **more: object) -> FileSource:
    return lines_of(*paths, places=S3Places(storage or store.storage, never), **more)


ODD = [
    "a b", "p%20q", "p%2Fq", "x+y", "ü€😀", "h#h", "n\nl", "t\tt", "q?w", "back\\s", "a&b<c>", 'quote"', "w*", "[1]",
    "{a,b}", "k=v",
]  # fmt: skip


def test_odd_names_are_read_each_as_its_own(store: Store, subject: TextInBucket) -> None:
    """Breaks when a name is decoded once too often, or a store's XML cannot say it."""
    for name in ODD:
        store.put(subject.bucket, f"odd/{name}", f"the row of {name!r}\n".encode())
    found = source(store, f"s3://{subject.bucket}/odd").plan().items
    assert [item.name for item in found] == sorted(f"s3://{subject.bucket}/odd/{name}" for name in ODD)
    for item in found:
        with item.storage.open(item) as opened:  # type: ignore[attr-defined]
            assert opened.read() == f"the row of {item.name.rpartition('/odd/')[2]!r}\n".encode()
    for name in ("[1]", "{a,b}", "a b", "h#h", "p%20q", "q?w"):
        assert len(source(store, f"s3a://{subject.bucket}/odd/{name}").plan().items) == 1


def test_markers_empty_and_hidden_objects(store: Store, subject: TextInBucket) -> None:
    for key in ("m/", "m/empty", "m/_SUCCESS", "m/deep/x"):
        store.put(subject.bucket, key, b"" if key in ("m/", "m/empty", "m/_SUCCESS") else b"x\n")
    store.put(subject.bucket, "m/a", b"a\n")
    name = f"s3://{subject.bucket}/m"
    found = source(store, name).plan()
    assert [item.name for item in found.items] == [f"{name}/a"]
    assert {out.why: out.what for out in found.left_out} == {"empty": (f"{name}/empty",), "too young": (), "hidden": 1}
    everything = source(store, name, recursive=True).plan()
    assert [item.name for item in everything.items] == [f"{name}/a", f"{name}/deep/x"]


def test_a_listing_of_several_pages(store: Store, subject: TextInBucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a check that looks at the first page does not refuse what lies behind it."""
    for number in range(25):
        store.put(subject.bucket, f"pages/{number:03}.csv", b"x\n")
    store.put(subject.bucket, "pages/zzz.txt", b"x\n")
    client = type(store.storage).client

    class Paged:
        def __init__(self, inner: object) -> None:
            self.inner = inner

        def __getattr__(self, name: str) -> object:
            return getattr(self.inner, name)

        def list_objects_v2(self, **asked: object) -> object:
            return self.inner.list_objects_v2(**asked, MaxKeys=10)  # type: ignore[attr-defined]

    monkeypatch.setattr(S3Storage, "client", lambda self: Paged(client(self)))
    found = source(store, f"s3://{subject.bucket}/pages/*")
    found.check()
    listing = found.plan()
    assert len(listing.items) == 26
    last = source(store, f"s3://{subject.bucket}/pages/*.txt")
    last.check()
    assert len(last.plan().items) == 1
    monkeypatch.setattr(s3_places, "_ASKED_ONE_BY_ONE", 0)
    assert found.changed(listing.items) == []
    store.put(subject.bucket, "pages/003.csv", b"y\n")
    subject.store.client.delete_object(Bucket=subject.bucket, Key="pages/024.csv")
    names = [f"s3://{subject.bucket}/pages/003.csv", f"s3://{subject.bucket}/pages/024.csv"]
    assert found.changed(listing.items) == names
    assert found.missing([item.name for item in listing.items]) == names[1:]
    gone = [f"s3://{subject.bucket}-gone/{number}" for number in range(2)]
    assert found.missing(gone) == gone, "there is no such bucket any more"


# ---- what a store refuses ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("storage", "kind", "code"),
    [
        ({"secret_key": "wrong-" + SECRET_KEY}, FatalError, "storage-refused"),
        ({"access_key": "nobody"}, FatalError, "storage-refused"),
        ({"endpoint": "http://127.0.0.1:1"}, TemporaryError, "storage-unreachable"),
    ],
)
def test_wrong_credentials_and_no_store(
    store: Store, subject: TextInBucket, storage: dict[str, str], kind: type[Exception], code: str
) -> None:
    """The check says it, before a run claims its job; and never with the secret."""
    given = {"endpoint": store.endpoint, "access_key": ACCESS_KEY, "secret_key": SECRET_KEY, "region": "us-east-1"}
    with pytest.raises(kind) as caught:
        source(store, f"s3://{subject.bucket}/data", storage=S3Storage(**{**given, **storage})).check()
    assert caught.value.code == code  # type: ignore[attr-defined]
    assert SECRET_KEY not in f"{caught.value} {caught.value.__cause__} {caught.value.hint}"  # type: ignore[attr-defined]


def test_no_credentials_at_all(
    store: Store, subject: TextInBucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    with pytest.raises(FatalError) as caught:
        source(store, f"s3://{subject.bucket}/data", storage=S3Storage(endpoint=store.endpoint, region="none")).check()
    assert (caught.value.exit_code, caught.value.code) == (7, "storage-credentials")


def test_the_sdk_finds_credentials_itself(store: Store, subject: TextInBucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    found = source(store, f"s3://{subject.bucket}/data", storage=S3Storage(endpoint=store.endpoint, region="own"))
    assert len(found.plan().items) == 2


@pytest.mark.parametrize(
    ("path", "code"), [("s3://there-is-none/x", "bucket-not-found"), ("s3://{}/nothing/*", "path-not-found")]
)
def test_what_is_not_there(store: Store, subject: TextInBucket, path: str, code: str) -> None:
    with pytest.raises(SpecError) as caught:
        source(store, path.format(subject.bucket)).check()
    assert caught.value.code == code


def test_an_object_that_changes_while_its_etag_is_proven(store: Store, subject: TextInBucket) -> None:
    """Breaks when the proof reads another object than the one that was listed."""
    listed = source(store, f"s3://{subject.bucket}/data")
    before = listed.plan()
    item = before.items[0]
    objects = Objects(subject)
    objects.put_again_in_parts()
    again = listed._listed(listed._places.look(never))
    assert again.items[0].seen != item.seen
    objects.overwrite()
    with pytest.raises(ChangedError):
        listed._places.unchanged(again.items[0], [before.versions[item.name]])


def test_an_object_whose_bytes_are_not_read_is_requested(store: Store, subject: TextInBucket) -> None:
    """Breaks when the row of binaryFile without `content` is that of an object that is gone."""
    listed = source(store, f"s3://{subject.bucket}/data", format="binaryFile")
    plan = make_plan(listed, {}, 1 << 20, listed.plan())
    reader = ValueReader(None, FolderColumns())
    split = planned_splits(plan)[0]
    assert [len(batch) for batch in reader.read(split, None)] == [1]
    Objects(subject).overwrite()
    with pytest.raises(ChangedError):
        list(reader.read(split, None))


# ---- init --from ---------------------------------------------------------------------------------------------------


@pytest.fixture
def by_environment(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials and store as the SDK finds them: `init` has no spec yet that could name them."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    monkeypatch.setenv("AWS_ENDPOINT_URL", store.endpoint)


def parquet_bytes() -> bytes:
    out = io.BytesIO()
    pa.parquet.write_table(pa.table({"id": [1, 2]}), out)
    return out.getvalue()


@pytest.mark.usefixtures("by_environment")
@pytest.mark.parametrize(
    ("name", "data", "lines"),
    [
        (
            "a.jsonl",
            b'{"order_id": 1, "v": "a"}\n{"order_id": 2, "v": "b"}\n',
            ['format = "json"', 'schema = "order_id BIGINT, v STRING"', 'key = "CAST(order_id AS STRING)"'],
        ),
        ("a.csv", b"a,b\n1,2\n", ['format = "csv"', "header = true"]),
        ("a.parquet", parquet_bytes(), ['format = "parquet"', '"id BIGINT"']),
        ("a.txt.gz", gzip.compress(b"one\ntwo\n", mtime=0), ['format = "text"']),
        ("b c.xml", b'<r><row n="1"><v>a</v></row><row n="2"><v>b</v></row></r>', ['format = "xml"', 'rowTag = "row"']),
    ],
)
def test_init_writes_a_spec_for_an_object(
    store: Store, subject: TextInBucket, tmp_path: Path, name: str, data: bytes, lines: list[str]
) -> None:
    store.put(subject.bucket, f"look/{name}", data)
    made = tmp_path / "new.toml"
    text, _ = _spec_text(f"s3a://{subject.bucket}/look/{name}", made)
    made.write_text(text)
    for line in [*lines, f'path = "s3://{subject.bucket}/look/{name}"']:
        assert line in text, text
    assert len(source_of(load(made)).plan().items) == 1


@pytest.mark.usefixtures("by_environment")
@pytest.mark.parametrize(
    ("name", "data", "code"),
    [("none", None, "not-a-file"), ("empty", b"", "file-empty")],
)
def test_init_refuses_what_no_run_would_take(
    store: Store, subject: TextInBucket, tmp_path: Path, name: str, data: bytes | None, code: str
) -> None:
    if data is not None:
        store.put(subject.bucket, name, data)
    with pytest.raises(EosingestError) as caught:
        _spec_text(f"s3://{subject.bucket}/{name}", tmp_path / "new.toml")
    assert caught.value.code == code
