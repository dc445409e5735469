"""HDFS on loopback: a name node and a data node of Apache Hadoop, one cluster for all tests of a session; and a client to it.

Hadoop's servers are in one jar of Maven Central beside those that pyspark has; it is fetched once, as Kafka's jars are.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from eosingest.host import ivy
from eosingest.host.java import find_java
from eosingest.host.paths import cache_directory
from eosingest.sources.files.storage.hdfs import HdfsStorage
from tests.support.processes import QUICK_JVM
from tests.support.s3proxy import free_port

_SERVERS = {  # by the version of Hadoop's client in pyspark, which the servers must have: the jar of the servers, by SHA-256
    "3.4.1": "5b90be54a39d856f237a4530e25f62aea4b67c180c73b5cfb1aff35c502b2d29",
    "3.5.0": "06772d24529e59939915979b3edba204d367750ef7dc5120411f35221dd4818c",
}
USER = "hdfs-tests"
_PATIENCE_S = 600.0
_UP_S = 120.0
PAGE_NAMES = 60  # of a listing; 1000 by default
_OF_SPARK = ("hadoop-client-*.jar", "slf4j-api-*.jar", "log4j-*.jar", "jcl-over-slf4j-*.jar")
NODES = {
    "name node": "org.apache.hadoop.hdfs.server.namenode.NameNode",
    "data node": "org.apache.hadoop.hdfs.server.datanode.DataNode",
}


@dataclass(frozen=True)
class Hdfs:
    """A cluster that runs: `address` as paths begin, the web addresses of name node and data node, its processes by name."""

    address: str
    web: str
    data_web: str
    folder: Path
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, name: str) -> None:
        """Start a node of NODES; `wait_until_up` tells when it answers."""
        self.processes[name] = _java(self.folder, ["-Xmx256m", NODES[name]], name.replace(" ", "-"))

    def kill(self, name: str) -> None:
        """End a node, as by `kill -9`."""
        process = self.processes.pop(name)
        process.kill()
        process.wait(timeout=30)

    def wait_until_up(self) -> None:
        """Wait until the name node has the data node, and serves reads."""
        query = f"{self.web}/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"
        end = time.monotonic() + _UP_S
        while time.monotonic() < end:
            dead = [name for name, process in self.processes.items() if process.poll() is not None]
            assert not dead, f"{dead}: {_logs(self.folder)}"
            with contextlib.suppress(OSError, KeyError, IndexError):
                urllib.request.urlopen(f"{self.data_web}/jmx?qry=none", timeout=5).close()
                state = json.loads(urllib.request.urlopen(query, timeout=5).read())["beans"][0]
                has_room = state["CapacityRemaining"] > 0  # a data node gets no file before its first report
                if state["NumLiveDataNodes"] == 1 and state["FSState"] == "Operational" and has_room:
                    return
            time.sleep(0.2)
        raise AssertionError(f"HDFS did not come up: {_logs(self.folder)}")

    @property
    def storage(self) -> HdfsStorage:
        return HdfsStorage((self.web,), USER)

    @property
    def environment(self) -> dict[str, str]:
        """What a process that reads there is given."""
        return {"HADOOP_USER_NAME": USER}

    @property
    def conf(self) -> Path:
        """The folder that HADOOP_CONF_DIR may name."""
        return self.folder / "conf"

    def table(self) -> str:
        """The key `storage` of a spec."""
        return f'storage = {{ endpoint = "{self.web}" }}'

    def put(self, path: str, data: bytes, **parameters: str) -> None:
        """Write a file at an absolute path, in place of the one that is there."""
        self._send("PUT", path, data, op="CREATE", overwrite="true", **parameters)

    def append(self, path: str, data: bytes) -> None:
        self._send("POST", path, data, op="APPEND")

    def call(self, method: str, path: str, **parameters: str) -> Any:
        """Do something that needs no data node."""
        return json.loads(self._request(method, self.url(path, **parameters)).read() or b"{}")

    def delete(self, path: str) -> None:
        assert self.call("DELETE", path, op="DELETE", recursive="true") == {"boolean": True}

    def rename(self, path: str, to: str) -> None:
        assert self.call("PUT", path, op="RENAME", destination=to) == {"boolean": True}

    def status(self, path: str) -> Any:
        return self.call("GET", path, op="GETFILESTATUS")["FileStatus"]

    def set_mtime(self, path: str, mtime_ms: int) -> None:
        self.call("PUT", path, op="SETTIMES", modificationtime=str(mtime_ms))

    def url(self, path: str, **parameters: str) -> str:
        query = urlencode({"user.name": USER, **parameters})
        return f"{self.web}/webhdfs/v1{quote(path)}?{query}"

    def location(self, method: str, path: str, **parameters: str) -> str:
        """Return where at a data node the name node sends who asks."""
        return str(self.call(method, path, noredirect="true", **parameters)["Location"])

    def _send(self, method: str, path: str, data: bytes, **parameters: str) -> None:
        self._request(method, self.location(method, path, **parameters), data)

    def _request(self, method: str, url: str, data: bytes | None = None) -> Any:
        url = re.sub(r"[^!-~]+", lambda found: quote(found[0]), url)  # a location has names as they are
        headers = {"Content-Type": "application/octet-stream"}
        asked = urllib.request.Request(url, data=data, method=method, headers=headers)
        try:
            return urllib.request.urlopen(asked, timeout=60)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {url}: {error.read()[:500]!r}") from error


def _jars() -> tuple[str, ivy.Jars]:
    """Return the version of pyspark's client, and the jars of servers of the same version. A task has no pyspark to ask."""
    version = next(iter(ivy.spark_jars("hadoop-client-api-*.jar"))).stem.rpartition("-")[2]
    return version, ivy.Jars(
        what=f"Hadoop's servers {version}",
        size="40 to 56 MB",
        dependencies=tuple(
            f'<dependency org="{group}" name="{name}" rev="{version}" transitive="false" conf="default->default"/>'
            for group, name, version in (
                ("org.apache.hadoop", "hadoop-client-minicluster", version),
                ("javax.xml.bind", "jaxb-api", "2.3.1"),  # WebHDFS asks for both on Java 17
                ("javax.activation", "javax.activation-api", "1.2.0"),
            )
        ),
        pins={
            f"hadoop-client-minicluster-{version}.jar": _SERVERS.get(version, "no test ran on it"),
            "jaxb-api-2.3.1.jar": "88b955a0df57880a26a74708bc34f74dcaf8ebf4e78843a28b50eae945732b06",
            "javax.activation-api-1.2.0.jar": "43fdef0b5b6ceb31b0424b208b930c74ab58fac2ceeb7b3f6fd3aeb8b5ca4393",
        },
        code="hdfs",
        hint="check the network",
        instead="put the jars there by hand",
    )


def class_path() -> str:
    """Return the class path of the servers, whose jars are fetched where they are not there."""
    version, jars_of_it = _jars()
    libs = ivy.fetched(jars_of_it, cache_directory() / f"hadoop-{version}", time.monotonic() + _PATIENCE_S)
    jars = [libs / name for name in jars_of_it.pins]
    jars += [jar for pattern in _OF_SPARK for jar in ivy.spark_jars(pattern)]
    return os.pathsep.join(map(str, jars))


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Hdfs]:
    """Start a name node and a data node; end them by their processes."""
    rpc, web, data = free_port(), free_port(), [free_port() for _ in range(3)]
    cluster = Hdfs(f"hdfs://127.0.0.1:{rpc}", f"http://127.0.0.1:{web}", f"http://127.0.0.1:{data[0]}", folder)
    settings = {
        "fs.defaultFS": cluster.address,
        "hadoop.tmp.dir": str(folder / "data"),
        "dfs.datanode.hostname": "127.0.0.1",
        # A data node that is started again is found where it was.
        "dfs.datanode.http.address": f"127.0.0.1:{data[0]}",
        "dfs.datanode.address": f"127.0.0.1:{data[1]}",
        "dfs.datanode.ipc.address": f"127.0.0.1:{data[2]}",
        "dfs.namenode.http-address": f"127.0.0.1:{web}",
        "dfs.namenode.fs-limits.min-block-size": "512",
        "dfs.replication": "1",
        "dfs.permissions.superusergroup": USER,
        "dfs.namenode.safemode.extension": "0",
        # A data node that closes a file asks again so soon, where its block is not known yet: by default 0.4 s for each file.
        "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "5",
        # A data node hears with its heartbeat that a block is to be cut: by default up to 3 s later.
        "dfs.heartbeat.interval": "1",
        "dfs.ls.limit": str(PAGE_NAMES),
        "dfs.namenode.edits.noeditlogchannelflush": "true",  # no machine fails here, processes do
    }
    _configure(cluster.conf, settings)
    _java(folder, [NODES["name node"], "-format", "-force", "-nonInteractive"], "format").wait(timeout=_UP_S)
    try:
        for name in NODES:
            cluster.start(name)
        cluster.wait_until_up()
        yield cluster
    finally:
        for name in list(cluster.processes):
            cluster.kill(name)


def _configure(folder: Path, settings: dict[str, str]) -> None:
    folder.mkdir()
    properties = "".join(
        f"<property><name>{name}</name><value>{text}</value></property>" for name, text in settings.items()
    )
    for name in ("core-site.xml", "hdfs-site.xml"):
        (folder / name).write_text(f"<configuration>{properties}</configuration>")


def _java(folder: Path, arguments: Sequence[str], log: str) -> subprocess.Popen[bytes]:
    command = [str(find_java()), *QUICK_JVM.split(), "-cp", f"{folder / 'conf'}{os.pathsep}{class_path()}", *arguments]
    with (folder / f"{log}.log").open("wb") as out:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env={**os.environ, "HADOOP_USER_NAME": USER}
        )


def _logs(folder: Path) -> str:
    return "\n".join(f"{log.name}: {log.read_text(errors='replace')[-1500:]}" for log in folder.glob("*.log"))
