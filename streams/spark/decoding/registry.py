"""Data decoded by the schemas of a registry that it names."""

from typing import Final

import pyarrow as pa
from typing_extensions import override

from schema_registry.client.errors import ClientError, NotAllowed, RegistryUnreachable
from schema_registry.client.registry_client import RegistryClient
from schema_registry.formats.avro import AvroSchema
from schema_registry.formats.json_schema import JsonSchema
from schema_registry.formats.protobuf import ProtobufSchema
from schema_registry.serdes.arrow.reading import Bad, SchemaReader
from schema_registry.serdes.arrow.schemas import column_reader
from schema_registry.serdes.arrow.types import NoColumns
from schema_registry.serdes.deserializer import Deserializer
from schema_registry.serdes.errors import InvalidData, SerdeError, UnusableSchema
from schema_registry.serdes.schemas import ParsedSchema
from schema_registry.serdes.settings import parse as parse_settings
from schema_registry.serdes.subject_names import SubjectNameStrategy
from streams.formats.frames import (
    FIRST_MESSAGE,
    Group,
    Indexes,
    Messages,
    group_by_message,
    group_by_schema,
)
from streams.spark.decoding.decoder import NO_SCHEMA_ID, Decoded, Decoder, LeftOver, Part
from streams.spark.decoding.spec import DecoderSpec, Format
from streams.spark.types import table_array, table_type

_ANY_FORM: Final = "the data of a schema"
_FORMS: Final = {Format.AVRO: "Avro", Format.PROTOBUF: "Protobuf", Format.JSON_SCHEMA: "JSON"}
_KINDS: Final[dict[type, Format]] = {
    AvroSchema: Format.AVRO,
    ProtobufSchema: Format.PROTOBUF,
    JsonSchema: Format.JSON_SCHEMA,
}
_NAMES: Final = {Format.AVRO: "Avro", Format.PROTOBUF: "Protobuf", Format.JSON_SCHEMA: "JSON Schema"}


class RegistryDecoder(Decoder):
    """Decodes by the schema that each value names. Readers are kept, and never more than the client keeps schemas."""

    def __init__(self, spec: DecoderSpec) -> None:
        settings, _ = parse_settings(dict(spec.registry), is_key=spec.is_key)
        self._format = spec.format
        self._is_key = spec.is_key
        self._client = RegistryClient(settings)
        self._deserializer = Deserializer(self._client)
        self._readers: dict[tuple[int | str, Indexes], SchemaReader | NoColumns] = {}

    @override
    def decode(self, values: pa.Array, topic: str, headers: pa.Array | None = None) -> Decoded:
        found = group_by_schema(values, headers, is_key=self._is_key)
        decoded = Decoded([], [], found.nulls, [])
        _refuse(decoded, found.bad, topic, _FORMS.get(self._format, _ANY_FORM))
        for group in found.groups:
            self._decode_group(group, topic, decoded)
        decoded.bad.sort(key=lambda item: item[0])
        return decoded

    @override
    def type_of(self, schema_id: int) -> pa.DataType:
        reader = self._reader(schema_id, FIRST_MESSAGE)
        if isinstance(reader, NoColumns):
            raise reader
        return table_type(reader.type)

    @override
    def latest_type(self, topic: str) -> tuple[int, pa.DataType]:
        subject = SubjectNameStrategy.TOPIC_NAME.subject(topic, is_key=self._is_key)
        latest = self._client.latest(subject)
        if latest.id is None:
            raise UnusableSchema(f"the registry did not return the id of the latest schema of {subject}")
        return latest.id, self.type_of(latest.id)

    @override
    def can_decode(self, schema_id: int) -> bool:
        try:
            return not isinstance(self._reader(schema_id, FIRST_MESSAGE), NoColumns)
        except SerdeError:
            return False

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _decode_group(self, group: Group, topic: str, decoded: Decoded) -> None:
        try:
            parsed = self._parsed(group.schema)
        except (RegistryUnreachable, NotAllowed):
            raise  # That is not a problem of the records.
        except (ClientError, SerdeError) as error:
            form = _FORMS.get(self._format, _ANY_FORM)
            _refuse(decoded, [(row, error) for row in group.rows.tolist()], topic, form)
            return
        form = _FORMS[_KINDS[type(parsed)]]
        schema_id = (
            group.schema if isinstance(group.schema, int) else self._deserializer.reader(group.schema).registered.id
        )
        is_protobuf = isinstance(parsed, ProtobufSchema)
        messages = group_by_message(group) if is_protobuf else Messages([(FIRST_MESSAGE, group)], [])
        _refuse(decoded, messages.bad, topic, form)
        for indexes, some in messages.groups:
            try:
                reader = self._reader(group.schema, indexes)
            except SerdeError as error:
                _refuse(decoded, [(row, error) for row in some.rows.tolist()], topic, form)
                continue
            part_id = NO_SCHEMA_ID if schema_id is None else schema_id
            if isinstance(reader, NoColumns):
                decoded.left_over.append(LeftOver(part_id, some.rows, reader))
                continue
            read = reader.read(some.bodies).at(some.rows)
            _refuse(decoded, read.bad, topic, form)
            if len(read.rows):
                decoded.parts.append(Part(part_id, read.rows, table_array(read.data)))

    def _reader(self, schema: int | str, indexes: Indexes) -> SchemaReader | NoColumns:
        """The reader of a schema's data, made on first use; raises SerdeError, or ClientError."""
        found = self._readers.get((schema, indexes))
        if found is None:
            parsed = self._parsed(schema)
            try:
                found = column_reader(parsed, indexes)
            except NoColumns as error:
                found = error
            if len(self._readers) >= self._client.settings.cache_capacity:
                self._readers.clear()
            self._readers[schema, indexes] = found
        return found

    def _parsed(self, schema: int | str) -> ParsedSchema:
        parsed = self._deserializer.reader(schema).schema
        if self._format not in (Format.REGISTRY, _KINDS[type(parsed)]):
            raise UnusableSchema(f"schema {schema} is of {parsed.schema_type}, not {_NAMES[self._format]}")
        return parsed


def _refuse(decoded: Decoded, bad: Bad, topic: str, form: str) -> None:
    """Record errors in the words of Connect's converters."""
    for row, error in bad:
        refusal = InvalidData(f"Failed to deserialize data for topic {topic} to {form}: {error}")
        refusal.__cause__ = error
        decoded.bad.append((row, refusal))
