"""Files of HDFS as subjects of the conformance suite: what is written to the folder is put there too.

Each edit writes another file in the place of the first, with an id of its own, so nothing is `unseen` here; to touch one is to
put it again.
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.hdfs import Hdfs

if TYPE_CHECKING:
    from tests.sources.kinds import FileSubject as Files
else:
    Files = object


class InHdfs(Files):
    """Such files (a mixin before a class of files): `hdfs` is set before it is created."""

    hdfs: Hdfs

    def create(self) -> None:
        self.top = f"/conformance-{uuid.uuid4().hex[:12]}"
        super().create()

    @property
    def where(self) -> str:
        return f'path = "{self.hdfs.address}{self.top}/{self.folder.name}/*"\n{self.hdfs.table()}'

    def edit(self, row: bytes, *, unseen: bool) -> None:
        assert not unseen
        super().edit(row, unseen=unseen)

    def touch(self, item: str) -> None:
        self.hdfs.put(item.removeprefix(self.hdfs.address), self._path(item).read_bytes())

    def remove(self, item: str) -> None:
        super().remove(item)
        self.hdfs.delete(item.removeprefix(self.hdfs.address))

    def items(self) -> list[str]:
        return [f"{self.hdfs.address}{self.top}/{item}" for item in super().items()]

    def _path(self, item: str) -> Path:
        return self.folder / item.rpartition("/")[2]

    def _write(self, path: Path, rows: list[bytes]) -> None:
        super()._write(path, rows)
        self.hdfs.put(f"{self.top}/{self.folder.name}/{path.name}", path.read_bytes())
