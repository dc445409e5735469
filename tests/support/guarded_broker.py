"""A broker with an authorizer: who comes by SASL/PLAIN may do what ACLs allow, and nothing else.

Its plain listener, `direct`, is for those who set it up: ANONYMOUS is a super user. `servers` asks for a login.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol, TypeVar

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from eosingest.broker.server import Server, new_cluster_id
from eosingest.broker.server_files import HOST, State
from eosingest.protocol.offsets import topic
from tests.support.harness import create_topic, wait_for
from tests.support.kafka_nodes import Node, distinct_ports

USER, PASSWORD = "loader", "not-to-be-shown"
_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_TOPIC, _ID, _CLUSTER = ResourceType.TOPIC, ResourceType.TRANSACTIONAL_ID, ResourceType.BROKER
CLUSTER_NAME = "kafka-cluster"
OFFSETS = "eosingest-offsets"
EVERY_ACL = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
)

Allowed = tuple[ResourceType, str, AclOperation]  # on what, by its name or how it begins (`job*`), what


class _Broker(Protocol):
    direct: str

    def start(self) -> None: ...
    def stop(self) -> None: ...


_B = TypeVar("_B", bound=_Broker)


@contextlib.contextmanager
def serving(broker: _B) -> Iterator[_B]:
    """Start a broker, make the offsets topic that its users may not create, and stop it."""
    try:
        broker.start()
        create_topic(broker.direct, OFFSETS, partitions=topic.PARTITIONS, config={"cleanup.policy": "compact"})
        yield broker
    finally:
        broker.stop()


class GuardedBroker:
    """One broker in a folder."""

    def __init__(self, folder: Path) -> None:
        client, secured, controller = distinct_ports(3)
        plain = f"PLAINTEXT://{HOST}:{client},GUARDED://{HOST}:{secured}"
        properties = {
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,GUARDED:SASL_PLAINTEXT",
            "listeners": f"{plain},CONTROLLER://{HOST}:{controller}",
            "advertised.listeners": plain,
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.guarded.plain.sasl.jaas.config": f'{_MODULE} required user_{USER}="{PASSWORD}";',
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        }
        self.servers, self.direct = f"{HOST}:{secured}", f"{HOST}:{client}"
        self._node = Node(Server(folder.resolve()), State(client, controller, ""), properties, new_cluster_id())

    def start(self) -> None:
        self._node.launch()
        self._node.wait()
        self._admin = AdminClient({"bootstrap.servers": self.direct})

    def stop(self) -> None:
        self._node.kill()

    def allow_only(self, allowed: Iterable[Allowed]) -> None:
        """Let the user do this from now on, and nothing else."""
        for deleted in self._admin.delete_acls([EVERY_ACL]).values():
            deleted.result(20)
        wanted = [binding(*each) for each in allowed]
        for made in self._admin.create_acls(wanted).values() if wanted else ():
            made.result(20)
        described = self._admin.describe_acls
        wait_for(lambda: len(described(EVERY_ACL).result(20)) == len(set(map(str, wanted))), 20)


def binding(kind: ResourceType, name: str, operation: AclOperation) -> AclBinding:
    """Return the ACL by which the user may do this."""
    is_prefix = name.endswith("*")
    pattern = ResourcePatternType.PREFIXED if is_prefix else ResourcePatternType.LITERAL
    named = name.removesuffix("*") if is_prefix else name
    return AclBinding(kind, named, pattern, f"User:{USER}", "*", operation, AclPermissionType.ALLOW)


def of_a_job(source: str, sink: str, offsets: str, prefix: str) -> list[Allowed]:
    """Return what a job needs that copies a topic (docs/sources.md): the topics exist, and ids begin with `prefix`."""
    read, write = AclOperation.READ, AclOperation.WRITE
    return [
        (_TOPIC, source, read),
        (_TOPIC, sink, write),
        (_TOPIC, offsets, read),
        (_TOPIC, offsets, write),
        (_ID, f"{prefix}*", write),
    ]
