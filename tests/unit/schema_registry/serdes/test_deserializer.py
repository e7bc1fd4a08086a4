import json
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schema_registry.client.models import SchemaDefinition
from schema_registry.client.registry_client import RegistryClient
from schema_registry.formats import protobuf
from schema_registry.serdes.deserializer import Deserializer
from schema_registry.serdes.errors import InvalidData, NotFramed, SerdeError, UnknownSchema, UnusableSchema
from schema_registry.serdes.framing import id_prefix
from schema_registry.serdes.serializer import Serializer
from tests.support.serde_schemas import AVRO, EXAMPLES, JSON, PROTOBUF, Example

pytestmark = pytest.mark.processes


@pytest.fixture(params=EXAMPLES)
def example(request: pytest.FixtureRequest) -> Example:
    return EXAMPLES[request.param]


def _context(topic: str, headers: Any = None) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE, headers)


# --- Confluent's serializers and ours, through one registry ----------------------------------------------------------


def test_avro_of_confluents_serializer_is_read_and_the_other_way_round(
    client: RegistryClient, registry_url: str, name: str
) -> None:
    with SchemaRegistryClient({"url": registry_url}) as theirs:
        data = AvroSerializer(theirs, Schema(AVRO.definition.text, "AVRO"))(AVRO.value, _context(name))
        assert data == Serializer(client, AVRO.definition).serialize(name, AVRO.value)
        decoded = Deserializer(client).deserialize(data)
        assert decoded is not None
        assert decoded.value == AVRO.value == AvroDeserializer(theirs)(data, _context(name))


def test_json_of_confluents_serializer_is_read_and_the_other_way_round(
    client: RegistryClient, registry_url: str, name: str
) -> None:
    text = JSON.definition.text
    with SchemaRegistryClient({"url": registry_url}) as theirs:
        data = JSONSerializer(text, theirs)(JSON.value, _context(name))
        ours = Serializer(client, JSON.definition).serialize(name, JSON.value)
        assert data is not None
        assert ours is not None
        assert data[:5] == ours[:5]
        decoded = Deserializer(client).deserialize(data)
        assert decoded is not None
        assert (
            decoded.value == JSON.value == JSONDeserializer(text, schema_registry_client=theirs)(ours, _context(name))
        )


@pytest.mark.parametrize("message", ["depot.Order", "depot.Other", "depot.Order.Line"])
def test_protobuf_of_confluents_serializer_is_read_and_the_other_way_round(
    client: RegistryClient, registry_url: str, name: str, message: str
) -> None:
    kind = protobuf.parse(PROTOBUF.definition.text).message_class(message)
    with SchemaRegistryClient({"url": registry_url}) as theirs:
        data = ProtobufSerializer(kind, theirs)(kind(), _context(name))
        assert data is not None
        assert data == Serializer(client, PROTOBUF.definition).serialize(name, kind())
        decoded = Deserializer(client).deserialize(data)
        assert decoded is not None
        assert decoded.value.DESCRIPTOR.full_name == message
    with SchemaRegistryClient({"url": registry_url}) as theirs:
        assert ProtobufDeserializer(kind, {}, theirs)(data, _context(name)) == kind()


def test_guids_in_headers_of_confluents_serializer_are_read(
    client: RegistryClient, registry_url: str, name: str
) -> None:
    headers: list[tuple[str, bytes]] = []
    conf = {"schema.id.serializer": header_schema_id_serializer}
    with SchemaRegistryClient({"url": registry_url}) as theirs:
        data = AvroSerializer(theirs, AVRO.definition.text, conf=conf)(AVRO.value, _context(name, headers))
    decoded = Deserializer(client).deserialize(data, headers=headers)
    assert decoded is not None
    assert decoded.value == AVRO.value


# --- what cannot be read ---------------------------------------------------------------------------------------------


def test_none_stays_none(client: RegistryClient) -> None:
    deserializer = Deserializer(client)
    assert deserializer.deserialize(None) is None
    assert deserializer.deserialize_json(None) is None
    assert deserializer.is_ready(None)


@pytest.mark.parametrize("data", [b"", b"\x00\x00", b"plain text", b'{"a":1}'])
def test_bytes_that_name_no_schema_are_told(client: RegistryClient, data: bytes) -> None:
    deserializer = Deserializer(client)
    with pytest.raises(NotFramed):
        deserializer.deserialize(data)
    assert deserializer.is_ready(data), "no request is needed to refuse them"


def test_an_id_that_the_registry_does_not_know_is_told(client: RegistryClient) -> None:
    with pytest.raises(UnknownSchema, match="no schema 2000000000"):
        Deserializer(client).deserialize(id_prefix(2_000_000_000) + b"x")


def test_a_guid_that_the_registry_does_not_know_is_told(client: RegistryClient) -> None:
    with pytest.raises(UnknownSchema, match="no schema 01010101-"):
        Deserializer(client).deserialize(b"x", headers=[("__value_schema_id", b"\x01" * 17)])


def test_data_that_does_not_fit_is_told(client: RegistryClient, name: str, example: Example) -> None:
    prefix = Serializer(client, example.definition).writer(name).prefix
    for read in (Deserializer(client).deserialize, Deserializer(client).deserialize_json):
        with pytest.raises(InvalidData):
            read(prefix + b"\xff")


def test_message_indexes_that_lead_nowhere_are_told(client: RegistryClient, name: str) -> None:
    registered = client.register(name, PROTOBUF.definition)
    assert registered.id is not None
    for indexes in ((9,), (0, 5), (1, 0)):
        with pytest.raises(NotFramed, match="no message at index"):
            Deserializer(client).deserialize(id_prefix(registered.id, indexes))


@given(data=st.binary(max_size=30))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_garbage_behind_an_id_gives_a_value_or_a_named_error(client: RegistryClient, data: bytes) -> None:
    deserializer = Deserializer(client)
    for example in EXAMPLES.values():
        prefix = Serializer(client, example.definition).writer(f"garbage {example.definition.schema_type}").prefix
        try:
            deserializer.deserialize(prefix[:5] + data)
        except SerdeError:
            pass


# --- how it can be told to read --------------------------------------------------------------------------------------


def test_avro_is_read_as_another_schema_describes_it(client: RegistryClient, name: str) -> None:
    fields = [{"name": "id", "type": "double"}, {"name": "more", "type": "int", "default": 3}]
    reader = SchemaDefinition(json.dumps({"type": "record", "name": "shop.Order", "fields": fields}))
    data = Serializer(client, AVRO.definition).serialize(name, AVRO.value)
    decoded = Deserializer(client, reader=reader).deserialize(data)
    assert decoded is not None
    assert decoded.value == {"id": 1.0, "more": 3}


def test_only_avro_has_readers_of_another_schema(client: RegistryClient, name: str) -> None:
    data = Serializer(client, AVRO.definition).serialize(name, AVRO.value)
    with pytest.raises(UnusableSchema, match="only Avro"):
        Deserializer(client, reader=JSON.definition).deserialize(data)


def test_json_is_checked_when_it_is_asked_for(client: RegistryClient, name: str) -> None:
    data = Serializer(client, JSON.definition).writer(name).prefix + b'{"id":"one"}'
    decoded = Deserializer(client).deserialize(data)
    assert decoded is not None
    assert decoded.value == {"id": "one"}
    with pytest.raises(InvalidData, match="/id: 'one' is not of type 'integer'"):
        Deserializer(client, validates_json=True).deserialize(data)


def test_keys_are_found_by_their_own_header(client: RegistryClient, name: str) -> None:
    registered = client.register(name, SchemaDefinition('"int"'))
    assert registered.guid is not None
    data = Serializer(client, SchemaDefinition('"int"')).serialize(name, 5, is_key=True)
    decoded = Deserializer(client).deserialize(data, is_key=True, headers=[("__value_schema_id", b"broken")])
    assert decoded is not None
    assert decoded.value == 5
