"""The formats of keys and values over HTTP, and how a request chooses their schema."""

from enum import StrEnum

import msgspec

from schema_registry.formats.schema import SchemaType
from schema_registry.serdes.subject_names import SubjectNameStrategy


class Format(StrEnum):
    """How a key or value is represented in JSON and in Kafka."""

    BINARY = "binary"
    """Any bytes, as base64."""
    JSON = "json"
    """Any JSON, kept as JSON text."""
    STRING = "string"
    """Text, kept in UTF-8."""
    AVRO = "avro"
    JSONSCHEMA = "jsonschema"
    PROTOBUF = "protobuf"

    @classmethod
    def of_schema(cls, schema_type: SchemaType) -> "Format":
        """The format of data with a schema of this type."""
        return _BY_TYPE[schema_type]

    @property
    def schema_type(self) -> SchemaType | None:
        """The registry's name for the schemas of this format; None if it has none."""
        return _TYPES.get(self)

    @property
    def has_schema(self) -> bool:
        """Whether data of this format has a schema in the registry."""
        return self in (Format.AVRO, Format.JSONSCHEMA, Format.PROTOBUF)


_TYPES = {
    Format.AVRO: SchemaType.AVRO,
    Format.JSONSCHEMA: SchemaType.JSON,
    Format.PROTOBUF: SchemaType.PROTOBUF,
}
_BY_TYPE = {schema_type: format_ for format_, schema_type in _TYPES.items()}


class SchemaChoice(msgspec.Struct, frozen=True, kw_only=True):
    """How a request chooses the schema of its keys, or of its values; every field may be left out."""

    schema: str | None = None
    """The text of a schema, which is registered if it is new."""
    schema_id: int | None = None
    schema_version: int | str | None = None
    """A version of the subject, or "latest"."""
    subject: str | None = None
    strategy: SubjectNameStrategy | None = None
    """Confluent's strategy for the name of the subject; TOPIC_NAME if neither it nor a subject is given."""

    @property
    def names_none(self) -> bool:
        """Whether no schema is given, neither by text nor by id nor by version."""
        return self.schema is None and self.schema_id is None and self.schema_version is None

    @property
    def is_latest(self) -> bool:
        """Whether the choice is the latest schema of the subject, which may change."""
        return self.schema_version == "latest" or self.names_none


NO_CHOICE = SchemaChoice()
