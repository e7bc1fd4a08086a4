"""Guarded topics with a broker process, a registry process, and the producers that people use."""

import asyncio
import struct
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError as AioError
from confluent_kafka import KafkaError, KafkaException, Message, Producer, SerializingProducer, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, OffsetSpec, ResourceType
from confluent_kafka.schema_registry import header_schema_id_serializer, prefix_schema_id_serializer
from kafka import KafkaProducer
from kafka.errors import InvalidRecordError, KafkaTimeoutError

from core_broker.errors import ErrorCode
from core_broker.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from core_broker.protocol.records import Record, build_batch
from tests.support.admin import admin_client, create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.clients.all import INSTALLED
from tests.support.clients.confluent import ConfluentClient
from tests.support.clients.model import Client, Sent
from tests.support.command import Caudal
from tests.support.protobuf_messages import message_classes
from tests.support.registry import AVRO, AVRO_KEY, Registered, RegistryProcess
from tests.support.registry_clients import confluent
from tests.support.wire import WireConnection

VALUES = {"confluent.value.schema.validation": "true"}
KEYS = {"confluent.key.schema.validation": "true"}
REFUSED = KafkaError.INVALID_RECORD
STRATEGIES = "io.confluent.kafka.serializers.subject."


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryProcess]:
    """A registry that may be stopped and started, and takes any schema under any subject."""
    settings = {"schema.compatibility.level": "NONE"}
    with RegistryProcess(tmp_path_factory.mktemp("registry"), settings=settings) as process:
        yield process
    assert "Traceback" not in process.log_text()


@pytest.fixture(scope="module")
def guarded_broker(tmp_path_factory: pytest.TempPathFactory, registry: RegistryProcess) -> Iterator[BrokerProcess]:
    settings = {
        "confluent.schema.registry.url": registry.url,
        "confluent.schema.validator.missing.ttl.ms": "100",
        "confluent.schema.validator.request.timeout.ms": "1000",
    }
    with BrokerProcess(tmp_path_factory.mktemp("guarded"), settings=settings) as process:
        yield process
    assert "Traceback" not in process.log_text()


class Guarded(NamedTuple):
    """A guarded topic whose schema is registered."""

    topic: str
    schema: Registered
    broker: BrokerProcess

    def framed(self, payload: bytes = b"payload") -> bytes:
        """A value that the topic accepts."""
        return framed(self.schema.id, payload)

    def stored(self, count: int) -> list[bytes | None]:
        """The values in the topic, which must be `count`."""
        received = ConfluentClient().consume(self.broker.bootstrap, self.topic, count)
        assert end_offset(self.broker, self.topic) == count
        return [record.value for record in received]


@pytest.fixture
def guarded(guarded_broker: BrokerProcess, registry: RegistryProcess, name: str) -> Guarded:
    create_topic(guarded_broker, name, configs=VALUES)
    return Guarded(name, registry.register(f"{name}-value"), guarded_broker)


def framed(schema_id: int, payload: bytes = b"payload") -> bytes:
    return struct.pack(">bI", 0, schema_id) + payload


def end_offset(broker: BrokerProcess, topic: str) -> int:
    partition = TopicPartition(topic, 0)
    found = admin_client(broker).list_offsets({partition: OffsetSpec.latest()})[partition].result(60)
    return int(found.offset)


def deliver(producer: Producer, topic: str, *values: bytes, **options: Any) -> list[int]:
    """Produce values and wait for the fate of each: an error code, or 0."""
    fates: list[int] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        fates.append(0 if error is None else error.code())

    for value in values:
        producer.produce(topic, value, on_delivery=delivered, **options)
    assert producer.flush(30) == 0
    return fates


def confluent_producer(broker: BrokerProcess, **settings: object) -> Producer:
    return Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 50, **settings})


# --- what passes, and what does not -----------------------------------------------------------------------------------


@pytest.mark.parametrize("client", INSTALLED, ids=lambda client: client.name)
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_registered_records_pass_whatever_the_codec(guarded: Guarded, client: Client, codec: str) -> None:
    if codec not in client.codecs:
        pytest.skip(f"{client.name} does not write {codec}")
    values = [guarded.framed(b"%d" % number) for number in range(20)]
    client.produce(guarded.broker.bootstrap, guarded.topic, [Sent(value=value) for value in values], codec=codec)
    assert guarded.stored(20) == values


def test_one_bad_record_in_the_middle_refuses_the_batch_for_librdkafka(guarded: Guarded) -> None:
    producer = confluent_producer(guarded.broker, **{"linger.ms": 5000})  # one batch; flushing does not linger
    producer.list_topics(guarded.topic, timeout=20)  # or a flush sends each record as its partition becomes known
    fates = deliver(producer, guarded.topic, guarded.framed(), b"plain", guarded.framed())
    assert fates == [REFUSED] * 3
    assert end_offset(guarded.broker, guarded.topic) == 0
    assert deliver(producer, guarded.topic, guarded.framed()) == [0]


async def test_a_bad_record_is_refused_for_aiokafka(guarded: Guarded) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=guarded.broker.bootstrap)
    await producer.start()
    try:
        with pytest.raises(AioError):
            await producer.send_and_wait(guarded.topic, framed(999_999))
        assert (await producer.send_and_wait(guarded.topic, guarded.framed())).offset == 0
    finally:
        await producer.stop()


def test_a_bad_record_is_refused_for_kafka_python(guarded: Guarded) -> None:
    # Its idempotent producer takes every refusal for the end.
    producer = KafkaProducer(bootstrap_servers=guarded.broker.bootstrap, enable_idempotence=False)
    try:
        with pytest.raises(InvalidRecordError, match="value begins with byte 112"):
            producer.send(guarded.topic, b"plain").get(20)
        assert producer.send(guarded.topic, guarded.framed()).get(20).offset == 0
    finally:
        producer.close()


@pytest.mark.parametrize("version", [3, 7, 8, 9, 12])
def test_the_answer_names_each_bad_record_from_version_8_on(guarded: Guarded, version: int) -> None:
    records = [Record(timestamp=0, value=value) for value in (guarded.framed(), b"plain", None, framed(999_999))]
    data = [PartitionProduceData(0, bytes(build_batch(records)))]
    with WireConnection(guarded.broker.bootstrap) as connection:
        sent = ProduceRequest(None, -1, 5000, [TopicProduceData(name=guarded.topic, partition_data=data)])
        response = connection.request(sent, version, ProduceResponse)
    result: PartitionProduceResponse = response.responses[0].partition_responses[0]
    assert (result.error_code, result.base_offset) == (ErrorCode.INVALID_RECORD, -1)
    messages = {error.batch_index: error.batch_index_error_message for error in result.record_errors}
    if version < 8:
        assert (messages, result.error_message) == ({}, None)
    else:
        assert messages == {
            1: "value begins with byte 112, not with a zero byte and the id of its schema",
            3: f"value: schema 999999 is not registered under subject {guarded.topic}-value",
        }
        assert "record 1" in (result.error_message or "")
    assert end_offset(guarded.broker, guarded.topic) == 0


@pytest.mark.parametrize("client", INSTALLED, ids=lambda client: client.name)
def test_tombstones_pass(guarded: Guarded, client: Client) -> None:
    sent = [Sent(key=b"k", value=guarded.framed()), Sent(key=b"k", value=None)]
    client.produce(guarded.broker.bootstrap, guarded.topic, sent)
    assert guarded.stored(2) == [guarded.framed(), None]


@pytest.mark.parametrize("client", INSTALLED, ids=lambda client: client.name)
def test_topics_that_are_not_guarded_take_anything(guarded_broker: BrokerProcess, name: str, client: Client) -> None:
    create_topic(guarded_broker, name)
    client.produce(guarded_broker.bootstrap, name, [Sent(value=b"plain"), Sent(value=b"\x01")])
    assert end_offset(guarded_broker, name) == 2


def test_schemas_may_be_named_in_headers(guarded: Guarded) -> None:
    producer = confluent_producer(guarded.broker)
    by_guid = {"__value_schema_id": b"\x01" + UUID(guarded.schema.guid).bytes}
    by_id = {"__value_schema_id": framed(guarded.schema.id, b"")}
    invented = {"__value_schema_id": b"\x01" + bytes(16)}
    assert deliver(producer, guarded.topic, b"plain", headers=by_guid) == [0]
    assert deliver(producer, guarded.topic, b"plain", headers=by_id) == [0]
    assert deliver(producer, guarded.topic, b"plain", headers=invented) == [REFUSED]
    assert end_offset(guarded.broker, guarded.topic) == 2


def test_keys_are_guarded_by_a_subject_of_their_own(
    guarded_broker: BrokerProcess, registry: RegistryProcess, name: str
) -> None:
    create_topic(guarded_broker, name, configs=KEYS)
    key = framed(registry.register(f"{name}-key", AVRO_KEY).id)
    value = framed(registry.register(f"{name}-value").id)
    producer = confluent_producer(guarded_broker)
    assert deliver(producer, name, b"plain", key=key) == [0]
    assert deliver(producer, name, b"plain") == [0]
    assert deliver(producer, name, b"plain", key=value) == [REFUSED]


def test_subjects_may_be_named_after_topic_and_record(
    guarded_broker: BrokerProcess, registry: RegistryProcess, name: str
) -> None:
    strategy = {"confluent.value.subject.name.strategy": STRATEGIES + "TopicRecordNameStrategy"}
    create_topic(guarded_broker, name, configs={**VALUES, **strategy})
    good = registry.register(f"{name}-shop.Order", AVRO).id
    wrong = registry.register(f"{name}-value", AVRO_KEY).id
    producer = confluent_producer(guarded_broker)
    assert deliver(producer, name, framed(good)) == [0]
    assert deliver(producer, name, framed(wrong)) == [REFUSED]


SERIALIZED: dict[str, tuple[str, Any]] = {
    "avro": (AVRO, {"n": 1}),
    "json": ('{"title":"Order","type":"object"}', {"n": 1}),
    "protobuf": ("shop.Order", None),
}
SHOP = {"shop.proto": 'syntax = "proto3"; package shop; message First {} message Order { int32 n = 1; }'}


@pytest.mark.parametrize("place", [prefix_schema_id_serializer, header_schema_id_serializer])
@pytest.mark.parametrize("kind", SERIALIZED)
def test_records_of_confluent_s_serializers_pass(
    guarded_broker: BrokerProcess, registry: RegistryProcess, name: str, kind: str, place: Callable[..., bytes]
) -> None:
    create_topic(guarded_broker, name, configs={**VALUES, **KEYS})
    schema, value = SERIALIZED[kind]
    settings = {"schema.id.serializer": place}
    with confluent(registry.url) as theirs:
        if kind == "protobuf":
            order = message_classes(SHOP)[schema]
            value, write = order(n=1), theirs.protobuf_serializer(order, conf=settings)
        else:
            write = getattr(theirs, f"{kind}_serializer")(schema, conf=settings)
        key = theirs.avro_serializer('"string"', conf=settings)
        serializers = {"key.serializer": key, "value.serializer": write}
        producer = SerializingProducer({"bootstrap.servers": guarded_broker.bootstrap, **serializers})
        fates: list[KafkaError | None] = []
        producer.produce(name, "k", value, headers=[], on_delivery=lambda error, _: fates.append(error))
        assert producer.flush(30) == 0
    assert fates == [None]
    assert end_offset(guarded_broker, name) == 1


def test_the_command_says_what_a_guarded_topic_takes(guarded: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    printed = Caudal(monkeypatch)(
        "topic", "produce", guarded.topic, "no schema", "-b", guarded.broker.bootstrap, code=1
    )
    assert "registered schema id" in printed.stderr


def test_acks_0_drops_bad_records_and_goes_on(guarded: Guarded) -> None:
    producer = confluent_producer(guarded.broker, acks=0, **{"linger.ms": 0})
    deliver(producer, guarded.topic, b"plain")

    def sent_and_stored() -> bool:
        deliver(producer, guarded.topic, guarded.framed())
        return end_offset(guarded.broker, guarded.topic) > 0

    eventually(sent_and_stored)
    assert guarded.stored(end_offset(guarded.broker, guarded.topic))[0] == guarded.framed()


# --- order, and a registry that goes away -----------------------------------------------------------------------------


@pytest.mark.parametrize("client", INSTALLED, ids=lambda client: client.name)
def test_an_idempotent_producer_keeps_its_order_while_schemas_are_asked_about(
    guarded: Guarded, registry: RegistryProcess, client: Client
) -> None:
    schemas = [AVRO.replace("Order", f"Order{guarded.topic.replace('-', '_')}{number}") for number in range(30)]
    ids = [registry.register(f"{guarded.topic}-value", schema).id for schema in schemas]
    values = [framed(ids[number // 100], b"%06d" % number + b"x" * 500) for number in range(3000)]
    client.produce(guarded.broker.bootstrap, guarded.topic, [Sent(value=value) for value in values], idempotent=True)
    assert guarded.stored(3000) == values


@pytest.mark.parametrize("client", INSTALLED, ids=lambda client: client.name)
def test_an_idempotent_producer_keeps_its_order_over_an_outage_of_the_registry(
    guarded: Guarded, registry: RegistryProcess, client: Client
) -> None:
    schemas = [AVRO.replace("Order", f"Late{guarded.topic.replace('-', '_')}{number}") for number in range(10)]
    ids = [registry.register(f"{guarded.topic}-value", schema).id for schema in schemas]
    values = [framed(ids[number // 50], b"%06d" % number + b"x" * 1000) for number in range(500)]
    sent = [Sent(value=value) for value in values]
    outages = _outages(guarded.broker)
    registry.stop()
    with ThreadPoolExecutor(1) as thread:
        try:
            producing = thread.submit(client.produce, guarded.broker.bootstrap, guarded.topic, sent, idempotent=True)
            eventually(lambda: _outages(guarded.broker) > outages)
        finally:
            registry.start()
        producing.result(120)
    assert guarded.stored(500) == values


def test_an_idempotent_producer_lives_on_after_a_refusal(guarded: Guarded) -> None:
    producer = confluent_producer(guarded.broker, **{"enable.idempotence": True})
    good = [guarded.framed(b"%d" % number) for number in range(3)]
    assert deliver(producer, guarded.topic, good[0]) == [0]
    assert deliver(producer, guarded.topic, b"plain") == [REFUSED]
    assert deliver(producer, guarded.topic, *good[1:]) == [0, 0]
    assert guarded.stored(3) == good


@pytest.mark.parametrize("settings", [{}, {"enable.idempotence": True}], ids=["plain", "idempotent"])
def test_librdkafka_sends_again_until_the_registry_is_back(
    guarded: Guarded, registry: RegistryProcess, settings: Mapping[str, object]
) -> None:
    producer = confluent_producer(guarded.broker, **settings)
    values = [guarded.framed(b"%d" % number) for number in range(3)]
    fates: list[int] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        fates.append(0 if error is None else error.code())

    outages = _outages(guarded.broker)
    registry.stop()
    try:
        for value in values:
            producer.produce(guarded.topic, value, on_delivery=delivered)
        eventually(lambda: _outages(guarded.broker) > outages)
        assert producer.poll(0.5) == 0
        assert fates == []
        assert end_offset(guarded.broker, guarded.topic) == 0
    finally:
        registry.start()
    assert producer.flush(30) == 0
    assert fates == [0] * 3
    assert guarded.stored(3) == values


@pytest.mark.parametrize("idempotent", [False, True])
async def test_aiokafka_sends_again_until_the_registry_is_back(
    guarded: Guarded, registry: RegistryProcess, idempotent: bool
) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=guarded.broker.bootstrap, enable_idempotence=idempotent)
    await producer.start()
    await asyncio.to_thread(registry.stop)
    try:
        sent = asyncio.ensure_future(producer.send_and_wait(guarded.topic, guarded.framed()))
        done, _ = await asyncio.wait([sent], timeout=1)
        assert not done
        await asyncio.to_thread(registry.start)
        assert (await sent).offset == 0
    finally:
        if not registry.is_running:
            await asyncio.to_thread(registry.start)
        await producer.stop()
    assert await asyncio.to_thread(guarded.stored, 1) == [guarded.framed()]


def test_kafka_python_sends_again_until_the_registry_is_back(guarded: Guarded, registry: RegistryProcess) -> None:
    producer = KafkaProducer(bootstrap_servers=guarded.broker.bootstrap)
    registry.stop()
    try:
        sent = producer.send(guarded.topic, guarded.framed())
        with pytest.raises(KafkaTimeoutError):
            sent.get(1)
        assert not sent.is_done
    finally:
        registry.start()
    assert sent.get(30).offset == 0
    producer.close()
    assert guarded.stored(1) == [guarded.framed()]


def _outages(broker: BrokerProcess) -> int:
    return broker.log_text().count("schema registry unavailable")


def test_a_transaction_with_a_bad_record_is_aborted_and_a_later_one_commits(guarded: Guarded) -> None:
    producer = confluent_producer(guarded.broker, **{"transactional.id": guarded.topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    assert deliver(producer, guarded.topic, b"plain") == [REFUSED]
    with pytest.raises(KafkaException):
        producer.commit_transaction(30)
    producer.abort_transaction(30)

    def committed() -> bool:
        """librdkafka has used up the sequence of the refused batch and takes one more abort to begin anew."""
        producer.begin_transaction()
        if deliver(producer, guarded.topic, guarded.framed()) == [0]:
            producer.commit_transaction(30)
            return True
        producer.abort_transaction(30)
        return False

    eventually(committed)
    received = ConfluentClient().consume(guarded.broker.bootstrap, guarded.topic, 1, isolation="read_committed")
    assert [record.value for record in received] == [guarded.framed()]


# --- configs ----------------------------------------------------------------------------------------------------------


def _alter(broker: BrokerProcess, topic: str, key: str, value: str) -> None:
    entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin_client(broker).incremental_alter_configs([resource])[resource].result(20)


def test_a_topic_becomes_guarded_while_it_is_in_use(
    guarded_broker: BrokerProcess, registry: RegistryProcess, name: str
) -> None:
    create_topic(guarded_broker, name)
    producer = confluent_producer(guarded_broker)
    assert deliver(producer, name, b"plain") == [0]
    _alter(guarded_broker, name, "confluent.value.schema.validation", "true")
    assert deliver(producer, name, b"plain") == [REFUSED]
    resource = ConfigResource(ResourceType.TOPIC, name)
    described = admin_client(guarded_broker).describe_configs([resource])[resource].result(20)
    assert described["confluent.value.schema.validation"].value == "true"
    assert described["confluent.value.subject.name.strategy"].value == STRATEGIES + "TopicNameStrategy"


def test_an_unknown_strategy_is_refused_with_the_known_ones(guarded: Guarded) -> None:
    with pytest.raises(KafkaException, match="RecordNameStrategy") as refusal:
        _alter(guarded.broker, guarded.topic, "confluent.value.subject.name.strategy", "org.example.Mine")
    assert refusal.value.args[0].code() == KafkaError.INVALID_CONFIG


def test_a_broker_without_a_registry_refuses_to_guard(broker: BrokerProcess, name: str) -> None:
    with pytest.raises(KafkaException, match="confluent.schema.registry.url") as refusal:
        create_topic(broker, name, configs=VALUES)
    assert refusal.value.args[0].code() == KafkaError.INVALID_CONFIG
    create_topic(broker, name)
    with pytest.raises(KafkaException, match="confluent.schema.registry.url"):
        _alter(broker, name, "confluent.key.schema.validation", "true")
