"""An audit cuts lines by other code than a run: both give the same ones of every split."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from eosingest.errors import FatalError
from eosingest.protocol.plan import make_plan
from eosingest.sources.files.cuts import FileSplit
from eosingest.sources.files.listing.source_file import SourceFile
from eosingest.sources.files.reading import audit_lines
from eosingest.sources.files.reading.audit_lines import lines_again
from eosingest.sources.files.reading.line_reader import lines_of
from eosingest.sources.files.source import FileSource
from tests.support.compressed import COMPRESS


def splits(folder: Path, separator: bytes | None, size: int) -> list[tuple[SourceFile, FileSplit]]:
    options = {} if separator is None else {"lineSep": separator.decode()}
    source = FileSource(format="text", paths=["*"], directory=folder, root=None, min_age_s=0, options=options)
    plan = make_plan(source, {}, size, source.plan())
    return [(entry.item, planned.split) for entry in plan.items for planned in entry.pending]  # type: ignore[misc]


@pytest.mark.parametrize("separator", [None, b";", b"\r", b"\r\n", b"abb", b";;"])
def test_both_cut_alike(tmp_path: Path, separator: bytes | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when an audit finds records missing that are there, at a border of splits or of pieces."""
    random = Random(str(separator))
    monkeypatch.setattr(audit_lines, "_PIECE_BYTES", 5)
    kinds = (b"a", b"b", b";", b"\r", b"\n", b"\xef\xbb\xbf", b"\xff")
    for number in range(60):
        data = b"".join(random.choices(kinds, (4, 4, 2, 1, 1, 1, 1), k=random.randint(1, 60)))
        (tmp_path / f"f{number:02}").write_bytes(data)
        for suffix, compress in COMPRESS.items():
            if number % 10 == 0:
                (tmp_path / f"g{number:02}.{suffix}").write_bytes(compress(data[:9]) + compress(data[9:]))
    (tmp_path / "mark").write_bytes(b"\xef\xbb\xbf")
    for size in (1, 7, 1000):
        for file, cut in splits(tmp_path, separator, size):
            run = [line for lines in lines_of(file, cut, separator) for line in lines]
            audit = [line for lines in lines_again(file, cut, separator) for line in lines]
            assert audit == run, (file.name, cut)


def test_a_file_that_is_damaged_since_it_was_sent(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(COMPRESS["gz"](b"x\n" * 9)[:-3])
    ((file, cut),) = splits(tmp_path, None, 100)
    with pytest.raises(FatalError) as raised:
        list(lines_again(file, cut, None))
    assert raised.value.code == "bad-data"
