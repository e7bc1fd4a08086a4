"""Columns as data of one Avro schema: what `avro_reading` reads, the other way.

Columns are found by the names of fields; a field without a column is its default.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow as pa

from schema_registry.formats.avro import AvroSchema
from schema_registry.formats.avro_types import Enum, Fixed, Primitive
from schema_registry.serdes.arrow import joining, stored
from schema_registry.serdes.arrow.avro_batches import batch_writer
from schema_registry.serdes.arrow.avro_columns import column_plan, column_type
from schema_registry.serdes.arrow.binary import binary_array
from schema_registry.serdes.arrow.joining import Piece, Pieces
from schema_registry.serdes.avro import default_bytes
from schema_registry.serdes.avro_numbers import RANGES, varint
from schema_registry.serdes.avro_plan import (
    ChoicePlan,
    EntriesPlan,
    FieldPlan,
    ListPlan,
    MapPlan,
    Plan,
    Scalar,
    StructPlan,
)
from schema_registry.serdes.errors import InvalidData
from schema_registry.serdes.logical import Logical

_END: Final = b"\x00"


class AvroWriter:
    """Writes data of one schema; raises UnusableSchema."""

    def __init__(self, schema: AvroSchema) -> None:
        self._plan = column_plan(schema.root)
        self.type = column_type(self._plan)
        """What columns are best made of; others that hold the same values will do."""
        self._fast = batch_writer(self._plan)

    def write(self, rows: pa.Array) -> pa.Array:
        """Rows, one value each, as binary values; raises InvalidData."""
        plan = self._plan
        if self._fast is not None and not rows.null_count and _has_all(plan, rows.type):
            return self._fast(rows)
        if isinstance(plan, Scalar) and plan.type.kind == "bytes":  # alone they have no length before them
            return joining.write_rows(rows, lambda some: _encode(plan, some)[-1:])
        takes_null = isinstance(plan, ChoicePlan) and plan.null is not None
        return joining.write_rows(rows, lambda some: _encode(plan, some), takes_null=takes_null)


def _has_all(plan: Plan, type_: pa.DataType) -> bool:
    """Whether no field needs its default."""
    if isinstance(plan, ChoicePlan):
        return _has_all(plan.branches[0].plan, type_)
    if isinstance(plan, ListPlan):
        return not pa.types.is_list(type_) or _has_all(plan.items, type_.value_type)
    if not isinstance(plan, StructPlan) or not pa.types.is_struct(type_):
        return True
    places = {field.name: type_.get_field_index(field.name) for field in plan.fields}
    return all(places[f.name] >= 0 and _has_all(f.plan, type_.field(places[f.name]).type) for f in plan.fields)


def _encode(plan: Plan, array: pa.Array) -> Pieces:
    """The pieces of values."""
    if isinstance(plan, ChoicePlan):
        return _flat(plan, array) if plan.is_flat else _choice(plan, array)
    if array.null_count:
        raise InvalidData("there are nulls, which the schema does not allow")
    match plan:
        case Scalar():
            return _scalar(plan, array)
        case StructPlan():
            return _struct(plan, array)
        case ListPlan():
            return _list(plan.items, array)
        case MapPlan():
            return _map(plan.values, array)
        case EntriesPlan():
            return _list(plan.entry, array)


def _struct(plan: StructPlan, array: pa.Array) -> Pieces:
    columns = joining.columns_of(array, [field.name for field in plan.fields], f"the record {plan.name}")
    return [piece for field in plan.fields for piece in _field(field, columns)]


def _field(field: FieldPlan, columns: Mapping[str, pa.Array]) -> Pieces:
    column = columns.get(field.name)
    if column is None:
        if field.wire is None or not field.wire.has_default:
            raise InvalidData(f"{field.name}: there is no such column, and the field has no default")
        return [default_bytes(field.wire)]
    try:
        return _encode(field.plan, column)
    except InvalidData as error:
        raise InvalidData(f"{field.name}: {error}") from error


def _flat(plan: ChoicePlan, array: pa.Array) -> Pieces:
    (branch,) = plan.branches
    prefix = varint(branch.index)
    if plan.null is None or not array.null_count:
        return [prefix, *_encode(branch.plan, array)]
    some = array.drop_null()
    data = joining.joined([prefix, *_encode(branch.plan, some)], len(some))
    return [joining.spread(data, joining.is_valid(array), varint(plan.null))]


def _choice(plan: ChoicePlan, array: pa.Array) -> Pieces:
    """Structs with a field for each branch."""
    by_name = {branch.name: branch for branch in plan.branches}
    columns = joining.columns_of(array, by_name, "the union")
    is_left = np.ones(len(array), dtype=np.bool_)
    pieces: Pieces = []
    for name, is_chosen in joining.chosen(columns, list(by_name), len(array)):
        some = columns[name].filter(pa.array(is_chosen))
        data = joining.joined([varint(by_name[name].index), *_encode(by_name[name].plan, some)], len(some))
        pieces.append(joining.spread(data, is_chosen, b""))
        is_left &= ~is_chosen
    if is_left.any():
        if plan.null is None:
            raise InvalidData("there are nulls, which the schema does not allow")
        none = pa.repeat(pa.scalar(varint(plan.null), pa.binary()), int(is_left.sum()))
        pieces.append(joining.spread(none, is_left, b""))
    return pieces


def _list(item: Plan, array: pa.Array) -> Pieces:
    items, counts = joining.items_of(array)
    return _block(_encode(item, items), counts)


def _map(value: Plan, array: pa.Array) -> Pieces:
    if not pa.types.is_map(array.type):
        raise InvalidData(f"expected maps, not {array.type}")
    entries, counts = joining.items_of(array)
    keys, values = entries.flatten()
    return _block([*_sized(joining.text_of(keys)), *_encode(value, values)], counts)


def _block(pieces: Pieces, counts: stored.Numbers) -> Pieces:
    """Items in one block, with their number before them; where there are none there is no block."""
    items = joining.joined(pieces, int(counts.sum()))
    heads = joining.varints(joining.zigzag(counts), is_left_out=counts == 0)
    return [heads, joining.gathered(items, counts), _END]


def _scalar(plan: Scalar, array: pa.Array) -> Pieces:
    match plan.type:
        case Enum():
            places = joining.symbol_places(array, plan.type.symbols, plan.type.name.full)
            return [joining.varints(joining.zigzag(places))]
        case Fixed():
            return [_fixed(plan.type, plan.logical, array)]
        case Primitive("string"):
            return _sized(joining.text_of(array))
        case Primitive("bytes"):
            return _sized(_bytes(plan.logical, array))
        case Primitive("int" | "long"):
            return [joining.varints(joining.zigzag(_numbers(plan, array)))]
        case Primitive("float" | "double" as kind):
            return [joining.fixed(joining.floats_of(array, pa.float32() if kind == "float" else pa.float64()))]
        case Primitive():
            return [joining.fixed(joining.booleans_of(array))]


def _numbers(plan: Scalar, array: pa.Array) -> stored.Numbers:
    if plan.logical is not None:
        return stored.NUMBERS[plan.logical.name](array)
    limit = RANGES[plan.type.kind]
    return joining.integers_of(array, -limit, limit - 1)


def _sized(data: pa.Array) -> Pieces:
    return [joining.varints(joining.zigzag(joining.lengths_of(data))), data]


def _bytes(logical: Logical | None, array: pa.Array) -> pa.Array:
    if logical is None:
        return joining.bytes_of(array)
    return binary_array(stored.unscaled(array, logical.scale), None)


def _fixed(fixed: Fixed, logical: Logical | None, array: pa.Array) -> Piece:
    if logical is not None:
        content = stored.unscaled(array, logical.scale)
        if len(content.lengths) and content.lengths.max() > fixed.size:
            raise InvalidData(f"a number is too large for the {fixed.size} bytes of {fixed.name.full}")
        return stored.aligned(*content, width=fixed.size)
    data = joining.bytes_of(array)
    lengths = joining.lengths_of(data)
    if (lengths != fixed.size).any():
        raise InvalidData(f"{fixed.name.full} takes {fixed.size} bytes, not {lengths[lengths != fixed.size][0]}")
    return data
