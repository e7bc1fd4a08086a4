"""Confluent's serializers and ours, through one registry: schemas of every kind, in both directions."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference

from schema_registry.client.models import Reference, SchemaDefinition
from schema_registry.client.registry_client import RegistryClient
from schema_registry.client.settings import RegistryClientSettings
from schema_registry.formats.schema import SchemaType
from schema_registry.serdes.deserializer import Deserializer
from schema_registry.serdes.serializer import Serializer
from schema_registry.serdes.settings import SerializerSettings
from tests.support import protobuf_examples, registry_examples
from tests.support.protobuf_messages import message_classes
from tests.support.registry import RegistryProcess
from tests.support.registry_clients import Call, Confluent, confluent, context

TABLES = {SchemaType.AVRO: registry_examples.AVRO, SchemaType.JSON: registry_examples.JSON}
KNOWN_ONLY = {"auto.register.schemas": False}
LATEST = {**KNOWN_ONLY, "use.latest.version": True}


@pytest.fixture
def theirs(registry: RegistryProcess) -> Iterator[Confluent]:
    with confluent(registry.url) as running:
        yield running


@pytest.fixture
def fresh(registry: RegistryProcess) -> Iterator[Confluent]:
    """A client that knows only what the registry tells it."""
    with confluent(registry.url) as running:
        yield running


@pytest.fixture
def ours(registry: RegistryProcess) -> Iterator[RegistryClient]:
    with RegistryClient(RegistryClientSettings.parse({"url": registry.url})) as running:
        yield running


def their_serializer(theirs: Confluent, kind: SchemaType, schema: Schema, settings: dict[str, Any]) -> Call:
    if kind is SchemaType.JSON:
        return theirs.json_serializer(schema, conf=settings)
    # Only a text may be a primitive type.
    return theirs.avro_serializer(schema if schema.references else schema.schema_str, conf=settings)


@pytest.mark.parametrize("normalize", [False, True], ids=["as written", "normalized"])
@pytest.mark.parametrize(
    ("kind", "name_of_example"), [(kind, example) for kind, table in TABLES.items() for example in table]
)
def test_avro_and_json_are_written_and_read_alike(
    theirs: Confluent,
    fresh: Confluent,
    ours: RegistryClient,
    name: str,
    kind: SchemaType,
    name_of_example: str,
    normalize: bool,
) -> None:
    example = TABLES[kind][name_of_example]
    for reference, referenced in example.references:
        theirs.register_schema(f"{name}/{reference}", Schema(json.dumps(referenced), kind), normalize)
    references = [(reference, f"{name}/{reference}", 1) for reference, _ in example.references]
    schema = Schema(example.text, kind, [SchemaReference(*reference) for reference in references])
    definition = SchemaDefinition(example.text, kind, tuple(Reference(*reference) for reference in references))

    settings = {"normalize.schemas": normalize}
    by_them = their_serializer(theirs, kind, schema, settings)(example.value, context(name))
    by_us = Serializer(ours, definition, settings=SerializerSettings(normalize=normalize)).serialize(
        name, example.value
    )

    assert by_us is not None
    assert by_us[:5] == by_them[:5], "both mean the same schema"
    assert theirs.get_versions(f"{name}-value") == [1]
    assert by_us == by_them or kind is SchemaType.JSON
    read = (fresh.avro_deserializer if kind is SchemaType.AVRO else fresh.json_deserializer)()
    for data in (by_them, by_us):
        decoded = Deserializer(ours).deserialize(data)
        assert decoded is not None
        assert decoded.value == read(data, context(name)) == example.value
    for more in (KNOWN_ONLY, LATEST):
        assert their_serializer(fresh, kind, schema, {**settings, **more})(example.value, context(name)) == by_them


@pytest.mark.parametrize("normalize", [False, True], ids=["as written", "normalized"])
@pytest.mark.parametrize("name_of_example", protobuf_examples.PROTOBUF)
def test_protobuf_is_written_and_read_alike(
    theirs: Confluent, fresh: Confluent, ours: RegistryClient, name: str, name_of_example: str, normalize: bool
) -> None:
    example = protobuf_examples.PROTOBUF[name_of_example]
    message = message_classes(example.files)[example.message]
    value = message(**example.fields)
    settings = {
        "normalize.schemas": normalize,
        "reference.subject.name.strategy": lambda _, file: f"{name}/{file.name}",
    }

    by_them = theirs.protobuf_serializer(message, conf=settings)(value, context(name))
    latest = SerializerSettings(use_latest_version=True, message=example.message)
    by_us = Serializer(ours, settings=latest).serialize(name, value)

    assert by_us == by_them
    decoded = Deserializer(ours).deserialize(by_them)
    assert decoded is not None
    assert decoded.value.SerializeToString() == value.SerializeToString()
    for reader in (theirs, fresh):
        assert reader.protobuf_deserializer(message)(by_them, context(name)) == value
    again = fresh.protobuf_serializer(message, conf={**settings, **KNOWN_ONLY})
    assert again(value, context(name)) == by_them
    fresh.clear_caches()
    assert fresh.protobuf_serializer(message, conf=LATEST)(value, context(name)) == by_them
    fresh.clear_caches()
    text = fresh.get_latest_version(f"{name}-value").schema
    fresh.clear_caches()
    assert fresh.register_schema_full_response(f"{name}-value", text, normalize).version == 1, "the text is the same"
