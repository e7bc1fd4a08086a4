"""Records of Avro from JSON by straight-line code, made for each schema: half the time of a call per field.

It takes what is as usual: every field is there, none beside them, each of the type that JSON has for it. It never
writes anything else, and raises one of `LEFT_OVER` for all that `avro_writing` must look at: defaults, whole numbers
written as 1.0, very long texts, and everything that does not fit and must be told with its place.
"""

import struct
from collections.abc import Callable
from typing import Any

from schema_registry.formats.avro_types import Enum, Primitive, Record, Type
from schema_registry.serdes.avro_writing import RANGES, SMALL, Mismatch, Writings, varint
from schema_registry.serdes.codec import JsonView

Quick = Callable[[JsonView], bytes]

LEFT_OVER = (
    AttributeError,
    LookupError,
    Mismatch,
    OverflowError,
    RecursionError,
    TypeError,
    UnicodeEncodeError,
    struct.error,
)
"""What the code raises for data that is not as usual."""
_MAX_FIELDS = 200
"""Of records with more, the calls are not what takes the time."""


def quick_record(root: Type, writings: Writings) -> Quick | None:
    """The code for a record; None where there is none to be made."""
    if not isinstance(root, Record) or not 0 < len(root.fields) <= _MAX_FIELDS:
        return None
    code = _Code()
    for field in root.fields:
        code.add(field.name, field.type, writings)
    return code.compiled(len(root.fields))


class _Code:
    """Statements that take fields out of a record, the parts of its bytes, and what both refer to."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._parts: list[str] = []
        self._names: dict[str, Any] = {
            "SMALL": SMALL,
            "varint": varint,
            "unusual": _unusual,
            "pack_float": struct.Struct("<f").pack,
            "pack_double": struct.Struct("<d").pack,
            "join": b"".join,
        }

    def add(self, name: str, type_: Type, writings: Writings) -> None:
        """One more field."""
        index = len(self._lines)
        value = f"v{index}"
        # Names are letters, digits and underscores, and are quoted all the same.
        self._lines.append(f"{value} = view[{name!r}]")
        match type_:
            case Primitive():
                self._primitive(type_.kind, value)
            case Enum():
                self._names[f"symbols{index}"] = {symbol: varint(at) for at, symbol in enumerate(type_.symbols)}
                self._parts.append(f"symbols{index}[{value}]")
            case _:
                self._names[f"write{index}"] = writings.of(type_)
                self._lines.append(f"p{index} = []; write{index}({value}, p{index}.append)")
                self._parts.append(f"join(p{index})")

    def _primitive(self, kind: str, value: str) -> None:
        match kind:
            case "string" | "bytes":
                # Nothing but text has such a method.
                self._lines.append(f"{value} = {value}.encode({'' if kind == 'string' else repr('latin-1')})")
                self._parts += [f"SMALL[len({value})]", value]
            case "int" | "long":
                limit = RANGES[kind]
                self._lines.append(f"if {value}.__class__ is not int or not {-limit} <= {value} < {limit}: unusual()")
                self._parts.append(f"varint({value})")
            case "float" | "double":
                self._lines.append(f"if {value}.__class__ is not float: unusual()")
                self._parts.append(f"pack_{kind}({value})")
            case "boolean":
                self._lines.append(f"if {value}.__class__ is not bool: unusual()")
                self._parts.append(f"b'\\x01' if {value} else b'\\x00'")
            case _:  # null, which takes no bytes
                self._lines.append(f"if {value} is not None: unusual()")

    def compiled(self, count: int) -> Quick:
        """The function."""
        first = f"if view.__class__ is not dict or len(view) != {count}: unusual()"
        last = f"return join(({', '.join(self._parts)},))" if self._parts else "return b''"
        body = "\n    ".join([first, *self._lines, last])
        exec(f"def quick(view):\n    {body}\n", self._names)
        made: Quick = self._names["quick"]
        return made


def _unusual() -> None:
    raise LookupError
