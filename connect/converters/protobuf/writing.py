"""Values of Connect as messages of Protobuf: one function per message, made when its first record is met."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from connect.api.data import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME, Schema, Type, Value
from connect.api.errors import DataError
from connect.api.logical import days_of, decimal_bytes, milliseconds_of, milliseconds_of_time, scale_of
from connect.converters.protobuf import config as names
from connect.converters.protobuf.config import ProtobufConfig

Make = Callable[[Value], Any]
_Fields = list[tuple[str, str, Value, Make]]
"""Name in the struct, name in the message, default, and what makes the value."""
_Unions = list[tuple[str, list[tuple[str, str, Make]]]]
"""Name in the struct, and its members."""

_MILLISECOND_NS: Final = 1_000_000
_SIGN: Final = 1 << 63
_UNSIGNED: Final = frozenset({FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64})
_BITS: Final = {Type.INT8: 7, Type.INT16: 15}
_FAULTS: Final = (AttributeError, LookupError, OverflowError, TypeError, ValueError)


def making(message: Descriptor, schema: Schema, config: ProtobufConfig) -> Make:
    """What turns a value of a Connect schema into a message; raises DataError."""
    if schema.type is not Type.STRUCT:
        return _wrapper_making(message, schema, config)
    fields, unions = _targets(message, schema, config)
    maker: Any = GetMessageClass(message)

    def make_message(value: Value) -> Message:
        if not isinstance(value, dict):
            _unlike(f"a struct {message.full_name}", value)
        parts: dict[str, Any] = {}
        for source, name, default, make in fields:
            part = value.get(source)
            if part is None:
                part = default
            if part is not None:
                parts[name] = _made(source, make, part)
        for source, members in unions:
            union = value.get(source)
            if union is not None:
                parts.update(_chosen(union, members))
        try:
            made: Message = maker(**parts)
        except _FAULTS as error:
            raise DataError(f"the message {message.full_name} cannot be made: {error}") from error
        return made

    return make_message


def _targets(message: Descriptor, schema: Schema, config: ProtobufConfig) -> tuple[_Fields, _Unions]:
    fields: _Fields = []
    unions: _Unions = []
    for field in schema.fields:
        if names.is_union(field.schema):
            members = [(m.name, *_target(message, m.name, m.schema, config)) for m in field.schema.fields]
            unions.append((field.name, members))
        else:
            name, make = _target(message, field.name, field.schema, config)
            is_ignored = field.schema.optional and config.ignore_default_for_nullables
            fields.append((field.name, name, None if is_ignored else field.schema.default, make))
    return fields, unions


def _made(name: str, make: Make, value: Value) -> Any:
    try:
        return make(value)
    except DataError as error:
        raise DataError(f"{name}: {error}") from error
    except _FAULTS as error:
        raise DataError(f"{name}: a value of type {type(value).__name__} does not fit: {error}") from error


def _chosen(union: Mapping[str, Value], members: list[tuple[str, str, Make]]) -> dict[str, Any]:
    for source, name, make in members:
        part = union.get(source)
        if part is not None:
            return {name: _made(source, make, part)}
    raise DataError("Cannot find non-null field: no field of the oneof is set")


def _target(message: Descriptor, name: str, schema: Schema, config: ProtobufConfig) -> tuple[str, Make]:
    field = message.fields_by_name.get(config.scrub(name))
    if field is None:
        raise DataError(f"Cannot find field with name {name} in the message {message.full_name}")
    return str(field.name), _field_making(field, schema, config)


def _field_making(field: FieldDescriptor, schema: Schema, config: ProtobufConfig) -> Make:
    entry = field.message_type
    if entry is not None and schema.type is Type.MAP and schema.key_schema and schema.value_schema:
        key = _field_making(entry.fields_by_name[names.KEY], schema.key_schema, config)
        value = _field_making(entry.fields_by_name[names.VALUE], schema.value_schema, config)
        return _map_making(entry, key, value)
    if field.is_repeated:
        if schema.type is not Type.ARRAY or schema.value_schema is None:
            raise DataError(f"the field {field.full_name} is repeated, but its Connect schema is of {schema.type}")
        return _array_making(_single_making(field, schema.value_schema, config))
    return _single_making(field, schema, config)


def _map_making(entry: Descriptor, key: Make, value: Make) -> Make:
    maker: Any = GetMessageClass(entry)
    is_declared = bool(entry.GetOptions().map_entry)
    empty = maker().value  # which is what null becomes

    def make(mapping: Value) -> Any:
        if not isinstance(mapping, dict):
            _unlike("a map", mapping)
        if is_declared:
            return {key(k): empty if v is None else value(v) for k, v in mapping.items()}
        pairs = ((None if k is None else key(k), None if v is None else value(v)) for k, v in mapping.items())
        return [maker(**{n: p for n, p in ((names.KEY, k), (names.VALUE, v)) if p is not None}) for k, v in pairs]

    return make


def _array_making(item: Make) -> Make:
    def make(values: Value) -> Any:
        if not isinstance(values, list | tuple):
            _unlike("an array", values)
        if any(value is None for value in values):
            raise DataError("Protobuf has no nulls in arrays")
        return [item(value) for value in values]

    return make


def _single_making(field: FieldDescriptor, schema: Schema, config: ProtobufConfig) -> Make:
    if field.message_type is not None:
        return _message_making(field.message_type, schema, config)
    if field.enum_type is not None:
        return _enum_making(field.enum_type)
    if field.type in _UNSIGNED:
        return lambda value: _unsigned(_integer(value))
    match schema.type:
        case Type.INT8 | Type.INT16:
            limit = 1 << _BITS[schema.type]
            return lambda value: _within(_integer(value), limit)
        case Type.INT32 | Type.INT64:
            return _integer
        case Type.FLOAT32 | Type.FLOAT64:
            return _floating
        case Type.BOOLEAN:
            return _boolean
        case Type.STRING:
            return _text
        case _:
            return _bytes


def _message_making(message: Descriptor, schema: Schema, config: ProtobufConfig) -> Make:
    maker: Any = GetMessageClass(message)
    match schema.name:
        case _ if schema.name == DECIMAL_NAME:
            scale = scale_of(schema)
            return lambda value: _decimal_message(maker, value, scale)
        case _ if schema.name == DATE_NAME:
            return lambda value: _date_message(maker, value)
        case _ if schema.name == TIME_NAME:
            return lambda value: _time_message(maker, value)
        case _ if schema.name == TIMESTAMP_NAME:
            return lambda value: _timestamp_message(maker, value)
        case _:
            return making(message, schema, config)


def _decimal_message(maker: Any, value: Value, scale: int) -> Any:
    data = decimal_bytes(value, scale)
    return maker(value=data, scale=scale, precision=len(value.as_tuple().digits))


def _date_message(maker: Any, value: Value) -> Any:
    days_of(value)  # which refuses what is no date
    return maker(year=value.year, month=value.month, day=value.day)


def _time_message(maker: Any, value: Value) -> Any:
    milliseconds = milliseconds_of_time(value)
    rest = milliseconds % 1000 * _MILLISECOND_NS
    return maker(hours=value.hour, minutes=value.minute, seconds=value.second, nanos=rest)


def _timestamp_message(maker: Any, value: Value) -> Any:
    seconds, rest = divmod(milliseconds_of(value), 1000)
    return maker(seconds=seconds, nanos=rest * _MILLISECOND_NS)


def _wrapper_making(message: Descriptor, schema: Schema, config: ProtobufConfig) -> Make:
    maker: Any = GetMessageClass(message)
    make = _single_making(message.fields_by_name[names.VALUE], schema, config)
    return lambda value: maker(value=make(value))


def _enum_making(enum: EnumDescriptor) -> Make:
    numbers = {str(value.name): int(value.number) for value in enum.values}

    def make(value: Value) -> Any:
        if value.__class__ is int:
            return value
        if value not in numbers:
            raise DataError(f"the enum {enum.full_name} has no value {value!r:.200}")
        return numbers[value]

    return make


def _within(number: int, limit: int) -> int:
    if not -limit <= number < limit:
        raise DataError(f"{number} is out of range")
    return number


def _unsigned(number: int) -> int:
    return number + 2 * _SIGN if number < 0 else number


def _integer(value: Value) -> Any:
    if value.__class__ is not int:
        _unlike("a whole number", value)
    return value


def _floating(value: Value) -> Any:
    if value.__class__ is not float and value.__class__ is not int:
        _unlike("a number", value)
    return value


def _boolean(value: Value) -> Any:
    if value.__class__ is not bool:
        _unlike("a boolean", value)
    return value


def _text(value: Value) -> Any:
    if not isinstance(value, str):
        _unlike("text", value)
    return value


def _bytes(value: Value) -> Any:
    if not isinstance(value, bytes | bytearray | memoryview):
        _unlike("bytes", value)
    return bytes(value)


def _unlike(wanted: str, value: Value) -> NoReturn:
    raise DataError(f"Invalid type: expected {wanted}, not a value of type {type(value).__name__}")
