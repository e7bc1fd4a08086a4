"""The default header converter: text whose type is inferred from its form."""

from collections.abc import Mapping

from typing_extensions import override

from connect.api.config import STRING, Config, Importance, option
from connect.api.converter import HeaderConverter, SchemaAndValue
from connect.api.data import BYTES, Schema, Value
from connect.api.errors import DataError
from connect.api.values import literal_of, parse


class SimpleHeaderConverterConfig(Config):
    """Options of the header converter."""

    converter_type: str = option(STRING, default="", importance=Importance.LOW)
    """What is converted: `header`. It makes no difference."""


class SimpleHeaderConverter(HeaderConverter):
    """Reads `42` as a number, `true` as a boolean, `[1, 2]` as a list; anything that is not UTF-8 stays bytes."""

    config_class = SimpleHeaderConverterConfig
    aliases = ("org.apache.kafka.connect.storage.SimpleHeaderConverter",)

    @override
    def __init__(self, config: Mapping[str, str]) -> None:
        SimpleHeaderConverterConfig.parse(config)

    @override
    def to_connect_header(self, topic: str, key: str, data: bytes | None) -> SchemaAndValue:
        if data is None:
            return None, None
        try:
            return parse(data.decode("utf-8"))
        except UnicodeDecodeError:
            return BYTES, data

    @override
    def from_connect_header(self, topic: str, key: str, schema: Schema | None, value: Value) -> bytes | None:
        if value is None:
            return None
        try:
            return literal_of(schema, value).encode("utf-8")
        except UnicodeEncodeError as error:
            raise DataError(f"Failed to serialize header {key}: {error}") from None
