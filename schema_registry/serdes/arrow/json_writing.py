"""Columns as documents of one JSON Schema: the reverse of `json_reading`.

Columns are found by the names of properties. Null is written if the schema allows it, and otherwise left out. Types are
those of the schema, but its other demands (`minimum`, `pattern` and so on) are not checked.
"""

import binascii
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schema_registry.formats.json_schema import JsonSchema
from schema_registry.serdes.arrow import joining, stored
from schema_registry.serdes.arrow.binary import places
from schema_registry.serdes.arrow.joining import Pieces
from schema_registry.serdes.arrow.json_columns import column_plan, column_type
from schema_registry.serdes.checks import LIMITS
from schema_registry.serdes.errors import InvalidData
from schema_registry.serdes.json_plan import FieldPlan, Plan, Shape

_ESCAPED: Final = r'[\x00-\x1f"\\\x7f]'


class JsonWriter:
    """Writes documents of one schema; raises UnusableSchema."""

    def __init__(self, schema: JsonSchema) -> None:
        self._plan = column_plan(schema)
        self.type = column_type(self._plan)
        """The type of column to pass; others that hold the same values will do."""

    def write(self, rows: pa.Array) -> pa.Array:
        """Rows, one value each, as binary values; raises InvalidData."""
        return joining.write_rows(rows, lambda some: _present(self._plan, some))


def _encode(plan: Plan, array: pa.Array) -> Pieces:
    """The pieces of values that may be null."""
    if not array.null_count:
        return _present(plan, array)
    if plan.default is None and not plan.is_optional:
        raise InvalidData("there are nulls, which the schema does not allow")
    some = array.drop_null()
    data = joining.join(_present(plan, some), len(some))
    return [joining.fill_rows(data, joining.is_valid(array), msgspec.json.encode(plan.default))]


def _present(plan: Plan, array: pa.Array) -> Pieces:
    match plan.shape:
        case Shape.STRUCT:
            return _struct(plan, array)
        case Shape.LIST:
            items, counts = joining.items_of(array)
            data = joining.join([b",", *_encode(plan.items, items)], len(items))
            return [enclose(joining.group_items(data, counts), b"["), b"]"]
        case Shape.MAP:
            keys, values, counts = joining.entries_of(array)
            pieces: Pieces = [b",", *quote_texts(joining.text_of(keys)), b":", *_encode(plan.items, values)]
            return [enclose(joining.group_items(joining.join(pieces, len(keys)), counts), b"{"), b"}"]
        case Shape.SYMBOL:
            return quote_texts(joining.text_of(array))
        case _:
            return _plain(plan, array)


def _struct(plan: Plan, array: pa.Array) -> Pieces:
    columns = joining.columns_of(array, [field.name for field in plan.fields], "the schema")
    pieces: Pieces = []
    is_left_out = False
    for field in plan.fields:
        column = columns.get(field.name)
        if column is None:
            if field.is_required:
                raise InvalidData(f"{field.name}: there is no such column, and the property is required")
            continue
        # Null is left out, not written, if the property may be missing but not null.
        may_be_left_out = bool(column.null_count) and field.plan.default is None and not field.plan.is_optional
        is_left_out |= may_be_left_out
        try:
            pieces += _property(field, column, may_be_left_out=may_be_left_out)
        except InvalidData as error:
            raise InvalidData(f"{field.name}: {error}") from error
    if not pieces:
        return [b"{}"]
    if isinstance(pieces[0], bytes) and not is_left_out:
        return [b"{" + pieces[0][1:], *pieces[1:], b"}"]
    return [enclose(joining.join(pieces, len(array)), b"{"), b"}"]


def _property(field: FieldPlan, column: pa.Array, *, may_be_left_out: bool) -> Pieces:
    """A property after a comma."""
    name = b"," + msgspec.json.encode(field.name) + b":"
    if not may_be_left_out:
        return [name, *_encode(field.plan, column)]
    if field.is_required:
        raise InvalidData("there are nulls, but the property is required")
    some = column.drop_null()
    data = joining.join([name, *_present(field.plan, some)], len(some))
    return [joining.fill_rows(data, joining.is_valid(column), b"")]


def enclose(data: pa.Array, opening: bytes) -> pa.Array:
    """Items that each follow a comma, the first of which becomes an opening bracket."""
    return pc.binary_replace_slice(data, 0, 1, opening)


def _plain(plan: Plan, array: pa.Array) -> Pieces:
    if plan.logical is not None:
        return [_texts(pa.array(stored.NUMBERS[plan.logical.name](array)))]
    match plan.kind:
        case "string":
            return quote_texts(joining.text_of(array))
        case "bytes":
            encoded = [binascii.b2a_base64(value, newline=False) for value in joining.bytes_of(array).to_pylist()]
            return [b'"', pa.array(encoded, type=pa.binary()), b'"']
        case "boolean":
            joining.check_booleans(array)
            return [_texts(array)]
        case "float32" | "float64":
            return [_numbers(joining.floats_of(array, column_type(plan)))]
        case _:
            limit = LIMITS[plan.kind]
            return [_texts(pa.array(joining.integers_of(array, -limit, limit - 1)))]


def _numbers(floats: npt.NDArray[Any]) -> pa.Array:
    if not np.isfinite(floats).all():
        raise InvalidData(f"{floats[~np.isfinite(floats)][0]} cannot be written as JSON, which has numbers only")
    texts = _texts(pa.array(floats))
    is_minus_zero = (floats == 0) & np.signbit(floats)
    if not is_minus_zero.any():
        return texts
    return pc.if_else(pa.array(is_minus_zero), pa.scalar(b"-0.0", pa.binary()), texts)  # -0 would be a whole number


def _texts(array: pa.Array) -> pa.Array:
    return array.cast(pa.string()).cast(pa.binary())


def quote_texts(texts: pa.Array) -> Pieces:
    """Texts as JSON has them; few contain anything that must be escaped."""
    data, starts, lengths = places(texts)
    inside = data[starts[0] : starts[-1] + lengths[-1]] if len(starts) else data[:0]
    if not ((inside < 0x20) | (inside == 0x22) | (inside == 0x5C) | (inside == 0x7F)).any():
        return [b'"', texts, b'"']
    quoted = joining.join([b'"', texts, b'"'], len(texts))
    is_odd = pc.match_substring_regex(texts, _ESCAPED)
    odd = [msgspec.json.encode(text.decode()) for text in texts.filter(is_odd).to_pylist()]
    return [pc.replace_with_mask(quoted, is_odd, pa.array(odd, type=pa.binary()))]
