"""Columns as data of one Avro schema: the reverse of `avro_reading`.

Columns are found by the names of fields; a field without a column gets its default. Columns of plain values are written
by pyruhvro, several times as fast as by joining the bytes of fields. It supports numbers, text and lists of them, and
checks nothing, so that is done here. As in reading, it gets all integers and enums as `long`, which has the same bytes.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyruhvro

from schema_registry.formats.avro import AvroSchema
from schema_registry.formats.avro_types import Enum, Fixed, Primitive
from schema_registry.serdes import avro_plan as plans
from schema_registry.serdes.arrow import joining, stored
from schema_registry.serdes.arrow.avro_columns import Columns, column_plan, column_type
from schema_registry.serdes.arrow.binary import binary_array
from schema_registry.serdes.arrow.joining import Piece, Pieces
from schema_registry.serdes.avro import default_bytes
from schema_registry.serdes.avro_numbers import RANGES, varint
from schema_registry.serdes.errors import InvalidData
from schema_registry.serdes.logical import Logical

_END: Final = b"\x00"
_FLOATS: Final = {"float": pa.float32(), "double": pa.float64()}
_PLAIN: Final = ("boolean", "int", "long", "string", "enum", *_FLOATS)
_NULLS: Final = "there are nulls, which the schema does not allow"


class AvroWriter:
    """Writes data of one schema; raises UnusableSchema."""

    def __init__(self, schema: AvroSchema) -> None:
        self._plan = column_plan(schema.root)
        self.type = column_type(self._plan)
        """The type of column to pass; others that hold the same values will do."""
        is_fast = isinstance(self._plan, plans.StructPlan) and _is_plain(self._plan)
        self._fast = json.dumps(Columns().of(self._plan).fast) if is_fast else None

    @property
    def is_fast(self) -> bool:
        """Whether pyruhvro writes the records."""
        return self._fast is not None

    def write(self, rows: pa.Array) -> pa.Array:
        """Rows, one value each, as binary values; raises InvalidData."""
        plan = self._plan
        if self._fast is not None and not rows.null_count:
            try:
                batch = pa.RecordBatch.from_struct_array(_plain_column(plan, rows))
            except _NeedsDefault:
                pass
            else:
                (data,) = pyruhvro.serialize_record_batch(batch, self._fast, 1)
                return data
        if isinstance(plan, plans.Scalar) and plan.type.kind == "bytes":  # By themselves they have no length.
            return joining.write_rows(rows, lambda some: _encode(plan, some)[-1:])
        takes_null = isinstance(plan, plans.ChoicePlan) and plan.null is not None
        return joining.write_rows(rows, lambda some: _encode(plan, some), takes_null=takes_null)


def _numbers(plan: plans.Scalar, array: pa.Array) -> npt.NDArray[Any]:
    """What is stored for numbers, enums and logical types without nulls."""
    match plan.type:
        case Enum():
            return joining.symbol_places(array, plan.type.symbols, plan.type.name.full)
        case Primitive("float" | "double" as kind):
            return joining.floats_of(array, _FLOATS[kind])
        case _ if plan.logical is not None:
            return stored.NUMBERS[plan.logical.name](array)
        case _:
            limit = RANGES[plan.type.kind]
            return joining.integers_of(array, -limit, limit - 1)


def _each_field(
    plan: plans.StructPlan, array: pa.Array, convert: Callable[[plans.FieldPlan, pa.Array | None], Any]
) -> list[Any]:
    """The fields of records, converted from their columns, None where there is no column."""
    columns = joining.columns_of(array, [field.name for field in plan.fields], f"the record {plan.name}")
    made = []
    for field in plan.fields:
        try:
            made.append(convert(field, columns.get(field.name)))
        except InvalidData as error:
            raise InvalidData(f"{field.name}: {error}") from error
    return made


# --- by pyruhvro -----------------------------------------------------------------------------------------------------


class _NeedsDefault(Exception):
    """A field has no column, so that its default has to be written."""


def _is_plain(plan: plans.Plan) -> bool:
    match plan:
        case plans.Scalar():
            return plan.type.kind in _PLAIN
        case plans.StructPlan():
            return bool(plan.fields) and all(_is_plain(field.plan) for field in plan.fields)
        case plans.ListPlan():
            return _is_plain(plan.items)
        case plans.ChoicePlan() if plan.is_flat and plan.null is not None:
            inner = plan.branches[0].plan
            return not isinstance(inner, plans.StructPlan) and _is_plain(inner)
        case _:
            return False


def _plain_column(plan: plans.Plan, array: pa.Array) -> pa.Array:
    """A column as pyruhvro takes it; raises InvalidData, or _NeedsDefault."""
    if isinstance(plan, plans.ChoicePlan):
        plan = plan.branches[0].plan
    elif array.null_count:
        raise InvalidData(_NULLS)
    match plan:
        case plans.StructPlan():
            parts = _each_field(plan, array, _plain_field)
            return pa.StructArray.from_arrays(parts, names=[f"f{index}" for index in range(len(parts))])
        case plans.ListPlan():
            mask = array.is_null() if array.null_count else None
            items, counts = joining.items_of(array if mask is None else array.fill_null([]))
            offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
            return pa.ListArray.from_arrays(pa.array(offsets), _plain_column(plan.items, items), mask=mask)
        case plans.Scalar(type=Primitive("string")):
            return joining.text_of(array).view(pa.string())
        case plans.Scalar(type=Primitive("boolean")):
            joining.check_booleans(array)
            return array
        case plans.Scalar() if not array.null_count:
            return pa.array(_numbers(plan, array))
        case plans.Scalar():
            is_there = joining.is_valid(array)
            some = _numbers(plan, array.drop_null())
            made = np.zeros(len(array), some.dtype)
            made[is_there] = some
            return pa.array(made, mask=~is_there)
        case _:
            raise TypeError("the plan has more than plain values")


def _plain_field(field: plans.FieldPlan, column: pa.Array | None) -> pa.Array:
    if column is None:
        raise _NeedsDefault
    return _plain_column(field.plan, column)


# --- by joining bytes ------------------------------------------------------------------------------------------------


def _encode(plan: plans.Plan, array: pa.Array) -> Pieces:
    """The pieces of values."""
    if isinstance(plan, plans.ChoicePlan):
        return _flat(plan, array) if plan.is_flat else _choice(plan, array)
    if array.null_count:
        raise InvalidData(_NULLS)
    match plan:
        case plans.Scalar():
            return _scalar(plan, array)
        case plans.StructPlan():
            return [piece for pieces in _each_field(plan, array, _field) for piece in pieces]
        case plans.ListPlan():
            items, counts = joining.items_of(array)
            return _block(_encode(plan.items, items), counts)
        case plans.EntriesPlan():
            entries, counts = joining.items_of(array)
            return _block(_encode(plan.entry, entries), counts)
        case plans.MapPlan():
            keys, values, counts = joining.entries_of(array)
            return _block([*_sized(joining.text_of(keys)), *_encode(plan.values, values)], counts)


def _field(field: plans.FieldPlan, column: pa.Array | None) -> Pieces:
    if column is not None:
        return _encode(field.plan, column)
    if field.wire is None or not field.wire.has_default:
        raise InvalidData("there is no such column, and the field has no default")
    return [default_bytes(field.wire)]


def _flat(plan: plans.ChoicePlan, array: pa.Array) -> Pieces:
    (branch,) = plan.branches
    prefix = varint(branch.index)
    if plan.null is None or not array.null_count:
        return [prefix, *_encode(branch.plan, array)]
    some = array.drop_null()
    data = joining.join([prefix, *_encode(branch.plan, some)], len(some))
    return [joining.fill_rows(data, joining.is_valid(array), varint(plan.null))]


def _choice(plan: plans.ChoicePlan, array: pa.Array) -> Pieces:
    """Structs with a field for each branch."""
    by_name: Mapping[str, plans.Branch] = {branch.name: branch for branch in plan.branches}
    columns = joining.columns_of(array, by_name, "the union")
    is_left = np.ones(len(array), dtype=np.bool_)
    pieces: Pieces = []
    for name, is_chosen in joining.choices_of(columns, list(by_name), len(array)):
        some = columns[name].filter(pa.array(is_chosen))
        data = joining.join([varint(by_name[name].index), *_encode(by_name[name].plan, some)], len(some))
        pieces.append(joining.fill_rows(data, is_chosen, b""))
        is_left &= ~is_chosen
    if is_left.any():
        if plan.null is None:
            raise InvalidData(_NULLS)
        none = pa.repeat(pa.scalar(varint(plan.null), pa.binary()), int(is_left.sum()))
        pieces.append(joining.fill_rows(none, is_left, b""))
    return pieces


def _block(pieces: Pieces, counts: stored.Numbers) -> Pieces:
    """Items in one block, with their number before them; no block if there are none."""
    items = joining.join(pieces, int(counts.sum()))
    heads = joining.varints(joining.zigzag(counts), is_left_out=counts == 0)
    return [heads, joining.group_items(items, counts), _END]


def _scalar(plan: plans.Scalar, array: pa.Array) -> Pieces:
    match plan.type:
        case Fixed():
            return [_fixed(plan.type, plan.logical, array)]
        case Primitive("string"):
            return _sized(joining.text_of(array))
        case Primitive("bytes") if plan.logical is not None:
            return _sized(binary_array(stored.unscaled(array, plan.logical.scale), None))
        case Primitive("bytes"):
            return _sized(joining.bytes_of(array))
        case Primitive("boolean"):
            return [joining.fixed(joining.booleans_of(array))]
        case Primitive("float" | "double"):
            return [joining.fixed(_numbers(plan, array))]
        case _:
            return [joining.varints(joining.zigzag(_numbers(plan, array)))]


def _sized(data: pa.Array) -> Pieces:
    return [joining.varints(joining.zigzag(joining.lengths_of(data))), data]


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
