"""Files of HDFS as subjects of the conformance suite. Each edit writes another file in the place of the first, with another id;
to touch one is to put it again.
"""

from __future__ import annotations

import uuid

from tests.support.hdfs import Hdfs
from tests.support.sources.in_store import InStore


class InHdfs(InStore):
    """Such files: `hdfs` is set before it is created."""

    hdfs: Hdfs

    def create(self) -> None:
        self.top = f"{self.hdfs.address}/conformance-{uuid.uuid4().hex[:12]}"
        super().create()

    @property
    def where(self) -> str:
        return f'path = "{self.top}/{self.folder.name}/*"\n{self.hdfs.table()}'

    def touch(self, item: str) -> None:
        self.put_there(item, self._path(item).read_bytes())

    def put_there(self, item: str, data: bytes) -> None:
        self.hdfs.put(self.place(item), data)

    def delete_there(self, item: str) -> None:
        self.hdfs.delete(self.place(item))

    def place(self, item: str) -> str:
        return item.removeprefix(self.hdfs.address)
