"""Set the topic or the time of a record from its data (Aiven's and Confluent's transforms)."""

import datetime as dt
from collections.abc import Mapping
from typing import ClassVar, Final

from msgspec.structs import replace
from typing_extensions import override

from connect.api.config import BOOLEAN, STRING, Config, Importance, not_empty, one_of, option
from connect.api.data import Type
from connect.api.errors import DataError
from connect.api.record import Record
from connect.api.transform import R
from connect.api.values import text_of
from connect.transforms.epoch import ms_of
from connect.transforms.field_path import json_path, schema_at, value_at
from connect.transforms.sides import Side, Sided

_TYPES: Final = (
    *(Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.FLOAT32, Type.FLOAT64, Type.BOOLEAN, Type.STRING),
)


class ExtractTopicConfig(Config):
    """Options of ExtractTopic."""

    field: str = option(STRING, default="", aliases=("field.name",), importance=Importance.HIGH)
    """The field with the topic, with dots for nested ones (also $.a.b); empty: the key or value itself. With
    ExtractTopic$Header, the name of the header."""
    skip_missing_or_null: bool = option(BOOLEAN, default=False, importance=Importance.LOW)
    """Whether records without it keep their topic, instead of being rejected."""


class ExtractTopic(Sided):
    """Sets the topic of a record from its data."""

    config_class = ExtractTopicConfig
    config: ExtractTopicConfig
    aliases: ClassVar[tuple[str, ...]] = (
        "io.confluent.connect.transforms.ExtractTopic",
        "io.aiven.kafka.connect.transforms.ExtractTopic",
    )

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        self.part = "key" if self.is_key else "value"
        self._field = self.config.field
        self._path = json_path(self.config.field)

    @override
    def apply(self, record: R) -> R | None:
        schema, value = self._find(record)
        if value is None or (isinstance(value, str) and not value.strip()):
            if self.config.skip_missing_or_null:
                return record
            where = f"{self._field} in {self.part}" if self._field else self.part
            raise DataError(f"{where} can't be null or empty: topic {record.topic}")
        if isinstance(value, (dict, list, bytes)) or (schema is not None and schema.type not in _TYPES):
            allowed = ", ".join(kind.name for kind in _TYPES)
            raise DataError(f"{self._field or self.part} must be of one of the types {allowed}: topic {record.topic}")
        return replace(record, topic=text_of(schema, value))

    def _find(self, record: Record) -> Side:
        schema, value = (record.key_schema, record.key) if self.is_key else (record.value_schema, record.value)
        if not self._path:
            return schema, value
        if value is None:
            raise DataError(f"{self.part} can't be null if field name is specified: topic {record.topic}")
        if not isinstance(value, dict) or (schema is not None and schema.type is not Type.STRUCT):
            raise DataError(f"{self.part} type must be STRUCT or Map if field name is specified: topic {record.topic}")
        return None if schema is None else schema_at(schema, self._path), value_at(value, self._path)


class ExtractTopicHeader(ExtractTopic):
    """Sets the topic of a record from a header, the last one of its name."""

    aliases = ("io.confluent.connect.transforms.ExtractTopic$Header",)

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        self.part = "headers"

    @override
    def _find(self, record: Record) -> Side:
        found = next((header for header in reversed(record.headers) if header.key == self._field), None)
        return (None, None) if found is None else (found.schema, found.value)


class ExtractTimestampConfig(Config):
    """Options of ExtractTimestamp."""

    field_name: str = option(STRING, check=not_empty(), aliases=("field",), importance=Importance.HIGH)
    """The field with the time, with dots for nested ones; a number or a Timestamp."""
    timestamp_resolution: str = option(
        STRING, default="milliseconds", check=one_of("milliseconds", "seconds"), importance=Importance.LOW
    )
    """The unit of numbers."""


class ExtractTimestamp(Sided):
    """Sets the time of a record from its data."""

    config_class = ExtractTimestampConfig
    config: ExtractTimestampConfig
    aliases = (
        "io.confluent.connect.transforms.ExtractTimestamp",
        "io.aiven.kafka.connect.transforms.ExtractTimestamp",
    )

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        self._field = self.config.field_name
        self._path = json_path(self._field)
        self._factor = 1000 if self.config.timestamp_resolution == "seconds" else 1

    @override
    def apply(self, record: R) -> R | None:
        part, whole = ("key", record.key) if self.is_key else ("value", record.value)
        if whole is None:
            raise DataError(f"{part} can't be null: topic {record.topic}")
        if not isinstance(whole, dict):
            raise DataError(f"{part} type must be STRUCT or MAP: topic {record.topic}")
        found = value_at(whole, self._path)
        if found is None:
            raise DataError(f"{self._field} field must be present and its value can't be null: topic {record.topic}")
        if isinstance(found, dt.datetime | dt.date):
            return replace(record, timestamp_ms=ms_of(found))
        if type(found) is int:
            return replace(record, timestamp_ms=found * self._factor)
        raise DataError(f"{self._field} field must be INT64 or org.apache.kafka.connect.data.Timestamp")
