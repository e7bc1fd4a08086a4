"""Structs as records of Avro by straight-line code, made for each schema: a fraction of the time of a call per field.

The code writes what is as usual, and nothing else: for all that does not fit it raises an error, and who called it
finds out which field is wrong.
"""

import struct
from collections.abc import Callable
from typing import Any, Final, NoReturn

from connect.api.data import Schema, Value
from connect.api.errors import DataError
from connect.converters.stored import to_stored
from schema_registry.formats.avro_types import Primitive, Union
from schema_registry.formats.avro_types import Type as AvroType
from schema_registry.serdes.avro_writing import RANGES, SMALL, varint

Write = Callable[[Value], bytes]


class Code:
    """Statements that take fields out of a struct, the parts of its bytes, and what both refer to."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._parts: list[str] = []
        self._count = 0
        self._names: dict[str, Any] = {
            "SMALL": SMALL,
            "varint": varint,
            "unlike": unlike,
            "pack_float": struct.Struct("<f").pack,
            "pack_double": struct.Struct("<d").pack,
            "join": b"".join,
            "sized": sized,
        }

    def add(self, name: str, type_: AvroType, schema: Schema, *, write: Write, default: Value) -> None:
        """One more field: by statements of its own if it is of a plain type, otherwise by its function."""
        prefixes: dict[str, bytes] = {}
        if isinstance(type_, Union):
            kinds = [branch.kind for branch in type_.branches]
            if len(kinds) == 2 and "null" in kinds:
                null = kinds.index("null")
                prefixes = {"null": varint(null), "other": varint(1 - null)}
                type_ = type_.branches[1 - null]
        is_plain = isinstance(type_, Primitive) and type_.kind in _STATEMENTS and to_stored(schema) is None
        if not is_plain or default is not None:
            self.add_call(name, write, default)
            return
        value = f"v{self._count}"
        # Names are quoted, and all else that is in the code was written here.
        self._lines.append(f"{value} = get({name!r})")
        statement, part = _STATEMENTS[type_.kind]
        statement, part = statement.replace("$", value), part.replace("$", value)
        if not prefixes:
            self._lines.append(statement)
            self._parts.append(part)
        else:
            self._lines += [
                f"if {value} is None: {value} = {prefixes['null']!r}",
                "else:",
                f"    {statement}",
                f"    {value} = {prefixes['other']!r} + {part}",
            ]
            self._parts.append(value)
        self._count += 1

    def add_call(self, name: str, write: Write, default: Value) -> None:
        """One more field by its function."""
        value = f"v{self._count}"
        self._names[f"write{self._count}"] = write
        self._lines.append(f"{value} = get({name!r})")
        if default is not None:
            self._names[f"default{self._count}"] = default
            self._lines.append(f"if {value} is None: {value} = default{self._count}")
        self._parts.append(f"write{self._count}({value})")
        self._count += 1

    def compiled(self) -> Write:
        """The function."""
        last = f"return join(({', '.join(self._parts)},))" if self._parts else "return b''"
        body = "\n    ".join(
            ["if value.__class__ is not dict: unlike('a struct', value)", "get = value.get", *self._lines, last]
        )
        exec(f"def quick(value):\n    {body}\n", self._names)
        made: Write = self._names["quick"]
        return made


_STATEMENTS: Final = {
    "string": ("$ = $.encode()", "sized($)"),
    "bytes": ("if $.__class__ is not bytes: unlike('bytes', $)", "sized($)"),
    "int": (
        f"if $.__class__ is not int or not {-RANGES['int']} <= $ < {RANGES['int']}: unlike('an int', $)",
        "(SMALL[$] if 0 <= $ < 1024 else varint($))",
    ),
    "long": (
        f"if $.__class__ is not int or not {-RANGES['long']} <= $ < {RANGES['long']}: unlike('a long', $)",
        "(SMALL[$] if 0 <= $ < 1024 else varint($))",
    ),
    "float": ("if $.__class__ is not float: unlike('a float', $)", "pack_float($)"),
    "double": ("if $.__class__ is not float: unlike('a double', $)", "pack_double($)"),
    "boolean": ("if $.__class__ is not bool: unlike('a boolean', $)", "(b'\\x01' if $ else b'\\x00')"),
}


def sized(data: bytes) -> bytes:
    """Data with its length before it."""
    size = len(data)
    return (SMALL[size] if size < len(SMALL) else varint(size)) + data


def unlike(wanted: str, value: Value) -> NoReturn:
    """Refuse a value of another type."""
    if value is None:
        raise DataError(f"Found null value for non-optional schema: expected {wanted}")
    raise DataError(f"expected {wanted}, not a value of type {type(value).__name__}")
