"""Numbers and booleans as Kafka's own serialisers write them: as many bytes as the type has, big-endian."""

import struct
from collections.abc import Mapping, Sequence
from typing import ClassVar

from typing_extensions import override

from connect.api.checking import check
from connect.api.config import STRING, Config, Importance, option
from connect.api.converter import Converter, HeaderConverter, RawHeader, SchemaAndValue
from connect.api.data import (
    OPTIONAL_BOOLEAN,
    OPTIONAL_FLOAT32,
    OPTIONAL_FLOAT64,
    OPTIONAL_INT16,
    OPTIONAL_INT32,
    OPTIONAL_INT64,
    Schema,
    Type,
    Value,
)
from connect.api.errors import DataError


class NumberConverterConfig(Config):
    """Options of the number converters."""

    converter_type: str = option(STRING, default="", importance=Importance.LOW)
    """What is converted: `key`, `value` or `header`. It makes no difference."""


class NumberConverter(Converter, HeaderConverter):
    """The base of the number converters, which differ in three attributes."""

    config_class = NumberConverterConfig
    schema: ClassVar[Schema]
    """The schema of every value read."""
    type_name: ClassVar[str]
    """What Java calls such numbers."""
    packed: ClassVar[struct.Struct]
    """How such a number is written."""

    @override
    def __init__(self, config: Mapping[str, str], *, is_key: bool = False) -> None:
        NumberConverterConfig.parse(config)

    @override
    def to_connect(self, topic: str, data: bytes | None, headers: Sequence[RawHeader] = ()) -> SchemaAndValue:
        return self.schema, None if data is None else self._read(data)

    @override
    def from_connect(self, topic: str, schema: Schema | None, value: Value) -> bytes | None:
        if value is None:
            return None
        try:
            check(self.schema, value)
            return self._write(value)
        except (DataError, OverflowError):
            found = type(value).__name__
            raise DataError(f"Failed to serialize to {self.type_name} (was {found}): it does not fit") from None

    @override
    def to_connect_header(self, topic: str, key: str, data: bytes | None) -> SchemaAndValue:
        return self.to_connect(topic, data)

    @override
    def from_connect_header(self, topic: str, key: str, schema: Schema | None, value: Value) -> bytes | None:
        return self.from_connect(topic, schema, value)

    def _read(self, data: bytes) -> Value:
        if len(data) != self.packed.size:
            reason = f"Size of data received is not {self.packed.size} but {len(data)}"
            raise DataError(f"Failed to deserialize {self.type_name}: {reason}")
        return self.packed.unpack(data)[0]

    def _write(self, value: Value) -> bytes:
        return self.packed.pack(value)


class ShortConverter(NumberConverter):
    """Whole numbers of 16 bits."""

    aliases = ("org.apache.kafka.connect.converters.ShortConverter",)
    schema = OPTIONAL_INT16
    type_name = "short"
    packed = struct.Struct(">h")


class IntegerConverter(NumberConverter):
    """Whole numbers of 32 bits."""

    aliases = ("org.apache.kafka.connect.converters.IntegerConverter",)
    schema = OPTIONAL_INT32
    type_name = "integer"
    packed = struct.Struct(">i")


class LongConverter(NumberConverter):
    """Whole numbers of 64 bits."""

    aliases = ("org.apache.kafka.connect.converters.LongConverter",)
    schema = OPTIONAL_INT64
    type_name = "long"
    packed = struct.Struct(">q")


class FloatConverter(NumberConverter):
    """Numbers with a fraction, of 32 bits."""

    aliases = ("org.apache.kafka.connect.converters.FloatConverter",)
    schema = OPTIONAL_FLOAT32
    type_name = "float"
    packed = struct.Struct(">f")


class DoubleConverter(NumberConverter):
    """Numbers with a fraction, of 64 bits."""

    aliases = ("org.apache.kafka.connect.converters.DoubleConverter",)
    schema = OPTIONAL_FLOAT64
    type_name = "double"
    packed = struct.Struct(">d")


class BooleanConverter(NumberConverter):
    """Booleans, as a byte that is 0 or 1."""

    aliases = ("org.apache.kafka.connect.converters.BooleanConverter",)
    schema = OPTIONAL_BOOLEAN
    type_name = "boolean"
    packed = struct.Struct(">?")

    @override
    def from_connect(self, topic: str, schema: Schema | None, value: Value) -> bytes | None:
        if schema is not None and schema.type is not Type.BOOLEAN:
            raise DataError(f"Invalid schema type for BooleanConverter: {schema.type.name}")
        return super().from_connect(topic, schema, value)

    @override
    def _read(self, data: bytes) -> bool:
        if len(data) == 1 and data[0] > 1:
            raise DataError(f"Failed to deserialize boolean: unexpected byte {data[0]}")
        return bool(super()._read(data))
