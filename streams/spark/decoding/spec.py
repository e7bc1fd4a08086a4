"""Descriptions of decoders, small enough to be sent to the executors, where the decoders are opened."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Format(StrEnum):
    """How keys or values are written."""

    AVRO = "avro"
    """By Avro schemas of a registry."""
    PROTOBUF = "protobuf"
    """By Protobuf schemas of a registry."""
    JSON_SCHEMA = "json_schema"
    """By JSON Schemas of a registry."""
    REGISTRY = "registry"
    """By schemas of a registry, of any of these formats."""
    JSON = "json"
    """One JSON document each, without a schema."""
    STRING = "string"
    """Text in UTF-8."""
    BYTES = "bytes"
    """As they are."""

    @property
    def needs_registry(self) -> bool:
        """Whether it needs a registry."""
        return self in (Format.AVRO, Format.PROTOBUF, Format.JSON_SCHEMA, Format.REGISTRY)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderSpec:
    """Which decoder to open; equal ones are opened once per process."""

    format: Format
    is_key: bool = False
    """Whether it decodes keys, which have subjects and headers of their own."""
    registry: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Properties of the registry's client, in the names that Confluent's serializers use; a password may be one."""
    is_text_strict: bool = False
    """Whether bytes that are not UTF-8 make a record bad; otherwise they become U+FFFD, as in Connect."""

    @classmethod
    def of(cls, format_: str, registry: Mapping[str, object] | None = None, *, is_key: bool = False) -> "DecoderSpec":
        """The same from the name of a format and properties; raises ValueError for an unknown format."""
        properties = tuple(sorted((key, str(value)) for key, value in (registry or {}).items()))
        return cls(format=Format(format_), is_key=is_key, registry=properties)
