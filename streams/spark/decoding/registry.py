"""Data that names schemas of a registry, by these."""

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
from streams.spark.decoding.decoder import NO_SCHEMA_ID, Decoded, Decoder, LeftOver, Part
from streams.spark.decoding.frames import Group, grouped
from streams.spark.decoding.message_indexes import FIRST_MESSAGE, Indexes, Messages, by_message
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
        """Decode values by the schemas they name."""
        found = grouped(values, headers, is_key=self._is_key)
        decoded = Decoded([], [], found.nulls, [])
        _refuse(decoded, found.bad, topic, _FORMS.get(self._format, _ANY_FORM))
        for group in found.groups:
            self._decode_group(group, topic, decoded)
        decoded.bad.sort(key=lambda item: item[0])
        return decoded

    @override
    def type_of(self, schema_id: int) -> pa.DataType:
        """What values of a schema become."""
        reader = self._reader(schema_id, FIRST_MESSAGE)
        if isinstance(reader, NoColumns):
            raise reader
        return table_type(reader.type)

    @override
    def latest_type(self, topic: str) -> tuple[int, pa.DataType]:
        """The latest schema of a topic, and what its values become."""
        subject = SubjectNameStrategy.TOPIC_NAME.subject(topic, is_key=self._is_key)
        latest = self._client.latest(subject)
        if latest.id is None:
            raise UnusableSchema(f"the registry does not tell the id of the latest schema of {subject}")
        return latest.id, self.type_of(latest.id)

    @override
    def can_decode(self, schema_id: int) -> bool:
        """Whether values of a schema become columns here."""
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
            raise  # which says nothing about the records
        except (ClientError, SerdeError) as error:
            form = _FORMS.get(self._format, _ANY_FORM)
            _refuse(decoded, [(row, error) for row in group.rows.tolist()], topic, form)
            return
        form = _FORMS[_KINDS[type(parsed)]]
        messages = by_message(group) if isinstance(parsed, ProtobufSchema) else Messages([(FIRST_MESSAGE, group)], [])
        _refuse(decoded, messages.bad, topic, form)
        for indexes, some in messages.groups:
            self._decode_message(some, indexes, topic, decoded)

    def _decode_message(self, group: Group, indexes: Indexes, topic: str, decoded: Decoded) -> None:
        form = _FORMS[_KINDS[type(self._parsed(group.schema))]]
        schema_id = self._schema_id(group.schema)
        try:
            reader = self._reader(group.schema, indexes)
        except SerdeError as error:
            _refuse(decoded, [(row, error) for row in group.rows.tolist()], topic, form)
            return
        if isinstance(reader, NoColumns):
            decoded.left_over.append(LeftOver(schema_id, group.rows, reader))
            return
        read = reader.read(group.bodies)
        _refuse(decoded, [(int(group.rows[row]), error) for row, error in read.bad], topic, form)
        if len(read.rows):
            decoded.parts.append(Part(schema_id, group.rows[read.rows], table_array(read.data)))

    def _reader(self, schema: int | str, indexes: Indexes) -> SchemaReader | NoColumns:
        """What reads data of a schema, made when it is first met; raises SerdeError, or ClientError."""
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

    def _schema_id(self, schema: int | str) -> int:
        if isinstance(schema, int):
            return schema
        registered = self._deserializer.reader(schema).registered
        return NO_SCHEMA_ID if registered.id is None else registered.id


def _refuse(decoded: Decoded, bad: Bad, topic: str, form: str) -> None:
    """Note errors in the words of Connect's converters."""
    for row, error in bad:
        refusal = InvalidData(f"Failed to deserialize data for topic {topic} to {form}: {error}")
        refusal.__cause__ = error
        decoded.bad.append((row, refusal))
