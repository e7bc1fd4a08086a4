"""Converts times between text, numbers and the types Date, Time and Timestamp."""

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from typing_extensions import override

from connect.api.config import STRING, Importance, Problem, one_of, option
from connect.api.data import (
    DATE,
    DATE_NAME,
    INT64,
    TIME,
    TIME_NAME,
    TIMESTAMP,
    TIMESTAMP_NAME,
    Schema,
    Type,
    Value,
)
from connect.api.data import (
    STRING as STRING_SCHEMA,
)
from connect.api.errors import ConfigError, DataError
from connect.api.record import Record
from connect.transforms.epoch import clock_at, date_at, ms_of, time_at, timestamp_at
from connect.transforms.field_changes import Change, FieldChange, StructChange, changed_map, struct_change, tree_of
from connect.transforms.field_path import parse_path
from connect.transforms.java.date_format import DateFormat
from connect.transforms.options import PathConfig, as_given
from connect.transforms.sides import BySchema, Side, SideTransform
from connect.transforms.structs import class_name, require_map, require_struct, require_struct_schema
from core_broker.service.clock import SystemClock

_PURPOSE: Final = "converting timestamp formats"
_TARGETS: Final = {"string": STRING_SCHEMA, "unix": INT64, "Date": DATE, "Time": TIME, "Timestamp": TIMESTAMP}
_LOGICAL: Final = frozenset({DATE_NAME, TIME_NAME, TIMESTAMP_NAME})
_LONGEST: Final = (1 << 63) - 1
_PER_MS: Final = {"microseconds": 1_000, "nanoseconds": 1_000_000}


class TimestampConverterConfig(PathConfig):
    """Options of TimestampConverter."""

    field: str = option(STRING, default="", importance=Importance.HIGH)
    """The field with the time; empty: the whole key or value is a time."""
    target_type: str = option(STRING, check=one_of(*_TARGETS), importance=Importance.HIGH)
    """What to make of it: string, unix (a number since 1970), Date, Time or Timestamp."""
    format: str = option(STRING, default="")
    """The pattern of text (Java's SimpleDateFormat), for writing and reading."""
    unix_precision: str = option(
        STRING,
        default="milliseconds",
        check=one_of("nanoseconds", "microseconds", "milliseconds", "seconds"),
        importance=Importance.LOW,
    )
    """What numbers count. Less than a millisecond is lost."""

    @override
    def problems(self) -> Iterable[Problem]:
        """Text needs a pattern."""
        try:
            _date_format(self)
        except ConfigError as error:
            yield Problem("format", str(error))


class TimestampConverter(SideTransform):
    """Converts times between text, numbers and the types Date, Time and Timestamp, in UTC."""

    config_class = TimestampConverterConfig

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        options = TimestampConverterConfig.parse(config)
        self._format = _date_format(options)
        self._target = options.target_type
        self._precision = options.unix_precision
        self._write = self._writer()
        self._replace_null = options.replace_null_with_default
        path = parse_path(options.field, options.field_syntax_version) if options.field else ()
        self._tree = tree_of([path])
        self._structs = BySchema(self._struct_change)
        self._wholes = BySchema(self._whole_change)

    @override
    def change(self, record: Record, schema: Schema | None, *, value: Value) -> Side:
        if schema is None:
            return None, self._without_schema(value)
        if not self._tree:
            whole = self._wholes[schema]
            return whole.schema, None if value is None else whole.change(value)
        plan = self._structs[schema]
        return plan.schema, None if value is None else plan.change(require_struct(value, _PURPOSE))

    def _without_schema(self, value: Value) -> Value:
        if value is None:
            return None
        if not self._tree:
            return self._convert(value)
        return changed_map(require_map(value, _PURPOSE), self._tree, change=lambda item, _: self._convert(item))

    def _struct_change(self, schema: Schema) -> StructChange:
        require_struct_schema(schema, _PURPOSE)
        return struct_change(
            schema,
            self._tree,
            field_change=lambda item, _: self._whole_change(item),
            purpose=_PURPOSE,
            replace_null=self._replace_null,
        )

    def _whole_change(self, schema: Schema) -> FieldChange:
        target = _TARGETS[self._target]
        return FieldChange(target.as_optional() if schema.optional else target, self._conversion(schema))

    def _conversion(self, schema: Schema) -> Change:
        """How times of a schema are read, and then written."""
        write = self._write
        if schema.name in _LOGICAL:
            return lambda value: write(_ms_of_time(value))
        if schema.type is Type.STRING:
            return lambda value: write(self._ms_of_text(value))
        if schema.type is Type.INT64:
            return lambda value: write(self._ms_of_number(value))
        raise DataError(f"Schema {schema.type.name} does not correspond to a known timestamp type format")

    def _convert(self, value: Value) -> Value:
        """A value whose kind tells what it is."""
        if isinstance(value, str):
            return self._write(self._ms_of_text(value))
        if isinstance(value, int) and not isinstance(value, bool):
            return self._write(self._ms_of_number(value))
        if isinstance(value, dt.date | dt.time):
            return self._write(ms_of(value))
        raise DataError(f"TimestampConverter does not support {class_name(value)} objects as timestamps")

    def _ms_of_text(self, value: Value) -> int:
        if not isinstance(value, str):
            raise DataError(f"Expected string timestamp to be a String, but found {class_name(value)}")
        if self._format is None:
            raise DataError(f"TimestampConverter requires format option to be specified to read the text {value}")
        ms = self._format.parse(value)
        if ms is None:
            told = f"Could not parse timestamp: value ({value}) does not match pattern ({self._format.pattern})"
            raise DataError(told)
        return ms

    def _ms_of_number(self, value: Value) -> int:
        """Cut off towards zero, as Java's TimeUnit does."""
        if not isinstance(value, int):
            raise DataError(f"Expected Unix timestamp to be a Long, but found {class_name(value)}")
        if self._precision == "milliseconds":
            return value
        if self._precision == "seconds":
            return value * 1000
        return _towards_zero(value, _PER_MS[self._precision])

    def _number_of_ms(self, ms: int) -> int:
        if self._precision == "milliseconds":
            return ms
        if self._precision == "seconds":
            return _towards_zero(ms, 1000)
        return max(-_LONGEST - 1, min(_LONGEST, ms * _PER_MS[self._precision]))

    def _writer(self) -> Callable[[int], Value]:
        match self._target:
            case "unix":
                return self._number_of_ms
            case "Date":
                return date_at
            case "Time":
                return time_at
            case "Timestamp":
                return timestamp_at
            case _:
                text = self._format
                assert text is not None, "checked with the options"
                return lambda ms: text.format(clock_at(ms))


class TimestampConverterKey(TimestampConverter):
    """Converts times in keys."""

    is_key = True
    aliases = ("org.apache.kafka.connect.transforms.TimestampConverter$Key",)


class TimestampConverterValue(TimestampConverter):
    """Converts times in values."""

    aliases = ("org.apache.kafka.connect.transforms.TimestampConverter$Value",)


def _date_format(options: TimestampConverterConfig) -> DateFormat | None:
    pattern = as_given(options, "format", default="")
    if not pattern.strip():
        if options.target_type == "string":
            told = "TimestampConverter requires format option to be specified when using string timestamps"
            raise ConfigError(told)
        return None
    try:
        return DateFormat(pattern, now_ms=SystemClock().now_ms())
    except ValueError as error:
        raise ConfigError(
            "TimestampConverter requires a SimpleDateFormat-compatible pattern for string timestamps:"
            f" {pattern}: {error}"
        ) from None


def _ms_of_time(value: Value) -> int:
    if not isinstance(value, dt.date | dt.time):
        raise DataError(f"Expected Timestamp to be a java.util.Date, but found {class_name(value)}")
    return ms_of(value)


def _towards_zero(value: int, by: int) -> int:
    return value // by if value >= 0 else -(-value // by)
