"""A broker that is locked: TLS, client certificates, logins by PLAIN, SCRAM and OAUTHBEARER over TLS; ACLs for who logs in.

Its plain listener, `direct`, is for those who set it up: ANONYMOUS is a super user. `tls` asks for no login, `mutual` for a
client's certificate, `locked` for a login.
"""

from __future__ import annotations

from pathlib import Path

from confluent_kafka.admin import (
    AclOperation,
    AdminClient,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from eosingest.broker.server import Server, new_cluster_id
from eosingest.broker.server_files import HOST, State
from tests.support.certificates import KEY_PASSWORD, Certificates
from tests.support.guarded_broker import EVERY_ACL, OFFSETS, USER, binding
from tests.support.harness import wait_for
from tests.support.kafka_nodes import HEAP, Node, distinct_ports
from tests.support.token_endpoint import AUDIENCE, CLIENT, ISSUER, SCOPE, SECRET, TokenEndpoint

PASSWORD = "password-not-to-be-shown"
SECRETS = (PASSWORD, SECRET, KEY_PASSWORD)
_LISTENERS = ("PLAINTEXT:PLAINTEXT", "CONTROLLER:PLAINTEXT", "TLS:SSL", "MUTUAL:SSL", "LOCKED:SASL_SSL")
_MODULES = "org.apache.kafka.common.security"
_SCRAM = {"SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256, "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512}
_VALIDATOR = f"{_MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler"


class LockedBroker:
    """One broker in a folder, with certificates and a token endpoint beside it."""

    def __init__(self, folder: Path) -> None:
        self.certificates = Certificates(folder / "certificates")
        self.certificates.make()
        self.tokens = TokenEndpoint(folder / "tokens", self.certificates.folder)
        client, controller, *ports = distinct_ports(5)
        tls, mutual, locked = ports
        listeners = f"PLAINTEXT://{HOST}:{client},TLS://:{tls},MUTUAL://:{mutual},LOCKED://:{locked}"
        shown = listeners.replace("://:", f"://{HOST}:")
        properties = {
            "listener.security.protocol.map": ",".join(_LISTENERS),
            "listeners": f"{listeners},CONTROLLER://{HOST}:{controller}",
            "advertised.listeners": shown,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self.certificates.path("server-chain.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.certificates.path("ca.pem"),
            "listener.name.mutual.ssl.client.auth": "required",
            "listener.name.mutual.ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            **_logins(self.tokens),
        }
        self.direct, self.tls = f"{HOST}:{client}", f"{HOST}:{tls}"
        self.mutual, self.locked = f"{HOST}:{mutual}", f"{HOST}:{locked}"
        heap = f"{HEAP} -Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={self.tokens.keys_url}"
        server, state = Server((folder / "broker").resolve()), State(client, controller, "")
        self._node = Node(server, state, properties, new_cluster_id(), heap)

    def start(self) -> None:
        """Start it, and make the user's SCRAM credentials."""
        self._node.launch()
        self._node.wait()
        self.admin = AdminClient({"bootstrap.servers": self.direct})
        made = [
            UserScramCredentialUpsertion(USER, ScramCredentialInfo(mechanism, 4096), PASSWORD.encode())
            for mechanism in _SCRAM.values()
        ]
        for each in made:
            for future in self.admin.alter_user_scram_credentials([each]).values():
                future.result(20)

    def stop(self) -> None:
        """Kill it, and close the token endpoint."""
        self._node.kill()
        self.tokens.stop()

    def allow(self, topic: str, prefix: str) -> None:
        """Let the user run a job whose topics exist, read what it sent, and nothing else; rights of other jobs stay."""
        read, write = AclOperation.READ, AclOperation.WRITE
        allowed = [(ResourceType.TOPIC, name, operation) for name in (topic, OFFSETS) for operation in (read, write)]
        acls = [binding(*each) for each in (*allowed, (ResourceType.TRANSACTIONAL_ID, f"{prefix}*", write))]
        for made in self.admin.create_acls(acls).values():
            made.result(20)
        described = self.admin.describe_acls
        wait_for(lambda: set(map(str, acls)) <= set(map(str, described(EVERY_ACL).result(20))), 20)

    def properties(self, way: str) -> dict[str, str]:
        """Return the properties with which a client comes in a way of WAYS; secrets by references to the environment."""
        files = self.certificates.path
        trusted = {"ssl.ca.location": files("ca.pem")}
        if way == "tls":
            return {"security.protocol": "SSL", **trusted}
        if way.startswith("mutual"):
            key = {"ssl.key.location": files("loader.key")}
            if way == "mutual, key behind a password":
                key = {"ssl.key.location": files("loader-locked.key"), "ssl.key.password": "${env:KEY_PASSWORD}"}
            if way == "mutual, PEM":
                return {
                    "security.protocol": "SSL",
                    "ssl.ca.pem": "${file:certificates/ca.pem}",
                    "ssl.certificate.pem": "${file:certificates/loader.pem}",
                    "ssl.key.pem": "${file:certificates/loader.key}",
                }
            return {"security.protocol": "SSL", **trusted, "ssl.certificate.location": files("loader.pem"), **key}
        login = {"security.protocol": "SASL_SSL", "sasl.mechanism": way.partition(",")[0], **trusted}
        if not way.startswith("OAUTHBEARER"):
            return {**login, "sasl.username": USER, "sasl.password": "${env:LOCKED_PASSWORD}"}
        secured = way.endswith("https")
        return {
            **login,
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": CLIENT,
            "sasl.oauthbearer.client.secret": "${env:CLIENT_SECRET}",
            "sasl.oauthbearer.scope": SCOPE,
            "sasl.oauthbearer.extensions": "purpose=test,team=loaders",
            "sasl.oauthbearer.token.endpoint.url": self.tokens.secured_url if secured else self.tokens.url,
            **({"https.ca.location": files("ca.pem")} if secured else {}),
        }

    def servers(self, way: str) -> str:
        """Return the listener for a way."""
        if way == "tls":
            return self.tls
        return self.mutual if way.startswith("mutual") else self.locked


WAYS = (
    "tls",
    "mutual",
    "mutual, key behind a password",
    "mutual, PEM",
    "PLAIN",
    "SCRAM-SHA-256",
    "SCRAM-SHA-512",
    "OAUTHBEARER",
    "OAUTHBEARER, https",
)
ENVIRONMENT = {"LOCKED_PASSWORD": PASSWORD, "CLIENT_SECRET": SECRET, "KEY_PASSWORD": KEY_PASSWORD}


def _logins(tokens: TokenEndpoint) -> dict[str, str]:
    """Return the broker's properties for the logins at its listener LOCKED."""
    at = "listener.name.locked"
    return {
        f"{at}.plain.sasl.jaas.config": f'{_MODULES}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";',
        **{f"{at}.{name.lower()}.sasl.jaas.config": f"{_MODULES}.scram.ScramLoginModule required;" for name in _SCRAM},
        f"{at}.oauthbearer.sasl.jaas.config": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required;",
        f"{at}.oauthbearer.sasl.server.callback.handler.class": _VALIDATOR,
        f"{at}.oauthbearer.sasl.oauthbearer.jwks.endpoint.url": tokens.keys_url,
        f"{at}.oauthbearer.sasl.oauthbearer.expected.audience": AUDIENCE,
        f"{at}.oauthbearer.sasl.oauthbearer.expected.issuer": ISSUER,
        "sasl.oauthbearer.jwks.endpoint.url": tokens.keys_url,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.expected.issuer": ISSUER,  # required since 4.4.0
    }
