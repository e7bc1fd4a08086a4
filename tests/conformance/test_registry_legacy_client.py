"""Confluent's first Python client, deprecated and still in use: `confluent_kafka.avro`."""

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from schema_registry.client.models import SchemaDefinition
from schema_registry.client.registry_client import RegistryClient
from schema_registry.client.settings import RegistryClientSettings
from schema_registry.serdes.deserializer import Deserializer
from schema_registry.serdes.serializer import Serializer
from tests.support.admin import create_topic
from tests.support.broker import BrokerProcess
from tests.support.clients.confluent import ConfluentClient, consumer_config
from tests.support.clients.model import TIMEOUT_S, Sent
from tests.support.registry import RegistryProcess

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")

avro: Any = pytest.importorskip("confluent_kafka.avro", reason="this confluent-kafka has no module avro")

ID = {"name": "id", "type": "long"}
NOTE = {"name": "note", "type": "string", "default": "none"}


def text(*fields: dict[str, Any]) -> str:
    return json.dumps({"type": "record", "name": "Order", "namespace": "shop", "fields": fields})


ORDER, ORDER_2 = avro.loads(text(ID)), avro.loads(text(ID, NOTE))
ORDER_BROKEN = avro.loads(text(ID, {"name": "buyer", "type": "string"}))


@pytest.fixture
def theirs(registry: RegistryProcess) -> Iterator[Any]:
    with closing(avro.CachedSchemaRegistryClient({"url": registry.url})) as running:
        yield running


@pytest.fixture
def ours(registry: RegistryProcess) -> Iterator[RegistryClient]:
    with RegistryClient(RegistryClientSettings.parse({"url": registry.url})) as running:
        yield running


def test_schemas_are_registered_and_found(theirs: Any, registry: RegistryProcess, name: str) -> None:
    schema_id = theirs.register(name, ORDER)
    assert theirs.register(name, ORDER_2) != schema_id
    with closing(avro.CachedSchemaRegistryClient({"url": registry.url})) as fresh:
        assert fresh.get_by_id(schema_id) == ORDER
        assert fresh.check_registration(name, ORDER) == schema_id
        assert fresh.get_latest_schema(name)[1:] == (ORDER_2, 2)
        assert fresh.get_by_version(name, 1) == (schema_id, ORDER, 1)
        assert fresh.get_version(name, ORDER_2) == 2
        assert fresh.delete_subject(name) == [1, 2]


def test_missing_associations_are_an_empty_list(theirs: Any, name: str) -> None:
    assert theirs.get_by_id(2_000_000_000) is None
    assert theirs.get_latest_schema(name) == (None, None, None)
    assert theirs.get_by_version(name, 1) == (None, None, None)
    assert theirs.get_version(name, ORDER) is None


def test_compatibility_is_judged_and_set(theirs: Any, name: str) -> None:
    theirs.register(name, ORDER)
    assert theirs.test_compatibility(name, ORDER_2) is True
    assert theirs.test_compatibility(name, ORDER_BROKEN, version=1) is False
    with pytest.raises(avro.ClientError, match="Incompatible Avro schema"):
        theirs.register(name, ORDER_BROKEN)
    assert theirs.update_compatibility("FULL", name) == "FULL"
    assert theirs.get_compatibility(name) == "FULL"
    assert theirs.get_compatibility() == "BACKWARD"


def test_schemas_that_are_none_are_refused(theirs: Any, name: str) -> None:
    no_schema = type("NoSchema", (), {"__str__": lambda _: '{"type":"recor"}', "__hash__": lambda _: 1})()
    with pytest.raises(avro.ClientError, match="Invalid Avro schema"):
        theirs.register(name, no_schema)


def test_records_go_from_its_producer_to_us_and_from_us_to_its_consumer(
    broker: BrokerProcess, registry: RegistryProcess, ours: RegistryClient, name: str
) -> None:
    create_topic(broker, name)
    settings = {"bootstrap.servers": broker.bootstrap, "schema.registry.url": registry.url}
    producer = avro.AvroProducer(settings, default_key_schema=ORDER, default_value_schema=ORDER_2)
    producer.produce(topic=name, key={"id": 1}, value={"id": 2, "note": "theirs"})
    assert producer.flush(TIMEOUT_S) == 0
    (record,) = ConfluentClient().consume(broker.bootstrap, name, 1)
    read = Deserializer(ours).deserialize
    decoded = [read(record.key, is_key=True), read(record.value)]
    assert [each.value for each in decoded if each is not None] == [{"id": 1}, {"id": 2, "note": "theirs"}]

    data = Serializer(ours, SchemaDefinition(text(ID, NOTE))).serialize(name, {"id": 3, "note": "ours"})
    ConfluentClient().produce(broker.bootstrap, name, [Sent(key=None, value=data)])
    consumer = avro.AvroConsumer({**consumer_config(broker.bootstrap, name), "schema.registry.url": registry.url})
    try:
        consumer.assign([TopicPartition(name, 0, 1)])
        message = consumer.poll(TIMEOUT_S)
        assert (message.key(), message.value()) == (None, {"id": 3, "note": "ours"})
    finally:
        consumer.close()
