"""Plans of Avro as columns: their Arrow types, and how pyruhvro, which reads many records at once, gets at them.

It knows neither bytes nor fixed, cuts numbers that do not fit into 32 bits, and tells branches of a union only by their
kind. So it reads the same bytes by other types: all integers and enums as `long`, which is checked here, fixed bytes as
floating-point numbers, which keep every bit, and each branch of a union in a record of its own; other bytes are taken
out before, and an empty text is left in their place.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import pyarrow as pa
from typing_extensions import override

from schema_registry.formats.avro_types import Enum, Fixed, Primitive, Record, Type
from schema_registry.serdes import avro_bounds
from schema_registry.serdes.arrow import avro_arrays as arrays
from schema_registry.serdes.arrow import stored
from schema_registry.serdes.arrow.avro_arrays import Change
from schema_registry.serdes.arrow.binary import Content, binary_array
from schema_registry.serdes.arrow.types import KEY, PLAIN, VALUE, NoColumns, logical_type, map_type
from schema_registry.serdes.avro_plan import (
    ChoicePlan,
    EntriesPlan,
    ListPlan,
    MapPlan,
    Meaning,
    Plan,
    Scalar,
    StructPlan,
)
from schema_registry.serdes.errors import UnusableSchema
from schema_registry.serdes.logical import LogicalName

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
_LOGICAL: Final[dict[LogicalName, Callable[[pa.Array], pa.Array]]] = {
    LogicalName.DATE: stored.dates,
    LogicalName.TIME: stored.times,
    LogicalName.TIMESTAMP: stored.timestamps,
}
_BRANCHES_MAX: Final = 127
"""Of a union; pyruhvro counts them with 8 bits."""


def column_plan(root: Type) -> Plan:
    """The plan of the columns of a schema; raises NoColumns, or UnusableSchema where no data may be read at all."""
    avro_bounds.check(root)
    try:
        return _ColumnMeaning().of(root)
    except NoColumns:
        raise
    except UnusableSchema as error:
        raise NoColumns(str(error)) from error


def column_type(plan: Plan) -> pa.DataType:
    """The Arrow type of a plan; raises NoColumns."""
    match plan:
        case Scalar():
            if plan.logical is not None:
                return logical_type(plan.logical)
            return PLAIN[plan.small] if plan.small is not None else _PRIMITIVES[plan.type.kind]
        case StructPlan():
            if not plan.fields:
                raise NoColumns(f"the record {plan.name} has no fields")
            return pa.struct([(field.name, column_type(field.plan)) for field in plan.fields])
        case ChoicePlan():
            return _choice_type(plan)
        case ListPlan():
            return pa.list_(column_type(plan.items))
        case MapPlan():
            return pa.map_(pa.string(), column_type(plan.values))
        case EntriesPlan():
            parts = {field.name: column_type(field.plan) for field in plan.entry.fields}
            return map_type(parts[KEY], parts[VALUE])


def _choice_type(plan: ChoicePlan) -> pa.DataType:
    if not plan.branches:
        raise NoColumns("a union of nothing but null has no columns")
    if plan.is_flat:
        return column_type(plan.branches[0].plan)
    return pa.struct([(branch.name, column_type(branch.plan)) for branch in plan.branches])


class _ColumnMeaning(Meaning):
    """Maps are what `map_type` says."""

    @override
    def entries(self, record: Record) -> EntriesPlan:
        plan = super().entries(record)
        key = next(field.plan for field in plan.entry.fields if field.name == KEY)
        kind = column_type(key)
        if pa.types.is_nested(kind):
            raise NoColumns("the keys of a map must not be structs, lists or maps themselves")
        if pa.types.is_string(kind) and isinstance(key, ChoicePlan):
            raise NoColumns("the keys of a map must not be null")
        plan.is_list = not pa.types.is_string(kind)
        return plan


class Column(NamedTuple):
    """One plan, as pyruhvro reads it."""

    type: pa.DataType
    fast: Any = None
    """By which schema, as JSON; None where it cannot."""
    change: Change | None = None
    """What is left to do with such an array; None for nothing."""


class Columns:
    """Makes the columns of one schema; raises NoColumns."""

    def __init__(self) -> None:
        self.slots: dict[int, int] = {}
        """Numbers for scalars of bytes, by `id`: the fast way reads these as empty texts."""
        self.contents: dict[int, Content] = {}
        """By these numbers, what to put there; to be set before arrays are changed."""
        self._count = 0
        self._lists = 0

    def of(self, plan: Plan) -> Column:
        """The column of a plan."""
        type_ = column_type(plan)
        match plan:
            case Scalar():
                return self._scalar(plan, type_)
            case StructPlan():
                parts = [self.of(field.plan) for field in plan.fields]
                change = arrays.struct_change(type_, [part.change for part in parts])
                return Column(type_, self._record([part.fast for part in parts]), change)
            case ChoicePlan():
                return self._flat(plan) if plan.is_flat else self._choice(plan, type_)
            case ListPlan():
                item = self._repeated(plan.items)
                fast = None if item.fast is None else {"type": "array", "items": item.fast}
                return Column(type_, fast, arrays.list_change(type_, item.change))
            case MapPlan():
                item = self._repeated(plan.values)
                fast = None if item.fast is None else {"type": "map", "values": item.fast}
                return Column(type_, fast, arrays.map_change(type_, item.change))
            case EntriesPlan():
                return Column(type_)  # Read with care only, because of keys that are there twice.

    def _repeated(self, items: Plan) -> Column:
        self._lists += 1
        item = self.of(items)
        self._lists -= 1
        return item

    def _record(self, parts: list[Any]) -> Any:
        if None in parts:
            return None
        self._count += 1
        fields = [{"name": f"f{index}", "type": part} for index, part in enumerate(parts)]
        return {"type": "record", "name": f"t{self._count}", "fields": fields}

    def _flat(self, plan: ChoicePlan) -> Column:
        part = self.of(plan.branches[0].plan)
        if part.fast is None:
            return part
        if plan.null is not None:
            return part._replace(fast=["null", part.fast] if plan.null == 0 else [part.fast, "null"])
        change = part.change  # A union of one type is that type, behind the number of the branch.

        def inner(array: pa.Array) -> pa.Array:
            found = array.field(0).field(0)
            return found if change is None else change(found)

        return Column(part.type, [self._record([part.fast])], inner)

    def _choice(self, plan: ChoicePlan, type_: pa.DataType) -> Column:
        parts = [self.of(branch.plan) for branch in plan.branches]
        fast: list[Any] = ["null"] * plan.count
        for branch, part in zip(plan.branches, parts, strict=True):
            fast[branch.index] = self._record([part.fast])
        is_fast = None not in fast and plan.count <= _BRANCHES_MAX
        places = [branch.index for branch in plan.branches]
        change = arrays.choice_change(type_, [part.change for part in parts], places, plan.null)
        return Column(type_, fast if is_fast else None, change)

    def _scalar(self, plan: Scalar, type_: pa.DataType) -> Column:
        match plan.type:
            case Enum():
                symbols = pa.array(list(plan.type.symbols), type=pa.string())
                return Column(type_, "long", arrays.symbols_change(symbols))
            case Fixed():
                change = arrays.fixed_bytes if plan.logical is None else arrays.fixed_decimals(type_)
                return Column(type_, self._numbers(plan.type.size), change)
            case Primitive("bytes"):
                return self._bytes(plan, type_)
            case Primitive() if plan.logical is not None:
                return Column(type_, "long", _LOGICAL[plan.logical.name])
            case Primitive("int"):
                return Column(type_, "long", lambda array: array.cast(type_))
            case Primitive(kind):
                return Column(type_, kind, arrays.checked if kind == "string" else None)

    def _numbers(self, size: int) -> Any:
        """So many bytes as numbers of 8 and 4 bytes."""
        return None if size == 0 or size % 4 else self._record(["double"] * (size // 8) + ["float"] * (size // 4 % 2))

    def _bytes(self, plan: Scalar, type_: pa.DataType) -> Column:
        if self._lists:
            return Column(type_)
        slot = self.slots[id(plan)] = len(self.slots)

        def content(array: pa.Array) -> pa.Array:
            return binary_array(self.contents[slot], stored.valid_bits(array))

        def decimals(array: pa.Array) -> pa.Array:
            return stored.decimals(stored.aligned(*self.contents[slot]), type_, stored.valid_bits(array))

        return Column(type_, "string", content if plan.logical is None else decimals)
