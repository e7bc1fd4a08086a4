import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from core_broker.service.clock import ManualClock
from schema_registry.client.errors import RegistryUnreachable, SchemaNotFound
from schema_registry.client.models import Reference, SchemaDefinition
from schema_registry.client.registry_client import RegistryClient
from schema_registry.client.settings import RegistryClientSettings
from schema_registry.formats.schema import SchemaType
from schema_registry.serdes.deserializer import Deserializer
from schema_registry.serdes.errors import InvalidData, UnusableSchema
from schema_registry.serdes.framing import Header, guid_header
from schema_registry.serdes.serializer import Serializer, writer_by
from schema_registry.serdes.settings import IdPlace, SerializerSettings
from schema_registry.serdes.subject_names import SubjectNameStrategy
from tests.support.scripted_http import ScriptedHttp
from tests.support.serde_schemas import AVRO, EXAMPLES, PROTOBUF, Example

pytestmark = pytest.mark.processes


@pytest.fixture(params=EXAMPLES)
def example(request: pytest.FixtureRequest) -> Example:
    return EXAMPLES[request.param]


def _plain(value: Any) -> Any:
    """A value that compares with those of the examples."""
    return {"id": value.id, "note": value.note} if hasattr(value, "DESCRIPTOR") else value


def test_values_are_written_and_read(client: RegistryClient, name: str, example: Example) -> None:
    serializer, deserializer = Serializer(client, example.definition), Deserializer(client)
    data = serializer.serialize(name, example.value)
    decoded = deserializer.deserialize(data)
    assert decoded is not None
    assert _plain(decoded.value) == example.value
    assert decoded.schema.definition.schema_type is example.definition.schema_type
    assert decoded.schema.id == client.latest(f"{name}-value").id


def test_json_is_written_and_read(client: RegistryClient, name: str, example: Example) -> None:
    serializer, deserializer = Serializer(client, example.definition), Deserializer(client)
    for view in (example.view, example.other_view):
        decoded = deserializer.deserialize_json(serializer.serialize_json(name, view))
        assert decoded is not None
        assert decoded.value == view


def test_what_does_not_fit_is_refused(client: RegistryClient, name: str, example: Example) -> None:
    with pytest.raises(InvalidData):
        Serializer(client, example.definition).serialize_json(name, example.bad_view)


@pytest.mark.parametrize("strategy", SubjectNameStrategy)
def test_schemas_are_registered_where_the_strategy_says(
    client: RegistryClient, name: str, example: Example, strategy: SubjectNameStrategy
) -> None:
    serializer = Serializer(client, example.definition, settings=SerializerSettings(strategy=strategy))
    serializer.serialize(name, example.value)
    assert client.versions(strategy.subject(name, record_name=example.record_name))


def test_keys_have_subjects_of_their_own(client: RegistryClient, name: str) -> None:
    Serializer(client, AVRO.definition).serialize(name, AVRO.value, is_key=True)
    assert client.subjects(prefix=name) == [f"{name}-key"]


def test_none_stays_none_and_registers_nothing(client: RegistryClient, name: str) -> None:
    assert Serializer(client, AVRO.definition).serialize(name, None) is None
    assert client.subjects(prefix=name) == []


def test_without_registering_the_schema_must_be_there(client: RegistryClient, name: str, example: Example) -> None:
    serializer = Serializer(client, example.definition, settings=SerializerSettings(auto_register=False))
    with pytest.raises(SchemaNotFound):
        serializer.serialize(name, example.value)
    registered = client.register(f"{name}-value", example.definition)
    assert serializer.writer(name).registered.id == registered.id


def test_the_latest_version_is_used_without_a_schema_of_ones_own(client: RegistryClient, name: str) -> None:
    client.register(f"{name}-value", AVRO.definition)
    serializer = Serializer(client, settings=SerializerSettings(use_latest_version=True))
    assert serializer.serialize(name, AVRO.value) == Serializer(client, AVRO.definition).serialize(name, AVRO.value)


def test_a_new_latest_version_is_noticed_after_a_while(registry_url: str, name: str) -> None:
    clock = ManualClock()
    settings = RegistryClientSettings.parse({"url": registry_url, "cache.latest.ttl.sec": 5})
    with RegistryClient(settings, clock=clock) as client, RegistryClient(settings) as other:
        first = other.register(name + "-value", SchemaDefinition('"int"'))
        serializer = Serializer(client, settings=SerializerSettings(use_latest_version=True), clock=clock)
        assert serializer.writer(name).registered.id == first.id
        second = other.register(name + "-value", SchemaDefinition('"long"'))
        assert serializer.writer(name).registered.id == first.id
        assert serializer.is_ready(name)
        clock.advance(5_000)
        assert not serializer.is_ready(name)
        assert serializer.writer(name).registered.id == second.id


def test_a_schema_can_be_chosen_by_id(client: RegistryClient, name: str, example: Example) -> None:
    registered = client.register(name, example.definition)
    serializer = Serializer(client, settings=SerializerSettings(schema_id=registered.id))
    assert serializer.writer("whatever").registered.id == registered.id
    assert serializer.serialize("whatever", example.value)


def test_a_call_may_bring_its_own_schema(client: RegistryClient, name: str) -> None:
    serializer = Serializer(client)
    with pytest.raises(UnusableSchema, match="there is no schema to write"):
        serializer.serialize(name, 5)
    data = serializer.serialize(name, 5, definition=SchemaDefinition('"int"'))
    assert data is not None
    assert data[5:] == b"\x0a"


def test_headers_may_name_the_schema(client: RegistryClient, name: str, example: Example) -> None:
    serializer = Serializer(client, example.definition, settings=SerializerSettings(id_place=IdPlace.HEADER))
    headers: list[Header] = [("trace", b"1")]
    data = serializer.serialize(name, example.value, headers=headers)
    guid = serializer.writer(name).registered.guid
    assert guid is not None
    indexes = (0,) if example is PROTOBUF else None
    assert headers == [("trace", b"1"), ("__value_schema_id", guid_header(guid, indexes))]
    decoded = Deserializer(client).deserialize(data, headers=headers)
    assert decoded is not None
    assert _plain(decoded.value) == example.value
    with pytest.raises(UnusableSchema, match="no headers"):
        serializer.serialize(name, example.value)


@pytest.mark.parametrize("message", ["depot.Other", "depot.Order.Line"])
def test_any_message_of_a_protobuf_schema_is_written(client: RegistryClient, name: str, message: str) -> None:
    serializer = Serializer(client, PROTOBUF.definition, settings=SerializerSettings(message=message))
    decoded = Deserializer(client).deserialize(serializer.serialize(name, {}))
    assert decoded is not None
    assert decoded.value.DESCRIPTOR.full_name == message


def test_a_message_object_tells_which_message_it_is(client: RegistryClient, name: str) -> None:
    chosen = Serializer(client, PROTOBUF.definition, settings=SerializerSettings(message="depot.Other"))
    decoded = Deserializer(client).deserialize(chosen.serialize(name, {"yes": True}))
    assert decoded is not None
    plain = Serializer(client, PROTOBUF.definition)
    assert plain.serialize(name, decoded.value) == chosen.serialize(name, {"yes": True})


def test_references_are_resolved(client: RegistryClient, name: str) -> None:
    client.register(f"{name}-address", SchemaDefinition('{"type":"record","name":"geo.Address","fields":[{"name":"city","type":"string"}]}'))  # noqa: E501  # fmt: skip
    text = json.dumps({"type": "record", "name": "Person", "fields": [{"name": "home", "type": "geo.Address"}]})
    definition = SchemaDefinition(text, references=(Reference("geo.Address", f"{name}-address", 1),))
    value = {"home": {"city": "Ulm"}}
    decoded = Deserializer(client).deserialize(Serializer(client, definition).serialize(name, value))
    assert decoded is not None
    assert decoded.value == value


def test_after_the_first_record_the_registry_is_not_asked() -> None:
    answer = json.dumps({"id": 7, "guid": "89791762-2336-4186-9674-299b90a802e2", "schema": '"int"'}).encode()
    with ScriptedHttp((200, answer)) as server:
        client = RegistryClient(RegistryClientSettings.parse({"url": server.url}))
        serializer, deserializer = Serializer(client, SchemaDefinition('"int"')), Deserializer(client)
        assert not serializer.is_ready("t")
        assert not deserializer.is_ready(b"\x00\x00\x00\x00\x07\x0a")
        for number in range(5):
            deserializer.deserialize(serializer.serialize("t", number))
        assert server.targets == ["POST /subjects/t-value/versions", "GET /schemas/ids/7"]
        assert serializer.is_ready("t")
        assert deserializer.is_ready(b"\x00\x00\x00\x00\x07\x0a")
        client.close()


@pytest.mark.parametrize("rules", ["domainRules", "encodingRules"])
def test_rules_that_would_be_skipped_are_refused(rules: str) -> None:
    rule = {"name": "hide", "kind": "TRANSFORM", "mode": "WRITEREAD", "type": "ENCRYPT"}
    answer = {"id": 7, "schema": '"int"', "ruleSet": {rules: [{**rule, "disabled": True}]}}
    refusing = {"id": 8, "schema": '"int"', "ruleSet": {rules: [rule]}}
    with ScriptedHttp((200, json.dumps(answer).encode()), (200, json.dumps(refusing).encode())) as server:
        client = RegistryClient(RegistryClientSettings.parse({"url": server.url}))
        serializer = Serializer(client, settings=SerializerSettings(use_latest_version=True))
        serializer.serialize("a", 1)
        with pytest.raises(UnusableSchema, match="'hide'"):
            serializer.serialize("b", 1)
        client.close()


def test_a_registry_without_guids_cannot_be_named_in_headers() -> None:
    with ScriptedHttp((200, b'{"id": 7}'), (200, b'{"id": 7, "version": 1}')) as server:
        client = RegistryClient(RegistryClientSettings.parse({"url": server.url}))
        settings = SerializerSettings(id_place=IdPlace.HEADER)
        serializer = Serializer(client, SchemaDefinition('"int"'), settings=settings)
        with pytest.raises(UnusableSchema, match="does not return guids"):
            serializer.serialize("t", 1, headers=[])
        client.close()


@pytest.mark.parametrize("kind", SchemaType)
def test_a_schema_that_is_none_is_told(client: RegistryClient, name: str, kind: SchemaType) -> None:
    with pytest.raises(UnusableSchema, match=f"the {kind} schema cannot be used"):
        Serializer(client, SchemaDefinition("{", kind)).serialize(name, {})


def test_an_outage_is_told_as_what_it_is() -> None:
    with ScriptedHttp((503, b"")) as server:
        client = RegistryClient(RegistryClientSettings.parse({"url": server.url, "max.retries": 0}))
        with pytest.raises(RegistryUnreachable):
            Serializer(client, SchemaDefinition('"int"')).serialize("t", 1)
        client.close()


def test_threads_may_share_a_serializer_and_a_deserializer(client: RegistryClient, name: str, example: Example) -> None:
    serializer, deserializer = Serializer(client, example.definition), Deserializer(client)

    def work(_: int) -> set[bytes | None]:
        written = {serializer.serialize(name, example.value) for _ in range(50)}
        assert all(
            _plain(decoded.value) == example.value for data in written if (decoded := deserializer.deserialize(data))
        )
        return written

    with ThreadPoolExecutor(8) as threads:
        assert len(set.union(*threads.map(work, range(8)))) == 1


def test_a_schema_of_any_subject_can_be_written_by(client: RegistryClient, name: str, example: Example) -> None:
    registered = client.register(f"{name}-anything", example.definition)
    writer = writer_by(registered, client)
    decoded = Deserializer(client).deserialize_json(writer.prefix + writer.codec.encode_json(example.view))
    assert decoded is not None
    assert (decoded.value, decoded.schema.id) == (example.view, registered.id)


def test_a_schema_with_rules_for_writers_is_not_written_by(client: RegistryClient, name: str) -> None:
    rule = {"name": "secret", "kind": "TRANSFORM", "mode": "WRITE", "type": "ENCRYPT", "tags": ["PII"]}
    client.register(f"{name}-value", AVRO.definition, rule_set={"domainRules": [rule]})
    with pytest.raises(UnusableSchema, match="rule 'secret' for writers"):
        writer_by(client.latest(f"{name}-value"), client)
