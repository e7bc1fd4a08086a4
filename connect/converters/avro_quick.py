"""Flat records of Avro by straight-line code, made for each schema: a fraction of the time of the library.

The code takes what is as usual: data that is whole, lengths below 64, texts in UTF-8. For all else it gives up, and
the reader that it stands in for decides what is wrong. It reads records of plain types, optional or not; other
schemas have no such code.
"""

import struct
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from connect.api.data import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME, Schema, Value
from connect.api.errors import DataError
from connect.api.logical import EPOCH, date_of, decimal_of, scale_of, time_of
from schema_registry.formats.avro_types import Enum, Primitive, Record, Union
from schema_registry.formats.avro_types import Type as AvroType

Read = Callable[[bytes, int], Value]

_GIVES_UP: Final = (DataError, IndexError, OverflowError, UnicodeDecodeError, ValueError, struct.error)
_MAX_FIELDS: Final = 200
_MAX_VARINT_SHIFT: Final = 63


def quick_reader(root: AvroType, schema: Schema, slow: Read) -> Read | None:
    """A reader of flat records that asks `slow` about whatever is unusual; None for other schemas."""
    if not isinstance(root, Record) or not 0 < len(root.fields) <= _MAX_FIELDS:
        return None
    code = _Code()
    for index, field in enumerate(root.fields):
        if not code.add(index, field.type, schema.by_name[field.name]):
            return None
    quick = code.compiled([field.name for field in root.fields])

    def read(data: bytes, start: int) -> Value:
        try:
            return quick(data, start)
        except _GIVES_UP:
            return slow(data, start)

    return read


def read_number(data: bytes, position: int) -> tuple[int, int]:
    """A number of two bytes or more, and where it ends."""
    number = data[position] & 0x7F
    shift = 7
    while True:
        position += 1
        byte = data[position]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), position + 1
        shift += 7
        if shift > _MAX_VARINT_SHIFT:
            raise ValueError


class _Code:
    """Statements that read one field after another."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._names: dict[str, Any] = {
            "number": read_number,
            "float_at": struct.Struct("<f").unpack_from,
            "double_at": struct.Struct("<d").unpack_from,
            "EPOCH": EPOCH,
            "timedelta": timedelta,
            "date_of": date_of,
            "time_of": time_of,
            "decimal_of": decimal_of,
        }

    def add(self, index: int, type_: AvroType, schema: Schema) -> bool:
        """One more field; False if there is no code for its type."""
        if not isinstance(type_, Union):
            lines = self._plain(index, type_, schema)
            self._lines += lines
            return bool(lines)
        kinds = [branch.kind for branch in type_.branches]
        if len(kinds) != 2 or "null" not in kinds:
            return False
        null = kinds.index("null")
        lines = self._plain(index, type_.branches[1 - null], schema)
        self._lines += [
            "b = data[p]; p += 1",
            f"if b == {2 * null}: v{index} = None",
            f"elif b == {2 - 2 * null}:",
            *(f"    {line}" for line in lines),
            "else: raise ValueError",
        ]
        return bool(lines)

    def _plain(self, index: int, type_: AvroType, schema: Schema) -> list[str]:
        value = f"v{index}"
        if isinstance(type_, Enum):
            self._names[f"symbols{index}"] = tuple(type_.symbols)
            return ["b = data[p]", "if b & 0x81: raise ValueError", f"{value} = symbols{index}[b >> 1]; p += 1"]
        if not isinstance(type_, Primitive):
            return []
        match type_.kind:
            case "string":
                return [*_LENGTH, f"{value} = data[p:e].decode(); p = e"]
            case "bytes":
                return [*_LENGTH, f"{value} = {self._bytes('data[p:e]', schema)}; p = e"]
            case "int" | "long":
                return self._number(value, type_.kind, schema)
            case "double":
                return [f"{value} = double_at(data, p)[0]; p += 8"]
            case "float":
                return [f"{value} = float_at(data, p)[0]; p += 4"]
            case "boolean":
                return ["b = data[p]; p += 1", "if b > 1: raise ValueError", f"{value} = b == 1"]
            case _:
                return []

    def _bytes(self, data: str, schema: Schema) -> str:
        return f"decimal_of({data}, {scale_of(schema)})" if schema.name == DECIMAL_NAME else data

    def _number(self, value: str, kind: str, schema: Schema) -> list[str]:
        lines = [
            "b = data[p]",
            f"if b < 0x80: {value} = (b >> 1) ^ -(b & 1); p += 1",
            f"else: {value}, p = number(data, p)",
        ]
        if kind == "int":
            lines.append(f"if not -0x80000000 <= {value} <= 0x7FFFFFFF: raise ValueError")
        match schema.name:
            case _ if schema.name == TIMESTAMP_NAME:
                lines.append(f"{value} = EPOCH + timedelta(0, 0, 0, {value})")
            case _ if schema.name == DATE_NAME:
                lines.append(f"{value} = date_of({value})")
            case _ if schema.name == TIME_NAME:
                lines.append(f"{value} = time_of({value})")
        return lines

    def compiled(self, fields: list[str]) -> Read:
        """The function."""
        # Names of fields are quoted, and all else that is in the code was written here.
        pairs = ", ".join(f"{name!r}: v{index}" for index, name in enumerate(fields))
        body = "\n    ".join(["n = len(data)", *self._lines, "if p > n: raise ValueError", f"return {{{pairs}}}"])
        exec(f"def quick(data, p):\n    {body}\n", self._names)
        made: Read = self._names["quick"]
        return made


_LENGTH: Final = (
    "e = data[p]",
    "if e & 0x81: raise ValueError",
    "p += 1; e = p + (e >> 1)",
    "if e > n: raise ValueError",
)
"""Of a text or bytes: short, not negative, and within the data."""
