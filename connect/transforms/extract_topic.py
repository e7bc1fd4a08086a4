"""Takes the topic or the time of a record from its data (Aiven's and Confluent's transforms)."""

import datetime as dt
from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace
from typing_extensions import override

from connect.api.config import BOOLEAN, STRING, Config, Importance, not_empty, one_of, option
from connect.api.data import Type, Value
from connect.api.errors import DataError
from connect.api.record import Record
from connect.api.transform import R, Transform
from connect.api.values import text_of
from connect.transforms.epoch import ms_of
from connect.transforms.field_path import Path, parse_path, schema_at, value_at
from connect.transforms.sides import Side

_TYPES: Final = (
    *(Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.FLOAT32, Type.FLOAT64, Type.BOOLEAN, Type.STRING),
)


class ExtractTopicConfig(Config):
    """Options of ExtractTopic."""

    field: str = option(STRING, default="", aliases=("field.name",), importance=Importance.HIGH)
    """The field with the topic, nested ones with dots ($.a.b too); empty: the key or value itself. Of a header its
    name."""
    skip_missing_or_null: bool = option(BOOLEAN, default=False, importance=Importance.LOW)
    """Whether records without it keep their topic, instead of being refused."""


class ExtractTopic(Transform):
    """Gives a record the topic that stands in its data."""

    config_class = ExtractTopicConfig
    place = "value"

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        options = ExtractTopicConfig.parse(config)
        self._field = options.field
        self._path = field_path(options.field)
        self._skips = options.skip_missing_or_null

    @override
    def apply(self, record: R) -> R | None:
        schema, value = self._found(record)
        if value is None or (isinstance(value, str) and not value.strip()):
            if self._skips:
                return record
            where = f"{self._field} in {self.place}" if self._field else self.place
            raise DataError(f"{where} can't be null or empty: topic {record.topic}")
        if isinstance(value, (dict, list, bytes)) or (schema is not None and schema.type not in _TYPES):
            allowed = ", ".join(kind.name for kind in _TYPES)
            raise DataError(f"{self._field or self.place} must be of one of the types {allowed}: topic {record.topic}")
        return replace(record, topic=text_of(schema, value))

    def _side(self, record: Record) -> Side:
        return record.value_schema, record.value

    def _found(self, record: Record) -> Side:
        schema, value = self._side(record)
        if not self._path:
            return schema, value
        if value is None:
            raise DataError(f"{self.place} can't be null if field name is specified: topic {record.topic}")
        if not isinstance(value, dict) or (schema is not None and schema.type is not Type.STRUCT):
            told = f"{self.place} type must be STRUCT or Map if field name is specified: topic {record.topic}"
            raise DataError(told)
        return None if schema is None else schema_at(schema, self._path), value_at(value, self._path)


class ExtractTopicKey(ExtractTopic):
    """Takes the topic from keys."""

    place = "key"
    aliases = (
        "io.confluent.connect.transforms.ExtractTopic$Key",
        "io.aiven.kafka.connect.transforms.ExtractTopic$Key",
    )

    @override
    def _side(self, record: Record) -> Side:
        return record.key_schema, record.key


class ExtractTopicValue(ExtractTopic):
    """Takes the topic from values."""

    aliases = (
        "io.confluent.connect.transforms.ExtractTopic$Value",
        "io.aiven.kafka.connect.transforms.ExtractTopic$Value",
    )


class ExtractTopicHeader(ExtractTopic):
    """Takes the topic from a header, the last of its name."""

    place = "headers"
    aliases = ("io.confluent.connect.transforms.ExtractTopic$Header",)

    @override
    def _found(self, record: Record) -> Side:
        found = next((header for header in reversed(record.headers) if header.key == self._field), None)
        return (None, None) if found is None else (found.schema, found.value)


class ExtractTimestampConfig(Config):
    """Options of ExtractTimestamp."""

    field_name: str = option(STRING, check=not_empty(), aliases=("field",), importance=Importance.HIGH)
    """The field with the time, nested ones with dots; a number or a Timestamp."""
    timestamp_resolution: str = option(
        STRING, default="milliseconds", check=one_of("milliseconds", "seconds"), importance=Importance.LOW
    )
    """What numbers count."""


class ExtractTimestamp(Transform):
    """Gives a record the time that stands in its data."""

    config_class = ExtractTimestampConfig
    place = "value"

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        options = ExtractTimestampConfig.parse(config)
        self._field = options.field_name
        self._path = field_path(options.field_name)
        self._factor = 1000 if options.timestamp_resolution == "seconds" else 1

    @override
    def apply(self, record: R) -> R | None:
        value = self._value(record)
        if value is None:
            raise DataError(f"{self.place} can't be null: topic {record.topic}")
        if not isinstance(value, dict):
            raise DataError(f"{self.place} type must be STRUCT or MAP: topic {record.topic}")
        found = value_at(value, self._path)
        if found is None:
            told = f"{self._field} field must be present and its value can't be null: topic {record.topic}"
            raise DataError(told)
        return replace(record, timestamp_ms=self._ms(found))

    def _value(self, record: Record) -> Value:
        return record.value

    def _ms(self, value: Value) -> int:
        if isinstance(value, dt.datetime | dt.date):
            return ms_of(value)
        if type(value) is int:
            return value * self._factor
        raise DataError(f"{self._field} field must be INT64 or org.apache.kafka.connect.data.Timestamp")


class ExtractTimestampKey(ExtractTimestamp):
    """Takes the time from keys."""

    place = "key"
    aliases = (
        "io.confluent.connect.transforms.ExtractTimestamp$Key",
        "io.aiven.kafka.connect.transforms.ExtractTimestamp$Key",
    )

    @override
    def _value(self, record: Record) -> Value:
        return record.key


class ExtractTimestampValue(ExtractTimestamp):
    """Takes the time from values."""

    aliases = (
        "io.confluent.connect.transforms.ExtractTimestamp$Value",
        "io.aiven.kafka.connect.transforms.ExtractTimestamp$Value",
    )


def field_path(text: str) -> Path:
    """A path with dots, which may begin as a JSON path does."""
    plain = text.removeprefix("$").removeprefix(".") if text.startswith("$") else text
    return parse_path(plain, "V2")
