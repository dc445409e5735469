"""A broker newer than every client here: a proxy before a real one adds to its answers what no Kafka of today says.

Kafka adds requests, features, tagged fields, error codes, operations of ACLs, sources and types of settings, and states of
transactions in minor releases. 4.4.0 announced request 93, and kafka-python 3.0.12 raised ValueError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka.protocol.api_header import ResponseClassRegistry
from kafka.protocol.metadata import ApiVersionsResponse

from eosingest.errors import FatalError
from eosingest.kafka.config import ClientSettings
from eosingest.kafka.kafka_python import KafkaPythonAdmin
from tests.support.harness import LINES_SPEC, Job, create_topic
from tests.support.job_checks import assert_exact, write_files
from tests.support.kafka_nodes import Cluster
from tests.support.kafka_proxy import Frame, Proxy

METADATA, FIND_COORDINATOR, API_VERSIONS, CREATE_TOPICS, INIT_PRODUCER_ID, DESCRIBE_CONFIGS = 3, 10, 18, 19, 22, 32
LIST_OFFSETS, DESCRIBE_CLUSTER, DESCRIBE_PRODUCERS, DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS = 2, 60, 61, 65, 66
UNKNOWN_CODE = 4321
_UNKNOWN_OPERATION = 20
_UNKNOWN_SOURCE, _UNKNOWN_TYPE = 77, 78
_TAGGED = b"\x01\x63\x03new"  # one tagged field, with a tag that no message has


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One broker with a proxy before it."""
    made = Cluster(tmp_path_factory.mktemp("newer"), proxied=True)
    try:
        made.start()
        create_topic(made.direct, "newer-codes")
        yield made
    finally:
        made.stop()


@pytest.fixture
def proxy(cluster: Cluster) -> Iterator[Proxy]:
    proxy = cluster.proxies[0]
    yield proxy
    proxy.clear()
    assert not proxy.faults


def changed(request: Frame, answer: bytes, change: Callable[[Any], None]) -> bytes:
    """Return the answer with what `change` does to kafka-python's form of it."""
    response = _class(request)
    made = response.decode(answer, version=request.version, header=True)
    change(made)
    return bytes(made.encode(header=True))


def _class(request: Frame) -> Any:
    return ResponseClassRegistry._response_class_registry[request.api]


def newer(request: Frame, answer: bytes) -> bytes:
    """Return the answer of a newer broker: names, numbers and tagged fields that no client knows."""
    if request.api in _ADDITIONS:
        answer = changed(request, answer, _ADDITIONS[request.api])
    if request.api != API_VERSIONS and _class(request).flexible_version_q(request.version) and answer[-1:] == b"\0":
        answer = answer[:-1] + _TAGGED
    return answer


def _more_requests(answer: Any) -> None:
    known = ApiVersionsResponse.ApiVersion
    answer.api_keys += [known(api_key=key, min_version=0, max_version=3) for key in (93, 94, 95, 1000)]
    if answer.supported_features:
        feature = ApiVersionsResponse.SupportedFeatureKey
        answer.supported_features.append(feature(name="teleport.version", min_version=0, max_version=9))


def _more_operations(answer: Any) -> None:
    for topic in answer.topics:
        topic.authorized_operations = {3, _UNKNOWN_OPERATION}


def _other_settings(answer: Any) -> None:
    for result in answer.results:
        for setting in result.configs:
            setting.config_source, setting.config_type = _UNKNOWN_SOURCE, _UNKNOWN_TYPE


def _other_settings_of_new_topics(answer: Any) -> None:
    for topic in answer.topics:
        for setting in topic.configs or ():
            setting.config_source = _UNKNOWN_SOURCE


def _other_states(answer: Any) -> None:
    for state in answer.transaction_states:
        state.transaction_state = "PreparePhaseThree"


_ADDITIONS = {
    API_VERSIONS: _more_requests,
    METADATA: _more_operations,
    DESCRIBE_CONFIGS: _other_settings,
    CREATE_TOPICS: _other_settings_of_new_topics,
    DESCRIBE_TRANSACTIONS: _other_states,
    LIST_TRANSACTIONS: _other_states,
}


@pytest.mark.slow
def test_every_verb_with_a_broker_that_says_more(cluster: Cluster, proxy: Proxy, tmp_path: Path) -> None:
    """Breaks when any of it ends a command: each verb, and a run's own creation of topics, go through such answers."""
    proxy.rewrite = newer
    job = Job(tmp_path / "newer", cluster.servers, "newer")
    job.write_spec(LINES_SPEC)
    write_files(job, files=1, rows=500)
    for verb, *arguments in (["plan"], ["run"], ["run"], ["status"], ["verify", "--against-source"]):
        done = job.run(verb, *arguments)
        assert done.exit_code == 0, done
    assert {API_VERSIONS, METADATA, DESCRIBE_CONFIGS, INIT_PRODUCER_ID} <= proxy.requests.keys()
    proxy.clear()
    assert_exact(job)


@pytest.fixture
def admin(cluster: Cluster, proxy: Proxy) -> Iterator[KafkaPythonAdmin]:
    """An admin client that connected through such answers."""
    proxy.rewrite = newer
    made = KafkaPythonAdmin(ClientSettings(cluster.servers))
    yield made
    made.close()


def test_every_request_of_the_control_plane(admin: KafkaPythonAdmin, proxy: Proxy) -> None:
    """Breaks when an answer with names of a newer Kafka raises, or is taken for something that it does not say."""
    admin.create_topic("newer-topic", partitions=2, replication_factor=1, config={"retention.ms": "-1"})
    described = admin.describe_topic("newer-topic")
    assert described is not None
    assert described.partitions == 2
    assert described.config is not None
    assert described.config["retention.ms"] == "-1"
    assert admin.describe_topic("newer-topic-that-is-not-there") is None
    assert len(admin.cluster_id()) == 22
    assert [each.end for each in admin.offset_ranges("newer-topic", 2)] == [0, 0]
    assert admin.last_stable_offsets("newer-topic", 2) == (0, 0)
    assert admin.offsets_at("newer-topic", 2, 0) == (None, None)
    assert admin.ends_of_epochs("newer-topic", {0: 0}) == {0: 0}
    admin.fence(["newer-id"], timeout_s=20)
    assert admin.knows_transactional_id("newer-id")
    assert not admin.knows_transactional_id("newer-id-of-nobody")
    assert "newer-id" in admin.known_ids("newer-")
    assert admin.open_transactions("newer-topic", 0) == []
    assert admin.hanging_transactions("newer-topic", 2) == []
    assert admin.writers("newer-topic", 2) == frozenset()
    needed = {
        CREATE_TOPICS,
        DESCRIBE_CLUSTER,
        DESCRIBE_PRODUCERS,
        DESCRIBE_TRANSACTIONS,
        LIST_TRANSACTIONS,
        LIST_OFFSETS,
    }
    assert needed <= proxy.requests.keys()


def _code(answer: Any) -> None:
    answer.error_code = UNKNOWN_CODE


def _codes_of(many: str, each: str = "") -> Callable[[Any], None]:
    def change(answer: Any) -> None:
        for entry in getattr(answer, many):
            for part in getattr(entry, each) if each else [entry]:
                _code(part)

    return change


REFUSED: dict[str, tuple[int, Callable[[Any], None], Callable[[KafkaPythonAdmin], object]]] = {
    "DescribeCluster": (DESCRIBE_CLUSTER, _code, KafkaPythonAdmin.cluster_id),
    "Metadata": (METADATA, _codes_of("topics"), lambda admin: admin.describe_topic("newer-codes")),
    "ListOffsets": (
        LIST_OFFSETS,
        _codes_of("topics", "partitions"),
        lambda admin: admin.offset_ranges("newer-codes", 1),
    ),
    "CreateTopics": (
        CREATE_TOPICS,
        _codes_of("topics"),
        lambda admin: admin.create_topic("newer-no", partitions=1, replication_factor=1, config={}),
    ),
    "InitProducerId": (INIT_PRODUCER_ID, _code, lambda admin: admin.fence(["newer-code"], timeout_s=20)),
    "FindCoordinator": (
        FIND_COORDINATOR,
        _codes_of("coordinators"),
        lambda admin: admin.fence(["newer-code-found"], timeout_s=20),
    ),
    "DescribeTransactions": (
        DESCRIBE_TRANSACTIONS,
        _codes_of("transaction_states"),
        lambda admin: admin.knows_transactional_id("newer-id"),
    ),
    "ListTransactions": (LIST_TRANSACTIONS, _code, lambda admin: admin.known_ids("newer-")),
    "DescribeProducers": (
        DESCRIBE_PRODUCERS,
        _codes_of("topics", "partitions"),
        lambda admin: admin.open_transactions("newer-codes", 0),
    ),
}


@pytest.mark.parametrize("request_name", REFUSED)
def test_an_error_code_that_no_client_knows(admin: KafkaPythonAdmin, proxy: Proxy, request_name: str) -> None:
    """Breaks when such a code raises something raw, or its number is lost."""
    admin.fence(["newer-id"], timeout_s=20)  # its coordinator is there from now on
    api, change, ask = REFUSED[request_name]
    proxy.rewrite = lambda request, answer: changed(request, answer, change) if request.api == api else answer
    with pytest.raises(FatalError) as raised:
        ask(admin)
    assert raised.value.exit_code == 7
    assert str(UNKNOWN_CODE) in raised.value.message, raised.value.message
