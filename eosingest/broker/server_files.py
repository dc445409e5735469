"""Defines the files that the embedded broker starts from: properties, logging configuration, and the state kept between starts.

server.py launches the server in their folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HOST = "127.0.0.1"
_PROPERTIES = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "log.dirs": "data",
    "num.partitions": "1",
    "auto.create.topics.enable": "false",
    # By default no record is deleted; a topic may set its own retention.
    "log.retention.ms": "-1",
    "log.retention.bytes": "-1",
    "log.cleaner.enable": "true",
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "5",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "5",
    "group.initial.rebalance.delay.ms": "0",
    # After a kill the broker can register again only when its last session has timed out: 4 s instead of 9 s.
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "500",
}

_LOG4J2 = """\
rootLogger.level = INFO
rootLogger.appenderRef.file.ref = File
appender.file.type = RollingFile
appender.file.name = File
appender.file.fileName = broker.log
appender.file.filePattern = broker.log.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = [%d] %p %m (%c)%n
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 10MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
"""

# For Kafka before 4.0, which logs by log4j 1.
_LOG4J1 = """\
log4j.rootLogger=INFO, file
log4j.appender.file=org.apache.log4j.RollingFileAppender
log4j.appender.file.File=broker.log
log4j.appender.file.MaxFileSize=10MB
log4j.appender.file.MaxBackupIndex=3
log4j.appender.file.layout=org.apache.log4j.PatternLayout
log4j.appender.file.layout.ConversionPattern=[%d] %p %m (%c)%n
"""
LOG_OPTIONS = ("-Dlog4j2.configurationFile=log4j2.properties", "-Dlog4j.configuration=file:log4j.properties")


@dataclass(frozen=True)
class State:
    """The state that is kept between starts."""

    port: int
    controller_port: int
    version: str

    @property
    def bootstrap_servers(self) -> str:
        """Return the address for clients."""
        return f"{HOST}:{self.port}"


def write(directory: Path, state: State, properties: Mapping[str, str]) -> None:
    """Write the files that this folder's server starts from; `properties` override ours."""
    clients = f"PLAINTEXT://{HOST}:{state.port}"
    ports = {
        "listeners": f"{clients},CONTROLLER://{HOST}:{state.controller_port}",
        "advertised.listeners": clients,  # Kafka before 3.9 refuses the controller's listener here
        "controller.quorum.voters": f"1@{HOST}:{state.controller_port}",
    }
    lines = [f"{name}={value}\n" for name, value in {**_PROPERTIES, **ports, **properties}.items()]
    (directory / "server.properties").write_text("".join(lines), encoding="latin-1")
    (directory / "log4j2.properties").write_text(_LOG4J2, encoding="latin-1")
    (directory / "log4j.properties").write_text(_LOG4J1, encoding="latin-1")
