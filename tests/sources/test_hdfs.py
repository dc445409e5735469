"""Files of a real HDFS: found as on a disk, and written, moved, deleted or touched at every moment of a run.

What was listed is sent, once, or nothing. Kills are in the conformance suite (text.hdfs, json.hdfs).
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from eosingest.errors import ChangedError, EosingestError, FatalError, SpecError, TemporaryError
from eosingest.host.interruption import never
from eosingest.protocol.source import Purpose
from eosingest.sources.files.listing.errors import opened_as_listed, while_sent
from eosingest.sources.files.listing.hdfs_places import HdfsPlaces
from eosingest.sources.files.listing.named_file import data_file
from eosingest.sources.files.source import FileSource
from eosingest.sources.files.storage import object_stream, webhdfs
from eosingest.sources.files.storage.hdfs import HdfsStorage
from tests.sources.conftest import made_subject
from tests.sources.test_buckets import ODD
from tests.support.harness import wait_for
from tests.support.hdfs import PAGE_NAMES, USER, Hdfs
from tests.support.sources.in_process import Life
from tests.support.sources.in_store import Contents, lines_of
from tests.support.sources.kinds import TextInHdfs
from tests.support.sources.meddling import BEFORE_THE_LISTING, MOMENTS, Meddler, assert_noticed, run_meddled
from tests.support.sources.subject import Subject


@pytest.fixture(params=["text.hdfs"])
def subject(request: pytest.FixtureRequest, tmp_path: Path) -> Subject:
    made = made_subject(request.param, tmp_path, request)
    made.create()
    return made


class Files(Contents):
    """The two files of a subject."""

    subject: TextInHdfs

    def __init__(self, subject: TextInHdfs) -> None:
        super().__init__(subject)
        self.hdfs = subject.hdfs
        self.places = {subject.place(item): data for item, data in self.data.items()}

    def append(self) -> None:
        for place in self.places:
            self.hdfs.append(place, b"one more line\n")

    def cut_off(self) -> None:
        for place in self.places:
            self.hdfs.call("POST", place, op="TRUNCATE", newlength="100")
        wait_for(lambda: not any(map(self._is_open, self.places)))  # the data node cuts the block, and reports it

    def _is_open(self, place: str) -> bool:
        blocks = self.hdfs.call("GET", place, op="GET_BLOCK_LOCATIONS")["LocatedBlocks"]
        return bool(blocks["isUnderConstruction"])

    def cut_off_and_append(self) -> None:
        """The same file of the same length, with other bytes."""
        self.cut_off()
        for place, data in self.places.items():
            self.hdfs.append(place, data[100:].replace(b"0", b"Z"))

    def replace(self) -> None:
        """Others are written elsewhere, and moved to their place."""
        for place, data in self.places.items():
            self.hdfs.put(f"{place}.new", data.replace(b"0", b"Z"))
            self.hdfs.delete(place)
            self.hdfs.rename(f"{place}.new", place)

    def touch(self) -> None:
        for place in self.places:
            self.hdfs.set_mtime(place, int(self.hdfs.status(place)["modificationTime"]) + 5_000)


CHANGES = ["overwrite", "append", "cut_off", "cut_off_and_append", "delete", "replace", "touch", "put_again"]
OF_EQUAL_BYTES = ("touch", "put_again")


@pytest.mark.in_turns("one change each")
@pytest.mark.usefixtures("small_reads")
@pytest.mark.parametrize("subject", ["text.hdfs", "json.hdfs"], indirect=True)
@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("moment", MOMENTS)
def test_what_changes_in_a_run_is_noticed(life: Life, subject: TextInHdfs, moment: str, what: str) -> None:
    """And nothing but what was listed is sent. What is proven equal afterwards is sent to its end, each row once."""
    files = Files(subject)
    restore = files.restore if what not in OF_EQUAL_BYTES else lambda: None
    assert_noticed(life, subject.rows(), moment, getattr(files, what), restore)


@pytest.mark.parametrize("what", ["overwrite", "append", "delete", "replace"])
def test_before_the_plan_it_is_what_it_is(life: Life, subject: TextInHdfs, what: str) -> None:
    """Between the check and the listing behind the claim: the run sends what it lists."""
    files = Files(subject)
    ended = run_meddled(life, Meddler(*BEFORE_THE_LISTING, getattr(files, what)))
    if what == "delete":
        assert (ended[0], life.records()) == (2, [])
        return
    assert ended == (0, [])
    added = b"one more line\n" if what == "append" else b""
    now = [(data if added else data.replace(b"0", b"Z")) + added for data in files.data.values()]
    assert Counter(life.records()) == Counter(b"".join(now).splitlines())


@pytest.mark.in_turns("one thing done between runs each")
@pytest.mark.parametrize("half", [True, False])
@pytest.mark.parametrize("what", CHANGES)
def test_what_was_done_between_runs(life: Life, subject: TextInHdfs, what: str, half: bool) -> None:
    """Other bytes are a change; equal ones are proven by HDFS's checksum, of a file half sent as well."""
    if half:
        life.run_killed_at("task-before-commit", 2)
    else:
        assert life.run().exit_code == 0
    before, files = life.records(), Files(subject)
    getattr(files, what)()
    if what not in OF_EQUAL_BYTES:
        ended = life.run()
        if half and what == "append":  # what was sent of it stays as it was
            assert ended.exit_code == 0
            assert Counter(life.records()) == Counter([*subject.rows(), *[b"one more line"] * len(files.data)])
            return
        expected = "path-not-found" if what == "delete" else "source-changed"
        assert (ended.codes, life.records()) == ([expected], before)
        files.restore()
    assert life.run().exit_code == 0
    assert Counter(life.records()) == Counter(subject.rows())
    assert life.run().rows_sent == 0


# ---- listing and reading, without a run --------------------------------------------------------------------------------


def source(hdfs: Hdfs, *paths: str, storage: HdfsStorage | None = None, **more: Any) -> FileSource:
    absolute = [f"{hdfs.address}{path}" for path in paths]
    return lines_of(*absolute, places=HdfsPlaces(storage or hdfs.storage, never), **more)


@pytest.fixture
def top(hdfs: Hdfs) -> str:
    return f"/t-{uuid.uuid4().hex[:12]}"


TREE = [
    "a.txt", "b.txt", "b.csv", "_hidden.txt", ".dot", "x._COPYING_", "w*", "[1].txt", "deep/c.txt", "deep/er/d.txt",
    "day=1/e.txt", "day=2/h=3/f.txt", "_tmp/g.txt", "ü ö/h.txt",
]  # fmt: skip
PATTERNS = [
    "", "*", "*.txt", "{a,b}.txt", "deep", "deep/*", "*/*", "d*/**", "day=*", "[ab].txt", "w*", "[1].txt", "_tmp/*",
    "_hidden.txt", "none", "none*", "b.*", "deep/../a.txt", "ü ö", "deep/er", "{deep/er,ü ö}/*.txt", "?.txt",
    "a.txt/b", "{deep,ü ö}/../a.txt",
]  # fmt: skip


@pytest.mark.parametrize("recursive", [False, True])
def test_the_same_files_are_found_as_on_a_disk(hdfs: Hdfs, top: str, tmp_path: Path, recursive: bool) -> None:
    for name in TREE:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
        hdfs.put(f"{top}/{name}", name.encode())
    for pattern in PATTERNS:
        here = _found(lines_of(f"{tmp_path}/{pattern}", recursive=recursive), str(tmp_path))
        there = _found(source(hdfs, f"{top}/{pattern}", recursive=recursive), hdfs.address + top)
        assert here == there, pattern


def _found(listed: FileSource, folder: str) -> Any:
    try:
        listing = listed.plan()
    except EosingestError as error:
        return error.code
    hidden = [group.what for group in listing.left_out if group.why == "hidden"]
    return sorted(item.path.removeprefix(folder) for item in listing.items), hidden


def test_odd_names_are_read_each_as_its_own(hdfs: Hdfs, top: str) -> None:
    for number, name in enumerate(ODD):
        hdfs.put(f"{top}/{name}/{name}", b"%d" % number)
    for number, name in enumerate(ODD):
        listing = source(hdfs, f"{top}/{name}").plan()
        (file,) = listing.items
        assert file.name == f"{hdfs.address}{top}/{name}/{name}"
        with opened_as_listed(file, while_sent) as opened:  # type: ignore[arg-type]
            assert opened.read() == b"%d" % number
    assert len(source(hdfs, top, recursive=True).plan().items) == len(ODD)


def test_a_folder_of_more_names_than_a_page_holds(hdfs: Hdfs, top: str) -> None:
    for number in range(PAGE_NAMES + 10):
        hdfs.call("PUT", f"{top}/folder-{number:04}", op="MKDIRS")
    hdfs.put(f"{top}/zz.txt", b"z\n")
    hdfs.put(f"{top}/folder-{PAGE_NAMES + 5:04}/y.txt", b"y\n")
    assert [item.name.rpartition("/")[2] for item in source(hdfs, f"{top}/*", recursive=True).plan().items] == [
        "y.txt",
        "zz.txt",
    ]


def test_many_files_in_the_root(hdfs: Hdfs) -> None:
    """Of more than sixteen in a folder the folder is listed to look at them again."""
    stem = uuid.uuid4().hex[:12]
    for number in range(20):
        hdfs.put(f"/{stem}-{number}", b"x\n")
    listed = source(hdfs, f"/{stem}-*")
    files = listed.plan().items
    assert (len(files), listed.changed(files), listed.missing([file.name for file in files])) == (20, [], [])
    hdfs.append(f"/{stem}-7", b"y\n")
    hdfs.delete(f"/{stem}-8")
    assert listed.changed(files) == [f"{hdfs.address}/{stem}-7", f"{hdfs.address}/{stem}-8"]
    assert listed.missing([file.name for file in files]) == [f"{hdfs.address}/{stem}-8"]


def test_of_blocks_of_other_sizes_nothing_is_proven(hdfs: Hdfs, top: str) -> None:
    """HDFS's checksum is one of chunks and blocks; where these differ, equal bytes are a change."""
    listed = source(hdfs, top)
    hdfs.put(f"{top}/a", b"x\n" * 3000, blocksize="1024")
    (was,) = listed.plan().versions.values()
    hdfs.put(f"{top}/a", b"x\n" * 3000, blocksize="1024")
    again = listed.plan().items[0]
    assert listed._places.unchanged(again, [was])
    assert listed._places.version(again, [])["etag"] != was["etag"]
    hdfs.put(f"{top}/a", b"x\n" * 3000, blocksize="2048")
    assert not listed._places.unchanged(listed.plan().items[0], [was])


@contextlib.contextmanager
def being_written(hdfs: Hdfs, path: str, data: bytes) -> Iterator[None]:
    """A file whose writer has sent this much, and goes on later."""
    location = urlsplit(hdfs.location("PUT", path, op="CREATE", blocksize="1024"))
    writer = http.client.HTTPConnection(str(location.hostname), location.port, timeout=60)
    writer.putrequest("PUT", f"{location.path}?{location.query}")
    writer.putheader("Content-Length", str(2 * len(data)))
    writer.endheaders()
    writer.send(data)
    try:
        wait_for(lambda: _length(hdfs, path))
        yield
    finally:
        writer.send(data)
        assert writer.getresponse().status == 201
        writer.close()


def _length(hdfs: Hdfs, path: str) -> int:
    with contextlib.suppress(AssertionError):
        return int(hdfs.status(path)["length"])
    return 0


def test_a_file_that_is_being_written_is_not_sent(hdfs: Hdfs, top: str) -> None:
    """Its length counts the blocks that are full, and its time is that of its creation: neither tells that more will come."""
    data = b"0123456789\n" * 1000
    listed = source(hdfs, top)
    with being_written(hdfs, f"{top}/a", data):
        (file,) = listed.plan(purpose=Purpose.SHOW).items
        assert 0 < file.size < 2 * len(data)
        with pytest.raises(FatalError) as found:
            listed.plan()
        assert (found.value.code, "still being written" in found.value.message) == ("file-open", True)
    (file,) = listed.plan().items
    assert file.size == 2 * len(data)


def test_what_was_moved_is_not_read_for_what_took_its_place(hdfs: Hdfs, top: str) -> None:
    hdfs.put(f"{top}/a", b"old\n")
    (file,) = source(hdfs, f"{top}/a").plan().items
    hdfs.rename(f"{top}/a", f"{top}/b")
    hdfs.put(f"{top}/a", b"new\n")
    assert file.storage.open(file).read() == b"old\n"  # type: ignore[attr-defined]
    with pytest.raises(ChangedError), opened_as_listed(file, while_sent):  # type: ignore[arg-type]
        pass


# ---- refused ------------------------------------------------------------------------------------------------------


def test_what_is_refused_says_why(hdfs: Hdfs, top: str) -> None:
    hdfs.put(f"{top}/a", b"a\n", permission="600")
    somebody = HdfsStorage((hdfs.web,), "somebody-else")
    (file,) = source(hdfs, top, storage=somebody).plan(purpose=Purpose.SHOW).items
    with pytest.raises(FatalError, match="Permission denied: user=somebody-else") as found:
        file.storage.open(file).read()  # type: ignore[attr-defined]
    assert (found.value.code, "the right to read it" in found.value.hint) == ("storage-refused", True)
    hdfs.call("PUT", top, op="SETPERMISSION", permission="700")
    with pytest.raises(FatalError, match="Permission denied"):
        source(hdfs, top, storage=somebody).plan()
    with pytest.raises(SpecError, match="names no file or folder"):
        source(hdfs, f"{top}/none").plan()


def test_addresses_that_are_wrong(hdfs: Hdfs, top: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eosingest.sources.files.storage.hdfs._PAUSE_S", 0.01)
    hdfs.put(f"{top}/a", b"a\n")
    nobody = "http://127.0.0.1:1"
    with pytest.raises(TemporaryError) as away:
        source(hdfs, top, storage=HdfsStorage((nobody,), USER)).plan()
    assert (away.value.code, "127.0.0.1:1 does not answer" in away.value.message) == ("storage-unreachable", True)
    rpc = "http://" + hdfs.address.removeprefix("hdfs://")
    with pytest.raises(FatalError, match="not one of WebHDFS") as other:
        source(hdfs, top, storage=HdfsStorage((rpc,), USER)).plan()
    assert "http://namenode:9870" in other.value.hint
    found = source(hdfs, top, storage=HdfsStorage((nobody, hdfs.web), USER)).plan().items
    assert [item.storage.open(item).read() for item in found] == [b"a\n"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        (["hdfs:///a"], "names no name node"),
        (["hdfs://me@host:1/a"], "names no name node"),
        (["hdfs://h*/a"], "names no name node"),
        (["hdfs://one:1/a/.snapshot/s1/*"], "HDFS makes up"),
        (["hdfs://one:1/{a,.reserved}/raw"], "HDFS makes up"),
        (["hdfs://one:1/a", "hdfs://other:1/a"], "another name node than one:1"),
        (["hdfs://one:1/a", "/local"], "no path of HDFS"),
    ],
)
def test_paths_that_are_none(paths: list[str], said: str) -> None:
    places = HdfsPlaces(HdfsStorage(("http://127.0.0.1:1",), USER), never)
    with pytest.raises(SpecError, match=said.replace("*", r"\*")):
        for path in paths:
            places.parse(path)


def test_a_file_that_is_named(hdfs: Hdfs, top: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`init --from`: the name node's web address is the one of the site."""
    monkeypatch.setenv("HADOOP_CONF_DIR", str(hdfs.conf))
    monkeypatch.setenv("HADOOP_USER_NAME", USER)
    hdfs.put(f"{top}/a b.jsonl", b'{"id": 1}\n')
    found = data_file(f"hdfs://{hdfs.address.removeprefix('hdfs://')}{top}/a b.jsonl")
    assert (found.exists(), found.is_dir(), found.name, found.suffix) == (True, False, "a b.jsonl", ".jsonl")
    assert found.open().read() == b'{"id": 1}\n'
    assert not data_file(f"{hdfs.address}{top}/none").exists()
    assert data_file(f"{hdfs.address}{top}").is_dir()


def test_reading_goes_on_where_a_connection_broke(hdfs: Hdfs, top: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytes(itertools.islice(itertools.cycle(range(256)), 100_000))
    hdfs.put(f"{top}/a", data, blocksize="1024")
    (file,) = source(hdfs, f"{top}/a").plan().items
    asked, broken = webhdfs.get, Counter[str]()

    class Breaking:
        """A body that breaks after some bytes, twice of three times."""

        def __init__(self, body: Any) -> None:
            self.body, self.left = body, 3_000

        def read(self, size: int) -> bytes:
            broken["reads"] += 1
            if not self.left and broken["reads"] % 3:
                broken["breaks"] += 1
                raise ConnectionResetError("cut")
            found: bytes = self.body.read(min(size, self.left or size))
            self.left = max(0, self.left - len(found))
            return found

        def __getattr__(self, name: str) -> Any:
            return getattr(self.body, name)

    def breaking(url: str, path: str) -> Any:
        answer = asked(url, path)
        return Breaking(answer) if answer.status == 200 and "op=OPEN" in url else answer

    monkeypatch.setattr(webhdfs, "get", breaking)
    monkeypatch.setattr(object_stream, "_PAUSE_S", 0.001)
    assert file.storage.open(file).read() == data  # type: ignore[attr-defined]
    assert broken["breaks"] > 10
