"""Reports keys that a spec from an untrusted author must not have: `EOSINGEST_RESTRICTED=1` (docs/security.md). Pure.

Used by loader.py. Keys that the command line sets (`--set`) come from the user who runs it, and are not checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from eosingest.spec.document import KeyPath, Problem, get
from eosingest.spec.encodings import LATEST, PLACES
from eosingest.spec.references import references_in

VARIABLE, ALLOWED = "EOSINGEST_RESTRICTED", "EOSINGEST_RESTRICTED_ALLOW"
_CODE = "restricted"
_OFF = ("", "0", "false", "no", "off")
_PROPERTIES = (("sink", "properties"), ("source", "properties"))
# The properties of librdkafka that are numbers, words, texts or addresses. All others may read a file, load a library, run
# a command, or log in as this machine.
_PROPERTIES_GIVEN = """
api.version.fallback.ms api.version.request api.version.request.timeout.ms auto.commit.interval.ms batch.num.messages
batch.size broker.address.family broker.address.ttl broker.version.fallback client.dns.lookup client.id client.rack
compression.codec compression.level compression.type connections.max.idle.ms consume.callback.max.messages
coordinator.query.interval.ms debug enable.metrics.push enable.random.seed enable.sparse.connections
fetch.error.backoff.ms fetch.max.bytes fetch.message.max.bytes fetch.min.bytes fetch.queue.backoff.ms
fetch.wait.max.ms heartbeat.interval.ms https.ca.pem linger.ms log.connection.close log.queue log.thread.name
log_level max.in.flight max.in.flight.requests.per.connection max.partition.fetch.bytes max.poll.interval.ms
message.copy.max.bytes message.max.bytes message.send.max.retries metadata.max.age.ms
metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy queue.buffering.backpressure.threshold
queue.buffering.max.kbytes queue.buffering.max.messages queue.buffering.max.ms queued.max.messages.kbytes
queued.min.messages receive.message.max.bytes reconnect.backoff.jitter.ms reconnect.backoff.max.ms
reconnect.backoff.ms request.timeout.ms retries sasl.mechanism sasl.mechanisms
sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.client.credentials.client.secret
sasl.oauthbearer.client.id sasl.oauthbearer.client.secret sasl.oauthbearer.extensions sasl.oauthbearer.grant.type
sasl.oauthbearer.method sasl.oauthbearer.scope sasl.oauthbearer.token.endpoint.url sasl.password sasl.username
security.protocol session.timeout.ms socket.blocking.max.ms socket.connection.setup.timeout.ms socket.keepalive.enable
socket.max.fails socket.nagle.disable socket.receive.buffer.bytes socket.send.buffer.bytes socket.timeout.ms
ssl.ca.pem ssl.certificate.pem ssl.endpoint.identification.algorithm ssl.key.password ssl.key.pem
statistics.interval.ms sticky.partitioning.linger.ms topic.metadata.propagation.max.ms topic.metadata.refresh.fast.cnt
topic.metadata.refresh.fast.interval.ms topic.metadata.refresh.interval.ms topic.metadata.refresh.sparse
"""
_MAY_BE_GIVEN = frozenset(_PROPERTIES_GIVEN.split())
_AUTHORITIES, _OF_THE_SYSTEM = ("ssl.ca.location", "https.ca.location"), ("", "probe")
# The parameters of libpq that name no file, and neither another server nor a login. `ssl` is JDBC's name of `sslmode`.
_PARAMETERS_GIVEN = """
application_name channel_binding connect_timeout fallback_application_name gssencmode keepalives keepalives_count
keepalives_idle keepalives_interval krbsrvname load_balance_hosts max_protocol_version min_protocol_version port
require_auth requirepeer ssl ssl_max_protocol_version ssl_min_protocol_version sslcertmode sslcompression sslmode
sslnegotiation sslsni target_session_attrs tcp_user_timeout
"""
_OF_A_URL = tuple(_PARAMETERS_GIVEN.split())
# As libpq finds them: a user may have any character but `/`. It decodes them before it separates them by commas.
_HOSTS = re.compile(r"[^:]*://(?:[^@/]*@)?((?:\[[^\]]*\]|[^/?\[])*)", re.DOTALL)
_PORT = re.compile(r":\d*(?=,|$)")
_PARAMETER = re.compile(r"[?&]([^=&?]*)")


def problems(
    tables: Mapping[str, Any], environ: Mapping[str, str], is_set: Callable[[KeyPath], bool]
) -> Iterator[Problem]:
    """Yield a problem for each key that a restricted spec may not have; `tables` are as written, references unresolved.

    `is_set` says whether the command line has set a key.
    """
    if environ.get(VARIABLE, "").strip().lower() in _OFF:
        return
    allowed = {name.strip() for name in environ.get(ALLOWED, "").split(",") if name.strip()}
    found = [*_references(tables, (), allowed), *_spark(tables), *_files(tables, allowed), *_url(tables)]
    yield from (problem for problem in found if not is_set(problem.path))


def _references(value: Any, path: KeyPath, allowed: set[str]) -> Iterator[Problem]:
    """Yield the references to files and to the environment that are not allowed."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _references(inner, (*path, key), allowed)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _references(inner, (*path, index), allowed)
    elif isinstance(value, str):
        for kind, name in references_in(value):
            if kind != "param" and f"{kind}:{name}" not in allowed:
                text = f"${{{kind}:{name}}} is not allowed in a restricted spec"
                yield Problem(
                    path, text, f"who runs it allows it by {ALLOWED}={kind}:{name}, or gives a --param", _CODE
                )


def _spark(tables: Mapping[str, Any]) -> Iterator[Problem]:
    if get(tables, "spark", "master") is not None:
        yield _refused(("spark", "master"), "spark.master says where the job runs")
    conf = get(tables, "spark", "conf")
    for key in conf if isinstance(conf, dict) else ():
        yield _refused(("spark", "conf", key), "Spark's settings can fetch packages, load classes and run programs")


def _files(tables: Mapping[str, Any], allowed: set[str]) -> Iterator[Problem]:
    for path in _PROPERTIES:
        properties = get(tables, *path)
        for key, value in properties.items() if isinstance(properties, dict) else ():
            if key not in _MAY_BE_GIVEN and not (key in _AUTHORITIES and value in _OF_THE_SYSTEM):
                yield _refused((*path, key), "it is not among the properties that read no file and load no library")
    for place in PLACES:
        certificate, schema = (*place, "registry", "ca_location"), (*place, "schema")
        if get(tables, *certificate) is not None:
            yield _refused(certificate, "it names a file of this machine")
        name = get(tables, *schema)
        if name is not None and name != LATEST and f"file:{name}" not in allowed:
            hint = f"who runs it allows it by {ALLOWED}=file:{name}"
            yield _refused(schema, f'it names a file of this machine, and is not "{LATEST}"', hint)


def _url(tables: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what a database's URL may not have. No problem repeats a part of it, which may be of a password."""
    url = get(tables, "source", "url")
    if not isinstance(url, str):
        return
    if any(unquote(name) not in _OF_A_URL for name in _PARAMETER.findall(url) if name):
        yield _refused(("source", "url"), f"its parameters may be no others than {', '.join(_OF_A_URL)}")
    found = _HOSTS.match(url)
    hosts = [host.strip("[]") for host in _PORT.sub("", unquote(found[1])).split(",")] if found is not None else []
    if any(not host or host.startswith(("/", "@")) for host in hosts):
        yield _refused(("source", "url"), "it names a socket of this machine: an empty host is one, too")


def _refused(path: KeyPath, why: str, hint: str = "who runs it may give it by --set") -> Problem:
    return Problem(path, f"not allowed in a restricted spec ({VARIABLE}): {why}", hint, _CODE)
