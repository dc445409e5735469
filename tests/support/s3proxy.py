"""A store that speaks S3, on loopback: s3proxy over a folder, one server for all tests of a session; and a client to it.

Its jar comes from Maven Central, once, as Kafka's jars do.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eosingest.host import ivy
from eosingest.host.java import find_java
from eosingest.host.paths import cache_directory
from eosingest.sources.files.storage.s3 import S3Storage
from tests.support.processes import QUICK_JVM

VERSION = "4.1.0"
ACCESS_KEY, SECRET_KEY = "eosingest-tests", "a-secret-that-nobody-may-print"
_PATIENCE_S = 600.0
_UP_S = 60.0
_JAR = ivy.Jars(
    what=f"s3proxy {VERSION}",
    size="55 MB",
    dependencies=(
        f'<dependency org="org.gaul" name="s3proxy" rev="{VERSION}" transitive="false" conf="default->default">'
        '<artifact name="s3proxy" type="jar" ext="jar" m:classifier="jar-with-dependencies"/></dependency>',
    ),
    pins={f"s3proxy-{VERSION}.jar": "a4d025969aaf796616ed4b1e2491d87d455ce84bb28cb9db086b2e6aaa68b48d"},
    code="s3proxy",
    hint="check the network",
    instead="put the jar there by hand",
)
_PROPERTIES = """\
s3proxy.authorization=aws-v2-or-v4
s3proxy.identity={access_key}
s3proxy.credential={secret_key}
s3proxy.endpoint=http://127.0.0.1:{port}
jclouds.provider=filesystem-nio2
jclouds.filesystem.basedir={data}
jclouds.identity=local
jclouds.credential=local
"""


@dataclass(frozen=True)
class Store:
    """A server that runs, and what it is reached by."""

    endpoint: str
    pid: int

    @property
    def storage(self) -> S3Storage:
        return S3Storage(endpoint=self.endpoint, region="us-east-1", access_key=ACCESS_KEY, secret_key=SECRET_KEY)

    @property
    def client(self) -> Any:
        return self.storage.client()

    def table(self) -> str:
        """The key `storage` of a spec."""
        return f'storage = {{ endpoint = "{self.endpoint}", access_key = "{ACCESS_KEY}", secret_key = "{SECRET_KEY}" }}'

    def put(self, bucket: str, key: str, data: bytes) -> None:
        self.client.put_object(Bucket=bucket, Key=key, Body=data)

    def put_in_parts(self, bucket: str, key: str, data: bytes, size: int) -> None:
        """Put an object by several requests: its ETag is that of parts of `size` bytes."""
        client, named = self.client, {"Bucket": bucket, "Key": key}
        upload = client.create_multipart_upload(**named)["UploadId"]
        parts = []
        for number, at in enumerate(range(0, len(data), size), start=1):
            put = client.upload_part(**named, UploadId=upload, PartNumber=number, Body=data[at : at + size])
            parts.append({"PartNumber": number, "ETag": put["ETag"]})
        client.complete_multipart_upload(**named, UploadId=upload, MultipartUpload={"Parts": parts})

    def bucket(self, name: str) -> str:
        """Make a bucket."""
        self.client.create_bucket(Bucket=name)
        return name


def jar() -> Path:
    """Return s3proxy's jar, which is fetched where it is not there."""
    libs = ivy.fetched(_JAR, cache_directory() / f"s3proxy-{VERSION}", time.monotonic() + _PATIENCE_S)
    return libs / next(iter(_JAR.pins))


def free_port() -> int:
    """Return a port of loopback that nothing listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Store]:
    """Start a server over a folder, and end it by its process."""
    port, data = free_port(), folder / "data"
    data.mkdir(parents=True, exist_ok=True)
    properties = folder / "s3proxy.properties"
    properties.write_text(_PROPERTIES.format(port=port, data=data, access_key=ACCESS_KEY, secret_key=SECRET_KEY))
    log = folder / "s3proxy.log"
    command = [str(find_java()), *QUICK_JVM.split(), "-Xmx512m", "-jar", str(jar()), "--properties", str(properties)]
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        _wait_until_up(process, port, log)
        yield Store(f"http://127.0.0.1:{port}", process.pid)
    finally:
        process.kill()
        process.wait(timeout=30)


def _wait_until_up(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + _UP_S
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text(errors="replace")[-2000:]
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)
    raise AssertionError(f"s3proxy did not come up: {log.read_text(errors='replace')[-2000:]}")
