"""Flat Protobuf messages as columns, a field of all messages at a time.

Libraries write the fields of a message in the order of their numbers, each at most once. Messages of plain fields
that are written so are gone through here together; all others, damaged ones among them, are left to Protobuf itself.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from schema_registry.serdes.arrow.binary import Cursor, Rows, binary_array, content_of

_MOST_NUMBER: Final = 2047
"""Fields beyond have longer tags, and are not for those in a hurry."""
_VARINT, _EIGHT, _TEXT, _FOUR = 0, 1, 2, 5

Numbers = npt.NDArray[Any]
Decode = Callable[[Numbers], Numbers]


def _zigzag(raw: Numbers) -> Numbers:
    return (raw >> np.uint64(1)).astype(np.int64) ^ -(raw & np.uint64(1)).astype(np.int64)


def _low(raw: Numbers) -> Numbers:
    return (raw & np.uint64(0xFFFFFFFF)).astype(np.uint32)


_WIRE: Final[dict[int, tuple[int, Decode]]] = {
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
    FieldDescriptor.TYPE_STRING: (_TEXT, lambda raw: raw),
    FieldDescriptor.TYPE_BYTES: (_TEXT, lambda raw: raw),
}
"""How each type is written, and what its values are made of."""


class _Field(NamedTuple):
    name: str
    tag: bytes
    wire: int
    decode: Decode
    type: pa.DataType
    is_nullable: bool
    symbols: Callable[[pa.Array], pa.Array] | None


class FlatMessages:
    """Reads messages of one type."""

    def __init__(self, fields: list[_Field], type_: pa.DataType) -> None:
        self._fields = fields
        self._type = type_

    def read(self, bodies: pa.Array) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
        """Messages that are as usual, and which these are; raises ArrowInvalid where a text is not UTF-8."""
        walk = _Walk(bodies)
        found = {field.name: walk.field(field) for field in self._fields}
        is_done = walk.is_done
        arrays = {field.name: _array(field, found[field.name], walk.data, is_done) for field in self._fields}
        fields = list(self._type)
        return pa.StructArray.from_arrays([arrays[field.name] for field in fields], fields=fields), is_done


def flat_messages(
    message: Descriptor, type_: pa.DataType, symbols: Callable[[Any], Callable[[pa.Array], pa.Array]]
) -> FlatMessages | None:
    """What reads such messages; None if there is more to them than plain fields."""
    file = FileDescriptorProto()
    message.file.CopyToProto(file)
    if file.syntax != "proto3" or not pa.types.is_struct(type_):
        return None
    fields = []
    for field in sorted(message.fields, key=lambda field: field.number):
        is_optional = field.containing_oneof is not None and len(field.containing_oneof.fields) == 1
        is_plain = field.type in _WIRE and not field.is_repeated and field.number <= _MOST_NUMBER
        if not is_plain or type_.get_field_index(str(field.name)) < 0:
            return None
        wire, decode = _WIRE[field.type]
        column = type_.field(str(field.name)).type
        texts = None if field.enum_type is None else symbols(field.enum_type)
        tag = _tag(field.number << 3 | wire)
        fields.append(_Field(str(field.name), tag, wire, decode, column, is_optional, texts))
    return FlatMessages(fields, type_)


def _tag(number: int) -> bytes:
    return bytes([number]) if number < 0x80 else bytes([number & 0x7F | 0x80, number >> 7])


class _Found(NamedTuple):
    """One field of all messages."""

    is_set: npt.NDArray[np.bool_]
    values: Numbers
    """Of plain fields the values, of texts where they begin."""
    ends: Rows


class _Walk:
    def __init__(self, bodies: pa.Array) -> None:
        self._cursor = Cursor(bodies)
        self.data = self._cursor.data
        self._ends, self._at = self._cursor.ends, self._cursor.at

    @property
    def is_done(self) -> npt.NDArray[np.bool_]:
        """Which messages have been read to their end."""
        is_read: npt.NDArray[np.bool_] = self._at == self._ends
        return is_read & ~self._cursor.is_odd

    def field(self, field: _Field) -> _Found:
        """Read a field where it comes next."""
        count = len(self._at)
        is_next = (self.data[self._at] == field.tag[0]) & (self._at < self._ends)
        if len(field.tag) > 1:
            is_next &= self.data[self._at + 1] == field.tag[1]
        rows = np.flatnonzero(is_next)
        at = self._at[rows] + len(field.tag)
        ends = np.zeros(count, np.int64)
        match field.wire:
            case 0:
                raw, at = self._cursor.varints(rows, at)
                found = field.decode(raw)
            case 2:
                raw, found = self._cursor.varints(rows, at)
                at = found + np.minimum(raw, np.uint64(len(self.data))).astype(np.int64)
                ends[rows] = at
            case _:
                found = field.decode(self._fixed(at, 8 if field.wire == _EIGHT else 4))
                at += 8 if field.wire == _EIGHT else 4
        values = np.zeros(count, found.dtype)
        values[rows] = found
        self._cursor.go_to(rows, at)
        return _Found(is_next, values, ends)

    def _fixed(self, at: Rows, width: int) -> Numbers:
        windows = np.lib.stride_tricks.sliding_window_view(self.data, width)
        return np.ascontiguousarray(windows[np.minimum(at, len(windows) - 1)]).view(f"<u{width}").reshape(-1)


def _array(field: _Field, found: _Found, data: npt.NDArray[np.uint8], is_done: npt.NDArray[np.bool_]) -> pa.Array:
    is_unset = ~found.is_set[is_done] if field.is_nullable else None
    values = found.values[is_done]
    if field.wire == _TEXT:
        content = content_of(data, np.where(found.is_set, found.values, 0)[is_done], found.ends[is_done])
        valid = None if is_unset is None else pa.array(~is_unset).buffers()[1]
        made = binary_array(content, valid)
        return made.cast(field.type) if pa.types.is_string(field.type) else made
    array = pa.array(values, mask=is_unset)
    return array.cast(field.type) if field.symbols is None else field.symbols(array)
