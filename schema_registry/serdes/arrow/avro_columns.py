"""Avro plans as Arrow columns: their types, and how pyruhvro, which decodes many records at once, reads them.

pyruhvro supports neither bytes nor fixed, cuts off numbers that do not fit into 32 bits, and tells the branches of a
union apart only by their kind. So it decodes the same bytes by another schema: all integers and enums as `long`, whose
range is checked here, fixed bytes as floating-point numbers, which keep every bit, and each branch of a union as a
record of its own. Other bytes are cut out beforehand, and an empty string is left in their place.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import override

from schema_registry.formats.avro_types import Enum, Fixed, Primitive, Record, Type
from schema_registry.serdes import avro_bounds
from schema_registry.serdes import avro_plan as plans
from schema_registry.serdes.arrow import stored
from schema_registry.serdes.arrow.binary import Content, Doubt, binary_array
from schema_registry.serdes.arrow.types import KEY, PLAIN, VALUE, NoColumns, logical_type, map_type
from schema_registry.serdes.errors import UnusableSchema

_PRIMITIVES: Final = {
    "boolean": PLAIN["boolean"],
    "int": PLAIN["int32"],
    "long": PLAIN["int64"],
    "float": PLAIN["float32"],
    "double": PLAIN["float64"],
    "bytes": PLAIN["bytes"],
    "fixed": PLAIN["bytes"],
    "string": PLAIN["string"],
    "enum": PLAIN["string"],
}
_BRANCHES_MAX: Final = 127
"""Of a union; pyruhvro counts them in 8 bits."""

Contents: TypeAlias = Mapping[int, Content]
"""The bytes that were cut out of records, by slot."""
Change: TypeAlias = Callable[[pa.Array, Contents], pa.Array]


def column_plan(root: Type) -> plans.Plan:
    """The plan of a schema's columns; raises NoColumns, or UnusableSchema if no data may be read by it at all."""
    avro_bounds.check(root)
    try:
        return _ColumnMeaning().of(root)
    except NoColumns:
        raise
    except UnusableSchema as error:
        raise NoColumns(str(error)) from error


def column_type(plan: plans.Plan) -> pa.DataType:
    """The Arrow type of a plan; raises NoColumns."""
    match plan:
        case plans.Scalar():
            plain = PLAIN[plan.small] if plan.small is not None else _PRIMITIVES[plan.type.kind]
            return plain if plan.logical is None else logical_type(plan.logical)
        case plans.StructPlan():
            if not plan.fields:
                raise NoColumns(f"the record {plan.name} has no fields")
            return pa.struct([(field.name, column_type(field.plan)) for field in plan.fields])
        case plans.ChoicePlan():
            if not plan.branches:
                raise NoColumns("a union of nothing but null has no columns")
            if plan.is_flat:
                return column_type(plan.branches[0].plan)
            return pa.struct([(branch.name, column_type(branch.plan)) for branch in plan.branches])
        case plans.ListPlan():
            return pa.list_(column_type(plan.items))
        case plans.MapPlan():
            return pa.map_(pa.string(), column_type(plan.values))
        case plans.EntriesPlan():
            parts = {field.name: column_type(field.plan) for field in plan.entry.fields}
            return map_type(parts[KEY], parts[VALUE])


class _ColumnMeaning(plans.Meaning):
    """Maps have the type that `map_type` gives them."""

    @override
    def entries(self, record: Record) -> plans.EntriesPlan:
        plan = super().entries(record)
        key = next(field.plan for field in plan.entry.fields if field.name == KEY)
        kind = column_type(key)
        if pa.types.is_string(kind) and isinstance(key, plans.ChoicePlan):
            raise NoColumns("the keys of a map must not be null")
        plan.is_list = not pa.types.is_string(kind)
        return plan


def _same(array: pa.Array, _: Contents) -> pa.Array:
    return array


class Column(NamedTuple):
    """One plan, as pyruhvro reads it."""

    type: pa.DataType
    fast: Any = None
    """The schema to decode by, as JSON; None if pyruhvro cannot."""
    change: Change = _same
    """Turns the decoded array into the column; raises Doubt or ArrowInvalid if some value is not valid."""


class Columns:
    """Makes the columns of one schema; raises NoColumns."""

    def __init__(self) -> None:
        self.slots: dict[int, int] = {}
        """Slot numbers of scalars of bytes, by `id` of their plan: pyruhvro decodes these as empty strings."""
        self._records = 0
        self._lists = 0

    def of(self, plan: plans.Plan) -> Column:
        """The column of a plan."""
        type_ = column_type(plan)
        match plan:
            case plans.Scalar():
                return self._scalar(plan, type_)
            case plans.StructPlan():
                parts = [self.of(field.plan) for field in plan.fields]
                return Column(type_, self._record([part.fast for part in parts]), _struct_change(type_, parts))
            case plans.ChoicePlan():
                return self._flat(plan) if plan.is_flat else self._choice(plan, type_)
            case plans.ListPlan():
                item = self._item(plan.items)
                fast = None if item.fast is None else {"type": "array", "items": item.fast}
                return Column(type_, fast, _list_change(type_, item.change))
            case plans.MapPlan():
                item = self._item(plan.values)
                fast = None if item.fast is None else {"type": "map", "values": item.fast}
                return Column(type_, fast, _map_change(type_, item.change))
            case plans.EntriesPlan():
                return Column(type_)  # Decoded record by record, because of keys that occur twice.

    def _item(self, plan: plans.Plan) -> Column:
        self._lists += 1
        item = self.of(plan)
        self._lists -= 1
        return item

    def _record(self, parts: list[Any]) -> Any:
        if None in parts:
            return None
        self._records += 1
        fields = [{"name": f"f{index}", "type": part} for index, part in enumerate(parts)]
        return {"type": "record", "name": f"t{self._records}", "fields": fields}

    def _flat(self, plan: plans.ChoicePlan) -> Column:
        part = self.of(plan.branches[0].plan)
        if part.fast is None:
            return part
        if plan.null is not None:
            return part._replace(fast=["null", part.fast] if plan.null == 0 else [part.fast, "null"])
        # A union of one type is that type behind the number of the branch.
        change = part.change
        inner = self._record([part.fast])
        return Column(part.type, [inner], lambda array, contents: change(array.field(0).field(0), contents))

    def _choice(self, plan: plans.ChoicePlan, type_: pa.DataType) -> Column:
        parts = [self.of(branch.plan) for branch in plan.branches]
        fast: list[Any] = ["null"] * plan.count
        for branch, part in zip(plan.branches, parts, strict=True):
            fast[branch.index] = self._record([part.fast])
        is_fast = None not in fast and plan.count <= _BRANCHES_MAX
        members = list(zip(type_, plan.branches, parts, strict=True))

        def change(array: pa.Array, contents: Contents) -> pa.Array:
            chosen = array.type_codes  # A sparse union has all branches at full length.
            made = []
            for field, branch, part in members:
                values = part.change(array.field(branch.index).field(0), contents)
                made.append(pc.if_else(pc.equal(chosen, branch.index), values, pa.scalar(None, field.type)))
            is_null = None if plan.null is None else pc.equal(chosen, plan.null)
            return pa.StructArray.from_arrays(made, fields=list(type_), mask=is_null)

        return Column(type_, fast if is_fast else None, change)

    def _scalar(self, plan: plans.Scalar, type_: pa.DataType) -> Column:
        match plan.type:
            case Enum(symbols=symbols):
                texts = pa.array(list(symbols), type=pa.string())
                last = len(symbols) - 1
                return Column(type_, "long", lambda array, _: texts.take(stored.within(array, 0, last)))
            case Fixed(size=size):
                # As many numbers of 8 and 4 bytes as it takes.
                numbers = ["double"] * (size // 8) + ["float"] * (size // 4 % 2)
                fast = None if size == 0 or size % 4 else self._record(numbers)
                return Column(type_, fast, _fixed_bytes if plan.logical is None else _fixed_decimals(type_))
            case Primitive("bytes"):
                return self._bytes(plan, type_)
            case Primitive() if plan.logical is not None:
                from_numbers = stored.FROM_NUMBERS[plan.logical.name]
                return Column(type_, "long", lambda array, _: from_numbers(array))
            case Primitive("int"):
                return Column(type_, "long", lambda array, _: array.cast(type_))
            case Primitive(kind):
                return Column(type_, kind, _checked_text if kind == "string" else _same)

    def _bytes(self, plan: plans.Scalar, type_: pa.DataType) -> Column:
        if self._lists:
            return Column(type_)  # Each record has one place per slot.
        slot = self.slots[id(plan)] = len(self.slots)

        def content(array: pa.Array, contents: Contents) -> pa.Array:
            return binary_array(contents[slot], stored.valid_bits(array))

        def decimals(array: pa.Array, contents: Contents) -> pa.Array:
            return stored.decimals(stored.aligned(*contents[slot]), type_, stored.valid_bits(array))

        return Column(type_, "string", content if plan.logical is None else decimals)


def _struct_change(type_: pa.DataType, parts: list[Column]) -> Change:
    fields = list(type_)

    def change(array: pa.Array, contents: Contents) -> pa.Array:
        made = [part.change(array.field(index), contents) for index, part in enumerate(parts)]
        return pa.StructArray.from_arrays(made, fields=fields, mask=_mask(array))

    return change


def _list_change(type_: pa.DataType, change: Change) -> Change:
    def change_list(array: pa.Array, contents: Contents) -> pa.Array:
        return pa.ListArray.from_arrays(array.offsets, change(array.values, contents), type=type_, mask=_mask(array))

    return change_list


def _map_change(type_: pa.DataType, change: Change) -> Change:
    def change_map(array: pa.Array, contents: Contents) -> pa.Array:
        _check_keys(array)
        items = change(array.items, contents)
        return pa.MapArray.from_arrays(array.offsets, array.keys, items, type=type_, mask=_mask(array))

    return change_map


def _mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


def _checked_text(array: pa.Array, _: Contents) -> pa.Array:
    """Text, which pyruhvro takes for UTF-8 without looking."""
    array.validate(full=True)
    return array


def _check_keys(array: pa.Array) -> None:
    """Raise Doubt if a key occurs twice in a map: the last one counts, which only decoding one by one finds out."""
    array.keys.validate(full=True)
    codes = array.keys.dictionary_encode()
    if len(codes.dictionary) == len(codes):
        return
    lengths = np.diff(array.offsets.to_numpy())
    # Map and key together make one number, which may occur once.
    places = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths) * len(codes.dictionary)
    places += codes.indices.to_numpy()
    if len(np.unique(places)) < len(places):
        raise Doubt


def _fixed_matrix(array: pa.Array) -> "np.ndarray[Any, np.dtype[np.uint8]]":
    """The bytes of numbers that fixed bytes were decoded as, a row for each record."""
    parts = [array.field(index) for index in range(array.type.num_fields)]
    rows = [np.frombuffer(part.buffers()[1], np.uint8).reshape(len(part), -1) for part in parts if len(part)]
    return np.hstack(rows) if rows else np.empty((0, 1), np.uint8)


def _fixed_bytes(array: pa.Array, _: Contents) -> pa.Array:
    digits = np.ascontiguousarray(_fixed_matrix(array))
    type_ = pa.binary(digits.shape[1])
    buffers = [stored.valid_bits(array), pa.py_buffer(digits)]
    return pa.Array.from_buffers(type_, len(array), buffers).cast(pa.binary())


def _fixed_decimals(type_: pa.DataType) -> Change:
    return lambda array, _: stored.decimals(_fixed_matrix(array), type_, stored.valid_bits(array))
