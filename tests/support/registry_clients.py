"""Confluent's registry client and serializers, blocking and async, called alike."""

import asyncio
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Final, NamedTuple

from confluent_kafka.schema_registry import AsyncSchemaRegistryClient, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import (
    AsyncAvroDeserializer,
    AsyncAvroSerializer,
    AvroDeserializer,
    AvroSerializer,
)
from confluent_kafka.schema_registry.json_schema import (
    AsyncJSONDeserializer,
    AsyncJSONSerializer,
    JSONDeserializer,
    JSONSerializer,
)
from confluent_kafka.schema_registry.protobuf import (
    AsyncProtobufDeserializer,
    AsyncProtobufSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
)
from confluent_kafka.serialization import MessageField, SerializationContext


class Kind(NamedTuple):
    """The classes of one colour."""

    client: Any
    avro: tuple[Any, Any]
    """Serializer and deserializer."""
    json: tuple[Any, Any]
    protobuf: tuple[Any, Any]


KINDS: Final = {
    "sync": Kind(
        SchemaRegistryClient,
        (AvroSerializer, AvroDeserializer),
        (JSONSerializer, JSONDeserializer),
        (ProtobufSerializer, ProtobufDeserializer),
    ),
    "async": Kind(
        AsyncSchemaRegistryClient,
        (AsyncAvroSerializer, AsyncAvroDeserializer),
        (AsyncJSONSerializer, AsyncJSONDeserializer),
        (AsyncProtobufSerializer, AsyncProtobufDeserializer),
    ),
}

Call = Callable[..., Any]


class Confluent:
    """A client of Confluent's and what serializes with it; whatever must be awaited has been awaited."""

    def __init__(self, client: Any, kind: Kind, finish: Callable[[Any], Any]) -> None:
        self.client = client
        self._kind = kind
        self._finish = finish

    def __getattr__(self, name: str) -> Call:
        return self._finished(getattr(self.client, name))

    def avro_serializer(self, schema: Any, **options: Any) -> Call:
        """`AvroSerializer` for a schema."""
        return self._made(self._kind.avro[0], self.client, schema, **options)

    def avro_deserializer(self, schema: Any = None, **options: Any) -> Call:
        """`AvroDeserializer`, for the schema that values shall have."""
        return self._made(self._kind.avro[1], self.client, schema, **options)

    def json_serializer(self, schema: Any, **options: Any) -> Call:
        """`JSONSerializer` for a schema."""
        return self._made(self._kind.json[0], schema, self.client, **options)

    def json_deserializer(self, schema: Any = None, **options: Any) -> Call:
        """`JSONDeserializer`, for the schema that values shall have."""
        return self._made(self._kind.json[1], schema, schema_registry_client=self.client, **options)

    def protobuf_serializer(self, message: type, **options: Any) -> Call:
        """`ProtobufSerializer` for a message."""
        return self._made(self._kind.protobuf[0], message, self.client, **options)

    def protobuf_deserializer(self, message: type, **options: Any) -> Call:
        """`ProtobufDeserializer` for a message."""
        return self._made(self._kind.protobuf[1], message, schema_registry_client=self.client, **options)

    def _made(self, maker: Call, *arguments: Any, **options: Any) -> Call:
        return self._finished(self._finished(maker)(*arguments, **options))

    def _finished(self, function: Call) -> Call:
        def call(*arguments: Any, **options: Any) -> Any:
            return self._finish(function(*arguments, **options))

        return call


@contextmanager
def confluent(url: str, colour: str = "sync", *, settings: Mapping[str, object] | None = None) -> Iterator[Confluent]:
    """A client of one colour with empty caches."""
    kind = KINDS[colour]
    with ExitStack() as stack:
        runner = stack.enter_context(asyncio.Runner()) if colour == "async" else None

        def finish(answer: Any) -> Any:
            return runner.run(answer) if runner is not None and inspect.iscoroutine(answer) else answer

        client = kind.client.new_client({"url": url, **(settings or {})})
        stack.callback(lambda: finish(client.close() if runner is None else client.aclose()))
        yield Confluent(client, kind, finish)


def context(topic: str, headers: Any = None, *, is_key: bool = False) -> SerializationContext:
    """Where a value is going to, or comes from."""
    return SerializationContext(topic, MessageField.KEY if is_key else MessageField.VALUE, headers)
