"""Values as text, in the form that Java prints them and in a given encoding."""

import codecs
from collections.abc import Mapping, Sequence
from typing import Final

from typing_extensions import override

from connect.api.config import STRING, Config, Importance, option
from connect.api.converter import Converter, HeaderConverter, RawHeader, SchemaAndValue
from connect.api.data import OPTIONAL_STRING, Schema, Value
from connect.api.errors import ConfigError, DataError
from connect.api.values import text_of

# Java's UTF-16 is big-endian, Python's has the byte order of the machine.
_UTF_16: Final = "utf-16"
_MARKS: Final = (codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE)


class StringConverterConfig(Config):
    """Options of the string converter."""

    converter_encoding: str = option(STRING, default="UTF-8", importance=Importance.HIGH)
    """The name of the encoding, such as UTF-8 or ISO-8859-1."""
    converter_type: str = option(STRING, default="", importance=Importance.LOW)
    """What is converted: `key`, `value` or `header`. It makes no difference."""


class StringConverter(Converter, HeaderConverter):
    """Reads bytes as text, and writes any value as Java's `toString` would."""

    config_class = StringConverterConfig
    aliases = ("org.apache.kafka.connect.storage.StringConverter",)

    @override
    def __init__(self, config: Mapping[str, str], *, is_key: bool = False) -> None:
        name = StringConverterConfig.parse(config).converter_encoding
        try:
            self._encoding = codecs.lookup(name).name
            "".encode(self._encoding)  # some codecs are not about text
        except (LookupError, ValueError):
            rule = "must be an encoding, such as UTF-8"
            raise ConfigError(f"Invalid value {name} for configuration converter.encoding: {rule}") from None

    @override
    def to_connect(self, topic: str, data: bytes | None, headers: Sequence[RawHeader] = ()) -> SchemaAndValue:
        """Bytes that are not text in this encoding become U+FFFD, as in Kafka Connect."""
        if data is None:
            return OPTIONAL_STRING, None
        is_unmarked = self._encoding == _UTF_16 and data[:2] not in _MARKS
        return OPTIONAL_STRING, data.decode("utf-16-be" if is_unmarked else self._encoding, "replace")

    @override
    def from_connect(self, topic: str, schema: Schema | None, value: Value) -> bytes | None:
        if value is None:
            return None
        try:
            text = text_of(schema, value)
            if self._encoding == _UTF_16:
                return codecs.BOM_UTF16_BE + text.encode("utf-16-be")
            return text.encode(self._encoding)
        except UnicodeEncodeError as error:
            raise DataError(f"Failed to serialize to a string: {error}") from None

    @override
    def to_connect_header(self, topic: str, key: str, data: bytes | None) -> SchemaAndValue:
        return self.to_connect(topic, data)

    @override
    def from_connect_header(self, topic: str, key: str, schema: Schema | None, value: Value) -> bytes | None:
        return self.from_connect(topic, schema, value)
