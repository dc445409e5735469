"""Files of a store as subjects of the conformance suite: what is written to the folder is put into the store as well.

A listing tells every change there, so nothing is `unseen`. buckets.py and in_hdfs.py say which store, and what it is to touch a
file.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eosingest.sources.files.source import FileSource

if TYPE_CHECKING:
    from tests.support.sources.kinds import FileSubject as Files
else:
    Files = object


class InStore(Files):
    """Such files (a mixin before a class of files). `top` is the folder of the store, with which the names of items begin."""

    top: str

    def put_there(self, item: str, data: bytes) -> None:
        """Write a file of the store, in place of the one that is there."""
        raise NotImplementedError

    def delete_there(self, item: str) -> None:
        """Delete a file of the store."""
        raise NotImplementedError

    def edit(self, row: bytes, *, unseen: bool) -> None:
        assert not unseen
        super().edit(row, unseen=unseen)

    def remove(self, item: str) -> None:
        super().remove(item)
        self.delete_there(item)

    def items(self) -> list[str]:
        return [f"{self.top}/{item}" for item in super().items()]

    def _path(self, item: str) -> Path:
        return self.folder / item.rpartition("/")[2]

    def _write(self, path: Path, rows: list[bytes]) -> None:
        super()._write(path, rows)
        self.put_there(f"{self.top}/{self.folder.name}/{path.name}", path.read_bytes())


class Contents:
    """The files of a subject in a store: what they held at first, and what can be done to them."""

    def __init__(self, subject: InStore) -> None:
        self.subject = subject
        self.data = {item: subject._path(item).read_bytes() for item in subject.items()}

    def put(self, change: Callable[[bytes], bytes]) -> None:
        for item, data in self.data.items():
            self.subject.put_there(item, change(data))

    def overwrite(self) -> None:
        """The same length, and other bytes."""
        self.put(lambda data: data.replace(b"0", b"Z"))

    def delete(self) -> None:
        for item in self.data:
            self.subject.delete_there(item)

    def put_again(self) -> None:
        self.put(bytes)

    restore = put_again


def lines_of(*paths: str, **more: Any) -> FileSource:
    """Return a source of the lines of all files at these paths, however young; `more` are further settings of it."""
    plain: dict[str, Any] = {
        "format": "text",
        "directory": Path("/"),
        "root": None,
        "min_age_s": 0,
        "refuse_empty": True,
    }
    return FileSource(paths=paths, **{**plain, **more})
