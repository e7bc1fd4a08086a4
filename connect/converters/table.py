"""The converters that come with Connect."""

from typing import Final

from connect.api.converter import Converter, HeaderConverter
from connect.converters.avro.converter import AvroConverter
from connect.converters.byte_array import ByteArrayConverter
from connect.converters.json.converter import JsonConverter
from connect.converters.json_schema.converter import JsonSchemaConverter
from connect.converters.numbers import (
    BooleanConverter,
    DoubleConverter,
    FloatConverter,
    IntegerConverter,
    LongConverter,
    ShortConverter,
)
from connect.converters.protobuf.converter import ProtobufConverter
from connect.converters.simple_header import SimpleHeaderConverter
from connect.converters.string import StringConverter

CONVERTERS: Final[tuple[type[Converter], ...]] = (
    AvroConverter,
    BooleanConverter,
    ByteArrayConverter,
    DoubleConverter,
    FloatConverter,
    IntegerConverter,
    JsonConverter,
    JsonSchemaConverter,
    LongConverter,
    ProtobufConverter,
    ShortConverter,
    StringConverter,
)
"""Converters of keys and values."""

HEADER_CONVERTERS: Final[tuple[type[HeaderConverter], ...]] = (
    BooleanConverter,
    ByteArrayConverter,
    DoubleConverter,
    FloatConverter,
    IntegerConverter,
    JsonConverter,
    LongConverter,
    ShortConverter,
    SimpleHeaderConverter,
    StringConverter,
)
"""Converters of headers."""
