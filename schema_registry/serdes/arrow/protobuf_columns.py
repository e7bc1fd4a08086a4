"""Protobuf messages as columns, as Connect's Protobuf converter has them by default.

A oneof is a struct called after it and its number, with a field for each member, before all other fields. Messages,
`optional` fields and members of a oneof are null when they are not set; all else is what Protobuf says it is then.
"""

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

import numpy as np
import pyarrow as pa
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor, OneofDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
from google.protobuf.message_factory import GetMessageClass

from schema_registry.serdes.arrow import extraction
from schema_registry.serdes.arrow.extraction import Extract, FieldExtract, Values
from schema_registry.serdes.arrow.types import TIME, TIMESTAMP, NoColumns, decimal_type
from schema_registry.serdes.errors import InvalidData
from schema_registry.serdes.logical import LogicalName, decimal_of, timestamp_of

_KEY, _VALUE = "key", "value"
_PLAIN: Final = {
    FieldDescriptor.TYPE_INT32: pa.int32(),
    FieldDescriptor.TYPE_SINT32: pa.int32(),
    FieldDescriptor.TYPE_SFIXED32: pa.int32(),
    FieldDescriptor.TYPE_UINT32: pa.int64(),
    FieldDescriptor.TYPE_FIXED32: pa.int64(),
    FieldDescriptor.TYPE_INT64: pa.int64(),
    FieldDescriptor.TYPE_SINT64: pa.int64(),
    FieldDescriptor.TYPE_SFIXED64: pa.int64(),
    FieldDescriptor.TYPE_UINT64: pa.int64(),
    FieldDescriptor.TYPE_FIXED64: pa.int64(),
    FieldDescriptor.TYPE_FLOAT: pa.float32(),
    FieldDescriptor.TYPE_DOUBLE: pa.float64(),
    FieldDescriptor.TYPE_BOOL: pa.bool_(),
    FieldDescriptor.TYPE_STRING: pa.string(),
    FieldDescriptor.TYPE_BYTES: pa.binary(),
}
_UNSIGNED: Final = frozenset({FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64})
_SMALL_INTEGERS: Final = {"int8": pa.int8(), "int16": pa.int16()}
_WRAPPERS: Final = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
_MILLISECOND_NS: Final = 1_000_000
_MAX_SCALE: Final = 100_000
_MOST_SECONDS: Final = 1 << 40
_SECONDS: Final = attrgetter("seconds")
_NANOSECONDS: Final = attrgetter("nanos")

Column = tuple[pa.DataType, Extract]


class Columns:
    """Makes the columns of one message; raises NoColumns."""

    def __init__(self) -> None:
        self._open: set[str] = set()

    def root(self, message: Descriptor) -> Column:
        """The column of a message that is a whole record: one that holds a plain value is that value."""
        if message.full_name not in _WRAPPERS:
            return self.message(message)
        type_, extract = self._single(message.fields_by_name[_VALUE])
        values = attrgetter(_VALUE)
        return type_, lambda messages: extract(list(map(values, messages)))

    def message(self, message: Descriptor) -> Column:
        """The structs of a message."""
        if message.full_name in self._open:
            raise NoColumns(f"the Protobuf schema is recursive: the message {message.full_name} holds itself")
        self._open.add(message.full_name)
        presence = _Presence(message)
        parts: dict[str, tuple[pa.DataType, FieldExtract]] = {}
        for oneof in message.oneofs:
            members = [field for field in oneof.fields if presence.oneof(field) is not None]
            if members:
                _add(parts, f"{oneof.name}_{oneof.index}", self._union(oneof, members))
        for field in message.fields:
            if presence.oneof(field) is None:
                type_, extract = self._field(field)
                values = _set_values(field.name) if presence.is_null_when_unset(field) else _all_values(field.name)
                _add(parts, str(field.name), (type_, FieldExtract(values, extract)))
        self._open.remove(message.full_name)
        return _structs(parts, message.full_name)

    def _union(self, oneof: OneofDescriptor, members: Sequence[FieldDescriptor]) -> tuple[pa.DataType, FieldExtract]:
        parts: dict[str, tuple[pa.DataType, FieldExtract]] = {}
        for field in members:
            type_, extract = self._field(field)
            parts[str(field.name)] = type_, FieldExtract(_chosen_values(field.name, oneof.name), extract)
        made, extract = _structs(parts, oneof.full_name)
        return made, FieldExtract(_messages_with(oneof.name), extract)

    def _field(self, field: FieldDescriptor) -> Column:
        entry = field.message_type
        if entry is not None and _is_map(field):
            return self._map(entry)
        if field.is_repeated:
            type_, item = self._single(field)
            made = pa.list_(type_)
            return made, extraction.lists(made, item)
        return self._single(field)

    def _map(self, entry: Descriptor) -> Column:
        key_type, key = self._field(entry.fields_by_name[_KEY])
        value_type, value = self._field(entry.fields_by_name[_VALUE])
        if pa.types.is_nested(key_type):
            raise NoColumns("the keys of a map must not be structs, lists or maps themselves")
        is_declared = bool(entry.GetOptions().map_entry)
        if pa.types.is_string(key_type) and is_declared and entry.fields_by_name[_KEY].enum_type is None:
            made = pa.map_(key_type, value_type)
            return made, extraction.maps(made, value)
        if not is_declared:
            raise NoColumns("a message that only looks like the entry of a map")
        pair = pa.struct([(_KEY, key_type), (_VALUE, value_type)])
        keys, values = FieldExtract(_first, key), FieldExtract(_second, value)
        made = pa.list_(pair)
        pairs = extraction.lists(made, extraction.structs(pair, [keys, values]))
        return made, lambda dicts: pairs([None if found is None else list(found.items()) for found in dicts])

    def _single(self, field: FieldDescriptor) -> Column:
        if field.enum_type is not None:
            return pa.string(), _symbols(field.enum_type)
        if field.type == FieldDescriptor.TYPE_GROUP:
            raise NoColumns(f"Unknown Connect schema type: the field {field.full_name} is a group")
        if field.message_type is not None:
            return self._message(field, field.message_type)
        type_ = _PLAIN[field.type]
        if pa.types.is_int32(type_):
            type_ = _SMALL_INTEGERS.get(_parameters(field).get("connect.type", ""), type_)
        return type_, _signed if field.type in _UNSIGNED else extraction.plain(type_)

    def _message(self, field: FieldDescriptor, message: Descriptor) -> Column:
        match message.full_name:
            case "confluent.type.Decimal":
                type_ = _decimal_type(_parameters(field))
                return type_, extraction.changed(_decimal, type_)
            case "google.type.Date":
                return pa.date32(), extraction.changed(_date, pa.date32())
            case "google.type.TimeOfDay":
                return TIME, extraction.changed(_time, TIME)
            case "google.protobuf.Timestamp":
                return TIMESTAMP, _timestamps
            case _:
                return self.message(message)


class _Presence:
    """Which fields of a message can be told from not being there."""

    def __init__(self, message: Descriptor) -> None:
        proto, file = DescriptorProto(), FileDescriptorProto()
        message.CopyToProto(proto)
        message.file.CopyToProto(file)
        self._is_proto2 = file.syntax in ("", "proto2")
        self._optional = frozenset(field.name for field in proto.field if field.proto3_optional)

    def oneof(self, field: FieldDescriptor) -> OneofDescriptor | None:
        """The oneof of a field, if it is one that was written as such."""
        return None if field.name in self._optional else field.containing_oneof

    def is_null_when_unset(self, field: FieldDescriptor) -> bool:
        """Whether null, and not a default, is what a field that is not set has."""
        if field.is_repeated:
            return False
        is_proto2 = self._is_proto2 and not field.is_required and field.containing_oneof is None
        return field.message_type is not None or field.name in self._optional or is_proto2


def _add(parts: dict[str, tuple[pa.DataType, FieldExtract]], name: str, part: tuple[pa.DataType, FieldExtract]) -> None:
    if name in parts:
        raise NoColumns(f"there would be two fields {name}")
    parts[name] = part


def _structs(parts: Mapping[str, tuple[pa.DataType, FieldExtract]], name: str) -> Column:
    if not parts:
        raise NoColumns(f"the message {name} has no fields")
    type_ = pa.struct([(field, part[0]) for field, part in parts.items()])
    return type_, extraction.structs(type_, [part[1] for part in parts.values()])


def _is_map(field: FieldDescriptor) -> bool:
    """Whether a field holds entries of a map, be they declared as such or only look so."""
    entry = field.message_type
    if entry is None or not field.is_repeated or not entry.name.endswith("Entry"):
        return False
    return [part.name for part in entry.fields if not part.is_repeated] == [_KEY, _VALUE]


def _parameters(field: FieldDescriptor) -> Mapping[str, str]:
    """What `(confluent.field_meta)` tells about a field."""
    message: Any = field.containing_type
    try:
        extension: Any = message.file.pool.FindExtensionByName("confluent.field_meta")
    except KeyError:
        return {}
    # The options are of a class that does not know the extension, which is one of this schema's own pool.
    options = GetMessageClass(extension.containing_type).FromString(field.GetOptions().SerializeToString())
    meta: Any = options.Extensions[extension]
    return dict(meta.params)


# --- fields of many messages -----------------------------------------------------------------------------------------


def _all_values(name: str) -> Callable[[Values], Values]:
    value = attrgetter(name)
    return lambda messages: list(map(value, messages))


def _set_values(name: str) -> Callable[[Values], Values]:
    value = attrgetter(name)
    return lambda messages: [value(message) if message.HasField(name) else None for message in messages]


def _chosen_values(name: str, oneof: str) -> Callable[[Values], Values]:
    value = attrgetter(name)
    return lambda messages: [value(message) if message.WhichOneof(oneof) == name else None for message in messages]


def _messages_with(oneof: str) -> Callable[[Values], Values]:
    return lambda messages: [None if message.WhichOneof(oneof) is None else message for message in messages]


def _first(pairs: Values) -> Values:
    return [pair[0] for pair in pairs]


def _second(pairs: Values) -> Values:
    return [pair[1] for pair in pairs]


# --- values ----------------------------------------------------------------------------------------------------------


def _symbols(enum: EnumDescriptor) -> Extract:
    texts = symbols_of(enum)
    return lambda numbers: texts(pa.array(numbers, type=pa.int32()))


def symbols_of(enum: EnumDescriptor) -> Callable[[pa.Array], pa.Array]:
    """What turns numbers of an enum into its symbols."""
    symbols = {value.number: str(value.name) for value in reversed(enum.values)}
    unknown = f"UNKNOWN_ENUM_VALUE_{enum.name}_"

    def change(numbers: pa.Array) -> pa.Array:
        codes = numbers.dictionary_encode()
        texts = [symbols.get(number) or f"{unknown}{number}" for number in codes.dictionary.to_pylist()]
        return pa.array(texts, type=pa.string()).take(codes.indices)

    return change


def _signed(numbers: Values) -> pa.Array:
    """As Java has it, which knows no unsigned numbers."""
    found = pa.array(numbers, type=pa.uint64())
    return found.view(pa.int64())


def _decimal_type(parameters: Mapping[str, str]) -> pa.DataType:
    scale, precision = parameters.get("scale", "0"), parameters.get("precision", "")
    digits = int(precision) if precision.isdecimal() else None
    return decimal_type(digits, int(scale) if scale.lstrip("-").isdecimal() else 0)


def _decimal(message: Any) -> Any:
    if abs(message.scale) > _MAX_SCALE:
        raise InvalidData(f"Decimal has a scale of {message.scale}, which is beyond {_MAX_SCALE}")
    return decimal_of(message.value, message.scale)


def _date(message: Any) -> dt.date:
    try:
        return dt.date(message.year, message.month, message.day)
    except ValueError as error:
        shown = f"{message.year}-{message.month}-{message.day}"
        raise InvalidData(f"google.type.Date {shown} is no date: {error}") from error


def _time(message: Any) -> dt.time:
    try:
        microseconds = message.nanos // _MILLISECOND_NS * 1000
        return dt.time(message.hours, message.minutes, message.seconds, microseconds)
    except ValueError as error:
        shown = f"{message.hours}:{message.minutes}:{message.seconds}"
        raise InvalidData(f"google.type.TimeOfDay {shown} is no time of a day: {error}") from error


def _timestamps(messages: Values) -> pa.Array:
    present = [message for message in messages if message is not None]
    seconds = np.fromiter(map(_SECONDS, present), np.int64, len(present))
    nanoseconds = np.fromiter(map(_NANOSECONDS, present), np.int64, len(present))
    if len(seconds) and (seconds.min() < -_MOST_SECONDS or seconds.max() > _MOST_SECONDS):
        for message in present:  # One is out of its range, and would not stay within 64 bits.
            timestamp_of(message.seconds * 1000)
    milliseconds = pa.array(seconds * 1000 + nanoseconds // _MILLISECOND_NS)
    found = extraction.logical_array(LogicalName.TIMESTAMP, milliseconds)
    return found if len(present) == len(messages) else extraction.spread(found, messages)
