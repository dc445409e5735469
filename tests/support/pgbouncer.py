"""A real pgbouncer of the tests' own, in front of a `postgres.Postgres`."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg

from eosingest.broker.ports import choose_ports
from tests.support.harness import wait_for
from tests.support.postgres import PASSWORD, PASSWORD_IN, Postgres
from tests.support.programs import find_program

_USER = "nobody"  # who the pooler is where the tests are root, as pgbouncer refuses to be


class Pooler:
    """A pooler whose clients are the server's roles: `url` and `source` are those of a `Postgres`."""

    def __init__(self, server: Postgres, role: str) -> None:
        self.port = choose_ports(None, None)[0]
        self.server = server
        self.role = role

    @property
    def url(self) -> str:
        """How it is reached."""
        return f"postgresql://{self.role}@127.0.0.1:{self.port}/postgres"

    def source(self) -> str:
        """Return the lines of `[source]` that say how it is reached."""
        return f'url = "{self.url}"\npassword = "${{env:{PASSWORD_IN}}}"\n'

    def connect(self) -> Any:
        """Return a connection of another client."""
        return psycopg.connect(self.url, password=PASSWORD, prepare_threshold=None)

    def answers(self) -> bool:
        """Say whether it gives connections."""
        with contextlib.suppress(psycopg.OperationalError):
            self.connect().close()
            return True
        return False


@contextlib.contextmanager
def pooled(server: Postgres, role: str, *, database: str = "", **settings: str) -> Iterator[Pooler]:
    """Start a pooler; `settings` are those of pgbouncer.ini, `database` is more of the database's line."""
    program = find_program("pgbouncer")
    pooler = Pooler(server, role)
    folder = Path(tempfile.mkdtemp(prefix="eosingest-pool-"))
    lines = {
        "listen_addr": "127.0.0.1",
        "listen_port": str(pooler.port),
        "unix_socket_dir": "",
        "auth_type": "plain",
        "auth_file": str(folder / "users.txt"),
        "default_pool_size": "8",
        **settings,
    }
    (folder / "users.txt").write_text(f'"{role}" "{PASSWORD}"\n')
    file = folder / "pgbouncer.ini"
    file.write_text(
        f"[databases]\npostgres = host=127.0.0.1 port={server.port} {database}\n[pgbouncer]\n"
        + "".join(f"{name} = {value}\n" for name, value in lines.items())
    )
    rights: dict[str, Any] = {}
    if os.geteuid() == 0:  # not by runuser, which waits for two seconds before it ends
        rights = {"user": _USER, "group": pwd.getpwnam(_USER).pw_gid, "extra_groups": []}
        for path in (folder, file, folder / "users.txt"):
            shutil.chown(path, _USER)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([program, str(file)], stdout=log, stderr=log, cwd="/", **rights)
    try:
        wait_for(pooler.answers)
        yield pooler
    finally:
        process.kill()  # newer ones wait at SIGTERM for their clients
        process.wait(20)
        shutil.rmtree(folder, ignore_errors=True)
