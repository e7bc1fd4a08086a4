"""Records through a broker: written with Confluent's serializers and read with ours, and the other way round."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import DeserializingConsumer, Producer, SerializingProducer, TopicPartition
from confluent_kafka.schema_registry import (
    AssociationCreateOrUpdateInfo,
    AssociationCreateOrUpdateRequest,
    Rule,
    RuleKind,
    RuleMode,
    RuleSet,
    Schema,
    SchemaReference,
    header_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import AvroDeserializerBuilder, AvroSerializerBuilder
from confluent_kafka.schema_registry.rule_registry import RuleRegistry
from confluent_kafka.schema_registry.rules.dlq.dlq_action import DlqAction
from confluent_kafka.schema_registry.serde import RuleContext, RuleExecutor
from confluent_kafka.serialization import SerializationError
from google.protobuf.message import Message

from schema_registry.client.models import Reference, SchemaDefinition
from schema_registry.client.registry_client import RegistryClient
from schema_registry.client.settings import RegistryClientSettings
from schema_registry.formats.schema import SchemaType
from schema_registry.serdes.deserializer import Deserializer
from schema_registry.serdes.framing import Header
from schema_registry.serdes.serializer import Serializer
from schema_registry.serdes.settings import IdPlace, SerializerSettings
from tests.support.admin import admin_client, create_topic
from tests.support.broker import BrokerProcess
from tests.support.clients.aio import AioClient
from tests.support.clients.confluent import ConfluentClient, consumer_config
from tests.support.clients.model import TIMEOUT_S, Client, NotEnoughRecords, Received, Sent
from tests.support.clients.pure import PureClient
from tests.support.protobuf_messages import message_classes
from tests.support.registry import RegistryProcess
from tests.support.registry_clients import KINDS, Call, Confluent, confluent, context
from tests.support.serde_schemas import EXAMPLES, PROTOBUF

PLACES = {"prefix": IdPlace.PREFIX, "header": IdPlace.HEADER}
KEY = SchemaDefinition('{"type":"record","name":"Key","namespace":"shop","fields":[{"name":"k","type":"string"}]}')
ORDER = message_classes({"order.proto": PROTOBUF.definition.text})["depot.Order"]
BINARY_CLIENTS: dict[str, Client] = {client.name: client for client in (ConfluentClient(), AioClient(), PureClient())}


@pytest.fixture(params=KINDS)
def theirs(request: pytest.FixtureRequest, registry: RegistryProcess) -> Iterator[Confluent]:
    with confluent(registry.url, request.param) as running:
        yield running


@pytest.fixture
def blocking(registry: RegistryProcess) -> Iterator[Confluent]:
    """What Confluent's own producer and consumer call."""
    with confluent(registry.url) as running:
        yield running


@pytest.fixture
def ours(registry: RegistryProcess) -> Iterator[RegistryClient]:
    with RegistryClient(RegistryClientSettings.parse({"url": registry.url})) as running:
        yield running


@pytest.fixture
def topic(broker: BrokerProcess, name: str) -> str:
    create_topic(broker, name)
    return name


def their_serializer(theirs: Confluent, kind: str, place: str = "prefix") -> Call:
    settings: dict[str, Any] = {"schema.id.serializer": header_schema_id_serializer} if place == "header" else {}
    if kind == "protobuf":
        return theirs.protobuf_serializer(ORDER, conf=settings)
    make = theirs.avro_serializer if kind == "avro" else theirs.json_serializer
    return make(EXAMPLES[kind].definition.text, conf=settings)


def their_deserializer(theirs: Confluent, kind: str) -> Call:
    if kind == "protobuf":
        return theirs.protobuf_deserializer(ORDER)
    return theirs.avro_deserializer() if kind == "avro" else theirs.json_deserializer()


def value_of(kind: str) -> Any:
    return ORDER(**EXAMPLES[kind].value) if kind == "protobuf" else EXAMPLES[kind].value


def plain(value: Any) -> Any:
    """A message as its fields: each side has classes of its own."""
    return {field.name: content for field, content in value.ListFields()} if isinstance(value, Message) else value


def consumed(broker: BrokerProcess, topic: str, count: int = 1) -> list[Received]:
    return ConfluentClient().consume(broker.bootstrap, topic, count)


def read_by_us(client: RegistryClient, record: Received) -> tuple[Any, Any]:
    """Key and value."""
    read, headers = Deserializer(client).deserialize, list(record.headers)
    key, value = read(record.key, is_key=True, headers=headers), read(record.value, headers=headers)
    return (None if key is None else plain(key.value)), (None if value is None else plain(value.value))


def written_by_us(client: RegistryClient, topic: str, definition: SchemaDefinition, value: Any, place: IdPlace) -> Sent:
    """A record with the key `shop.Key` and a value."""
    headers: list[Header] = []
    settings = SerializerSettings(id_place=place)
    key = Serializer(client, KEY, settings=settings).serialize(topic, {"k": "number one"}, is_key=True, headers=headers)
    data = Serializer(client, definition, settings=settings).serialize(topic, value, headers=headers)
    return Sent(key=key, value=data, headers=tuple((name, content or b"") for name, content in headers))


def polled(consumer: DeserializingConsumer) -> Any:
    message = consumer.poll(TIMEOUT_S)
    if message is None:
        raise NotEnoughRecords("nothing came")
    assert message.error() is None
    return message


# --- Confluent's producer and consumer --------------------------------------------------------------------------------


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", EXAMPLES)
def test_records_of_confluent_s_producer_are_read(
    broker: BrokerProcess, blocking: Confluent, ours: RegistryClient, topic: str, kind: str, place: str
) -> None:
    settings = {"schema.id.serializer": header_schema_id_serializer} if place == "header" else {}
    producer = SerializingProducer(
        {
            "bootstrap.servers": broker.bootstrap,
            "key.serializer": blocking.avro_serializer(KEY.text, conf=settings),
            "value.serializer": their_serializer(blocking, kind, place),
        }
    )
    producer.produce(topic, {"k": "number one"}, value_of(kind), headers=[])
    producer.produce(topic, {"k": "number two"}, None, headers=[])
    assert producer.flush(TIMEOUT_S) == 0
    records = consumed(broker, topic, 2)
    assert [read_by_us(ours, record) for record in records] == [
        ({"k": "number one"}, EXAMPLES[kind].value),
        ({"k": "number two"}, None),
    ]
    names = [key for key, _ in records[0].headers]
    assert names == (["__key_schema_id", "__value_schema_id"] if place == "header" else [])


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", EXAMPLES)
def test_records_of_ours_are_read_by_confluent_s_consumer(
    broker: BrokerProcess, blocking: Confluent, ours: RegistryClient, topic: str, kind: str, place: str
) -> None:
    record = written_by_us(ours, topic, EXAMPLES[kind].definition, EXAMPLES[kind].value, PLACES[place])
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(topic, record.value, record.key, headers=list(record.headers))
    producer.produce(topic, None, record.key, headers=list(record.headers))
    assert producer.flush(TIMEOUT_S) == 0
    readers = {
        "key.deserializer": blocking.avro_deserializer(),
        "value.deserializer": their_deserializer(blocking, kind),
    }
    consumer = DeserializingConsumer(consumer_config(broker.bootstrap, topic, **readers))
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        first, second = polled(consumer), polled(consumer)
        assert (first.key(), plain(first.value())) == ({"k": "number one"}, EXAMPLES[kind].value)
        assert (second.key(), second.value()) == ({"k": "number one"}, None)
    finally:
        consumer.close()


# --- other producers and consumers, with either side's serializers ----------------------------------------------------


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", EXAMPLES)
@pytest.mark.parametrize("library", BINARY_CLIENTS)
def test_every_client_carries_records_of_ours(
    broker: BrokerProcess, ours: RegistryClient, topic: str, library: str, kind: str, place: str
) -> None:
    record = written_by_us(ours, topic, EXAMPLES[kind].definition, EXAMPLES[kind].value, PLACES[place])
    BINARY_CLIENTS[library].produce(broker.bootstrap, topic, [record, Sent(key=record.key, value=None)])
    first, second = BINARY_CLIENTS[library].consume(broker.bootstrap, topic, 2)
    assert read_by_us(ours, first) == ({"k": "number one"}, EXAMPLES[kind].value)
    assert second.value is None


@pytest.mark.parametrize("kind", EXAMPLES)
@pytest.mark.parametrize("library", ["aiokafka", "kafka-python"])
def test_confluent_s_serializers_and_ours_meet_in_other_clients(
    broker: BrokerProcess, theirs: Confluent, ours: RegistryClient, topic: str, library: str, kind: str
) -> None:
    by_them = their_serializer(theirs, kind)(value_of(kind), context(topic))
    by_us = Serializer(ours, EXAMPLES[kind].definition).serialize(topic, EXAMPLES[kind].value)
    other = BINARY_CLIENTS[library]
    other.produce(broker.bootstrap, topic, [Sent(value=by_them), Sent(value=by_us)])
    records = other.consume(broker.bootstrap, topic, 2)
    read = their_deserializer(theirs, kind)
    for record in records:
        assert read_by_us(ours, record)[1] == EXAMPLES[kind].value
        assert plain(read(record.value, context(topic))) == EXAMPLES[kind].value
    assert theirs.get_versions(f"{topic}-value") == [1], "both registered the same schema"


# --- references -------------------------------------------------------------------------------------------------------

ADDRESS = '{"type":"record","name":"geo.Address","fields":[{"name":"city","type":"string"}]}'
PARCEL = (
    '{"type":"record","name":"shop.Parcel","fields":[{"name":"to","type":"geo.Address"},'
    '{"name":"others","type":{"type":"array","items":"geo.Address"}}]}'
)
PARCEL_JSON = (
    '{"type":"object","properties":{"to":{"$ref":"address.json"},'
    '"others":{"type":"array","items":{"$ref":"address.json"}}}}'
)
GEO_PROTO = 'syntax = "proto3";\npackage geo;\nmessage Address { string city = 1; }\n'
PARCEL_PROTO = """syntax = "proto3";
package shop;
import "geo.proto";
import "google/protobuf/timestamp.proto";
message Parcel { geo.Address to = 1; repeated geo.Address others = 2; google.protobuf.Timestamp at = 3; }
"""
REFERRING: dict[str, tuple[str, str, str]] = {
    "AVRO": ("geo.Address", ADDRESS, PARCEL),
    "JSON": (
        "address.json",
        '{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}',
        PARCEL_JSON,
    ),
    "PROTOBUF": ("geo.proto", GEO_PROTO, PARCEL_PROTO),
}
PARCEL_VALUE = {"to": {"city": "Jerez"}, "others": [{"city": "Cádiz"}]}
PARCEL_CLASS = message_classes({"geo.proto": GEO_PROTO, "parcel.proto": PARCEL_PROTO})["shop.Parcel"]


@pytest.mark.parametrize("kind", REFERRING)
def test_schemas_with_references_are_understood_by_both(
    broker: BrokerProcess, theirs: Confluent, ours: RegistryClient, topic: str, kind: str
) -> None:
    reference, referenced, text = REFERRING[kind]
    subject = f"{topic}/{reference}"
    theirs.register_schema(subject, Schema(referenced, kind))
    by_them = _written_by_them(theirs, topic, kind, Schema(text, kind, [SchemaReference(reference, subject, 1)]))
    definition = SchemaDefinition(text, SchemaType(kind), (Reference(reference, subject, 1),))
    by_us = Serializer(ours, definition, settings=SerializerSettings(normalize=True)).serialize(topic, PARCEL_VALUE)
    ConfluentClient().produce(broker.bootstrap, topic, [Sent(value=by_them), Sent(value=by_us)])
    records = consumed(broker, topic, 2)
    for record in records:
        assert record.value is not None
        decoded = Deserializer(ours).deserialize_json(record.value)
        assert decoded is not None
        assert {**decoded.value, "at": None} == {**PARCEL_VALUE, "at": None}
    assert by_them[:5] == (by_us or b"")[:5], "both registered the same schema"
    theirs.clear_caches()
    read = {
        "AVRO": theirs.avro_deserializer(),
        "JSON": theirs.json_deserializer(),
        "PROTOBUF": theirs.protobuf_deserializer(PARCEL_CLASS),
    }[kind]
    assert _cities(read(by_us, context(topic))) == ["Jerez", "Cádiz"]


def _written_by_them(theirs: Confluent, topic: str, kind: str, schema: Schema) -> bytes:
    normalized: dict[str, Any] = {"normalize.schemas": True}  # a descriptor tells types with a dot before their names
    if kind == "PROTOBUF":
        named = {**normalized, "reference.subject.name.strategy": lambda _, file: f"{topic}/{file.name}"}
        message = PARCEL_CLASS(**PARCEL_VALUE)
        data = theirs.protobuf_serializer(PARCEL_CLASS, conf=named)(message, context(topic))
    else:
        make = theirs.avro_serializer if kind == "AVRO" else theirs.json_serializer
        data = make(schema, conf=normalized)(PARCEL_VALUE, context(topic))
    assert isinstance(data, bytes)
    return data


def _cities(parcel: Any) -> list[str]:
    if isinstance(parcel, dict):
        return [parcel["to"]["city"], *(other["city"] for other in parcel["others"])]
    return [parcel.to.city, *(other.city for other in parcel.others)]


# --- evolution --------------------------------------------------------------------------------------------------------


def test_records_of_both_versions_are_read_by_the_new_one(
    broker: BrokerProcess, theirs: Confluent, ours: RegistryClient, topic: str
) -> None:
    fields: list[dict[str, Any]] = [{"name": "id", "type": "long"}]
    old = json.dumps({"type": "record", "name": "Order", "fields": fields})
    new = json.dumps(
        {"type": "record", "name": "Order", "fields": [*fields, {"name": "n", "type": "int", "default": 7}]}
    )
    by_them = theirs.avro_serializer(old)({"id": 1}, context(topic))
    by_us = Serializer(ours, SchemaDefinition(new)).serialize(topic, {"id": 2, "n": 8})
    ConfluentClient().produce(broker.bootstrap, topic, [Sent(value=by_them), Sent(value=by_us)])
    values = [record.value for record in consumed(broker, topic, 2)]
    wanted = [{"id": 1, "n": 7}, {"id": 2, "n": 8}]
    read = Deserializer(ours, reader=SchemaDefinition(new)).deserialize
    assert [decoded.value for decoded in map(read, values) if decoded is not None] == wanted
    assert [theirs.avro_deserializer(new)(value, context(topic)) for value in values] == wanted


# --- what a topic is associated with, and rules -----------------------------------------------------------------------

COUNTER = '{"type":"record","name":"Counter","fields":[{"name":"count","type":"int"}]}'


@pytest.mark.parametrize("namespace", ["of the cluster", "-"])
def test_the_subject_of_a_topic_is_found_by_the_id_of_the_cluster(
    broker: BrokerProcess, registry: RegistryProcess, blocking: Confluent, topic: str, namespace: str
) -> None:
    """An association under `-` is for clients that know no cluster, which a producer does."""
    cluster = admin_client(broker).describe_cluster().result(TIMEOUT_S).cluster_id if namespace != "-" else "-"
    blocking.register_schema(f"{topic}-elsewhere", Schema(COUNTER, "AVRO"))
    info = AssociationCreateOrUpdateInfo(f"{topic}-elsewhere", "value", "STRONG", frozen=False)
    blocking.create_association(AssociationCreateOrUpdateRequest(topic, cluster, f"id:{topic}", "topic", [info]))
    writer = AvroSerializerBuilder(schema_registry_config={"url": registry.url}, schema=COUNTER)
    producer = SerializingProducer({"bootstrap.servers": broker.bootstrap, "value.serializer.builder": writer})
    producer.produce(topic, value={"count": 1})
    producer.close()
    fallback = [] if cluster != "-" else [f"{topic}-value"]
    assert blocking.get_subjects(subject_prefix=topic) == [f"{topic}-elsewhere", *fallback]
    reader = AvroDeserializerBuilder(schema_registry_config={"url": registry.url})
    consumer = DeserializingConsumer(consumer_config(broker.bootstrap, topic, **{"value.deserializer.builder": reader}))
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        assert polled(consumer).deserialized_value() == {"count": 1}
    finally:
        consumer.close()


class Never(RuleExecutor):
    """A condition that no value meets."""

    def type(self) -> str:
        return "NEVER"

    def transform(self, ctx: RuleContext, message: Any) -> Any:
        return False


def test_what_a_rule_refuses_goes_to_the_dead_letters(broker: BrokerProcess, theirs: Confluent, topic: str) -> None:
    create_topic(broker, f"{topic}-dead")
    rule = Rule("no", None, RuleKind.CONDITION, RuleMode.READ, "NEVER", None, None, None, None, "DLQ", False)
    theirs.register_schema(f"{topic}-value", Schema(COUNTER, "AVRO", rule_set=RuleSet([], [rule])))
    rules = RuleRegistry()
    rules.register_executor(Never())
    letters = DlqAction({"dlq.topic": f"{topic}-dead", "bootstrap.servers": broker.bootstrap, "dlq.auto.flush": True})
    rules.register_action(letters)
    settings = {"auto.register.schemas": False, "use.latest.version": True}
    data = theirs.avro_serializer(COUNTER, conf=settings, rule_registry=rules)({"count": 300}, context(topic))
    with pytest.raises(SerializationError, match="Rule failed: no"):
        theirs.avro_deserializer(rule_registry=rules)(data, context(topic))
    letters.close()
    (dead,) = consumed(broker, f"{topic}-dead")
    headers = dict(dead.headers)
    assert dead.value == data
    assert (headers[DlqAction.RULE_NAME], headers[DlqAction.RULE_SUBJECT]) == (b"no", f"{topic}-value".encode())


# --- kcat -------------------------------------------------------------------------------------------------------------

KCAT = shutil.which("kcat")


def _kcat_features() -> str:
    if KCAT is None:
        return ""
    return subprocess.run([KCAT, "-V"], capture_output=True, text=True, timeout=10, check=True).stdout


@pytest.mark.kcat
@pytest.mark.skipif("Avro" not in _kcat_features(), reason="this kcat is built without Avro")
def test_kcat_reads_avro(broker: BrokerProcess, registry: RegistryProcess, ours: RegistryClient, topic: str) -> None:
    assert KCAT is not None
    data = Serializer(ours, EXAMPLES["avro"].definition).serialize(topic, EXAMPLES["avro"].value)
    ConfluentClient().produce(broker.bootstrap, topic, [Sent(value=data)])
    options = ["-b", broker.bootstrap, "-t", topic, "-s", "value=avro", "-r", registry.url]
    result = subprocess.run([KCAT, "-C", "-e", "-q", *options], capture_output=True, timeout=TIMEOUT_S, check=True)
    assert json.loads(result.stdout)["id"] == 1
