"""Messages of Protobuf as values of Connect: one function per message, made when its first record is met."""

import datetime as dt
from collections.abc import Callable
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor, OneofDescriptor
from google.protobuf.message import Message

from connect.api.data import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME, Schema, Type, Value
from connect.api.errors import DataError
from connect.api.logical import decimal_of, rescaled, scale_of, timestamp_of
from connect.converters.protobuf import config as names
from connect.converters.protobuf.config import ProtobufConfig
from connect.converters.protobuf.schemas import Presence, is_map, union_field_name

Read = Callable[[Any], Value]

_MILLISECOND_NS: Final = 1_000_000
_SIGN: Final = 1 << 63
_MAX_SCALE: Final = 100_000
_UNSIGNED: Final = frozenset({FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64})


def reading(message: Descriptor, schema: Schema, config: ProtobufConfig) -> Read:
    """What turns a message into a value of its Connect schema; raises DataError."""
    if schema.type is not Type.STRUCT:
        return _value_of_wrapper(message)
    return _struct_reading(message, schema, config)


def _struct_reading(message: Descriptor, schema: Schema, config: ProtobufConfig) -> Read:
    presence = Presence(message)
    always: list[tuple[str, Read | None]] = []
    sometimes: list[tuple[str, Read | None]] = []
    unions: list[tuple[str, str, dict[str, Read | None]]] = []
    for field in message.fields:
        if presence.oneof(field) is None or config.flatten_unions:
            target = sometimes if presence.is_null_when_unset(field, config) else always
            target.append((str(field.name), _field_reading(field, schema.by_name[field.name], config)))
    for oneof in [] if config.flatten_unions else message.oneofs:
        unions += _union_reading(oneof, schema, presence, config)

    def read(value: Message) -> Value:
        made: dict[str, Value] = {}
        for name, oneof_name, members in unions:
            chosen = value.WhichOneof(oneof_name)
            if chosen is None:
                made[name] = None
            else:
                change = members[chosen]
                part = getattr(value, chosen)
                made[name] = {chosen: part if change is None else change(part)}
        for name, change in always:
            part = getattr(value, name)
            made[name] = part if change is None else change(part)
        for name, change in sometimes:
            if value.HasField(name):
                part = getattr(value, name)
                made[name] = part if change is None else change(part)
            else:
                made[name] = None
        return made

    return read


def _union_reading(
    oneof: OneofDescriptor, schema: Schema, presence: Presence, config: ProtobufConfig
) -> list[tuple[str, str, dict[str, Read | None]]]:
    fields = [field for field in oneof.fields if presence.oneof(field) is not None]
    if not fields:
        return []
    name = union_field_name(oneof, config)
    union = schema.by_name[name]
    members = {str(field.name): _field_reading(field, union.by_name[field.name], config) for field in fields}
    return [(name, str(oneof.name), members)]


def _field_reading(field: FieldDescriptor, schema: Schema, config: ProtobufConfig) -> Read | None:
    """What is to be done with the value of a field; None for nothing."""
    entry = field.message_type
    if entry is not None and is_map(field):
        assert schema.key_schema is not None
        assert schema.value_schema is not None
        key = _field_reading(entry.fields_by_name[names.KEY], schema.key_schema, config) or _same
        value = _field_reading(entry.fields_by_name[names.VALUE], schema.value_schema, config) or _same
        return _map_reading(key, value, is_declared=bool(entry.GetOptions().map_entry))
    if field.is_repeated:
        assert schema.value_schema is not None
        item = _single_reading(field, schema.value_schema, config)
        return list if item is None else lambda values: [item(value) for value in values]
    return _single_reading(field, schema, config)


def _map_reading(key: Read, value: Read, *, is_declared: bool) -> Read:
    if is_declared:
        return lambda entries: {key(k): value(v) for k, v in entries.items()}

    def read(entries: Any) -> Value:
        try:
            return {key(entry.key): value(entry.value) for entry in entries}
        except TypeError as error:
            raise DataError("the keys of a map must not be structs, lists or maps themselves") from error

    return read


def _single_reading(field: FieldDescriptor, schema: Schema, config: ProtobufConfig) -> Read | None:
    if field.message_type is not None:
        return _message_reading(field.message_type, schema, config)
    if field.enum_type is not None and schema.type is Type.STRING:
        return _enum_reading(field.enum_type)
    if field.type in _UNSIGNED:
        return _signed
    return None


def _message_reading(message: Descriptor, schema: Schema, config: ProtobufConfig) -> Read:
    match schema.name:
        case _ if schema.name == DECIMAL_NAME:
            scale = scale_of(schema)
            return lambda value: rescaled(_decimal_of(value), scale)
        case _ if schema.name == DATE_NAME:
            return _date_of
        case _ if schema.name == TIME_NAME:
            return _time_of
        case _ if schema.name == TIMESTAMP_NAME:
            return _timestamp_of
        case _:
            return reading(message, schema, config)


def _enum_reading(enum: EnumDescriptor) -> Read:
    symbols = {value.number: str(value.name) for value in reversed(enum.values)}

    def read(number: int) -> Value:
        return symbols.get(number) or f"UNKNOWN_ENUM_VALUE_{enum.name}_{number}"

    return read


def _value_of_wrapper(message: Descriptor) -> Read:
    is_unsigned = message.fields_by_name[names.VALUE].type in _UNSIGNED
    return (lambda value: _signed(value.value)) if is_unsigned else (lambda value: value.value)


def _signed(number: int) -> int:
    """As Java has it, which knows no unsigned numbers."""
    return number - 2 * _SIGN if number >= _SIGN else number


def _decimal_of(message: Any) -> Value:
    if abs(message.scale) > _MAX_SCALE:
        raise DataError(f"Decimal has a scale of {message.scale}, which is beyond {_MAX_SCALE}")
    return decimal_of(message.value, message.scale)


def _date_of(message: Any) -> Value:
    try:
        return dt.date(message.year, message.month, message.day)
    except ValueError as error:
        shown = f"{message.year}-{message.month}-{message.day}"
        raise DataError(f"{names.DATE_MESSAGE} {shown} is no date: {error}") from error


def _time_of(message: Any) -> Value:
    try:
        milliseconds = message.nanos // _MILLISECOND_NS
        return dt.time(message.hours, message.minutes, message.seconds, milliseconds * 1000)
    except ValueError as error:
        shown = f"{message.hours}:{message.minutes}:{message.seconds}"
        raise DataError(f"{names.TIME_MESSAGE} {shown} is no time of a day: {error}") from error


def _timestamp_of(message: Any) -> Value:
    return timestamp_of(message.seconds * 1000 + message.nanos // _MILLISECOND_NS)


def _same(value: Any) -> Value:
    return value
