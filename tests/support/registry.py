"""A schema registry that speaks Confluent's API, on loopback: Apicurio; one server for all tests of a session.

It keeps everything in memory: one that was killed comes back empty.

Its archive comes from Maven Central, once, as Kafka's jars do.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from eosingest.host.folder_lock import locked
from eosingest.host.ivy import ivy_command
from eosingest.host.java import find_java
from eosingest.host.paths import cache_directory
from tests.support.processes import QUICK_JVM
from tests.support.s3proxy import free_port
from tests.support.server_thread import serve

VERSION = "2.6.13.Final"
_SHA256 = "3cda1b34aa020fb4ac4dd6a66018d757e81e437f97e20a1f92d366b70091c6ba"
_NAME = f"apicurio-registry-app-{VERSION}"
_DEPENDENCY = (
    f'<dependency org="io.apicurio" name="apicurio-registry-app" rev="{VERSION}" transitive="false" conf="default->default">'
    '<artifact name="apicurio-registry-app" type="tar.gz" ext="tar.gz" m:classifier="all"/></dependency>'
)
_PATIENCE_S = 600.0
_UP_S = 120.0


@dataclass
class SchemaRegistry:
    """A server, whose log is in the folder; `url` is that of Confluent's API."""

    port: int
    folder: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/apis/ccompat/v7"

    def start(self) -> None:
        """Start it, unless it runs, and wait until it answers."""
        if self.process is not None:
            return
        log = self.folder / "registry.log"
        command = [str(find_java()), *QUICK_JVM.split(), "-Xmx512m"]
        command += ["-Dquarkus.http.host=127.0.0.1", f"-Dquarkus.http.port={self.port}"]
        command += ["-jar", f"{_NAME}-runner.jar"]
        with log.open("ab") as out:
            self.process = subprocess.Popen(command, cwd=home(), stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        deadline = time.monotonic() + _UP_S
        while True:
            assert self.process.poll() is None, log.read_text(errors="replace")
            assert time.monotonic() < deadline, log.read_text(errors="replace")
            with contextlib.suppress(OSError):
                self.subjects()
                return
            time.sleep(0.1)

    def kill(self) -> None:
        """`kill -9`, frozen or not."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(timeout=30)
            self.process = None

    def freeze(self) -> None:
        """SIGSTOP: connections are taken, by the kernel, and nothing is answered."""
        self._signal(signal.SIGSTOP)

    def heal(self) -> None:
        """Wake it, or start it anew."""
        self._signal(signal.SIGCONT)
        self.start()

    def _signal(self, number: int) -> None:
        if self.process is not None:
            self.process.send_signal(number)

    def subjects(self) -> list[str]:
        found: list[str] = self._asked("GET", "/subjects")
        return found

    def versions(self, subject: str) -> list[int]:
        """Return the versions of a subject, none where there is no such subject."""
        try:
            found: list[int] = self._asked("GET", f"/subjects/{subject}/versions")
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return []
        return found

    def register(self, subject: str, schema: Any) -> int:
        """Register a schema, as somebody else would; return its id."""
        return int(self._asked("POST", f"/subjects/{subject}/versions", {"schema": json.dumps(schema)})["id"])

    def schema(self, number: int) -> Any:
        """Return the schema that has this id, None where none has."""
        try:
            return json.loads(self._asked("GET", f"/schemas/ids/{number}")["schema"])
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return None

    def let_be_compatible(self, subject: str, how: str = "BACKWARD") -> None:
        self._asked("PUT", f"/config/{subject}", {"compatibility": how})

    def _asked(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        kind = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        with urllib.request.urlopen(
            urllib.request.Request(self.url + path, data, kind, method=method), timeout=30
        ) as got:
            return json.loads(got.read())


def home() -> Path:
    """Return the folder with the registry, which is fetched where it is not there."""
    folder = cache_directory() / _NAME
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / "lock", time.monotonic() + _PATIENCE_S, what="the fetch of Apicurio"):
        if not (folder / "app").is_dir():
            _fetch(folder)
    return folder / "app"


def _fetch(folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as made:
        fresh = Path(made)
        command = ivy_command(fresh, fresh / "cache", (_DEPENDENCY,))
        subprocess.run(command, check=True, stdout=sys.stderr, timeout=_PATIENCE_S)
        (archive,) = (fresh / "libs").iterdir()
        assert hashlib.sha256(archive.read_bytes()).hexdigest() == _SHA256, archive
        with tarfile.open(archive) as opened:
            opened.extractall(fresh / "app", filter="data")
        (fresh / "app").rename(folder / "app")


@contextlib.contextmanager
def running(folder: Path) -> Iterator[SchemaRegistry]:
    """Start a server, and end it by its process."""
    made = SchemaRegistry(free_port(), folder)
    try:
        made.start()
        yield made
    finally:
        made.kill()


@contextlib.contextmanager
def guarded(registry: SchemaRegistry, user: str, password: str) -> Iterator[str]:
    """Stand in front of a registry, and ask for a login, as registries do (HTTP Basic); give the address."""
    wanted = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
    behind = f"http://127.0.0.1:{registry.port}"

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0"))) or None
            if self.headers.get("Authorization") != wanted:
                self._send(401, b'{"error_code": 401, "message": "Unauthorized"}')
                return
            kind = {"Content-Type": self.headers.get("Content-Type", "application/json")}
            asked = urllib.request.Request(behind + self.path, body, kind, method=self.command)
            try:
                with urllib.request.urlopen(asked, timeout=30) as got:
                    self._send(got.status, got.read())
            except urllib.error.HTTPError as error:
                self._send(error.code, error.read())

        do_POST = do_GET

        def _send(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = serve(server)
        yield f"http://127.0.0.1:{server.server_address[1]}{registry.url.removeprefix(behind)}"
        server.shutdown()
        thread.join(10)
