"""Client quotas: set on the wire, obeyed by clients, and kept over a restart.

The windows of the broker are short, so that a throttled client need not wait for long.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from core_broker.errors import ErrorCode
from core_broker.protocol.messages import alter_client_quotas as alter
from core_broker.protocol.messages import create_topics
from core_broker.protocol.messages import describe_client_quotas as describe
from core_broker.protocol.messages import produce as wire
from core_broker.protocol.records import Record, build_batch
from tests.support.admin import create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.clients.confluent import ConfluentClient, consumer_config
from tests.support.clients.model import TIMEOUT_S, Sent
from tests.support.kafka import start_class
from tests.support.wire import WireConnection

MB = 1_000_000
SETTINGS = {"quota.window.num": "2", "controller.quota.window.num": "2"}
EXACT = 0
VERSION = 1
WIRE = "wire"
"""The client id of `WireConnection`."""


@pytest.fixture(scope="module")
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with start_class()(tmp_path_factory.mktemp("quotas"), settings=SETTINGS) as process:
        yield process


def set_quotas(broker: BrokerProcess, entity: dict[str, str | None], **quotas: float | None) -> None:
    """Set quotas of an entity, or remove them, and wait until the broker has them."""
    parts = [alter.EntityData(kind, name) for kind, name in entity.items()]
    changes = [alter.OpData(key, value or 0.0, value is None) for key, value in quotas.items()]
    request = alter.AlterClientQuotasRequest([alter.EntryData(parts, changes)])
    with WireConnection(broker.bootstrap) as connection:
        (result,) = connection.request(request, VERSION, alter.AlterClientQuotasResponse).entries
    assert result.error_code == 0, result.error_message
    wanted = {key: value for key, value in quotas.items() if value is not None}
    eventually(lambda: quotas_of(broker, entity), lambda found: found == wanted)


def quotas_of(broker: BrokerProcess, entity: dict[str, str | None]) -> dict[str, float]:
    """The quotas of exactly this entity."""
    filters = [describe.ComponentData(kind, EXACT if name else 1, name) for kind, name in entity.items()]
    request = describe.DescribeClientQuotasRequest(filters, strict=True)
    with WireConnection(broker.bootstrap) as connection:
        response = connection.request(request, VERSION, describe.DescribeClientQuotasResponse)
    assert response.error_code == 0
    return {value.key: value.value for entry in response.entries or [] for value in entry.values}


def entry(*operations: alter.OpData, **entity: str | None) -> alter.EntryData:
    """A change of one entity; `client_id=None` is the default of client ids."""
    parts = [alter.EntityData(kind.replace("_", "-"), name) for kind, name in entity.items()]
    return alter.EntryData(parts, list(operations))


BYTES = "producer_byte_rate"
RATE = "connection_creation_rate"


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(entry(alter.OpData(BYTES, 1)), id="no entity"),
        pytest.param(entry(alter.OpData(BYTES, 1), group="g"), id="unknown type"),
        pytest.param(entry(alter.OpData(BYTES, 1), user="a", ip="10.0.0.1"), id="ip with a user"),
        pytest.param(entry(alter.OpData(BYTES, 1), user=""), id="empty name"),
        pytest.param(entry(alter.OpData(RATE, 1), ip="not an address"), id="not an address"),
        pytest.param(entry(alter.OpData(RATE, 1), user="a"), id="key of addresses"),
        pytest.param(entry(alter.OpData(BYTES, 1), ip="10.0.0.1"), id="key of clients"),
        pytest.param(entry(alter.OpData("no_such_key", 1), user="a"), id="unknown key"),
        pytest.param(entry(alter.OpData(BYTES, 0), user="a"), id="zero"),
        pytest.param(entry(alter.OpData("request_percentage", -1), user="a"), id="below zero"),
        pytest.param(entry(alter.OpData(BYTES, 1.5), user="a"), id="half a byte"),
        pytest.param(entry(alter.OpData(RATE, 2**31), ip=None), id="beyond 32 bits"),
        pytest.param(entry(alter.OpData(BYTES, 1), alter.OpData(BYTES, 2), user="a"), id="key twice"),
    ],
)
@pytest.mark.parametrize("validate_only", [False, True], ids=["changed", "validated"])
def test_an_invalid_change_is_refused(own_broker: BrokerProcess, changed: alter.EntryData, validate_only: bool) -> None:
    request = alter.AlterClientQuotasRequest([changed], validate_only)
    with WireConnection(own_broker.bootstrap) as connection:
        (result,) = connection.request(request, VERSION, alter.AlterClientQuotasResponse).entries
    assert result.error_code == ErrorCode.INVALID_REQUEST


def test_what_is_not_there_may_be_removed(own_broker: BrokerProcess, name: str) -> None:
    changed = entry(alter.OpData(BYTES, 0, remove=True), alter.OpData("no_such_key", 0, remove=True), user=name)
    with WireConnection(own_broker.bootstrap) as connection:
        answer = connection.request(alter.AlterClientQuotasRequest([changed]), VERSION, alter.AlterClientQuotasResponse)
    assert [result.error_code for result in answer.entries] == [0]


@pytest.mark.parametrize(
    "components,code",
    [
        ([describe.ComponentData("", 2, None)], ErrorCode.INVALID_REQUEST),
        ([describe.ComponentData("group", 2, None)], ErrorCode.UNSUPPORTED_VERSION),
        (
            [describe.ComponentData("user", EXACT, "a"), describe.ComponentData("user", 1, None)],
            ErrorCode.INVALID_REQUEST,
        ),
        ([describe.ComponentData("user", EXACT, None)], ErrorCode.INVALID_REQUEST),
        ([describe.ComponentData("user", 1, "a")], ErrorCode.INVALID_REQUEST),
        ([describe.ComponentData("user", 2, "a")], ErrorCode.INVALID_REQUEST),
        ([describe.ComponentData("user", 3, None)], ErrorCode.INVALID_REQUEST),
        (
            [describe.ComponentData("ip", 2, None), describe.ComponentData("user", 2, None)],
            ErrorCode.INVALID_REQUEST,
        ),
    ],
)
def test_an_invalid_filter_is_refused(
    own_broker: BrokerProcess, components: list[describe.ComponentData], code: ErrorCode
) -> None:
    request = describe.DescribeClientQuotasRequest(components)
    with WireConnection(own_broker.bootstrap) as connection:
        response = connection.request(request, VERSION, describe.DescribeClientQuotasResponse)
    assert (response.error_code, response.entries) == (code, None)


@pytest.mark.parametrize(
    "components,strict,expected",
    [
        ([("user", 0, "a")], False, {"a", "a c", "a *"}),
        ([("user", 0, "a")], True, {"a"}),
        ([("user", 2, None)], True, {"a", "*"}),
        ([("user", 2, None)], False, {"a", "*", "a c", "a *"}),
        ([("user", 0, "a"), ("client-id", 1, None)], False, {"a *"}),
        ([("user", 2, None), ("client-id", 2, None)], True, {"a c", "a *"}),
        ([], True, set()),
    ],
)
def test_a_filter_chooses(
    own_broker: BrokerProcess,
    name: str,
    components: list[tuple[str, int, str | None]],
    strict: bool,
    expected: set[str],
) -> None:
    for text in ("a", "*", "a c", "a *"):
        user, _, client = text.partition(" ")
        entity = {"user": None if user == "*" else user}
        if client:
            entity["client-id"] = None if client == "*" else client
        set_quotas(own_broker, entity, request_percentage=100_000)
    request = describe.DescribeClientQuotasRequest([describe.ComponentData(*each) for each in components], strict)
    with WireConnection(own_broker.bootstrap) as connection:
        response = connection.request(request, VERSION, describe.DescribeClientQuotasResponse)
    found = {
        " ".join(part.entity_name or "*" for part in sorted(each.entity, key=lambda part: part.entity_type != "user"))
        for each in response.entries or []
    }
    assert found == expected


def batch_request(topic: str, size_bytes: int) -> wire.ProduceRequest:
    records = bytes(build_batch([Record(timestamp=1, value=bytes(size_bytes))]))
    part = wire.PartitionProduceData(0, records)
    return wire.ProduceRequest(None, 1, 30_000, [wire.TopicProduceData(topic, partition_data=[part])])


def test_a_producer_over_its_quota_reads_for_how_long_it_is_throttled(own_broker: BrokerProcess, name: str) -> None:
    create_topic(own_broker, name)
    set_quotas(own_broker, {"user": "ANONYMOUS", "client-id": WIRE}, producer_byte_rate=MB)
    try:
        with WireConnection(own_broker.bootstrap) as connection:
            throttles = [
                connection.request(batch_request(name, size), 9, wire.ProduceResponse).throttle_time_ms
                for size in (MB // 2, 2 * MB)
            ]
            assert throttles[0] == 0
            # 2.5 MB in one to two seconds
            assert 500 <= throttles[1] <= 1600
    finally:
        set_quotas(own_broker, {"user": "ANONYMOUS", "client-id": WIRE}, producer_byte_rate=None)


def throttle_ms(statistics: list[dict[str, Any]]) -> int:
    """The longest throttle time that librdkafka saw in a response."""
    brokers = (broker for each in statistics for broker in each["brokers"].values())
    return max((broker["throttle"]["max"] for broker in brokers), default=0)


def test_librdkafka_obeys_as_a_producer(own_broker: BrokerProcess, name: str) -> None:
    create_topic(own_broker, name)
    set_quotas(own_broker, {"client-id": name}, producer_byte_rate=MB)
    statistics: list[dict[str, Any]] = []
    producer = Producer(
        {
            "bootstrap.servers": own_broker.bootstrap,
            "client.id": name,
            "batch.size": MB // 2,
            "linger.ms": 5,
            "statistics.interval.ms": 100,
            "stats_cb": lambda text: statistics.append(json.loads(text)),
        }
    )
    for _ in range(40):
        producer.produce(name, bytes(MB // 10))
    assert producer.flush(TIMEOUT_S) == 0
    eventually(lambda: (producer.poll(0.1), throttle_ms(statistics))[1], lambda longest: longest > 0)
    assert len(ConfluentClient().consume(own_broker.bootstrap, name, 40)) == 40
    set_quotas(own_broker, {"client-id": name}, producer_byte_rate=None)


def test_librdkafka_obeys_as_a_consumer(own_broker: BrokerProcess, name: str) -> None:
    create_topic(own_broker, name)
    ConfluentClient().produce(own_broker.bootstrap, name, [Sent(value=bytes(MB // 10)) for _ in range(40)])
    set_quotas(own_broker, {"client-id": name}, consumer_byte_rate=MB)
    statistics: list[dict[str, Any]] = []
    consumer = Consumer(
        {
            **consumer_config(own_broker.bootstrap, name),
            "client.id": name,
            "statistics.interval.ms": 100,
            "stats_cb": lambda text: statistics.append(json.loads(text)),
        }
    )
    consumer.subscribe([name])
    received = 0
    try:
        while received < 40:
            message = consumer.poll(TIMEOUT_S)
            assert message is not None
            assert message.error() is None
            received += 1
        eventually(lambda: (consumer.poll(0.1), throttle_ms(statistics))[1], lambda longest: longest > 0)
    finally:
        consumer.close()
        set_quotas(own_broker, {"client-id": name}, consumer_byte_rate=None)


def test_a_client_that_creates_too_much_is_refused_topic_by_topic(own_broker: BrokerProcess, name: str) -> None:
    set_quotas(own_broker, {"client-id": WIRE}, controller_mutation_rate=1)
    try:
        topics = [create_topics.CreatableTopic(f"{name}-{n}", 2, 1) for n in range(3)]
        request = create_topics.CreateTopicsRequest(topics, 30_000)
        with WireConnection(own_broker.bootstrap) as connection:
            response = connection.request(request, 7, create_topics.CreateTopicsResponse)
        codes = [topic.error_code for topic in response.topics]
        assert sorted(codes) == [0, 0, ErrorCode.THROTTLING_QUOTA_EXCEEDED]
        assert 0 < response.throttle_time_ms <= 2000
    finally:
        set_quotas(own_broker, {"client-id": WIRE}, controller_mutation_rate=None)


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
def test_quotas_survive_a_restart(tmp_path_factory: pytest.TempPathFactory, name: str, kill: bool) -> None:
    with start_class()(tmp_path_factory.mktemp("restart"), settings=SETTINGS) as broker:
        create_topic(broker, name)
        set_quotas(broker, {"client-id": WIRE}, producer_byte_rate=MB, request_percentage=12.5)
        set_quotas(broker, {"user": None}, consumer_byte_rate=5)
        broker.restart(kill=kill)
        assert quotas_of(broker, {"client-id": WIRE}) == {"producer_byte_rate": MB, "request_percentage": 12.5}
        assert quotas_of(broker, {"user": None}) == {"consumer_byte_rate": 5}
        with WireConnection(broker.bootstrap) as connection:
            response = connection.request(batch_request(name, 3 * MB), 9, wire.ProduceResponse)
        assert response.throttle_time_ms > 0
