"""A real PostgreSQL of the tests' own: the binaries of `pgserver`, over TCP on the loopback, with passwords."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
import pytest

from eosingest.broker.ports import choose_ports
from tests.support.harness import wait_for

PASSWORD = "s3cret-of-the-tests"
PASSWORD_IN = "EOSINGEST_TEST_PG_PASSWORD"  # the environment variable that a spec of the tests names
_USER = "pgserver"  # who the server is where the tests are root, as PostgreSQL refuses to be


class Postgres:
    """A server in a folder; it can be killed, and started again."""

    def __init__(self, folder: Path, settings: Sequence[str] = ()) -> None:
        self._settings = settings
        self.port = choose_ports(None, None)[0]
        self._folder = folder
        self._data = folder / "data"
        spec = find_spec("pgserver")
        if spec is None and sys.version_info >= (3, 13):
            pytest.skip("pgserver has no wheel for this Python")
        assert spec is not None and spec.origin is not None, "pgserver is one of the tests' requirements"
        self._bin = Path(spec.origin).parent / "pginstall" / "bin"
        self._process: subprocess.Popen[bytes] | None = None
        passwords = folder / "password"
        passwords.write_text(PASSWORD)
        if os.geteuid() == 0:
            from pgserver.utils import ensure_folder_permissions, ensure_prefix_permissions, ensure_user_exists

            ensure_user_exists(_USER)
            ensure_prefix_permissions(self._bin)
            ensure_folder_permissions(self._bin, 0o055)
            ensure_folder_permissions(self._bin.parent / "lib", 0o044)
            for path in (folder, passwords):
                shutil.chown(path, _USER)
        arguments = ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync", "-U", "postgres"]
        self._call("initdb", *arguments, f"--pwfile={passwords}", "-D", str(self._data)).wait(60)

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        settings = ["fsync=off", "max_connections=40", f"port={self.port}", f"unix_socket_directories={self._folder}"]
        settings += self._settings
        listen = [f"-c{setting}" for setting in ("listen_addresses=127.0.0.1", *settings)]
        self._process = self._call("postgres", "-D", str(self._data), *listen)
        wait_for(self._answers)

    def kill(self) -> None:
        """Kill the server's first process, upon which the others end, and wait for it."""
        assert self._process is not None
        pid = int((self._data / "postmaster.pid").read_text().split()[0])
        os.kill(pid, signal.SIGKILL)
        self._process.wait(20)
        self._process = None

    def stop(self) -> None:
        """Stop the server in its fast way."""
        if self._process is not None:
            os.kill(int((self._data / "postmaster.pid").read_text().split()[0]), signal.SIGINT)
            self._process.wait(30)

    @property
    def url(self) -> str:
        """How it is reached."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def source(self) -> str:
        """Return the lines of `[source]` that say how it is reached."""
        return f'url = "{self.url}"\npassword = "${{env:{PASSWORD_IN}}}"\n'

    def disconnect_all(self) -> None:
        """End all connections of eosingest."""
        self.execute(
            "select pg_terminate_backend(pid, 10000) from pg_stat_activity where application_name = 'eosingest'"
        )

    def execute(self, *statements: str) -> list[Any]:
        """Execute statements, each committed alone; return the rows of the last one."""
        with psycopg.connect(self.url, password=PASSWORD, autocommit=True) as connection:
            rows: list[Any] = []
            for statement in statements:
                cursor = connection.execute(statement.encode())
                rows = cursor.fetchall() if cursor.description else []
            return rows

    def _answers(self) -> bool:
        with contextlib.suppress(psycopg.OperationalError):
            self.execute("select 1")
            return True
        return False

    def _call(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        user = ["runuser", "-u", _USER, "--"] if os.geteuid() == 0 else []
        with (self._folder / f"{program}.log").open("ab") as log:
            command = [*user, str(self._bin / program), *arguments]
            return subprocess.Popen(command, stdout=log, stderr=log, cwd="/")


@contextlib.contextmanager
def started_postgres(*settings: str) -> Iterator[Postgres]:
    """Start a server in a folder that is removed behind it; `settings` are further ones of it, as in postgresql.conf."""
    folder = Path(tempfile.mkdtemp(prefix="eosingest-pg-"))
    try:
        server = Postgres(folder, settings)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def running_postgres(*settings: str) -> Iterator[Postgres]:
    """Start such a server, with its password in the environment, where specs of the tests name it."""
    with started_postgres(*settings) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv(PASSWORD_IN, PASSWORD)
        yield server
