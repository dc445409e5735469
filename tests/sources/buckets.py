"""Files in a bucket as subjects of the conformance suite: what is written to the folder is put into the bucket.

A listing tells every change of an object, by its ETag, so nothing is `unseen` here; to touch one is to put it again in parts.
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.s3proxy import Store

if TYPE_CHECKING:
    from tests.sources.kinds import FileSubject as Files
else:
    Files = object

_PART_BYTES = 8 << 20


class InBucket(Files):
    """Such files (a mixin before a class of files): `store` is set before it is created."""

    store: Store
    # A plan reads no object: what changed behind the listing is noticed when the first bytes are looked at.
    noticed_behind_listing = "changed-while-read"

    def create(self) -> None:
        self.bucket = self.store.bucket(f"conformance-{uuid.uuid4().hex[:12]}")
        super().create()

    @property
    def where(self) -> str:
        return f'path = "s3://{self.bucket}/{self.folder.name}/*"\n{self.store.table()}'

    def edit(self, row: bytes, *, unseen: bool) -> None:
        assert not unseen
        super().edit(row, unseen=unseen)

    def touch(self, item: str) -> None:
        self.store.put_in_parts(self.bucket, self._key(item), self._path(item).read_bytes(), _PART_BYTES)

    def remove(self, item: str) -> None:
        super().remove(item)
        self.store.client.delete_object(Bucket=self.bucket, Key=self._key(item))

    def items(self) -> list[str]:
        return [f"s3://{self.bucket}/{item}" for item in super().items()]

    def _key(self, item: str) -> str:
        return item.removeprefix(f"s3://{self.bucket}/")

    def _path(self, item: str) -> Path:
        return self.folder / item.rpartition("/")[2]

    def _write(self, path: Path, rows: list[bytes]) -> None:
        super()._write(path, rows)
        self.store.put(self.bucket, f"{self.folder.name}/{path.name}", path.read_bytes())
