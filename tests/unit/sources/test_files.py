"""Listing files: identities, what is hidden, what is refused, what is left alone. Real files, no Spark."""

from __future__ import annotations

import itertools
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from eosingest.errors import EosingestError, FatalError, SpecError
from eosingest.protocol.source import Purpose, Snapshot, Source
from eosingest.sources.files.listing import fingerprint, local_places
from eosingest.sources.files.listing.fingerprint import Fingerprint
from eosingest.sources.files.listing.source_file import SourceFile
from eosingest.sources.files.source import FileSource
from eosingest.sources.files.table import FileTable
from tests.support.builders import as_recorded, listing, passed_over, split


def make(folder: Path, *names: str, content: str = '{"a":1}\n') -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def source(folder: Path, *paths: str, root: str | None = None, min_age_s: float = 0, now: float = 0) -> FileSource:
    return FileSource(format="json", paths=paths, directory=folder, root=root, min_age_s=min_age_s, now=lambda: now)


def names(listing: Snapshot) -> list[str]:
    return [file.name for file in listing.items]


def listed(folder: Path, *paths: str, root: str | None = None) -> list[str]:
    return names(source(folder, *paths, root=root).plan())


@pytest.mark.parametrize(
    ("files", "paths", "expected"),
    [
        (["d/b.jsonl", "d/a.jsonl"], ["d"], ["d/a.jsonl", "d/b.jsonl"]),
        (["d/a.jsonl"], ["./d//x/../a.jsonl"], ["d/a.jsonl"]),
        (["d/a.jsonl"], ["."], []),
        (["a.jsonl"], ["."], ["a.jsonl"]),
        (["d/a.jsonl", "d/b.csv"], ["d/*.jsonl"], ["d/a.jsonl"]),
        (["1/a", "2/a", "3/b"], ["?/a"], ["1/a", "2/a"]),
        (["1/a", "2/a", "3/a"], ["[12]/*"], ["1/a", "2/a"]),
        (["1/a", "2/a", "3/a"], ["[1-2]/a"], ["1/a", "2/a"]),
        (["1/a", "2/a", "3/a"], ["[^12]/a"], ["3/a"]),
        (["1/a", "2/a", "3/a"], ["[!12]/a"], ["3/a"]),
        (["1/a", "2/b", "3/c"], ["{1/a,2/b}"], ["1/a", "2/b"]),
        (["xay", "xby", "xcdy", "xcy"], ["x{a,c{d,}}y"], ["xay", "xcdy", "xcy"]),
        (["d/a", "e/a"], ["{d,d/../e}/a"], ["d/a", "e/a"]),
        (["d/a", "e/a"], ["d/.././{d,d/../e}//./a/"], ["d/a", "e/a"]),
        (["{a}/b", "{a}/c"], ["{a}/../{a}/b"], ["{a}/b"]),
        (["a*b", "aXb"], [r"a\*b"], ["a*b"]),
        (["a*b", "aXb"], ["a*b"], ["a*b", "aXb"]),
        (["a?b", "aXb"], ["a?b"], ["a?b", "aXb"]),
        (["a[1].jsonl", "a1.jsonl"], ["a[1].jsonl"], ["a[1].jsonl"]),
        (["a1.jsonl"], ["a[1].jsonl"], ["a1.jsonl"]),
        (["a[1]/x", "a1/x"], ["a[1]/*"], ["a[1]/x"]),
        (["{a}.csv"], ["{a}.csv"], ["{a}.csv"]),
        (["{a}.csv"], ["*.csv"], ["{a}.csv"]),
        (["b\\s"], ["b\\s"], ["b\\s"]),
        (["new\nline"], ["new*"], ["new\nline"]),
        (["ünï.jsonl", "sp ace", "p%20q", "h#x"], ["*"], ["h#x", "p%20q", "sp ace", "ünï.jsonl"]),
        (["d/a", "d/b"], ["d/*", "d/a", "./d"], ["d/a", "d/b"]),
        (["d/k=1/a", "d/k=2/s/b"], ["d"], ["d/k=1/a", "d/k=2/s/b"]),
        (["d/s/k=1/a"], ["d"], ["d/s/k=1/a"]),
        (["d/a", "d/s/b"], ["d"], ["d/a"]),
        (["k=1/s/a", "k=1/b"], ["k=1"], ["k=1/b"]),
        (["2026-11-20/p", "2026-11-21/p"], ["2026-11-21/*"], ["2026-11-21/p"]),
    ],
)
def test_a_path_names_the_files_that_spark_would_read(
    tmp_path: Path, files: list[str], paths: list[str], expected: list[str]
) -> None:
    make(tmp_path, *files)
    if not expected:
        with pytest.raises(SpecError) as caught:
            listed(tmp_path, *paths)
        assert (caught.value.code, "'.'" in caught.value.message) == ("path-not-found", True)
        return
    assert listed(tmp_path, *paths) == expected


@pytest.mark.parametrize(
    ("files", "path", "expected", "hidden"),
    [
        (["d/_x", "d/.x", "d/x._COPYING_", "d/_metadata", "d/a"], "d", ["d/a"], 4),
        (["d/_x", "d/a"], "d/*", ["d/a"], 1),
        (["d/_k=1", "d/a"], "d", ["d/_k=1", "d/a"], 0),
        (["d/k=1/_tmp/a", "d/k=1/.x/a", "d/k=1/a"], "d", ["d/k=1/a"], 2),
        (["_t/a", ".t/a", "t/a"], "*/a", ["t/a"], 2),
        (["_t/a", "t/a"], "_*/a", ["_t/a"], 0),
        (["_t/a"], "_t", ["_t/a"], 0),
        (["_t/a"], "_t/a", ["_t/a"], 0),
        (["d/_x"], "d/*", [], 1),
    ],
)
def test_what_spark_hides_is_passed_over_and_counted(
    tmp_path: Path, files: list[str], path: str, expected: list[str], hidden: int
) -> None:
    make(tmp_path, *files)
    listing = source(tmp_path, path).plan()
    assert (names(listing), passed_over(listing, "hidden")) == (expected, hidden)


@pytest.mark.parametrize(
    ("files", "path", "code", "said"),
    [
        ([], "gone/x.jsonl", "path-not-found", "gone/x.jsonl"),
        (["a.csv"], "*.jsonl", "path-not-found", "*.jsonl"),
        (["a.csv"], "a.csv/*.jsonl", "path-not-found", "a.csv"),
        (["d/s/a"], "d", "path-not-found", "'d' holds no file"),
        (["_x"], "_x", "path-hidden", "'_x'"),
        (["d/a"], "**/a", "glob", "'**'"),
        ([], "{a", "glob", "never closed"),
        ([], "[a", "glob", "no end"),
        ([], "[]", "glob", "no end"),
        ([], "[z-a]", "glob", "not a valid glob"),
        ([], "x*\\", "glob", "nothing follows"),
        ([], "s3a://bucket/x", "path-scheme", "are read in this version"),
        ([], "HDFS:/x", "path-scheme", "are read in this version"),
        ([], "file://host/x", "path-scheme", "host"),
        ([], "a\0b", "path", "not a path"),
        ([], "", "path", "not a path"),
        (["d/a", "d/k=1/b"], "d", "mixed-tree", "column=value tree"),
        (["d/s/a", "d/k=1/b"], "d", "mixed-tree", "column=value tree"),
        (["d/j=1/a", "d/k=1/b"], "d", "mixed-tree", "column=value tree"),
        (["d/k=1/a", "d/k=1/j=1/b"], "d", "mixed-tree", "column=value tree"),
        (["d/k=1/j=1/a", "d/j=1/k=1/b"], "d", "mixed-tree", "column=value tree"),
        (["d/k=1/a", "e/k=1/b"], "{d,e}", "mixed-tree", "column=value tree"),
        (["d/k=1/s/j=1/a"], "d", "mixed-tree", "without '='"),
        (["d/k=/a"], "d", "mixed-tree", "on the right"),
        (["d/=1/a"], "d", "mixed-tree", "on the left"),
        (["d/k=1/K=2/a"], "d", "mixed-tree", "twice"),
        (["d/k=1/%6B=2/a"], "d", "mixed-tree", "twice"),
        (["d/k=%E9/a"], "d", "mixed-tree", "'k=%E9' are not UTF-8"),
        (["d/%C3%B6=1/a"], "d", "mixed-tree", "'%C3%B6' is the name of a column"),
        (["d/k=1/_temporary/a"], "d/k=1/_temporary/a", "mixed-tree", "_temporary"),
    ],
)
def test_what_cannot_be_read_as_meant_is_an_error(
    tmp_path: Path, files: list[str], path: str, code: str, said: str
) -> None:
    make(tmp_path, *files)
    with pytest.raises(EosingestError) as caught:
        source(tmp_path, path).plan()
    assert caught.value.code == code
    assert said in caught.value.message
    assert isinstance(caught.value, SpecError)


def test_not_found_says_where_it_looked(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=str(tmp_path / "data" / "x.csv")):
        listed(tmp_path / "spec", "../data/x.csv")


@pytest.mark.parametrize("name", ["2026-11-20T10:00/a.jsonl", "2026-11-20T10:00.jsonl", "2026-11-20T10:00/a[1].jsonl"])
def test_a_colon_in_a_name_is_no_hindrance(tmp_path: Path, name: str) -> None:
    make(tmp_path, name)
    assert listed(tmp_path, "2026*") == [name]


def test_a_name_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.jsonl")).write_text("x")
    with pytest.raises(FatalError, match="not UTF-8"):
        listed(tmp_path, "*")


class TestIdentity:
    def test_is_relative_to_the_spec_wherever_spec_and_data_lie(self, tmp_path: Path) -> None:
        for checkout in ("one", "two/deeper"):
            make(tmp_path / checkout, "data/a.jsonl")
            assert listed(tmp_path / checkout / "specs", "../data/*") == ["../data/a.jsonl"]

    def test_is_the_whole_path_for_an_absolute_one(self, tmp_path: Path) -> None:
        make(tmp_path, "a b.jsonl")
        whole = f"{tmp_path}/a b.jsonl"
        for path in (whole, f"/{whole}", f"file:{whole}", f"file://{whole}", f"file://localhost{whole}"):
            assert listed(tmp_path, path) == [whole]

    def test_nothing_is_decoded_in_a_file_uri(self, tmp_path: Path) -> None:
        make(tmp_path, "a%20b", "a b")
        assert listed(tmp_path, f"file:{tmp_path}/a%20b") == [f"{tmp_path}/a%20b"]

    def test_is_relative_to_root(self, tmp_path: Path) -> None:
        make(tmp_path, "ws/data/a.jsonl")
        absolute = str(tmp_path / "ws" / "data")
        for root in ("../ws", "../ws/", str(tmp_path / "ws"), f"{tmp_path}/x/../ws"):
            assert listed(tmp_path / "spec", absolute, "../ws/data/*", root=root) == ["data/a.jsonl"]

    def test_outside_root_is_an_error(self, tmp_path: Path) -> None:
        make(tmp_path, "ws/a", "ws2/a")
        with pytest.raises(SpecError) as caught:
            listed(tmp_path, "ws2/a", root="ws")
        assert caught.value.code == "outside-root"

    @pytest.mark.parametrize("swap", [False, True])
    def test_of_a_file_named_both_ways_is_the_relative_one(self, tmp_path: Path, swap: bool) -> None:
        make(tmp_path, "a")
        both = ["a", str(tmp_path / "a")]
        assert listed(tmp_path, *(reversed(both) if swap else both)) == ["a"]

    def test_glob_characters_in_the_folder_of_the_spec_mean_nothing(self, tmp_path: Path) -> None:
        make(tmp_path, "p*[1]{a}/d/x", "pq1a/d/y", "p*[1]{a}/z")
        assert listed(tmp_path / "p*[1]{a}" / "d", "*", "../z*") == ["../z", "x"]

    @pytest.mark.parametrize(
        ("paths", "root", "expected"),
        [(["d"], None, "."), (["/d"], None, "/"), (["/d", "e"], None, "."), (["/d"], "/ws", "/ws"), (["d"], "d", "d")],
    )
    def test_root_as_written(self, paths: list[str], root: str | None, expected: str) -> None:
        assert FileTable(format="json", path=paths, root=root).root_as_written == expected

    @pytest.mark.parametrize("path", ["file:/d", "FILE:///d", "s3a://b/d", "hdfs://n:1/d"])
    def test_root_as_written_of_absolute_paths(self, path: str) -> None:
        assert FileTable(format="json", path=[path]).root_as_written == "/"

    def test_links_are_names_of_their_own(self, tmp_path: Path) -> None:
        make(tmp_path, "d/a", content="12345")
        (tmp_path / "d" / "b").symlink_to("a")
        files = source(tmp_path, "d").plan().items
        assert [(file.name, file.length) for file in files] == [("d/a", 5), ("d/b", 5)]


def test_links_that_lead_back_or_nowhere(tmp_path: Path) -> None:
    make(tmp_path, "d/k=1/a")
    (tmp_path / "d" / "k=1" / "up").symlink_to("..")
    assert listed(tmp_path, "d") == ["d/k=1/a"]
    for target in ("nowhere", "k=2"):
        link = tmp_path / "d" / "k=2"
        link.symlink_to(target)
        with pytest.raises(FatalError) as caught:
            listed(tmp_path, "d")
        assert caught.value.code == "file-unreadable"
        link.unlink()


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FatalError, match="not a regular file"):
        listed(tmp_path, "pipe")


@pytest.fixture
def closed_to_us() -> Iterator[Path]:
    """A folder with the rights of somebody who is not root, also where the tests run as root."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o777)
        folder = Path(name)
        make(folder, "d/a", "e/b")
        was = os.geteuid()
        if was == 0:
            os.chown(folder / "d" / "a", 1, 1)
            os.chown(folder / "e", 1, 1)
            os.seteuid(65534)
        try:
            yield folder
        finally:
            os.seteuid(was)
            os.chmod(folder / "e", 0o755)


@pytest.mark.parametrize(("closed", "path"), [("d/a", "d"), ("e", "e"), ("e", "e/b"), ("e", "e/*")])
def test_unreadable_is_said_with_its_name(closed_to_us: Path, closed: str, path: str) -> None:
    euid = os.geteuid()
    if euid == 65534:
        os.seteuid(0)
    os.chmod(closed_to_us / closed, 0)
    os.seteuid(euid)
    with pytest.raises(FatalError) as caught:
        listed(closed_to_us, path)
    assert caught.value.code == "file-unreadable"
    assert str(closed_to_us / closed) in caught.value.message


def test_young_and_empty_files_are_kept_apart(tmp_path: Path) -> None:
    make(tmp_path, "old", "edge", "young", "future", "empty-young")
    make(tmp_path, "empty", content="")
    (tmp_path / "empty-young").write_text("")
    times = {"old": 900, "edge": 940, "young": 941, "future": 2000, "empty": 900, "empty-young": 999}
    for name, mtime in times.items():
        os.utime(tmp_path / name, (mtime, mtime))
    listing = source(tmp_path, "*", min_age_s=60, now=1000).plan()
    assert names(listing) == ["edge", "old"]
    assert passed_over(listing, "too young") == ("empty-young", "future", "young")
    assert passed_over(listing, "empty") == ("empty",)
    patient = source(tmp_path, "*", min_age_s=0, now=1000).plan()
    assert (len(patient.items), passed_over(patient, "too young"), len(passed_over(patient, "empty"))) == (4, (), 2)


def test_an_empty_folder_is_nothing_to_do(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    assert source(tmp_path, "d").plan() == listing()


def test_times_are_cut_to_milliseconds_as_hadoop_does(tmp_path: Path) -> None:
    make(tmp_path, "a")
    for ns, ms in [(1_700_000_000_999_999_999, 1_700_000_000_999), (-1, -1), (-1_500_000_001, -1501)]:
        os.utime(tmp_path / "a", ns=(ns, ns))
        assert source(tmp_path, "a").plan().items[0].mtime_ms == ms


def test_changed_names_what_differs_now(tmp_path: Path) -> None:
    make(tmp_path, "same", "grew", "touched", "gone")
    files_source: Source = source(tmp_path, "*")
    files = files_source.plan().items
    assert files_source.changed(files) == []
    make(tmp_path, "grew", content="more than before")
    os.utime(tmp_path / "grew", ns=(0, files[1].mtime_ms * 1_000_000))
    os.utime(tmp_path / "touched", (5, 5))
    (tmp_path / "gone").unlink()
    assert files_source.changed(files) == ["gone", "grew", "touched"]


@pytest.mark.parametrize(
    ("paths", "files", "base"),
    [
        (["d"], ["d/k=1/a", "d/K=2/b"], "d"),
        (["d/k=1/a"], ["d/k=1/a"], "d"),
        (["d"], ["d/k=1/j=1/a", "d/k=2/j=1/s/b"], "d"),
        (["d/*/*"], ["d/k=1/j=1/a", "d/k=2/j=1/b"], "d"),
        (["../t/k=*"], ["../t/k=1/a"], "../t"),
        (["d"], ["d/a"], None),
    ],
)
def test_partition_base(tmp_path: Path, paths: list[str], files: list[str], base: str | None) -> None:
    spec = tmp_path / "x=y" / "spec"
    spec.mkdir(parents=True)
    make(spec, *files)
    tree = source(spec, *paths)
    expected = None if base is None else os.path.normpath(spec / base)
    found = tree.plan().items
    assert len(found) == len(files)
    assert tree.partition_base(found) == expected
    assert tree.partition_base(found[:1]) == expected


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["."], ["d/a", "d/e/f/b", "d/k=1/c", "o"]),
        (["d"], ["d/a", "d/e/f/b", "d/k=1/c"]),
        (["d", "d/e"], ["d/a", "d/e/f/b", "d/k=1/c"]),
        (["d/*"], ["d/a", "d/e/f/b", "d/k=1/c"]),
        (["d/[k]*"], ["d/k=1/c"]),
        (["d/a"], ["d/a"]),
    ],
)
def test_all_folders_below_are_read_where_it_is_asked_for(
    tmp_path: Path, paths: list[str], expected: list[str]
) -> None:
    """Breaks when a folder is left out, a file is listed twice, or a folder gives a column (as Spark's recursiveFileLookup)."""
    make(tmp_path, "o", "d/a", "d/e/f/b", "d/k=1/c", "d/_temporary/x", "d/e/.hidden")
    (tmp_path / "d/k=1/up").symlink_to(tmp_path / "d/k=1")  # back up: the files have a shorter name already
    tree = FileSource(format="json", paths=paths, directory=tmp_path, root=None, min_age_s=0, recursive=True)
    found = tree.plan()
    assert names(found) == expected
    assert (tree.partition_base(found.items), found.folders) == (None, ())


@pytest.mark.parametrize("paths", [["d"], ["d/*"], ["d/e", "d/k"], ["d/k", "e"]])
def test_a_folder_of_two_names_is_refused_where_all_are_read(tmp_path: Path, paths: list[str]) -> None:
    """Breaks when the files of a linked folder are sent under both of its names."""
    make(tmp_path, "d/e/a", "d/k/b")
    (tmp_path / "d/k/link").symlink_to(tmp_path / "d/e")
    (tmp_path / "e").symlink_to(tmp_path / "d/e")
    tree = FileSource(format="json", paths=paths, directory=tmp_path, root=None, min_age_s=0, recursive=True)
    with pytest.raises(SpecError, match="are one folder") as caught:
        tree.plan()
    assert caught.value.code == "path-twice"


def test_a_split_s_key_is_what_offset_records_are_keyed_by(tmp_path: Path) -> None:
    make(tmp_path, "a", content="x" * 25)
    one = source(tmp_path, "a")
    splits = one.splits.cut(one.plan().items[0], 10)
    assert splits == (split("a", 0, 10), split("a", 10, 10), split("a", 20, 5))
    assert splits[1].key == {"file": "a", "start": 10}


def test_a_hundred_thousand_files_are_listed_in_seconds(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    for number in range(100_000):
        os.close(os.open(f"{tmp_path}/d/{number:06}", os.O_CREAT | os.O_WRONLY))
    for number in range(0, 100_000, 100):
        (tmp_path / "d" / f"{number:06}").write_text("x")
    began = time.process_time()
    listing = source(tmp_path, "d").plan()
    assert time.process_time() - began < 5
    assert (len(listing.items), len(passed_over(listing, "empty"))) == (1000, 99_000)


@pytest.mark.parametrize("paths", [["a/*"], ["*/*.json"], ["a"], ["a/1.json", "a/2.json"]])
def test_a_signal_ends_a_listing(tmp_path: Path, paths: list[str]) -> None:
    """Breaks when a long listing, of folders or of the files in them, does not hear a signal."""
    (tmp_path / "a").mkdir()
    for number in range(3):
        (tmp_path / "a" / f"{number}.json").write_text("{}")
    for heard in (1, 2):
        calls = itertools.count(1)

        def check(calls: Iterator[int] = calls, heard: int = heard) -> None:
            if next(calls) == heard:
                raise KeyboardInterrupt

        source = FileSource(format="json", paths=paths, directory=tmp_path, root=None, min_age_s=0, check=check)
        with pytest.raises(KeyboardInterrupt):
            source.check()


def test_facts_of_a_listing(tmp_path: Path) -> None:
    make(tmp_path, "d/b.bz2", "d/c", "k=1/l=2/a")
    files = FileSource(format="text", paths=["d"], directory=tmp_path, root=None, min_age_s=0).plan()
    assert (files.folders, files.sample) == ((), tmp_path / "d/b.bz2")
    tree = FileSource(format="text", paths=["k=1"], directory=tmp_path, root=None, min_age_s=0).plan()
    assert (tree.folders, tree.sample) == (("k", "l"), tmp_path / "k=1/l=2/a")


@pytest.mark.parametrize(
    ("purpose", "expected"), [(Purpose.RUN, "acde"), (Purpose.SHOW, "de"), (Purpose.AUDIT, "de")], ids=str
)
def test_what_is_read_for_a_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, purpose: Purpose, expected: str
) -> None:
    """Breaks when a plan that is only shown, or an audit, hashes files of which nothing is compared."""
    make(tmp_path, *(f"d/{name}" for name in "abcde"))
    tree, read = source(tmp_path, "d"), list[str]()
    first = tree.plan()
    recorded = [
        as_recorded(split(item.name, 0, item.size), first.versions[item.name], done=False) for item in first.items[1:]
    ]
    make(tmp_path, "d/c", content="longer than it was")
    make(tmp_path, "d/e", content='{"a":2}\n')
    for name in "de":  # copied
        os.utime(tmp_path / "d" / name, (1, 1))

    def fingerprint_file(file: SourceFile) -> Fingerprint:
        read.append(file.name[-1])
        return fingerprint.fingerprint_file(file)

    monkeypatch.setattr(local_places, "fingerprint_file", fingerprint_file)
    found = tree.plan(None, recorded, purpose)
    assert ("".join(read), found.changed) == (expected, ("d/c", "d/e"))
    assert found.versions["d/b"] == first.versions["d/b"] or purpose is not Purpose.RUN
    assert [version["length"] for version in found.versions.values()] == [item.size for item in found.items]
