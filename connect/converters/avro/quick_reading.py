"""Records of Avro by straight-line code, made for each schema: a fraction of the time of the library.

The code takes what is as usual: data that is whole, texts in UTF-8, lists that do not tell their size in bytes. For all
else it gives up, and the reader that it stands in for decides what is wrong. Only schemas with a choice between several
types, with fixed bytes, or with maps whose keys are no text have no such code.
"""

import struct
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from connect.api.data import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME, Schema, Type, Value
from connect.api.errors import DataError
from connect.api.logical import EPOCH, date_of, decimal_of, scale_of, time_of
from schema_registry.formats.avro_types import Array, Enum, Map, Primitive, Record, Union
from schema_registry.formats.avro_types import Type as AvroType

Read = Callable[[bytes, int], Value]

_GIVES_UP: Final = (DataError, IndexError, OverflowError, UnicodeDecodeError, ValueError, struct.error)
_MAX_FIELDS: Final = 200
_MAX_VARINT_SHIFT: Final = 63


def quick_reader(root: AvroType, schema: Schema, slow: Read) -> Read | None:
    """A reader of records that asks `slow` about whatever is unusual; None for other schemas."""
    if not isinstance(root, Record):
        return None
    code = _Code()
    lines = code.of(root, schema)
    if not lines or code.count > _MAX_FIELDS:
        return None
    try:
        quick = code.compiled(lines)
    except SyntaxError:  # blocks within blocks, more than Python allows
        return None

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
    """Makes statements that read one value after another, and knows what these refer to."""

    def __init__(self) -> None:
        self.count = 0
        """How many values were given a name."""
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

    def of(self, type_: AvroType, schema: Schema) -> list[str]:
        """The statements that leave a value in the next name; none if there is no code for its type."""
        value = f"v{self.count}"
        self.count += 1
        if not isinstance(type_, Union):
            return self._single(value, type_, schema)
        kinds = [branch.kind for branch in type_.branches]
        if len(kinds) != 2 or "null" not in kinds:
            return []
        null = kinds.index("null")
        lines = self._single(value, type_.branches[1 - null], schema)
        return lines and [
            "b = data[p]; p += 1",
            f"if b == {2 * null}: {value} = None",
            f"elif b == {2 - 2 * null}:",
            *(f"    {line}" for line in lines),
            "else: raise ValueError",
        ]

    def _single(self, value: str, type_: AvroType, schema: Schema) -> list[str]:
        match type_:
            case Record():
                return self._record(value, type_, schema)
            case Enum():
                self._names[f"symbols_{value}"] = tuple(type_.symbols)
                return ["b = data[p]", "if b & 0x81: raise ValueError", f"{value} = symbols_{value}[b >> 1]; p += 1"]
            case Primitive():
                return self._primitive(value, type_.kind, schema)
            case Array() if schema.type is Type.ARRAY:
                return self._array(value, type_, schema)
            case Map():
                return self._map(value, type_, schema)
            case _:
                return []

    def _record(self, value: str, record: Record, schema: Schema) -> list[str]:
        lines: list[str] = []
        pairs = []
        for field in record.fields:
            # Names of fields are quoted, and all else that is in the code was written here.
            pairs.append(f"{field.name!r}: v{self.count}")
            part = self.of(field.type, schema.by_name[field.name])
            if not part:
                return []
            lines += part
        return [*lines, f"{value} = {{{', '.join(pairs)}}}"]

    def _array(self, value: str, type_: Array, schema: Schema) -> list[str]:
        item = f"v{self.count}"
        lines = self.of(type_.items, _values(schema))
        return lines and [f"{value} = []", *_blocks([*lines, f"{value}.append({item})"])]

    def _map(self, value: str, type_: Map, schema: Schema) -> list[str]:
        item = f"v{self.count}"
        lines = self.of(type_.values, _values(schema))
        key = [*_LENGTH, f"k_{value} = data[p:e].decode(); p = e"]
        return lines and [f"{value} = {{}}", *_blocks([*key, *lines, f"{value}[k_{value}] = {item}"])]

    def _primitive(self, value: str, kind: str, schema: Schema) -> list[str]:
        match kind:
            case "string":
                return [*_LENGTH, f"{value} = data[p:e].decode(); p = e"]
            case "bytes":
                return [*_LENGTH, f"{value} = {self._bytes('data[p:e]', schema)}; p = e"]
            case "int" | "long":
                return self._number(value, kind, schema)
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

    def compiled(self, lines: list[str]) -> Read:
        """The function that returns the first value."""
        body = "\n    ".join(["n = len(data)", *lines, "if p > n: raise ValueError", "return v0"])
        exec(f"def quick(data, p):\n    {body}\n", self._names)
        made: Read = self._names["quick"]
        return made


_LENGTH: Final = (
    "e = data[p]",
    "if e & 0x80: e, p = number(data, p)",
    "elif e & 1: raise ValueError",
    "else: e >>= 1; p += 1",
    "e += p",
    "if not p <= e <= n: raise ValueError",
)
"""Where a text or bytes end; within the data."""


def _values(schema: Schema) -> Schema:
    assert schema.value_schema is not None
    return schema.value_schema


def _blocks(lines: list[str]) -> list[str]:
    """Statements for each item of a list or map, which comes in blocks; those that tell their size are left over."""
    return [
        "while True:",
        "    e = data[p]",
        "    if e & 0x80: e, p = number(data, p)",
        "    elif e & 1: raise ValueError",
        "    else: e >>= 1; p += 1",
        "    if e == 0: break",
        "    if e < 0: raise ValueError",
        "    for _ in range(e):",
        *(f"        {line}" for line in lines),
    ]
