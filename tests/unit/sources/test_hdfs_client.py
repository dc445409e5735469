"""The client of WebHDFS beside servers that are made up: what a real cluster on one machine does not do by itself.

What a real one answers is in tests/sources/test_hdfs.py.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from eosingest.errors import ChangedError, FatalError, SpecError
from eosingest.protocol.source import Version
from eosingest.sources.files.listing import hdfs_places
from eosingest.sources.files.listing.source_file import SourceFile
from eosingest.sources.files.reading.folder_columns import FolderColumns
from eosingest.sources.files.reading.value_reader import CONTENT, ValueReader
from eosingest.sources.files.storage import hdfs, webhdfs
from eosingest.sources.files.storage.hadoop_site import endpoints_of
from eosingest.sources.files.storage.hdfs import HdfsStorage, pages_of
from eosingest.sources.files.storage.port import NotAsListedError, UnreachableError
from eosingest.spark.python_scan import PythonSplit
from eosingest.spec import load
from tests.support.builders import planned_split
from tests.support.harness import wait_for
from tests.support.server_thread import serve

Answer = tuple[int, dict[str, str], bytes]
NOBODY = "http://127.0.0.1:1"


class Node:
    """A server that answers as it is told, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, str]] = []
        self.answers: Callable[[dict[str, str]], Answer] = lambda query: (200, {}, b"{}")
        node = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                query = {name: values[0] for name, values in parse_qs(parts.query).items()} | {"path": parts.path}
                node.asked.append(query)
                status, headers, body = node.answers(query)
                self.send_response(status)
                for name, text in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, text)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *said: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        serve(self.server)


@pytest.fixture
def node() -> Iterator[Node]:
    made = Node()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hdfs, "_PAUSE_S", 0.001)
    monkeypatch.setattr("eosingest.sources.files.storage.object_stream._PAUSE_S", 0.001)


def file_of(url: str, length: int = 4) -> SourceFile:
    return SourceFile("hdfs://n/a", "hdfs://n/a", length, 5, True, "17-5", HdfsStorage((url,), "me"))


def remote(kind: str, message: str = "m", status: int = 403) -> Answer:
    return status, {}, json.dumps({"RemoteException": {"exception": kind, "message": message}}).encode()


def status(**changed: object) -> Answer:
    found = {"type": "FILE", "length": 4, "modificationTime": 5, "fileId": 17, **changed}
    return 200, {}, json.dumps({"FileStatus": found}).encode()


def test_a_data_node_that_does_not_answer_is_not_asked_for_again(node: Node) -> None:
    def answers(query: dict[str, str]) -> Answer:
        if query.get("op") == "GETFILESTATUS":
            return status()
        if "webhdfs" in query["path"]:
            there = f"{node.url}/data" if query.get("excludedatanodes") == "127.0.0.1" else f"{NOBODY}/data"
            return 307, {"Location": there}, b""
        return 200, {}, b"abcd"

    node.answers = answers
    file = file_of(node.url)
    assert file.storage.open(file).read() == b"abcd"
    assert [query.get("excludedatanodes") for query in node.asked] == [None, "127.0.0.1", None, None]
    assert {query["path"] for query in node.asked} == {"/webhdfs/v1/.reserved/.inodes/17", "/data"}


def test_a_lone_data_node_is_asked_again_when_it_is_back(node: Node) -> None:
    """Breaks when it stays excluded, and the name node has no other one to name."""

    def answers(query: dict[str, str]) -> Answer:
        if query.get("op") == "GETFILESTATUS":
            return status()
        if query["path"] == "/data":
            return 200, {}, b"abcd"
        if "excludedatanodes" in query:
            return remote("IOException", "No active nodes contain this block")
        first = len(node.asked) == 1
        return 307, {"Location": f"{NOBODY if first else node.url}/data"}, b""

    node.answers = answers
    file = file_of(node.url)
    assert file.storage.open(file).read() == b"abcd"


def test_bytes_of_a_file_that_changed_are_not_given(node: Node) -> None:
    """By its id it is the same file: it was cut off, and appended to."""
    node.answers = lambda query: status(modificationTime=6) if query["op"] == "GETFILESTATUS" else (200, {}, b"abcd")
    file = file_of(node.url)
    with pytest.raises(NotAsListedError):
        file.storage.open(file).read()


@pytest.mark.parametrize(
    ("column", "requests"), [("content", ["OPEN", "GETFILESTATUS", "GETFILESTATUS"]), ("path", ["GETFILESTATUS"])]
)
def test_the_status_is_asked_for_as_often_as_needed(node: Node, column: str, requests: list[str]) -> None:
    """Once; of a file that is read with its bytes, by its id, and after them, by its path."""
    node.answers = lambda query: status() if query["op"] == "GETFILESTATUS" else (200, {}, b"abcd")
    reader = ValueReader(CONTENT, FolderColumns()).narrowed(frozenset([column]))
    (found,) = reader.read(PythonSplit(0, file_of(node.url), planned_split("hdfs://n/a", 0, 4)), None)
    assert found.column("length").to_pylist() == [4]
    assert [query["op"] for query in node.asked] == requests
    node.answers = lambda query: status(fileId=18) if query["op"] == "GETFILESTATUS" else (200, {}, b"abcd")
    with pytest.raises(ChangedError):
        list(reader.read(PythonSplit(0, file_of(node.url), planned_split("hdfs://n/a", 0, 4)), None))


def silent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let nobody answer; return the addresses that are asked from now on."""
    tries: list[str] = []

    def get(url: str, path: str) -> None:
        tries.append(url)
        raise UnreachableError("silent")

    monkeypatch.setattr(hdfs.webhdfs, "get", get)
    return tries


def test_who_does_not_answer_is_not_asked_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = silent(monkeypatch)
    file = file_of(NOBODY)
    with pytest.raises(UnreachableError, match="silent"):
        file.storage.open(file).read()
    assert len(tries) == 3


def test_who_did_not_answer_is_not_asked_for_a_checksum_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when what the name node was asked three times for is tried three times: a silent one is waited for so often."""
    tries = silent(monkeypatch)
    with pytest.raises(UnreachableError, match="silent"):
        HdfsStorage((NOBODY,), "me").checksum(file_of(NOBODY))
    assert len(tries) == 3


def test_answers_that_are_cut(node: Node) -> None:
    """A listing or a checksum that breaks in its middle is asked for again; then it is no answer."""
    node.answers = lambda query: (200, {"Content-Length": "5000", "Connection": "close"}, b'{"FileStatus": {')
    with pytest.raises(UnreachableError, match="does not answer"):
        HdfsStorage((node.url,), "me").status("hdfs://n/a")
    assert len(node.asked) == 3


def test_a_standby_is_passed_over(node: Node) -> None:
    active = Node()
    node.answers = lambda query: remote("StandbyException", "Operation category READ is not supported in state standby")
    active.answers = lambda query: status()
    both = HdfsStorage((NOBODY, node.url, active.url), "me")
    found = both.status("hdfs://shop/a b")
    assert (found.length, found.etag) == (4, "17-5") if found else False
    assert active.asked[0]["path"] == "/webhdfs/v1/a%20b" and active.asked[0]["user.name"] == "me"
    active.server.shutdown()
    with pytest.raises(UnreachableError, match="StandbyException"):
        HdfsStorage((node.url,), "me").status("hdfs://shop/a")


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        (remote("FileNotFoundException", "none there", status=404), NotAsListedError, "none there"),
        (remote("AccessControlException", "/a (is not a directory)"), NotAsListedError, "not a directory"),
        (remote("IOException", "Offset=9 out of the range [0, 4); OPEN"), NotAsListedError, "out of the range"),
        (remote("AccessControlException", "Permission denied: user=me"), FatalError, "Permission denied"),
        (remote("SafeModeException"), UnreachableError, "SafeMode"),
        (remote("IOException", "Failed to find datanode, suggest to check"), UnreachableError, "find datanode"),
        (remote("IOException", "No active nodes contain this block"), UnreachableError, "No active"),
        (remote("IOException", "No active and not excluded nodes contain this block"), UnreachableError, "No active"),
        (remote("IllegalArgumentException", "Invalid value"), FatalError, "Invalid value"),
        (remote("UnsupportedOperationException", "no"), FatalError, "GETFILESTATUS is not supported"),
        ((401, {"WWW-Authenticate": "Negotiate"}, b"<html>"), FatalError, "requires Kerberos"),
        ((502, {}, b"<html>"), UnreachableError, "answers 502"),
        ((404, {}, b"<html>"), FatalError, "not one of WebHDFS"),
        ((200, {}, b"<html>"), FatalError, "not one of WebHDFS"),
        ((200, {}, b"{}"), FatalError, "not one of WebHDFS"),
        (status(fileId=0), FatalError, "gives no ids"),
    ],
)
def test_answers_that_are_errors(node: Node, answer: Answer, error: type[Exception], said: str) -> None:
    node.answers = lambda query: answer
    with pytest.raises(error, match=said):
        found = HdfsStorage((node.url,), "me").ask("GETFILESTATUS", "hdfs://n/a", "/a", "FileStatus")
        hdfs.status_of("hdfs://n/a", found)


@pytest.mark.parametrize("change", [{"length": 5}, {"modificationTime": 6}, {"fileId": 18}, {"type": "DIRECTORY"}])
def test_what_is_another_file(node: Node, change: dict[str, object]) -> None:
    file, storage = file_of(node.url), HdfsStorage((node.url,), "me")
    node.answers = lambda query: status()
    assert storage.is_as_listed(file)
    node.answers = lambda query: status(**change)
    assert not storage.is_as_listed(file)
    node.answers = lambda query: remote("FileNotFoundException")
    assert not storage.is_as_listed(file)


@pytest.mark.parametrize(
    ("answer", "checksum"),
    [
        ((200, {}, b'{"FileChecksum": {"algorithm": "COMPOSITE-CRC32C", "bytes": "ab"}}'), "COMPOSITE-CRC32C:ab"),
        ((200, {}, b'{"FileChecksum": null}'), None),
        (remote("UnsupportedOperationException", "Unsupported by this file system"), None),
    ],
)
def test_checksums(node: Node, answer: Answer, checksum: str | None) -> None:
    node.answers = lambda query: answer
    file = file_of(node.url)
    assert file.storage.checksum(file) == checksum  # type: ignore[attr-defined]
    places = hdfs_places.HdfsPlaces(HdfsStorage((node.url,), "me"), lambda: None)
    version = places.version(file, [])
    assert version == {"length": 4, "etag": "17-5", **({"checksum": checksum} if checksum else {})}
    assert places.version(file, [version]) is version
    touched = {**version, "etag": "17-9"}
    assert places.unchanged(file, [touched]) == (checksum is not None)
    assert places.unchanged(file, [version]) and not places.unchanged(file, [{**version, "length": 5}])
    assert not places.unchanged(file, [{"length": 4, "mtime_ms": 5, "content": "x"}]), "it was a local file"


def many(url: str, count: int) -> list[SourceFile]:
    storage = HdfsStorage((url,), "me")
    return [SourceFile(f"n{i}", f"hdfs://n/n{i}", 4, 5, True, f"{i}-5", storage) for i in range(count)]


def checksum_of(query: dict[str, str]) -> Answer:
    number = query["path"].rpartition("/")[2]
    return 200, {}, json.dumps({"FileChecksum": {"algorithm": "A", "bytes": number}}).encode()


def numbers_asked(node: Node) -> list[int]:
    return [int(query["path"].rpartition("/")[2]) for query in node.asked]


def test_checksums_are_asked_for_several_at_a_time(node: Node) -> None:
    """Of the files whose versions are not known, each once, and not of all before the first is wanted."""
    together = threading.Barrier(hdfs_places._AT_A_TIME)

    def answers(query: dict[str, str]) -> Answer:
        together.wait(timeout=30)  # breaks with fewer requests at a time
        return checksum_of(query)

    node.answers = answers
    files = many(node.url, 12 * hdfs_places._AT_A_TIME)
    known = {"length": 4, "etag": files[7].etag, "checksum": "as recorded"}
    touched = {"length": 4, "etag": "7-4", "checksum": "A:9"}
    recorded: dict[int, list[Version]] = {7: [known], 9: [touched], 11: [{**touched, "length": 3}]}
    left_out = hdfs_places._AT_A_TIME - 1  # of the last ones, so that the barrier comes out even
    asked = files[: len(files) - left_out]
    places = hdfs_places.HdfsPlaces(HdfsStorage((node.url,), "me"), lambda: None)
    pairs = [(file, recorded.get(number, [])) for number, file in enumerate(asked)]
    with places.ahead(pairs):
        assert places.version(files[0], [])["checksum"] == "A:0"
        assert len(node.asked) <= hdfs_places._ASKED_AHEAD + 1
        for number, file in enumerate(asked[1:], start=1):
            versions = recorded.get(number, [])
            if versions:
                assert places.unchanged(file, versions) == (number in (7, 9))
            checksum = "as recorded" if number == 7 else f"A:{number}"
            assert places.version(file, versions)["checksum"] == checksum
    assert sorted(numbers_asked(node)) == [number for number in range(len(asked)) if number != 7]
    assert hdfs_places._AT_A_TIME <= webhdfs._POOL, (
        "a thread more than connections would make a new one for each request"
    )
    wait_for(lambda: not any(thread.name == "store" for thread in threading.enumerate()), timeout_s=10)


def test_an_error_is_that_of_the_file_that_is_asked_for(node: Node) -> None:
    """Breaks when a later file's error comes first, or requests go on behind an error."""
    failed = threading.Event()

    def answers(query: dict[str, str]) -> Answer:
        if query["path"].endswith("/3"):
            failed.set()
            return remote("FileNotFoundException", status=404)
        failed.wait(timeout=30)
        return checksum_of(query)

    node.answers = answers
    files = many(node.url, 200)
    places = hdfs_places.HdfsPlaces(HdfsStorage((node.url,), "me"), lambda: None)
    wanted = list[str]()
    with pytest.raises(ChangedError, match="hdfs://n/n3 "), places.ahead([(file, []) for file in files]):
        for file in files:
            wanted.append(str(places.version(file, [])["checksum"]))
    assert wanted == ["A:0", "A:1", "A:2"]
    assert len(node.asked) <= hdfs_places._ASKED_AHEAD + 4
    assert places.version(files[5], [])["checksum"] == "A:5", "one that nobody asked for ahead is asked for alone"


def test_what_was_not_told_ahead_is_asked_for_alone(node: Node) -> None:
    node.answers = checksum_of
    files = many(node.url, 6)
    places = hdfs_places.HdfsPlaces(HdfsStorage((node.url,), "me"), lambda: None)
    with places.ahead([(file, []) for file in files[:3]]):
        for number in (5, 1, 0, 2, 2):  # 0 is passed by when 1 is asked for
            assert places.version(files[number], [])["checksum"] == f"A:{number}"
    assert sorted(numbers_asked(node)) == [0, 0, 1, 2, 5]


def test_a_signal_ends_the_wait_for_a_checksum(node: Node) -> None:
    held = threading.Event()
    stopped = False

    def answers(query: dict[str, str]) -> Answer:
        nonlocal stopped
        stopped = True
        held.wait(timeout=30)
        return checksum_of(query)

    def check() -> None:
        if stopped:
            raise InterruptedError

    node.answers = answers
    files = many(node.url, 100)
    places = hdfs_places.HdfsPlaces(HdfsStorage((node.url,), "me"), check)
    with pytest.raises(InterruptedError), places.ahead([(file, []) for file in files]):
        places.version(files[0], [])
    held.set()
    time.sleep(0.3)
    assert len(node.asked) <= hdfs_places._AT_A_TIME, "those that had begun, and no other"


def site(folder: Path, **settings: str) -> dict[str, str]:
    """Write a configuration; `__` stands for a dot, `_` for a minus sign."""
    names = {name.replace("__", ".").replace("_", "-"): text for name, text in settings.items()}
    text = "".join(f"<property><name>{name}</name><value> {text}</value></property>" for name, text in names.items())
    (folder / "hdfs-site.xml").write_text(f"<configuration>{text}</configuration>")
    return {"HADOOP_CONF_DIR": str(folder)}


def test_where_the_site_has_its_name_nodes(tmp_path: Path) -> None:
    assert endpoints_of("nn:8020", {}) == ("http://nn:9870",)
    of_one = {"fs__defaultFS": "hdfs://nn:8020", "dfs__namenode__http_address": "0.0.0.0:50070"}
    assert endpoints_of("nn:8020", site(tmp_path, **of_one)) == ("http://nn:50070",)
    assert endpoints_of("other:8020", site(tmp_path, **of_one)) == ("http://other:9870",), "it is of another"
    of_two = {
        "dfs__ha__namenodes__shop": "a, b",
        "dfs__namenode__http_address__shop__a": "h1:9870",
        "dfs__namenode__http_address__shop__b": "h2:9870",
    }
    assert endpoints_of("shop", site(tmp_path, **of_two)) == ("http://h1:9870", "http://h2:9870")
    by_tls = {"dfs__http__policy": "HTTPS_ONLY", "dfs__namenode__https_address": "nn:9871"}
    assert endpoints_of("nn:8020", site(tmp_path, fs__defaultFS="hdfs://nn:8020", **by_tls)) == ("https://nn:9871",)
    by_reference = {
        "name": "${env.NN}",
        "dfs__namenode__http_address": "${name}:50070",
        "fs__defaultFS": "hdfs://nn:8020",
    }
    assert endpoints_of("nn:8020", {"NN": "h3", **site(tmp_path, **by_reference)}) == ("http://h3:50070",)
    assert endpoints_of("nn:8020", site(tmp_path, dfs__http__policy="HTTPS_ONLY")) == ("https://nn:9871",)
    (tmp_path / "hdfs-site.xml").write_text("<configuration>")
    with pytest.raises(SpecError, match=r"hdfs-site\.xml"):
        endpoints_of("nn:8020", {"HADOOP_CONF_DIR": str(tmp_path)})


def test_who_reads_and_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.setenv("HADOOP_USER_NAME", "etl")
    given = hdfs_places.storage_of(["hdfs://shop/a"], "http://h1:9870/, http://h2:9870")
    assert given == HdfsStorage(("http://h1:9870", "http://h2:9870"), "etl")
    monkeypatch.delenv("HADOOP_USER_NAME")
    assert hdfs_places.storage_of(["HDFS://nn:8020/a", "hdfs://nn:8020/b"], None).endpoints == ("http://nn:9870",)
    assert hdfs_places.storage_of(["hdfs://nn:8020/a"], None).user not in ("etl", "")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ('path = ["hdfs://n/a", "c"]', "names files of HDFS and others"),
        ('path = ["hdfs://n/a", "s3://b/c"]', "give them a job each"),
        ('path = "hdfs://n/a"\nstorage = { region = "x" }', "is for buckets"),
        ('path = "hdfs://n/a"\nstorage = { endpoint = "n:9870" }', "URL of the name node's web address"),
        ('path = "hdfs://n/a"\nschema = "value STRING"', "drop schema"),
    ],
)
def test_specs_that_are_refused(tmp_path: Path, source: str, said: str) -> None:
    spec = tmp_path / "job.toml"
    spec.write_text(
        f'name = "j"\n[source]\nformat = "text"\n{source}\n[sink]\nbootstrap_servers = "b:1"\ntopic = "t"\n'
    )
    with pytest.raises(SpecError) as caught:
        load(spec)
    assert said in caught.value.message


def test_a_server_that_gives_the_same_page_again_is_refused() -> None:
    """Breaks when a server that does not know the parameter is asked without end, as Hadoop 3.5 knows no `startAfter`."""

    class Same:
        def ask(self, *_: object, **parameters: str) -> Any:
            assert all(name.islower() for name in parameters)
            return {"partialListing": {"FileStatuses": {"FileStatus": [{"pathSuffix": "a"}]}}, "remainingEntries": 1}

    with pytest.raises(FatalError, match="hdfs://h:1/f: the name node gives the same page of the listing again"):
        list(pages_of(Same(), "hdfs://h:1/f"))  # type: ignore[arg-type]
