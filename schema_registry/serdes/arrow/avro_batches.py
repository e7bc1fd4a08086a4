"""Columns of plain values as Avro data by pyruhvro: several times as fast as joining the bytes of fields.

It knows numbers, texts and lists of them, and checks nothing, so that is done here. As in reading, it takes all
integers and enums for `long`, which is written the same way.
"""

import json
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyruhvro

from schema_registry.formats.avro_types import Enum
from schema_registry.serdes.arrow import joining, stored
from schema_registry.serdes.arrow.avro_columns import Columns
from schema_registry.serdes.avro_numbers import RANGES
from schema_registry.serdes.avro_plan import ChoicePlan, ListPlan, Plan, Scalar, StructPlan
from schema_registry.serdes.errors import InvalidData

_PLAIN: Final = ("boolean", "int", "long", "float", "double", "string", "enum")
_FLOATS: Final = {"float": pa.float32(), "double": pa.float64()}


def batch_writer(plan: Plan) -> Callable[[pa.Array], pa.Array] | None:
    """What writes records of a plan; None if there is more to it than pyruhvro knows. Raises InvalidData."""
    if not isinstance(plan, StructPlan) or not _is_plain(plan):
        return None
    schema = json.dumps(Columns().of(plan).fast)

    def write(rows: pa.Array) -> pa.Array:
        (data,) = pyruhvro.serialize_record_batch(pa.RecordBatch.from_struct_array(_column(plan, rows)), schema, 1)
        return data

    return write


def _is_plain(plan: Plan) -> bool:
    match plan:
        case Scalar():
            return plan.type.kind in _PLAIN
        case StructPlan():
            return bool(plan.fields) and all(_is_plain(field.plan) for field in plan.fields)
        case ListPlan():
            return _is_plain(plan.items)
        case ChoicePlan() if plan.is_flat and plan.null is not None:
            inner = plan.branches[0].plan
            return not isinstance(inner, StructPlan) and _is_plain(inner)
        case _:
            return False


def _column(plan: Plan, array: pa.Array) -> pa.Array:
    """A column as pyruhvro takes it."""
    if isinstance(plan, ChoicePlan):
        return _values(plan.branches[0].plan, array)
    if array.null_count:
        raise InvalidData("there are nulls, which the schema does not allow")
    return _values(plan, array)


def _values(plan: Plan, array: pa.Array) -> pa.Array:
    match plan:
        case StructPlan():
            columns = joining.columns_of(array, [field.name for field in plan.fields], f"the record {plan.name}")
            parts = [_field(field.name, field.plan, columns) for field in plan.fields]
            return pa.StructArray.from_arrays(parts, names=[f"f{index}" for index in range(len(parts))])
        case ListPlan():
            mask = array.is_null() if array.null_count else None
            items, counts = joining.items_of(array if mask is None else array.fill_null([]))
            offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
            return pa.ListArray.from_arrays(pa.array(offsets), _column(plan.items, items), mask=mask)
        case Scalar():
            return _scalar(plan, array)
        case _:
            raise TypeError("there is more to the plan than plain values")


def _field(name: str, plan: Plan, columns: dict[str, pa.Array]) -> pa.Array:
    if name not in columns:
        raise InvalidData(f"{name}: there is no such column")
    try:
        return _column(plan, columns[name])
    except InvalidData as error:
        raise InvalidData(f"{name}: {error}") from error


def _scalar(plan: Scalar, array: pa.Array) -> pa.Array:
    kind = plan.type.kind
    if kind == "string":
        return joining.text_of(array).view(pa.string())
    if kind == "boolean":
        joining.check_booleans(array)
        return array
    if kind in _FLOATS:
        return _with_nulls(joining.floats_of(_filled(array), _FLOATS[kind]), array)
    if isinstance(plan.type, Enum):
        some = joining.symbol_places(joining.present(array), plan.type.symbols, plan.type.name.full)
        return _spread(some, array)
    if plan.logical is not None:
        return _with_nulls(stored.NUMBERS[plan.logical.name](_filled(array)), array)
    limit = RANGES[kind]
    return _with_nulls(joining.integers_of(_filled(array), -limit, limit - 1), array)


def _filled(array: pa.Array) -> pa.Array:
    return array.fill_null(pa.scalar(0, array.type)) if array.null_count else array


def _with_nulls(numbers: Any, array: pa.Array) -> pa.Array:
    return pa.array(numbers, mask=~joining.is_valid(array) if array.null_count else None)


def _spread(numbers: stored.Numbers, array: pa.Array) -> pa.Array:
    if not array.null_count:
        return pa.array(numbers)
    is_there = joining.is_valid(array)
    made = np.zeros(len(array), dtype=np.int64)
    made[is_there] = numbers
    return pa.array(made, mask=~is_there)
