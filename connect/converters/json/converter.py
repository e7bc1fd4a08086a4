"""JSON, with or without the schema next to the value."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from typing_extensions import override

from connect.api.config import BOOLEAN, INT, STRING, Config, Importance, Kind, Width, at_least, one_of, option
from connect.api.converter import Converter, HeaderConverter, RawHeader, SchemaAndValue
from connect.api.data import Schema, Value
from connect.api.errors import ConfigError, DataError
from connect.converters.json.reading import Reader, Readers, decode, read_any
from connect.converters.json.schemas import from_json, to_json
from connect.converters.json.writing import Writer, Writers

_WORD: Final = Kind(name="string", wire=2, read=str.upper, write=str, allowed="a word")
_NO_ENVELOPE: Final = (
    'JsonConverter with schemas.enable requires "schema" and "payload" fields and may not contain additional fields.'
    " If you are trying to deserialize plain JSON data, set schemas.enable=false in your converter configuration."
)
_BROKEN: Final = "Converting Kafka Connect data to byte[] failed due to serialization error: "


_SCHEMAS, _SERIALIZATION = "Schemas", "Serialization"


class JsonConverterConfig(Config):
    """Options of the JSON converter."""

    schemas_enable: bool = option(
        BOOLEAN,
        default=True,
        importance=Importance.HIGH,
        group=_SCHEMAS,
        width=Width.MEDIUM,
        display_name="Enable Schemas",
    )
    """Whether each record contains its schema, in an envelope with the fields `schema` and `payload`."""
    schemas_cache_size: int = option(
        INT,
        default=1000,
        check=at_least(0),
        importance=Importance.HIGH,
        group=_SCHEMAS,
        width=Width.MEDIUM,
        display_name="Schema Cache Size",
    )
    """The maximum number of schemas to cache in each direction."""
    decimal_format: str = option(
        _WORD,
        default="BASE64",
        check=one_of("BASE64", "NUMERIC"),
        importance=Importance.LOW,
        group=_SERIALIZATION,
        width=Width.MEDIUM,
        display_name="Decimal Format",
    )
    """How decimals are written: as `BASE64` of their unscaled bytes, or as a number (`NUMERIC`). Both can be read."""
    replace_null_with_default: bool = option(
        BOOLEAN,
        default=True,
        importance=Importance.LOW,
        group=_SERIALIZATION,
        width=Width.MEDIUM,
        display_name="Replace null with default",
    )
    """Whether a null is replaced by the default of its field; otherwise it stays null."""
    schema_content: str = option(
        STRING,
        default="",
        importance=Importance.HIGH,
        group=_SCHEMAS,
        width=Width.MEDIUM,
        display_name="Schema Content",
    )
    """A schema as JSON for all records read. With it, records contain only the value, without an envelope."""
    converter_type: str = option(STRING, default="", importance=Importance.LOW)
    """What is converted: `key`, `value` or `header`. It makes no difference."""


class _Envelope(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    schema: msgspec.Raw
    payload: msgspec.Raw


class _Reading(NamedTuple):
    schema: Schema | None
    read: Reader
    prefix: bytes
    """The bytes before the value in records with this schema that have no white space."""


class _Writing(NamedTuple):
    write: Writer
    prefix: bytes


_envelopes = msgspec.json.Decoder(_Envelope)
_no_reading: Final = _Reading(None, read_any, b"\xff")


class JsonConverter(Converter, HeaderConverter):
    """Reads and writes JSON."""

    config_class = JsonConverterConfig
    aliases = ("org.apache.kafka.connect.json.JsonConverter",)

    @override
    def __init__(self, config: Mapping[str, str], *, is_key: bool = False) -> None:
        options = JsonConverterConfig.parse(config)
        with_defaults = options.replace_null_with_default
        self._has_envelope = options.schemas_enable
        self._schemas_max = max(options.schemas_cache_size, 1)
        self._readers = Readers(nulls_become_defaults=with_defaults)
        self._writers = Writers(
            numeric_decimals=options.decimal_format == "NUMERIC", nulls_become_defaults=with_defaults
        )
        self._encoder = msgspec.json.Encoder(decimal_format="number")
        self._readings: dict[bytes, _Reading] = {}
        self._writings: dict[Schema | None, _Writing] = {}
        self._last = _no_reading
        self._fixed = self._fixed_reading(options.schema_content) if options.schemas_enable else None

    @override
    def to_connect(self, topic: str, data: bytes | None, headers: Sequence[RawHeader] = ()) -> SchemaAndValue:
        if data is None:
            return None, None
        if self._fixed:
            return self._fixed.schema, self._fixed.read(data)
        if self._has_envelope:
            return self._read_envelope(data)
        return None, read_any(data) if data else None

    @override
    def from_connect(self, topic: str, schema: Schema | None, value: Value) -> bytes | None:
        if schema is None and value is None:
            return None
        writing = self._writings.get(schema) or self._new_writing(schema)
        text = self._encode(writing.write(value))
        return b"%b%b}" % (writing.prefix, text) if self._has_envelope else text

    @override
    def to_connect_header(self, topic: str, key: str, data: bytes | None) -> SchemaAndValue:
        return self.to_connect(topic, data)

    @override
    def from_connect_header(self, topic: str, key: str, schema: Schema | None, value: Value) -> bytes | None:
        return self.from_connect(topic, schema, value)

    @override
    def close(self) -> None:
        self._readings.clear()
        self._writings.clear()

    def _read_envelope(self, data: bytes) -> SchemaAndValue:
        last = self._last
        if data.startswith(last.prefix) and data.endswith(b"}"):
            try:
                return last.schema, last.read(data[len(last.prefix) : -1])
            except DataError:
                pass  # decode again below, where the error can say whether the schema or the value is wrong
        try:
            envelope = decode(_envelopes, data)
        except DataError as error:
            raise (DataError(_NO_ENVELOPE) if _is_json_or_empty(data) else error) from None
        text = bytes(envelope.schema)
        reading = self._readings.get(text) or self._new_reading(text)
        self._last = reading
        return reading.schema, reading.read(bytes(envelope.payload))

    def _new_reading(self, text: bytes) -> _Reading:
        schema = from_json(read_any(text), default=self._readers.value_of)
        reading = _Reading(schema, self._readers.of(schema), b'{"schema":%b,"payload":' % text)
        if len(self._readings) >= self._schemas_max:
            self._readings.clear()
        self._readings[text] = reading
        return reading

    def _fixed_reading(self, content: str) -> _Reading | None:
        if not content.strip():
            return None
        try:
            return self._new_reading(content.encode())
        except DataError as error:
            raise ConfigError(f"Invalid value for configuration schema.content: {error}") from None

    def _new_writing(self, schema: Schema | None) -> _Writing:
        json = None if schema is None else to_json(schema, default=self._default_to_json)
        writing = _Writing(self._writers.of(schema), b'{"schema":%b,"payload":' % self._encode(json))
        if len(self._writings) >= self._schemas_max:
            self._writings.clear()
        self._writings[schema] = writing
        return writing

    def _default_to_json(self, schema: Schema, default: Value) -> Any:
        return self._writers.of(schema.but(default=None))(default)

    def _encode(self, json: Any) -> bytes:
        try:
            return self._encoder.encode(json)
        except (UnicodeEncodeError, TypeError, OverflowError, RecursionError) as error:
            raise DataError(f"{_BROKEN}{error}") from None


def _is_json_or_empty(data: bytes) -> bool:
    try:
        read_any(data)
    except DataError:
        return not data.strip()
    return True
