"""Bytes, unchanged."""

from collections.abc import Mapping, Sequence

from typing_extensions import override

from connect.api.config import STRING, Config, Importance, option
from connect.api.converter import Converter, HeaderConverter, RawHeader, SchemaAndValue
from connect.api.data import OPTIONAL_BYTES, Schema, Type, Value
from connect.api.errors import DataError


class ByteArrayConverterConfig(Config):
    """Options of the byte array converter."""

    converter_type: str = option(STRING, default="", importance=Importance.LOW)
    """What is converted: `key`, `value` or `header`. It makes no difference."""


class ByteArrayConverter(Converter, HeaderConverter):
    """Passes bytes through unchanged."""

    config_class = ByteArrayConverterConfig
    aliases = ("org.apache.kafka.connect.converters.ByteArrayConverter",)

    @override
    def __init__(self, config: Mapping[str, str], *, is_key: bool = False) -> None:
        ByteArrayConverterConfig.parse(config)

    @override
    def to_connect(self, topic: str, data: bytes | None, headers: Sequence[RawHeader] = ()) -> SchemaAndValue:
        return OPTIONAL_BYTES, data

    @override
    def from_connect(self, topic: str, schema: Schema | None, value: Value) -> bytes | None:
        if schema is not None and schema.type is not Type.BYTES:
            raise DataError(f"Invalid schema type for ByteArrayConverter: {schema.type.name}")
        if value is None or type(value) is bytes:
            return value
        if isinstance(value, (bytes, bytearray, memoryview)):
            return bytes(value)
        raise DataError(f"ByteArrayConverter is not compatible with objects of type {type(value).__name__}")

    @override
    def to_connect_header(self, topic: str, key: str, data: bytes | None) -> SchemaAndValue:
        return self.to_connect(topic, data)

    @override
    def from_connect_header(self, topic: str, key: str, schema: Schema | None, value: Value) -> bytes | None:
        return self.from_connect(topic, schema, value)
