"""Values as records of a topic, with the schema that they are written with."""

from google.protobuf.message import Message

from core_broker.service.clock import Clock, SystemClock
from schema_registry.client.cache import BoundedCache
from schema_registry.client.models import RegisteredSchema, SchemaDefinition
from schema_registry.client.registry_client import RegistryClient
from schema_registry.formats.avro import AvroSchema
from schema_registry.formats.json_schema import JsonSchema
from schema_registry.serdes.avro import AvroCodec
from schema_registry.serdes.codec import Codec, JsonView, Value
from schema_registry.serdes.errors import UnusableSchema
from schema_registry.serdes.framing import Header, guid_header, header_name, id_prefix
from schema_registry.serdes.json_schema import JsonCodec
from schema_registry.serdes.protobuf import ProtobufCodec
from schema_registry.serdes.schemas import ParsedSchema, parse
from schema_registry.serdes.settings import IdPlace, SerializerSettings


class Writer:
    """Writes data of one schema to one topic, framed."""

    def __init__(self, registered: RegisteredSchema, schema: ParsedSchema, codec: Codec) -> None:
        self.registered = registered
        self.schema = schema
        self.codec = codec
        self._indexes = codec.message_indexes if isinstance(codec, ProtobufCodec) else None
        self.prefix = id_prefix(registered.id or 0, self._indexes)
        """The bytes before the data if the id is there."""

    def header(self, *, is_key: bool) -> Header:
        """The header that names the schema."""
        if self.registered.guid is None:
            raise UnusableSchema("the registry does not return guids, so headers cannot name a schema")
        return header_name(is_key=is_key), guid_header(self.registered.guid, self._indexes)


def writer_by(registered: RegisteredSchema, client: RegistryClient, *, message: str | None = None) -> Writer:
    """The writer of a registered schema, under whichever subject; refuses schemas with rules for writers."""
    schema = parse(_without_rules(registered).definition, client)
    return Writer(registered, schema, _codec(schema, message))


class Serializer:
    """Writes keys and values of any topic; raises SerdeError, or ClientError where the registry must be asked.

    Only the first record of a topic and schema asks the registry. `definition` is the schema to write with; a call may
    pass another. Rules of a schema (encryption and the like) are not supported, so the latest schema of a subject is
    refused if it has any for writers. Safe for any number of threads.
    """

    def __init__(
        self,
        client: RegistryClient,
        definition: SchemaDefinition | None = None,
        *,
        settings: SerializerSettings | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._client = client
        self._definition = definition
        self._settings = settings or SerializerSettings()
        is_fixed = not self._settings.use_latest_version
        self._writers: BoundedCache[_Target, Writer] = BoundedCache(
            client.settings.cache_capacity,
            clock=clock or SystemClock(),
            ttl_seconds=None if is_fixed else client.settings.latest_ttl_seconds,
        )

    def serialize(
        self,
        topic: str,
        value: Value,
        *,
        is_key: bool = False,
        headers: list[Header] | None = None,
        definition: SchemaDefinition | None = None,
    ) -> bytes | None:
        """The bytes of a key or value; None stays None. If headers name the schema, one is added to `headers`."""
        if value is None:
            return None
        message = value.DESCRIPTOR.full_name if isinstance(value, Message) else None
        writer = self.writer(topic, is_key=is_key, definition=definition, message=message)
        return self._framed(writer, writer.codec.encode(value), is_key, headers)

    def serialize_json(
        self,
        topic: str,
        view: JsonView,
        *,
        is_key: bool = False,
        headers: list[Header] | None = None,
        definition: SchemaDefinition | None = None,
    ) -> bytes:
        """The same from JSON; null is a value like any other, so that the caller decides what it means."""
        writer = self.writer(topic, is_key=is_key, definition=definition)
        return self._framed(writer, writer.codec.encode_json(view), is_key, headers)

    def is_ready(
        self,
        topic: str,
        *,
        is_key: bool = False,
        definition: SchemaDefinition | None = None,
        message: str | None = None,
    ) -> bool:
        """Whether data can be written without asking the registry; never blocks."""
        return self._writers.get(self._target(topic, is_key, definition, message)) is not None

    def writer(
        self,
        topic: str,
        *,
        is_key: bool = False,
        definition: SchemaDefinition | None = None,
        message: str | None = None,
    ) -> Writer:
        """The writer of data, or of one Protobuf message, for a topic; keep it for many records."""
        target = self._target(topic, is_key, definition, message)
        return self._writers.get(target) or self._writers.put(target, self._new_writer(target))

    def _target(self, topic: str, is_key: bool, definition: SchemaDefinition | None, message: str | None) -> "_Target":
        return topic, is_key, definition or self._definition, message or self._settings.message

    def _framed(self, writer: Writer, data: bytes, is_key: bool, headers: list[Header] | None) -> bytes:
        if self._settings.id_place is IdPlace.PREFIX:
            return writer.prefix + data
        if headers is None:
            raise UnusableSchema("a header should name the schema, but the record has no headers to add it to")
        headers.append(writer.header(is_key=is_key))
        return data

    def _new_writer(self, target: "_Target") -> Writer:
        _, _, definition, message = target
        schema = None if definition is None else parse(definition, self._client)
        registered = self._registered(target, schema)
        # The registry may have another text for the given schema, but not another meaning.
        is_given = not self._settings.use_latest_version and self._settings.schema_id is None
        if schema is None or not is_given:
            schema = parse(registered.definition, self._client)
        return Writer(registered, schema, _codec(schema, message))

    def _registered(self, target: "_Target", schema: ParsedSchema | None) -> RegisteredSchema:
        topic, is_key, definition, message = target
        settings = self._settings
        if settings.schema_id is not None:
            return _without_rules(self._client.by_id(settings.schema_id))
        name = message or (schema.name if schema is not None else None)
        subject = settings.strategy.subject(topic, is_key=is_key, record_name=name)
        if settings.use_latest_version:
            return _without_rules(self._client.latest(subject))
        if definition is None:
            raise UnusableSchema(f"there is no schema to write {subject} with, and the latest one is not to be used")
        if settings.auto_register:
            registered = self._client.register(subject, definition, normalize=settings.normalize)
            if settings.id_place is IdPlace.PREFIX or registered.guid is not None:
                return registered
        return self._client.lookup(subject, definition, normalize=settings.normalize)


_Target = tuple[str, bool, SchemaDefinition | None, str | None]
"""Topic, whether it is the key, schema, message."""


def _codec(schema: ParsedSchema, message: str | None) -> Codec:
    if isinstance(schema, AvroSchema):
        return AvroCodec(schema)
    if isinstance(schema, JsonSchema):
        return JsonCodec(schema)
    return ProtobufCodec(schema, message=message)


def _without_rules(registered: RegisteredSchema) -> RegisteredSchema:
    """Refuse a schema whose data must be changed or checked before it is written: ignoring that could leak secrets."""
    rules = registered.rule_set or {}
    for rule in [*(rules.get("domainRules") or ()), *(rules.get("encodingRules") or ())]:
        if not rule.get("disabled") and rule.get("mode") in ("WRITE", "WRITEREAD"):
            raise UnusableSchema(f"the schema has a rule {rule.get('name')!r} for writers, which is not supported here")
    return registered
