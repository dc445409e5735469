"""Files in a bucket as subjects of the conformance suite. A listing tells every change of an object, by its ETag; to touch one
is to put it again in parts.
"""

from __future__ import annotations

import uuid

from tests.support.s3proxy import Store
from tests.support.sources.in_store import InStore

_PART_BYTES = 8 << 20


class InBucket(InStore):
    """Such files: `store` is set before it is created."""

    store: Store
    # A plan reads no object: what changed behind the listing is noticed when the first bytes are looked at.
    noticed_behind_listing = "changed-while-read"

    def create(self) -> None:
        self.bucket = self.store.bucket(f"conformance-{uuid.uuid4().hex[:12]}")
        self.top = f"s3://{self.bucket}"
        super().create()

    @property
    def where(self) -> str:
        return f'path = "{self.top}/{self.folder.name}/*"\n{self.store.table()}'

    def touch(self, item: str) -> None:
        self.store.put_in_parts(self.bucket, self.key(item), self._path(item).read_bytes(), _PART_BYTES)

    def put_there(self, item: str, data: bytes) -> None:
        self.store.put(self.bucket, self.key(item), data)

    def delete_there(self, item: str) -> None:
        self.store.client.delete_object(Bucket=self.bucket, Key=self.key(item))

    def key(self, item: str) -> str:
        return item.removeprefix(f"{self.top}/")
