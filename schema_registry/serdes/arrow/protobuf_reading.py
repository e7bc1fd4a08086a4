"""Data of one Protobuf message type as columns.

Libraries write the fields of a message in the order of their numbers, each at most once. Messages of plain fields that
are written so are decoded here together, a field of all messages at a time. All others, damaged ones among them, are
parsed by Protobuf itself.
"""

from collections.abc import Callable
from operator import attrgetter, itemgetter
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import DecodeError

from schema_registry.formats.protobuf import ProtobufSchema
from schema_registry.formats.schema import InvalidSchema
from schema_registry.serdes import protobuf_plan as plans
from schema_registry.serdes.arrow import reading
from schema_registry.serdes.arrow.binary import Bytes, Cursor, Doubt, Rows, binary_array, content_of, take_rows
from schema_registry.serdes.arrow.protobuf_columns import column_plan, column_type
from schema_registry.serdes.arrow.reading import Extract, FieldExtract, Read, SchemaReader, Values
from schema_registry.serdes.arrow.types import KEY, PLAIN, VALUE, logical_type
from schema_registry.serdes.errors import NotFramed
from schema_registry.serdes.logical import LogicalName, timestamp_of
from schema_registry.serdes.protobuf import ProtobufCodec
from schema_registry.serdes.protobuf_values import MILLISECOND_NS, logical_reading, symbol_reading

Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[Any]

_SECONDS_MAX: Final = 1 << 40
_FLAT_FIELD_MAX: Final = 2047
"""Fields with higher numbers have longer tags."""
_VARINT, _EIGHT, _SIZED, _FOUR = 0, 1, 2, 5


def protobuf_reader(schema: ProtobufSchema, indexes: tuple[int, ...]) -> SchemaReader:
    """The reader of a message's data; raises SerdeError."""
    try:
        message = schema.message_at(indexes)
    except InvalidSchema as error:
        raise NotFramed(str(error)) from error
    return ProtobufReader(message, ProtobufCodec(schema, message=message.full_name))


class ProtobufReader:
    """Reads data of one message."""

    def __init__(self, message: Descriptor, codec: ProtobufCodec) -> None:
        plan = column_plan(message)
        self.type = column_type(plan)
        self._extract = _extract(plan)
        self._codec = codec
        self._flat = _flat_fields(message, self.type)

    def read(self, bodies: pa.Array) -> Read:
        """Read messages."""
        if self._flat is None or not len(bodies):
            return self._parse(bodies)
        try:
            data, is_done = self._read_flat(self._flat, bodies)
        except (pa.ArrowInvalid, Doubt):
            return self._parse(bodies)
        found = Read(data, np.flatnonzero(is_done), [])
        if is_done.all():
            return found
        others = np.flatnonzero(~is_done)
        return reading.merge_reads(found, self._parse(take_rows(bodies, others)).at(others))

    def _parse(self, bodies: pa.Array) -> Read:
        records = reading.bodies_list(bodies)
        parse: Any = self._codec.message_class.FromString
        try:
            messages = list(map(parse, records))
        except DecodeError:
            return reading.read_each(records, self._codec.decode, self._extract)
        return reading.read_values(messages, self._extract)

    def _read_flat(self, fields: "list[_FlatField]", bodies: pa.Array) -> tuple[pa.Array, Flags]:
        """Messages that are written as usual, and which these are; raises ArrowInvalid if a text is not UTF-8."""
        cursor = Cursor(bodies)
        found = {field.name: (field, _next_field(field, cursor)) for field in fields}
        is_done = (cursor.at == cursor.ends) & ~cursor.is_odd
        arrays = [_flat_array(*found[column.name], cursor.data, is_done) for column in self.type]
        return pa.StructArray.from_arrays(arrays, fields=list(self.type)), is_done


# --- messages that Protobuf has parsed -------------------------------------------------------------------------------


def _extract(plan: plans.Plan) -> Extract:
    """Makes an array of what many messages have for a field, or of the messages themselves."""
    match plan:
        case plans.Scalar():
            # Java, and so Connect, has no unsigned numbers.
            is_unsigned = plan.type in plans.UNSIGNED
            plain = reading.plain(PLAIN[plan.kind])
            return (lambda numbers: pa.array(numbers, type=pa.uint64()).view(pa.int64())) if is_unsigned else plain
        case plans.EnumPlan():
            symbols = _symbols(plan.enum)
            return lambda numbers: symbols(pa.array(numbers, type=pa.int32()))
        case plans.LogicalPlan() if plan.logical.name is LogicalName.TIMESTAMP:
            return _timestamps
        case plans.LogicalPlan():
            return reading.converted(logical_reading(plan.logical), logical_type(plan.logical))
        case plans.WrapperPlan():
            values, extract = _each(attrgetter("value")), _extract(plan.value)
            return lambda messages: extract(values(messages))
        case plans.ListPlan():
            return reading.lists(column_type(plan), _extract(plan.items))
        case plans.MapPlan():
            return _extract_map(plan)
        case plans.MessagePlan():
            return reading.structs(column_type(plan), [_extract_part(part) for part in plan.parts])


def _extract_map(plan: plans.MapPlan) -> Extract:
    type_, keys, values = column_type(plan), _extract(plan.keys), _extract(plan.values)
    if pa.types.is_map(type_):
        return reading.maps(type_, values)
    fields = [FieldExtract(_each(itemgetter(0)), keys), FieldExtract(_each(itemgetter(1)), values)]
    entries = pa.struct([(KEY, column_type(plan.keys)), (VALUE, column_type(plan.values))])
    pairs = reading.lists(pa.list_(entries), reading.structs(entries, fields))
    return lambda maps: pairs([None if found is None else list(found.items()) for found in maps])


def _extract_part(part: plans.Member | plans.OneofPlan) -> FieldExtract:
    if isinstance(part, plans.Member):
        name = str(part.field.name)
        value = attrgetter(name)
        if not part.is_nullable:
            return FieldExtract(_each(value), _extract(part.plan))
        return FieldExtract(
            lambda messages: [value(message) if message.HasField(name) else None for message in messages],
            _extract(part.plan),
        )
    assert part.oneof is not None
    oneof = str(part.oneof.name)
    fields = [FieldExtract(_chosen_values(member.name, oneof), _extract(member.plan)) for member in part.members]
    return FieldExtract(
        lambda messages: [None if message.WhichOneof(oneof) is None else message for message in messages],
        reading.structs(column_type(part), fields),
    )


def _each(value: Callable[[Any], Any]) -> Callable[[Values], Values]:
    return lambda items: list(map(value, items))


def _chosen_values(name: str, oneof: str) -> Callable[[Values], Values]:
    value = attrgetter(name)
    return lambda messages: [value(message) if message.WhichOneof(oneof) == name else None for message in messages]


def _symbols(enum: EnumDescriptor) -> Callable[[pa.Array], pa.Array]:
    """Turns numbers of an enum into its symbols."""
    symbol = symbol_reading(enum)

    def convert(numbers: pa.Array) -> pa.Array:
        codes = numbers.dictionary_encode()
        return pa.array([symbol(number) for number in codes.dictionary.to_pylist()], pa.string()).take(codes.indices)

    return convert


def _timestamps(messages: Values) -> pa.Array:
    present = [message for message in messages if message is not None]
    seconds = np.fromiter(map(attrgetter("seconds"), present), np.int64, len(present))
    nanoseconds = np.fromiter(map(attrgetter("nanos"), present), np.int64, len(present))
    if len(seconds) and (seconds.min() < -_SECONDS_MAX or seconds.max() > _SECONDS_MAX):
        for message in present:  # One is out of range, and would not stay within 64 bits.
            timestamp_of(message.seconds * 1000)
    milliseconds = pa.array(seconds * 1000 + nanoseconds // MILLISECOND_NS)
    found = reading.logical_array(LogicalName.TIMESTAMP, milliseconds)
    return found if len(present) == len(messages) else reading.insert_nulls(found, messages)


# --- flat messages, a field of all of them at a time -----------------------------------------------------------------


def _zigzag(raw: Numbers) -> Numbers:
    return (raw >> np.uint64(1)).astype(np.int64) ^ -(raw & np.uint64(1)).astype(np.int64)


def _low(raw: Numbers) -> Numbers:
    return (raw & np.uint64(0xFFFFFFFF)).astype(np.uint32)


_WIRE: Final[dict[int, tuple[int, Callable[[Numbers], Numbers]]]] = {
    FieldDescriptor.TYPE_INT32: (_VARINT, lambda raw: _low(raw).view(np.int32)),
    FieldDescriptor.TYPE_ENUM: (_VARINT, lambda raw: _low(raw).view(np.int32)),
    FieldDescriptor.TYPE_UINT32: (_VARINT, lambda raw: _low(raw).astype(np.int64)),
    FieldDescriptor.TYPE_SINT32: (_VARINT, lambda raw: _zigzag(_low(raw).astype(np.uint64)).astype(np.int32)),
    FieldDescriptor.TYPE_INT64: (_VARINT, lambda raw: raw.view(np.int64)),
    FieldDescriptor.TYPE_UINT64: (_VARINT, lambda raw: raw.view(np.int64)),
    FieldDescriptor.TYPE_SINT64: (_VARINT, _zigzag),
    FieldDescriptor.TYPE_BOOL: (_VARINT, lambda raw: raw != 0),
    FieldDescriptor.TYPE_FIXED32: (_FOUR, lambda raw: raw.view(np.uint32).astype(np.int64)),
    FieldDescriptor.TYPE_SFIXED32: (_FOUR, lambda raw: raw.view(np.int32)),
    FieldDescriptor.TYPE_FLOAT: (_FOUR, lambda raw: raw.view(np.float32)),
    FieldDescriptor.TYPE_FIXED64: (_EIGHT, lambda raw: raw.view(np.int64)),
    FieldDescriptor.TYPE_SFIXED64: (_EIGHT, lambda raw: raw.view(np.int64)),
    FieldDescriptor.TYPE_DOUBLE: (_EIGHT, lambda raw: raw.view(np.float64)),
    FieldDescriptor.TYPE_STRING: (_SIZED, lambda raw: raw),
    FieldDescriptor.TYPE_BYTES: (_SIZED, lambda raw: raw),
}
"""How each type is written, and how its values are decoded."""


class _FlatField(NamedTuple):
    name: str
    tag: bytes
    wire: int
    decode: Callable[[Numbers], Numbers]
    type: pa.DataType
    is_nullable: bool
    symbols: Callable[[pa.Array], pa.Array] | None


class _Found(NamedTuple):
    """One field of all messages."""

    is_set: Flags
    values: Numbers
    """The values of plain fields; where texts begin."""
    ends: Rows


def _flat_fields(message: Descriptor, type_: pa.DataType) -> list[_FlatField] | None:
    """The fields of a message in the order in which they are written; None if it has more than plain ones."""
    file = FileDescriptorProto()
    message.file.CopyToProto(file)
    if file.syntax != "proto3" or not pa.types.is_struct(type_):
        return None
    fields = []
    for field in sorted(message.fields, key=lambda field: field.number):
        name = str(field.name)
        is_plain = field.type in _WIRE and not field.is_repeated and field.number <= _FLAT_FIELD_MAX
        if not is_plain or type_.get_field_index(name) < 0:
            return None
        wire, decode = _WIRE[field.type]
        number = field.number << 3 | wire
        tag = bytes([number]) if number < 0x80 else bytes([number & 0x7F | 0x80, number >> 7])
        is_optional = field.containing_oneof is not None and len(field.containing_oneof.fields) == 1
        symbols = None if field.enum_type is None else _symbols(field.enum_type)
        fields.append(_FlatField(name, tag, wire, decode, type_.field(name).type, is_optional, symbols))
    return fields


def _next_field(field: _FlatField, cursor: Cursor) -> _Found:
    """Read a field of those messages in which it comes next."""
    count, data = len(cursor.at), cursor.data
    is_next = (data[cursor.at] == field.tag[0]) & (cursor.at < cursor.ends)
    if len(field.tag) > 1:
        is_next &= data[cursor.at + 1] == field.tag[1]
    # Where another field comes next, this one is not set, and the position stays.
    rows = np.flatnonzero(is_next)
    at = cursor.at[rows] + len(field.tag)
    ends = np.zeros(count, np.int64)
    if field.wire == _VARINT:
        raw, at = cursor.varints(rows, at)
        found = field.decode(raw)
    elif field.wire == _SIZED:
        raw, found = cursor.varints(rows, at)
        at = found + np.minimum(raw, np.uint64(len(data))).astype(np.int64)
        ends[rows] = at
    else:
        width = 8 if field.wire == _EIGHT else 4
        windows = np.lib.stride_tricks.sliding_window_view(data, width)
        raw = np.ascontiguousarray(windows[np.minimum(at, len(windows) - 1)]).view(f"<u{width}").reshape(-1)
        found = field.decode(raw)
        at = at + width
    values = np.zeros(count, found.dtype)
    values[rows] = found
    cursor.go_to(rows, at)
    return _Found(is_next, values, ends)


def _flat_array(field: _FlatField, found: _Found, data: Bytes, is_done: Flags) -> pa.Array:
    is_unset = ~found.is_set[is_done] if field.is_nullable else None
    if field.wire == _SIZED:
        content = content_of(data, np.where(found.is_set, found.values, 0)[is_done], found.ends[is_done])
        made = binary_array(content, None if is_unset is None else pa.array(~is_unset).buffers()[1])
        return made.cast(field.type) if pa.types.is_string(field.type) else made
    array = pa.array(found.values[is_done], mask=is_unset)
    return array.cast(field.type) if field.symbols is None else field.symbols(array)
