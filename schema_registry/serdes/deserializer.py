"""Records of a topic as values, by the schema that they name."""

from collections.abc import Iterable
from typing import Any

import msgspec

from core_broker.service.clock import SystemClock
from schema_registry.client.cache import BoundedCache
from schema_registry.client.errors import SchemaNotFound
from schema_registry.client.models import RegisteredSchema, SchemaDefinition
from schema_registry.client.registry_client import RegistryClient
from schema_registry.formats.avro import AvroSchema
from schema_registry.formats.json_schema import JsonSchema
from schema_registry.formats.protobuf import ProtobufSchema
from schema_registry.formats.schema import InvalidSchema
from schema_registry.serdes.avro import AvroCodec
from schema_registry.serdes.codec import Codec
from schema_registry.serdes.errors import NotFramed, UnknownSchema, UnusableSchema
from schema_registry.serdes.framing import Frame, Header, header_of, read_frame, read_message_indexes
from schema_registry.serdes.json_schema import JsonCodec
from schema_registry.serdes.protobuf import ProtobufCodec
from schema_registry.serdes.schemas import ParsedSchema, parse


class Decoded(msgspec.Struct, frozen=True, gc=False):
    """A value, and the schema that it was read with."""

    value: Any
    schema: RegisteredSchema


class Reader:
    """Reads data of one schema."""

    def __init__(self, registered: RegisteredSchema, schema: ParsedSchema, codec: Codec | None) -> None:
        self.registered = registered
        self.schema = schema
        self._codec = codec
        self._by_indexes: dict[tuple[int, ...], ProtobufCodec] = {}

    def codec(self, frame: Frame) -> tuple[Codec, int]:
        """The codec of a frame's data, and where the data begins."""
        if self._codec is not None:
            return self._codec, 0 if frame.is_in_header else frame.start
        indexes, end = read_message_indexes(frame)
        codec = self._by_indexes.get(indexes) or self._message_codec(indexes)
        return codec, 0 if frame.is_in_header else end

    def _message_codec(self, indexes: tuple[int, ...]) -> ProtobufCodec:
        """Make the codec of a message on first use; there are never more than the schema has messages."""
        if not isinstance(self.schema, ProtobufSchema):
            raise TypeError("only Protobuf has message indexes")
        try:
            name = self.schema.message_at(indexes).full_name
        except InvalidSchema as error:
            raise NotFramed(str(error)) from error
        codec = ProtobufCodec(self.schema, message=name)
        return self._by_indexes.setdefault(indexes, codec)


class Deserializer:
    """Reads keys and values of any topic; raises SerdeError, or ClientError where the registry must be asked.

    Only the first record of a schema asks the registry: later ones cost the framing and the format's own decoding.
    `reader` (Avro only) is the schema of the returned values, whichever they were written with. JSON is validated only
    if `validates_json`, because writers have done that already. Safe for any number of threads.
    """

    def __init__(
        self, client: RegistryClient, *, reader: SchemaDefinition | None = None, validates_json: bool = False
    ) -> None:
        self._client = client
        self._reader_definition = reader
        self._validates_json = validates_json
        self._readers: BoundedCache[int | str, Reader] = BoundedCache(
            client.settings.cache_capacity, clock=SystemClock()
        )

    def deserialize(
        self, data: bytes | None, *, is_key: bool = False, headers: Iterable[Header] | None = None
    ) -> Decoded | None:
        """The value of a record's key or value with its schema; None stays None."""
        if data is None:
            return None
        frame = read_frame(data, header_of(headers, is_key=is_key))
        reader = self._readers.get(frame.schema) or self._new_reader(frame.schema)
        codec, start = reader.codec(frame)
        return Decoded(codec.decode(data, start), reader.registered)

    def deserialize_json(
        self, data: bytes | None, *, is_key: bool = False, headers: Iterable[Header] | None = None
    ) -> Decoded | None:
        """The same, in the format's JSON encoding."""
        if data is None:
            return None
        frame = read_frame(data, header_of(headers, is_key=is_key))
        reader = self._readers.get(frame.schema) or self._new_reader(frame.schema)
        codec, start = reader.codec(frame)
        return Decoded(codec.decode_json(data, start), reader.registered)

    def is_ready(self, data: bytes | None, *, is_key: bool = False, headers: Iterable[Header] | None = None) -> bool:
        """Whether these bytes can be read, or refused, without asking the registry; never blocks."""
        if data is None:
            return True
        try:
            frame = read_frame(data, header_of(headers, is_key=is_key))
        except NotFramed:
            return True
        return self._readers.get(frame.schema) is not None

    def reader(self, schema: int | str) -> Reader:
        """The reader of a schema, by id or guid."""
        return self._readers.get(schema) or self._new_reader(schema)

    def _new_reader(self, key: int | str) -> Reader:
        try:
            registered = self._client.by_id(key) if isinstance(key, int) else self._client.by_guid(key)
        except SchemaNotFound as error:
            raise UnknownSchema(f"the registry has no schema {key}: {error.message}") from error
        schema = parse(registered.definition, self._client)
        return self._readers.put(key, Reader(registered, schema, self._codec(schema)))

    def _codec(self, schema: ParsedSchema) -> Codec | None:
        """The codec of all data of a schema; None if the data itself names its message."""
        if isinstance(schema, AvroSchema):
            reader = None if self._reader_definition is None else parse(self._reader_definition, self._client)
            if not isinstance(reader, AvroSchema | None):
                raise UnusableSchema("only Avro data can be read with another schema")
            return AvroCodec(schema, reader=reader)
        if isinstance(schema, JsonSchema):
            return JsonCodec(schema, validates_reads=self._validates_json)
        return None
