"""The formats that keys and values may have over HTTP, and what a request says about their schema."""

from enum import StrEnum

import msgspec

from schema_registry.serdes.subject_names import SubjectNameStrategy


class Format(StrEnum):
    """How a key or value is written in JSON, and in Kafka."""

    BINARY = "binary"
    """Any bytes, as base64."""
    JSON = "json"
    """Any JSON, kept as JSON text."""
    STRING = "string"
    """Text, kept in UTF-8."""
    AVRO = "avro"
    JSONSCHEMA = "jsonschema"
    PROTOBUF = "protobuf"

    @property
    def has_schema(self) -> bool:
        """Whether data is written by a schema of the registry."""
        return self in (Format.AVRO, Format.JSONSCHEMA, Format.PROTOBUF)


class SchemaChoice(msgspec.Struct, frozen=True, kw_only=True):
    """What a request says about the schema of its keys, or of its values; all of it may be left out."""

    schema: str | None = None
    """The text of a schema, to be registered if it is new."""
    schema_id: int | None = None
    schema_version: int | str | None = None
    """A version of the subject, or "latest"."""
    subject: str | None = None
    strategy: SubjectNameStrategy = SubjectNameStrategy.TOPIC_NAME


NO_CHOICE = SchemaChoice()
