"""The folders of files: by Kafka's partition, by day or hour, or by values of fields."""

import datetime as dt
import re
from collections.abc import Callable
from typing import Final
from urllib.parse import quote
from zoneinfo import ZoneInfo

from connect.api.data import Value
from connect.api.errors import DataError
from connect.api.record import SinkRecord
from connect.api.values import text_of
from connectors.file.config import DirectorySinkConfig

Partitioner = Callable[[SinkRecord], str]
"""The path of a record's folder below the topic's, always the same for a record; raises DataError."""

_QUARTER_MS: Final = 900_000
"""Time zones differ by whole quarters of an hour, so that every day and hour begins with one."""
_CACHE_MAX: Final = 1_000
_FOLDER_BYTES_MAX: Final = 200
_PLAIN: Final = re.compile(r"[\w+@,:=\-][\w+@,:=\- .]*")


def partitioner_of(config: DirectorySinkConfig) -> Partitioner:
    """The configured partitioner."""
    match config.partitioner_kind:
        case "daily":
            return _by_time(config, "year={0.year:04}/month={0.month:02}/day={0.day:02}")
        case "hourly":
            return _by_time(config, "year={0.year:04}/month={0.month:02}/day={0.day:02}/hour={0.hour:02}")
        case "field":
            return _by_fields(config.partition_field_name)
        case _:
            return lambda record: f"partition={record.original_partition}"


def folder_name(text: str) -> str:
    """Text as the name of a folder, escaped where it would be a path or hidden."""
    name = text if _PLAIN.fullmatch(text) else quote(text, safe=" ").replace(".", "%2E") or "%00"
    if len(name.encode()) > _FOLDER_BYTES_MAX:
        raise DataError(f"{text[:100]!r}… is too long for the name of a folder")
    return name


def _by_time(config: DirectorySinkConfig, pattern: str) -> Partitioner:
    zone, field = ZoneInfo(config.timezone), config.timestamp_field
    cache: dict[int, str] = {}

    def folder(record: SinkRecord) -> str:
        milliseconds = record.timestamp_ms if field is None else _milliseconds(_field(record, field), field)
        if milliseconds is None or milliseconds < 0:
            raise DataError("the record has no timestamp, by which its folder is named")
        quarter = milliseconds // _QUARTER_MS
        if quarter not in cache:
            if len(cache) >= _CACHE_MAX:
                cache.clear()
            try:
                time = dt.datetime.fromtimestamp(quarter * _QUARTER_MS / 1000, zone)
            except (ValueError, OverflowError, OSError) as error:
                raise DataError(f"the timestamp {milliseconds} ms is out of range") from error
            cache[quarter] = pattern.format(time)
        return cache[quarter]

    return folder


def _by_fields(names: tuple[str, ...]) -> Partitioner:
    def value_name(record: SinkRecord, name: str) -> str:
        value = _field(record, name)
        if isinstance(value, dict | list | bytes):
            raise DataError(f"the field {name} cannot name a folder: it is nested, or bytes")
        schema = record.value_schema.field(name) if record.value_schema else None
        return folder_name(text_of(schema, value))

    return lambda record: "/".join(f"{folder_name(name)}={value_name(record, name)}" for name in names)


def _field(record: SinkRecord, name: str) -> Value:
    if not isinstance(record.value, dict) or name not in record.value:
        raise DataError(f"the record has no field {name}, by which its folder is named")
    return record.value[name]


def _milliseconds(value: Value, name: str) -> int:
    if isinstance(value, dt.datetime):
        return int(value.timestamp() * 1000)
    if type(value) is int:
        return value
    raise DataError(f"the field {name} is neither a Timestamp nor milliseconds: {value!r}")
