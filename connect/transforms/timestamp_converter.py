"""Converts times between text, numbers and the types Date, Time and Timestamp."""

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from typing_extensions import override

from connect.api.config import STRING, Importance, Problem, one_of, option
from connect.api.data import DATE, DATE_NAME, INT64, TIME, TIME_NAME, TIMESTAMP, TIMESTAMP_NAME, Schema, Type, Value
from connect.api.data import STRING as STRING_SCHEMA
from connect.api.errors import ConfigError, DataError
from connect.api.record import Record
from connect.transforms.epoch import clock_at, date_at, ms_of, time_at, timestamp_at
from connect.transforms.field_changes import Change, FieldChange, change_map, struct_changes, tree_of
from connect.transforms.field_path import Path, parse_path
from connect.transforms.java.date_format import DateFormat
from connect.transforms.options import PathConfig, problems_of, raw_text
from connect.transforms.sides import Memo, Side, SideTransform
from connect.transforms.structs import class_name, require_map, require_struct
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
    """The type to convert to: string, unix (a number since 1970), Date, Time or Timestamp."""
    format: str = option(STRING, default="")
    """The pattern for times in text (Java's SimpleDateFormat), for writing and reading."""
    unix_precision: str = option(
        STRING,
        default="milliseconds",
        check=one_of("nanoseconds", "microseconds", "milliseconds", "seconds"),
        importance=Importance.LOW,
    )
    """The unit of numbers. Fractions of a millisecond are lost."""

    @override
    def problems(self) -> Iterable[Problem]:
        """Text needs a pattern."""
        return problems_of("format", lambda: _date_format(self))


class TimestampConverter(SideTransform):
    """Converts times between text, numbers and the types Date, Time and Timestamp, in UTC."""

    config_class = TimestampConverterConfig
    config: TimestampConverterConfig
    aliases = ("org.apache.kafka.connect.transforms.TimestampConverter",)

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        options = self.config
        self._format = _date_format(options)
        self._precision = options.unix_precision
        self._write = self._writer()
        path = parse_path(options.field, options.field_syntax_version) if options.field else ()
        self._tree = tree_of([path])
        replace_null = options.replace_null_with_default
        self._structs = struct_changes(self._tree, self._field_change, purpose=_PURPOSE, replace_null=replace_null)
        self._wholes = Memo(self._field_change)

    @override
    def change(self, record: Record, schema: Schema | None, *, value: Value) -> Side:
        if schema is None:
            if value is None or not self._tree:
                return None, None if value is None else self._convert(value)
            whole_map = require_map(value, _PURPOSE)
            return None, change_map(whole_map, self._tree, change=lambda item, _: self._convert(item))
        if not self._tree:
            whole = self._wholes[schema]
            return whole.schema, None if value is None else whole.change(value)
        plan = self._structs[schema]
        return plan.schema, None if value is None else plan.change(require_struct(value, _PURPOSE))

    def _field_change(self, schema: Schema, _: Path = ()) -> FieldChange:
        target = _TARGETS[self.config.target_type]
        return FieldChange(target.as_optional() if schema.optional else target, self._conversion(schema))

    def _conversion(self, schema: Schema) -> Change:
        """Reads times of a schema, and writes them as the target type."""
        write = self._write
        if schema.name in _LOGICAL:
            return lambda value: write(_ms_of_time(value))
        if schema.type is Type.STRING:
            return lambda value: write(self._ms_of_text(value))
        if schema.type is Type.INT64:
            return lambda value: write(self._ms_of_number(value))
        raise DataError(f"Schema {schema.type.name} does not correspond to a known timestamp type format")

    def _convert(self, value: Value) -> Value:
        """Convert a value without a schema, by its Python type."""
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
            pattern = self._format.pattern
            raise DataError(f"Could not parse timestamp: value ({value}) does not match pattern ({pattern})")
        return ms

    def _ms_of_number(self, value: Value) -> int:
        """Truncates towards zero, as Java's TimeUnit does."""
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
        match self.config.target_type:
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
                assert text is not None, "the options were checked"
                return lambda ms: text.format(clock_at(ms))


def _date_format(options: TimestampConverterConfig) -> DateFormat | None:
    pattern = raw_text(options, "format", default="")
    if not pattern.strip():
        if options.target_type == "string":
            raise ConfigError("TimestampConverter requires format option to be specified when using string timestamps")
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
