"""Tasks ask for the files of a store whose rows Spark has read: for which, how often, and until when."""

from __future__ import annotations

import pyarrow as pa
import pytest

from eosingest.protocol.plan import PlannedSplit
from eosingest.protocol.task_contract import Signal
from eosingest.sources.files.listing.source_file import SourceFile
from eosingest.sources.files.reading.store_check import StoreCheck
from eosingest.sources.files.storage.s3 import S3Storage
from eosingest.spark.record_columns import CHECKSUM, SPLIT
from eosingest.spark.worker import ArrowInputs, SplitsCheck
from tests.support.builders import split


def test_objects_are_asked_for_by_their_paths_and_etags(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once each, whatever the number of their splits; below a root, names are no paths."""
    storage, asked = S3Storage(), list[tuple[str, str, int]]()
    monkeypatch.setattr(
        S3Storage, "is_as_listed", lambda _, file: asked.append((file.path, file.etag, file.length)) is None
    )
    listed = SourceFile("in/a", "s3://b/root/in/a", 5, 1, True, '"e"', storage)
    check = StoreCheck.of([listed])
    assert check is not None and check.prefix == "s3://b/root/"
    version = {"length": 5, "etag": '"e"'}
    check([PlannedSplit(split("in/a", at), version, None) for at in (0, 100)])
    check([PlannedSplit(split(name), version, None) for name in ("in/a", "in/b")])
    assert sorted(asked) == [("s3://b/root/in/a", '"e"', 5)] * 2 + [("s3://b/root/in/b", '"e"', 5)]
    assert StoreCheck.of([SourceFile("a", "/a", 5, 1, True)]) is None


def test_a_split_is_asked_for_until_rows_of_another_one_end_it() -> None:
    """Breaks when a file is asked for with its own rows alone: its reader may have ended early behind the last of them."""
    asked = list[list[str]]()
    planned = {key: PlannedSplit(split(name), {}, None) for key, name in ((1, "a"), (2, "b"))}
    check = SplitsCheck(planned, lambda splits: asked.append([found.split.item for found in splits]))
    rows = ([1, 1], [2, 2], [2], [1, 2])
    columns = [{"value": [b"v"] * len(keys), SPLIT: keys, CHECKSUM: keys} for keys in rows]
    batches = [pa.RecordBatch.from_pydict({**each, "value": pa.array(each["value"], pa.binary())}) for each in columns]
    inputs = ArrowInputs(batches, (), check=check)
    taken = [inputs.get(5.0) for _ in range(len(batches) + 1)]
    inputs.stop()
    assert taken[-1] is Signal.END
    assert asked == [["a"], ["a", "b"], ["b"], ["a", "b"]]
