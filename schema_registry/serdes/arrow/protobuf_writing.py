"""Columns as messages of one Protobuf type: the reverse of `protobuf_reading`.

Columns are found by the names of fields; a field is not set if it has no column, or null. Fields are written in the
order of their numbers, and those without presence only if they are not their defaults, as Protobuf itself does.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from schema_registry.serdes import protobuf_plan as plans
from schema_registry.serdes.arrow import joining, stored
from schema_registry.serdes.arrow.binary import Content, binary_array
from schema_registry.serdes.arrow.joining import Piece, Pieces
from schema_registry.serdes.arrow.protobuf_columns import column_plan, column_type
from schema_registry.serdes.arrow.types import PLAIN
from schema_registry.serdes.checks import LIMITS
from schema_registry.serdes.errors import InvalidData
from schema_registry.serdes.logical import MILLISECONDS_PER_DAY, LogicalName
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
_UNSIGNED_32: Final = (FieldDescriptor.TYPE_UINT32, FieldDescriptor.TYPE_FIXED32)
_ZIGZAG: Final = (FieldDescriptor.TYPE_SINT32, FieldDescriptor.TYPE_SINT64)
_TENS: Final = np.array([10**power for power in range(1, 19)], dtype=np.int64)


class ProtobufWriter:
    """Writes messages of one type; raises UnusableSchema."""

    def __init__(self, message: Descriptor) -> None:
        self._plan = column_plan(message)
        self.type = column_type(self._plan)
        """The type of column to pass; others that hold the same values will do."""

    def write(self, rows: pa.Array) -> pa.Array:
        """Rows, one value each, as binary values; raises InvalidData."""
        return joining.write_rows(rows, lambda some: _message(self._plan, some))


def _message(plan: plans.Plan, array: pa.Array) -> Pieces:
    """The content of messages, none of which is null."""
    match plan:
        case plans.WrapperPlan():
            return _field(plan.message.fields_by_name[plans.VALUE], plan.value, array)
        case plans.LogicalPlan():
            return _logical(plan, array)
        case plans.MessagePlan():
            return _fields(plan, array)
        case _:
            raise TypeError("a plain value is not a message")


def _fields(plan: plans.MessagePlan, array: pa.Array) -> Pieces:
    what = f"the message {plan.message.full_name}"
    columns = joining.columns_of(array, [part.name for part in plan.parts], what)
    found: list[tuple[plans.Member, pa.Array]] = []
    for part in plan.parts:
        column = columns.get(part.name)
        if isinstance(part, plans.Member):
            if column is None and part.field.is_required:
                raise InvalidData(f"{part.name}: there is no such column, and the field is required")
            found += [] if column is None else [(part, column)]
        elif column is not None:
            found += _members(part.members, column, f"{what}, in {part.name},")
    pieces: Pieces = []
    for member, column in sorted(found, key=lambda item: int(item[0].field.number)):
        try:
            pieces += _field(member.field, member.plan, column)
        except InvalidData as error:
            raise InvalidData(f"{member.name}: {error}") from error
    return pieces


def _members(members: Sequence[plans.Member], array: pa.Array, what: str) -> Iterator[tuple[plans.Member, pa.Array]]:
    """Members of a oneof, each null where another is chosen."""
    by_name = {member.name: member for member in members}
    columns = joining.columns_of(array, by_name, what)
    for name, is_there in joining.choices_of(columns, list(by_name), len(array)):
        column = columns[name]
        yield by_name[name], pc.if_else(pa.array(is_there), column, pa.scalar(None, column.type))


def _field(field: FieldDescriptor, plan: plans.Plan, column: pa.Array, *, is_always: bool = False) -> Pieces:
    """A field with its tag, where it has to be written; `is_always` includes defaults."""
    if isinstance(plan, plans.ListPlan | plans.MapPlan):
        return _repeated(field, plan, column)
    is_there = joining.is_valid(column)
    if field.is_required and not is_there.all():
        raise InvalidData("there are nulls, but the field is required")
    if not field.has_presence and not is_always:
        is_there &= ~_is_default(plan, column)
    tag = _tag(field)
    if is_there.all():
        return [tag, *_value(plan, column)]
    some = column.filter(pa.array(is_there))
    return [joining.fill_rows(joining.join([tag, *_value(plan, some)], len(some)), is_there, b"")]


def _is_default(plan: plans.Plan, column: pa.Array) -> Flags:
    """Which values are the default of a field that is not set; nulls do not matter."""
    kind = column.type
    if isinstance(plan, plans.EnumPlan):
        first = plan.enum.values[0]
        default = pa.scalar(int(first.number) if pa.types.is_integer(kind) else str(first.name), kind)
        return np.asarray(_enum_numbers(plan.enum, column.fill_null(default)) == 0)
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


def _value(plan: plans.Plan, array: pa.Array) -> Pieces:
    """Values without their tags, none of which is null."""
    match plan:
        case plans.EnumPlan():
            return [joining.varints(_enum_numbers(plan.enum, array).view(np.uint64))]
        case plans.Scalar(kind="string"):
            return joining.sized(joining.text_of(array))
        case plans.Scalar(kind="bytes"):
            return joining.sized(joining.bytes_of(array))
        case plans.Scalar(kind="boolean"):
            return [joining.fixed(joining.booleans_of(array))]
        case plans.Scalar(kind="float32" | "float64"):
            return [joining.fixed(joining.floats_of(array, PLAIN[plan.kind]))]
        case plans.Scalar():
            return [_integers(plan, array)]
        case _:
            return joining.sized(joining.join(_message(plan, array), len(array)))


def _repeated(field: FieldDescriptor, plan: plans.ListPlan | plans.MapPlan, column: pa.Array) -> Pieces:
    some = column.drop_null() if column.null_count else column
    items, counts = joining.items_of(some)
    if isinstance(plan, plans.MapPlan):
        data = joining.join(_entries(field, plan, items), len(items))
    else:
        if items.null_count:
            raise InvalidData("Protobuf has no nulls in arrays")
        parts = _value(plan.items, items)
        data = joining.join(parts if field.is_packed else [_tag(field), *parts], len(items))
    found = joining.group_items(data, counts)
    if field.is_packed and not isinstance(plan, plans.MapPlan):
        packed = joining.join([_tag(field, _SIZED), *joining.sized(found)], len(found))
        found = pc.if_else(pa.array(counts > 0), packed, pa.scalar(b"", pa.binary()))
    return [found if len(some) == len(column) else joining.fill_rows(found, joining.is_valid(column), b"")]


def _entries(field: FieldDescriptor, plan: plans.MapPlan, items: pa.Array) -> Pieces:
    keys, values = items.flatten()
    if keys.null_count:
        raise InvalidData("the keys of a map must not be null")
    fields = plan.entry.fields_by_name
    key = _field(fields[plans.KEY], plan.keys, keys, is_always=True)
    entry = joining.join([*key, *_field(fields[plans.VALUE], plan.values, values, is_always=True)], len(items))
    return [_tag(field), *joining.sized(entry)]


def _tag(field: FieldDescriptor, wire: int | None = None) -> bytes:
    number = int(field.number) << 3 | (_WIRES.get(field.type, _VARINT) if wire is None else wire)
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*made, number])


def _integers(plan: plans.Scalar, array: pa.Array) -> Piece:
    if plan.type in plans.UNSIGNED and pa.types.is_uint64(array.type):
        array = array.view(pa.int64())
    is_unsigned = plan.type in _UNSIGNED_32
    least, most = (0, (1 << 32) - 1) if is_unsigned else (-LIMITS[plan.kind], LIMITS[plan.kind] - 1)
    numbers = joining.integers_of(array, least, most)
    wire = _WIRES.get(plan.type, _VARINT)
    if wire == _VARINT:
        return joining.varints(joining.zigzag(numbers) if plan.type in _ZIGZAG else numbers.view(np.uint64))
    return joining.fixed(numbers if wire == _EIGHT else numbers.astype(np.uint32 if is_unsigned else np.int32))


def _enum_numbers(enum: EnumDescriptor, array: pa.Array) -> Numbers:
    """Symbols, or numbers, of an enum as numbers."""
    if pa.types.is_integer(array.type):
        return joining.integers_of(array, -LIMITS["int32"], LIMITS["int32"] - 1)
    places = joining.symbol_places(array, [str(value.name) for value in enum.values], f"the enum {enum.full_name}")
    return np.array([int(value.number) for value in enum.values], dtype=np.int64)[places]


# --- messages that are dates, times, timestamps and decimals ---------------------------------------------------------


def _logical(plan: plans.LogicalPlan, array: pa.Array) -> Pieces:
    columns: dict[str, Numbers | pa.Array]
    match plan.logical.name:
        case LogicalName.DATE:
            stored.days(array)  # Refuses everything but dates.
            dates = array.cast(pa.date32())
            columns = {"year": pc.year(dates), "month": pc.month(dates), "day": pc.day(dates)}
        case LogicalName.TIME:
            whole = stored.milliseconds_of_day(array) % MILLISECONDS_PER_DAY
            seconds, nanos = whole // 1000, whole % 1000 * MILLISECOND_NS
            columns = {"hours": seconds // 3600, "minutes": seconds // 60 % 60, "seconds": seconds % 60, "nanos": nanos}
        case LogicalName.TIMESTAMP:
            whole = stored.milliseconds(array)
            columns = {"seconds": whole // 1000, "nanos": whole % 1000 * MILLISECOND_NS}
        case LogicalName.DECIMAL:
            scale = plan.logical.scale
            content = stored.unscaled(array, scale)
            value, scales = binary_array(content, None), np.full(len(array), scale, dtype=np.int64)
            columns = {"value": value, "precision": _digits(content), "scale": scales}
    pieces: Pieces = []
    for name, column in columns.items():
        field = plan.message.fields_by_name[name]
        kind = "bytes" if field.type == FieldDescriptor.TYPE_BYTES else "int64"
        values = column if isinstance(column, pa.Array) else pa.array(column)
        pieces += _field(field, plans.Scalar(field.type, kind), values)
    return pieces


def _digits(content: Content) -> Numbers:
    """How many digits numbers have, by their two's complements."""
    if not len(content.lengths):
        return content.lengths
    if content.lengths.max() <= 8:
        rows = stored.aligned(*content, width=8)
        numbers = np.abs(np.ascontiguousarray(rows[:, ::-1]).view(np.int64).reshape(-1))
        return np.searchsorted(_TENS, numbers, side="right").astype(np.int64) + 1
    data = binary_array(content, None).to_pylist()
    return np.array([len(str(abs(int.from_bytes(value, "big", signed=True)))) for value in data], dtype=np.int64)
