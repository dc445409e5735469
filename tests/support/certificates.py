"""Certificates for tests of TLS: an authority, a server's, clients' of several kinds; by openssl, which Debian's Java needs.

The keys protect nothing: they are made anew for each folder and thrown away with it.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

KEY_PASSWORD = "key-not-to-be-shown"
_SERVER = "subjectAltName=IP:127.0.0.1\n"  # and not localhost, which a test names to see it refused


def openssl(*arguments: str, folder: Path, data: bytes | None = None) -> bytes:
    """Run openssl in a folder and return what it wrote."""
    done = subprocess.run(["openssl", *arguments], cwd=folder, input=data, capture_output=True, timeout=60)
    assert done.returncode == 0, f"openssl {arguments[0]}: {done.stderr.decode()}"
    return done.stdout


@dataclass(frozen=True)
class Certificates:
    """The files of a folder: `ca.pem`, `server.pem` (certificate and key), and `NAME.pem`, `NAME.key` of clients."""

    folder: Path

    def make(self) -> None:
        """Make them all. `loader-locked.key` is the client's key behind a password."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for authority in ("ca", "other-ca"):
            self._authority(authority)
        self._signed("server", "broker", extensions=_SERVER)
        chain = (self.folder / "server.pem").read_text() + (self.folder / "server.key").read_text()
        (self.folder / "server-chain.pem").write_text(chain)
        self._signed("loader", "loader")
        self._signed("expired", "loader", days="0")
        self._signed("foreign", "loader", authority="other-ca")
        encrypt = ["pkcs8", "-topk8", "-v2", "aes-256-cbc", "-in", "loader.key", "-out", "loader-locked.key"]
        openssl(*encrypt, "-passout", f"pass:{KEY_PASSWORD}", folder=self.folder)

    def path(self, name: str) -> str:
        """Return the path of a file."""
        return str(self.folder / name)

    def text(self, name: str) -> str:
        """Return what a file holds."""
        return (self.folder / name).read_text()

    def _authority(self, name: str) -> None:
        request = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}"]
        openssl(*request, "-keyout", f"{name}.key", "-out", f"{name}.pem", folder=self.folder)

    def _signed(self, file: str, name: str, *, authority: str = "ca", days: str = "2", extensions: str = "") -> None:
        request = ["req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-keyout", f"{file}.key"]
        openssl(*request, "-out", f"{file}.csr", folder=self.folder)
        sign = ["x509", "-req", "-in", f"{file}.csr", "-CA", f"{authority}.pem", "-CAkey", f"{authority}.key"]
        (self.folder / f"{file}.ext").write_text(extensions)
        sign += ["-CAcreateserial", "-days", days, "-extfile", f"{file}.ext", "-out", f"{file}.pem"]
        openssl(*sign, folder=self.folder)
