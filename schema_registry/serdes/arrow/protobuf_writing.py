"""Columns as messages of one Protobuf type: what `protobuf_reading` reads, the other way.

Columns are found by the names of fields; one that is not there, or null, is a field that is not set. Fields are written
in the order of their numbers, and those without presence only where they are not their defaults, as Protobuf itself
does it.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from schema_registry.serdes.arrow import joining, stored
from schema_registry.serdes.arrow.binary import Content, binary_array
from schema_registry.serdes.arrow.joining import Pieces
from schema_registry.serdes.arrow.protobuf_columns import column_plan, column_type
from schema_registry.serdes.errors import InvalidData
from schema_registry.serdes.logical import MILLISECONDS_PER_DAY, LogicalName
from schema_registry.serdes.protobuf_plan import (
    KEY,
    UNSIGNED,
    VALUE,
    EnumPlan,
    ListPlan,
    LogicalPlan,
    MapPlan,
    Member,
    MessagePlan,
    Plan,
    Scalar,
    WrapperPlan,
)
from schema_registry.serdes.protobuf_values import MILLISECOND_NS

Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]

_VARINT, _EIGHT, _SIZED, _FOUR = 0, 1, 2, 5
_WIRES: Final = {
    FieldDescriptor.TYPE_FIXED64: _EIGHT,
    FieldDescriptor.TYPE_SFIXED64: _EIGHT,
    FieldDescriptor.TYPE_DOUBLE: _EIGHT,
    FieldDescriptor.TYPE_FIXED32: _FOUR,
    FieldDescriptor.TYPE_SFIXED32: _FOUR,
    FieldDescriptor.TYPE_FLOAT: _FOUR,
    FieldDescriptor.TYPE_STRING: _SIZED,
    FieldDescriptor.TYPE_BYTES: _SIZED,
    FieldDescriptor.TYPE_MESSAGE: _SIZED,
}
"""All others are varints."""
_RANGES: Final = {
    FieldDescriptor.TYPE_INT32: (-(1 << 31), (1 << 31) - 1),
    FieldDescriptor.TYPE_SINT32: (-(1 << 31), (1 << 31) - 1),
    FieldDescriptor.TYPE_SFIXED32: (-(1 << 31), (1 << 31) - 1),
    FieldDescriptor.TYPE_UINT32: (0, (1 << 32) - 1),
    FieldDescriptor.TYPE_FIXED32: (0, (1 << 32) - 1),
}
_SMALL: Final = {"int8": (-(1 << 7), (1 << 7) - 1), "int16": (-(1 << 15), (1 << 15) - 1)}
_ANY: Final = (-(1 << 63), (1 << 63) - 1)
_ZIGZAG: Final = frozenset({FieldDescriptor.TYPE_SINT32, FieldDescriptor.TYPE_SINT64})
_TENS: Final = np.array([10**power for power in range(1, 19)], dtype=np.int64)


class ProtobufWriter:
    """Writes messages of one type; raises UnusableSchema."""

    def __init__(self, message: Descriptor) -> None:
        self._plan = column_plan(message)
        self.type = column_type(self._plan)
        """What columns are best made of; others that hold the same values will do."""

    def write(self, rows: pa.Array) -> pa.Array:
        """Rows, one value each, as binary values; raises InvalidData."""
        return joining.write_rows(rows, lambda some: _message(self._plan, some))


def _message(plan: Plan, array: pa.Array) -> Pieces:
    """What is in messages, none of which is null."""
    match plan:
        case WrapperPlan():
            return _field(plan.message.fields_by_name[VALUE], plan.value, array)
        case LogicalPlan():
            return _logical(plan, array)
        case MessagePlan():
            return _fields(plan, array)
        case _:
            raise TypeError("a plain value is not a message")


def _fields(plan: MessagePlan, array: pa.Array) -> Pieces:
    what = f"the message {plan.message.full_name}"
    columns = joining.columns_of(array, [part.name for part in plan.parts], what)
    found: list[tuple[Member, pa.Array]] = []
    for part in plan.parts:
        column = columns.get(part.name)
        if isinstance(part, Member):
            if column is None and part.field.is_required:
                raise InvalidData(f"{part.name}: there is no such column, and the field is required")
            found += [] if column is None else [(part, column)]
        elif column is not None:
            found += _chosen(part.members, column, f"{what}, in {part.name},")
    found.sort(key=lambda item: int(item[0].field.number))
    return [piece for member, column in found for piece in _named(member, column)]


def _chosen(members: Sequence[Member], array: pa.Array, what: str) -> Iterator[tuple[Member, pa.Array]]:
    """Members of a oneof, each null where another was chosen."""
    by_name = {member.name: member for member in members}
    columns = joining.columns_of(array, by_name, what)
    for name, is_there in joining.chosen(columns, list(by_name), len(array)):
        column = columns[name]
        yield by_name[name], pc.if_else(pa.array(is_there), column, pa.scalar(None, column.type))


def _named(member: Member, column: pa.Array) -> Pieces:
    try:
        return _field(member.field, member.plan, column)
    except InvalidData as error:
        raise InvalidData(f"{member.name}: {error}") from error


def _field(field: FieldDescriptor, plan: Plan, column: pa.Array, *, is_always: bool = False) -> Pieces:
    """A field with its tag, where it is to be written; `is_always` does not leave defaults out."""
    if isinstance(plan, ListPlan | MapPlan):
        return _repeated(field, plan, column)
    is_there = joining.is_valid(column)
    if field.is_required and not is_there.all():
        raise InvalidData("there are nulls, but the field is required")
    if not field.has_presence and not is_always:
        is_there &= ~_is_default(plan, column)
    tag = _tag(field, _WIRES.get(field.type, _VARINT))
    if is_there.all():
        return [tag, *_value(plan, column)]
    some = column.filter(pa.array(is_there))
    return [joining.spread(joining.joined([tag, *_value(plan, some)], len(some)), is_there, b"")]


def _is_default(plan: Plan, column: pa.Array) -> Flags:
    """Which values are nothing but what a field has that is not set; nulls do not matter."""
    if isinstance(plan, EnumPlan):
        return np.asarray(_numbers_of(plan.enum, column.fill_null(_first_symbol(plan.enum, column))) == 0)
    kind = column.type
    if pa.types.is_floating(kind):  # Minus zero is not zero here.
        bits = column.fill_null(0).to_numpy().view(f"u{kind.bit_width // 8}")
        return np.asarray(bits == 0)
    if pa.types.is_boolean(kind):
        is_default = pc.invert(column)
    elif pa.types.is_integer(kind):
        is_default = pc.equal(column, pa.scalar(0, kind))
    else:
        is_default = pc.equal(pc.binary_length(joining.bytes_of(column)), 0)
    found: Flags = is_default.fill_null(True).to_numpy(zero_copy_only=False)
    return found


def _first_symbol(enum: EnumDescriptor, column: pa.Array) -> pa.Scalar:
    first = enum.values[0]
    return pa.scalar(int(first.number) if pa.types.is_integer(column.type) else str(first.name), column.type)


def _value(plan: Plan, array: pa.Array) -> Pieces:
    """Values behind their tags, none of which is null."""
    match plan:
        case Scalar():
            return _scalar(plan, array)
        case EnumPlan():
            return [joining.varints(_numbers_of(plan.enum, array).view(np.uint64))]
        case _:
            return joining.sized(joining.joined(_message(plan, array), len(array)))


def _repeated(field: FieldDescriptor, plan: ListPlan | MapPlan, column: pa.Array) -> Pieces:
    some = joining.present(column)
    items, counts = joining.items_of(some)
    if isinstance(plan, MapPlan):
        data = joining.joined(_entries(field, plan, items), len(items))
    else:
        if items.null_count:
            raise InvalidData("Protobuf has no nulls in arrays")
        parts = _value(plan.items, items)
        data = joining.joined(parts if field.is_packed else [_tag(field, _wire(field)), *parts], len(items))
    found = joining.gathered(data, counts)
    if field.is_packed and not isinstance(plan, MapPlan):
        packed = joining.joined([_tag(field, _SIZED), *joining.sized(found)], len(found))
        found = pc.if_else(pa.array(counts > 0), packed, pa.scalar(b"", pa.binary()))
    return [found if len(some) == len(column) else joining.spread(found, joining.is_valid(column), b"")]


def _entries(field: FieldDescriptor, plan: MapPlan, items: pa.Array) -> Pieces:
    keys, values = items.flatten()
    if keys.null_count:
        raise InvalidData("the keys of a map must not be null")
    fields = plan.entry.fields_by_name
    key = _field(fields[KEY], plan.keys, keys, is_always=True)
    entry = joining.joined([*key, *_field(fields[VALUE], plan.values, values, is_always=True)], len(items))
    return [_tag(field, _SIZED), *joining.sized(entry)]


def _wire(field: FieldDescriptor) -> int:
    return _WIRES.get(field.type, _VARINT)


def _tag(field: FieldDescriptor, wire: int) -> bytes:
    number = int(field.number) << 3 | wire
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*made, number])


def _scalar(plan: Scalar, array: pa.Array) -> Pieces:
    match plan.kind:
        case "string":
            return joining.sized(joining.text_of(array))
        case "bytes":
            return joining.sized(joining.bytes_of(array))
        case "boolean":
            return [joining.fixed(joining.booleans_of(array))]
        case "float32":
            return [joining.fixed(joining.floats_of(array, pa.float32()))]
        case "float64":
            return [joining.fixed(joining.floats_of(array, pa.float64()))]
        case _:
            return [_integers(plan, array)]


def _integers(plan: Scalar, array: pa.Array) -> pa.Array:
    if plan.type in UNSIGNED and pa.types.is_uint64(array.type):
        array = array.view(pa.int64())
    least, most = _SMALL.get(plan.kind) or _RANGES.get(plan.type, _ANY)
    numbers = joining.integers_of(array, least, most)
    match _WIRES.get(plan.type, _VARINT):
        case 1:
            return joining.fixed(numbers)
        case 5:
            return joining.fixed(numbers.astype(np.uint32 if least == 0 else np.int32))
        case _:
            return joining.varints(joining.zigzag(numbers) if plan.type in _ZIGZAG else numbers.view(np.uint64))


def _numbers_of(enum: EnumDescriptor, array: pa.Array) -> Numbers:
    """Symbols, or numbers, of an enum as numbers."""
    if pa.types.is_integer(array.type):
        return joining.integers_of(array, *_RANGES[FieldDescriptor.TYPE_INT32])
    places = joining.symbol_places(array, [str(value.name) for value in enum.values], f"the enum {enum.full_name}")
    return np.array([int(value.number) for value in enum.values], dtype=np.int64)[places]


# --- messages that are dates, times, timestamps and decimals ---------------------------------------------------------


def _logical(plan: LogicalPlan, array: pa.Array) -> Pieces:
    return _LOGICAL[plan.logical.name](plan, array)


def _parts(plan: LogicalPlan, **columns: Numbers | pa.Array) -> Pieces:
    """Fields of a message of which all are plain."""
    pieces: Pieces = []
    for name, column in columns.items():
        field = plan.message.fields_by_name[name]
        is_bytes = field.type == FieldDescriptor.TYPE_BYTES
        values = column if isinstance(column, pa.Array) else pa.array(column)
        pieces += _field(field, Scalar(field.type, "bytes" if is_bytes else "int64"), values)
    return pieces


def _date(plan: LogicalPlan, array: pa.Array) -> Pieces:
    stored.days(array)  # which refuses what is no date
    dates = array.cast(pa.date32())
    return _parts(plan, year=pc.year(dates), month=pc.month(dates), day=pc.day(dates))


def _time(plan: LogicalPlan, array: pa.Array) -> Pieces:
    whole = stored.milliseconds_of_day(array) % MILLISECONDS_PER_DAY
    seconds = whole // 1000
    nanos = whole % 1000 * MILLISECOND_NS
    return _parts(plan, hours=seconds // 3600, minutes=seconds // 60 % 60, seconds=seconds % 60, nanos=nanos)


def _timestamp(plan: LogicalPlan, array: pa.Array) -> Pieces:
    milliseconds = stored.milliseconds(array)
    return _parts(plan, seconds=milliseconds // 1000, nanos=milliseconds % 1000 * MILLISECOND_NS)


def _decimal(plan: LogicalPlan, array: pa.Array) -> Pieces:
    scale = plan.logical.scale
    content = stored.unscaled(array, scale)
    scales = np.full(len(array), scale, dtype=np.int64)
    return _parts(plan, value=binary_array(content, None), precision=_digits(content), scale=scales)


def _digits(content: Content) -> Numbers:
    """How many digits the numbers have that bytes stand for."""
    if not len(content.lengths):
        return content.lengths
    if content.lengths.max() <= 8:
        rows = stored.aligned(*content, width=8)
        numbers = np.abs(np.ascontiguousarray(rows[:, ::-1]).view(np.int64).reshape(-1))
        return np.searchsorted(_TENS, numbers, side="right").astype(np.int64) + 1
    data = binary_array(content, None).to_pylist()
    return np.array([len(str(abs(int.from_bytes(value, "big", signed=True)))) for value in data], dtype=np.int64)


_LOGICAL: Final[dict[LogicalName, Callable[[LogicalPlan, pa.Array], Pieces]]] = {
    LogicalName.DATE: _date,
    LogicalName.TIME: _time,
    LogicalName.TIMESTAMP: _timestamp,
    LogicalName.DECIMAL: _decimal,
}
