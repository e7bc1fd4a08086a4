"""Plans of Protobuf as columns: their Arrow types, and how a field of many messages becomes an array."""

from collections.abc import Callable, Mapping
from operator import attrgetter, itemgetter
from typing import Any, Final

import numpy as np
import pyarrow as pa
from google.protobuf.descriptor import Descriptor, EnumDescriptor

from schema_registry.serdes.arrow import extraction
from schema_registry.serdes.arrow.extraction import Extract, FieldExtract, Values
from schema_registry.serdes.arrow.types import KEY, PLAIN, VALUE, NoColumns, logical_type, map_type
from schema_registry.serdes.errors import UnusableSchema
from schema_registry.serdes.logical import LogicalName, timestamp_of
from schema_registry.serdes.protobuf_plan import (
    UNSIGNED,
    EnumPlan,
    ListPlan,
    LogicalPlan,
    MapPlan,
    Meaning,
    Member,
    MessagePlan,
    OneofPlan,
    Plan,
    Scalar,
    WrapperPlan,
)
from schema_registry.serdes.protobuf_values import MILLISECOND_NS, logical_reading, symbol_reading

_SECONDS_MAX: Final = 1 << 40
_SECONDS: Final = attrgetter("seconds")
_NANOSECONDS: Final = attrgetter("nanos")
_VALUE: Final = attrgetter("value")


def column_plan(message: Descriptor) -> MessagePlan | WrapperPlan:
    """The plan of the columns of a message; raises NoColumns."""
    try:
        return Meaning().of(message)
    except UnusableSchema as error:
        raise NoColumns(str(error)) from error


def column_type(plan: Plan) -> pa.DataType:
    """The Arrow type of a plan; raises NoColumns."""
    match plan:
        case Scalar():
            return PLAIN[plan.kind]
        case EnumPlan():
            return PLAIN["string"]
        case LogicalPlan():
            return logical_type(plan.logical)
        case WrapperPlan():
            return column_type(plan.value)
        case ListPlan():
            return pa.list_(column_type(plan.items))
        case MapPlan():
            return _map_type(plan)
        case MessagePlan():
            return _struct_type({part.name: part for part in plan.parts}, len(plan.parts), plan.message.full_name)


def _map_type(plan: MapPlan) -> pa.DataType:
    keys, values = column_type(plan.keys), column_type(plan.values)
    if pa.types.is_nested(keys):
        raise NoColumns("the keys of a map must not be structs, lists or maps themselves")
    if not plan.is_declared:
        raise NoColumns("a message that only looks like the entry of a map")
    return map_type(keys, values)


def _struct_type(parts: Mapping[str, Member | OneofPlan], count: int, name: str) -> pa.DataType:
    if not parts:
        raise NoColumns(f"the message {name} has no fields")
    if len(parts) < count:
        raise NoColumns(f"the message {name} would have two fields of one name")
    return pa.struct([(part_name, _part_type(part)) for part_name, part in parts.items()])


def _part_type(part: Member | OneofPlan) -> pa.DataType:
    if isinstance(part, Member):
        return column_type(part.plan)
    return pa.struct([(member.name, column_type(member.plan)) for member in part.members])


def column_extract(plan: Plan) -> Extract:
    """What makes an array of what many messages have for a field, or of the messages themselves."""
    match plan:
        case Scalar():
            return _signed if plan.type in UNSIGNED else extraction.plain(PLAIN[plan.kind])
        case EnumPlan():
            texts = symbols_of(plan.enum)
            return lambda numbers: texts(pa.array(numbers, type=pa.int32()))
        case LogicalPlan() if plan.logical.name is LogicalName.TIMESTAMP:
            return _timestamps
        case LogicalPlan():
            return extraction.changed(logical_reading(plan.logical), logical_type(plan.logical))
        case WrapperPlan():
            extract = column_extract(plan.value)
            return lambda messages: extract(list(map(_VALUE, messages)))
        case ListPlan():
            return extraction.lists(column_type(plan), column_extract(plan.items))
        case MapPlan():
            return _map_extract(plan)
        case MessagePlan():
            return extraction.structs(column_type(plan), [_part_extract(part) for part in plan.parts])


def _map_extract(plan: MapPlan) -> Extract:
    type_, keys, values = column_type(plan), column_extract(plan.keys), column_extract(plan.values)
    if pa.types.is_map(type_):
        return extraction.maps(type_, values)
    fields = [FieldExtract(_each(itemgetter(0)), keys), FieldExtract(_each(itemgetter(1)), values)]
    entries = pa.struct([(KEY, column_type(plan.keys)), (VALUE, column_type(plan.values))])
    pairs = extraction.lists(pa.list_(entries), extraction.structs(entries, fields))
    return lambda maps: pairs([None if found is None else list(found.items()) for found in maps])


def _part_extract(part: Member | OneofPlan) -> FieldExtract:
    if isinstance(part, Member):
        name = str(part.field.name)
        values = _set_values(name) if part.is_nullable else _each(attrgetter(name))
        return FieldExtract(values, column_extract(part.plan))
    assert part.oneof is not None
    oneof = str(part.oneof.name)
    fields = [FieldExtract(_chosen_values(m.name, oneof), column_extract(m.plan)) for m in part.members]
    return FieldExtract(_messages_with(oneof), extraction.structs(_part_type(part), fields))


def _each(value: Callable[[Any], Any]) -> Callable[[Values], Values]:
    return lambda items: list(map(value, items))


def _set_values(name: str) -> Callable[[Values], Values]:
    value = attrgetter(name)
    return lambda messages: [value(message) if message.HasField(name) else None for message in messages]


def _chosen_values(name: str, oneof: str) -> Callable[[Values], Values]:
    value = attrgetter(name)
    return lambda messages: [value(message) if message.WhichOneof(oneof) == name else None for message in messages]


def _messages_with(oneof: str) -> Callable[[Values], Values]:
    return lambda messages: [None if message.WhichOneof(oneof) is None else message for message in messages]


def symbols_of(enum: EnumDescriptor) -> Callable[[pa.Array], pa.Array]:
    """What turns numbers of an enum into its symbols."""
    symbol = symbol_reading(enum)

    def change(numbers: pa.Array) -> pa.Array:
        codes = numbers.dictionary_encode()
        return pa.array([symbol(number) for number in codes.dictionary.to_pylist()], pa.string()).take(codes.indices)

    return change


def _signed(numbers: Values) -> pa.Array:
    """As Java has it, which knows no unsigned numbers."""
    return pa.array(numbers, type=pa.uint64()).view(pa.int64())


def _timestamps(messages: Values) -> pa.Array:
    present = [message for message in messages if message is not None]
    seconds = np.fromiter(map(_SECONDS, present), np.int64, len(present))
    nanoseconds = np.fromiter(map(_NANOSECONDS, present), np.int64, len(present))
    if len(seconds) and (seconds.min() < -_SECONDS_MAX or seconds.max() > _SECONDS_MAX):
        for message in present:  # One is out of its range, and would not stay within 64 bits.
            timestamp_of(message.seconds * 1000)
    milliseconds = pa.array(seconds * 1000 + nanoseconds // MILLISECOND_NS)
    found = extraction.logical_array(LogicalName.TIMESTAMP, milliseconds)
    return found if len(present) == len(messages) else extraction.spread(found, messages)
