"""JSON in Avro's own encoding as bytes, in one pass; whatever does not fit is told with its place.

Written here rather than by fastavro, which takes its own Python values: to make these and to have them written takes
longer. Tests hold both to the same bytes. What is as usual is written by `avro_quick`.
"""

import math
import struct
from collections.abc import Callable

from schema_registry.formats.avro_types import Array, Enum, Fixed, Map, Primitive, Record, Type, Union, label
from schema_registry.serdes.codec import JsonView

Append = Callable[[bytes], None]
"""Takes the next bytes."""
Write = Callable[[JsonView, Append], None]

_LEAST_TIME = 1 << 35
"""Numbers of six bytes: times in milliseconds, which most records have."""
RANGES = {"int": 1 << 31, "long": 1 << 63}
_NOT_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_TRUE, _FALSE, _END = b"\x01", b"\x00", b"\x00"


class Mismatch(Exception):
    """JSON does not fit the schema; `path` is filled in from the inside out."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.path: list[str] = []

    def __str__(self) -> str:
        return f"/{'/'.join(reversed(self.path))}: {self.problem}"


class Writings:
    """How JSON becomes bytes: one function per type; they raise Mismatch."""

    def __init__(self) -> None:
        self._records: dict[int, Write] = {}

    def of(self, type_: Type) -> Write:
        """The function for a type."""
        match type_:
            case Primitive():
                return _PRIMITIVE_WRITINGS[type_.kind]
            case Fixed():
                return _fixed(type_)
            case Enum():
                return _enum(type_)
            case Array():
                return self._array(type_)
            case Map():
                return self._map(type_)
            case Union():
                return self._union(type_)
            case Record():
                return self._record(type_)

    def _array(self, array: Array) -> Write:
        write_item = self.of(array.items)

        def write(view: JsonView, append: Append) -> None:
            if not isinstance(view, list):
                raise _unlike("an array", view)
            if view:
                append(_number(len(view)))
            index = 0
            try:
                for index, item in enumerate(view):  # noqa: B007 - tells where it went wrong
                    write_item(item, append)
            except Mismatch as mismatch:
                mismatch.path.append(str(index))
                raise
            append(_END)

        return write

    def _map(self, map_: Map) -> Write:
        write_value = self.of(map_.values)

        def write(view: JsonView, append: Append) -> None:
            if not isinstance(view, dict):
                raise _unlike("a map", view)
            if view:
                append(_number(len(view)))
            key = ""
            try:
                for key, value in view.items():
                    _write_text(key, append)
                    write_value(value, append)
            except Mismatch as mismatch:
                mismatch.path.append(key)
                raise
            append(_END)

        return write

    def _union(self, union: Union) -> Write:
        branches = {label(branch): (_number(index), self.of(branch)) for index, branch in enumerate(union.branches)}
        choice = ", ".join(branches)
        null = branches["null"][0] if "null" in branches else None

        def write(view: JsonView, append: Append) -> None:
            if view is None and null is not None:
                append(null)
                return
            if not isinstance(view, dict) or len(view) != 1:
                raise Mismatch(f'a value of a union is written as {{"type": value}}, the type being one of {choice}')
            ((name, part),) = view.items()
            if name not in branches or name == "null":
                raise Mismatch(f"the union has no type {name[:200]!r}, but {choice}")
            index, write_branch = branches[name]
            append(index)
            try:
                write_branch(part, append)
            except Mismatch as mismatch:
                mismatch.path.append(name)
                raise

        return write

    def _record(self, record: Record) -> Write:
        if id(record) in self._records:
            return self._records[id(record)]
        fields: dict[str, Write] = {}
        defaults: dict[str, JsonView] = {}

        def write(view: JsonView, append: Append) -> None:
            if not isinstance(view, dict):
                raise _unlike(f"a record {record.name.full}", view)
            if view.keys() != fields.keys():
                view = _completed(view, fields, defaults)
            name = ""
            try:
                for name, write_field in fields.items():
                    write_field(view[name], append)
            except Mismatch as mismatch:
                mismatch.path.append(name)
                raise

        self._records[id(record)] = write
        for field in record.fields:
            fields[field.name] = self.of(field.type)
            if field.has_default:
                defaults[field.name] = _default_view(field.type, field.default)
        return write


def _completed(view: dict[str, JsonView], fields: dict[str, Write], defaults: dict[str, JsonView]) -> JsonView:
    """A record with the defaults of what it leaves out."""
    for name in view:
        if name not in fields:
            raise Mismatch(f"the record has no field {name[:200]!r}")
    for name in fields:
        if name not in view and name not in defaults:
            raise Mismatch(f"the field {name!r} is missing")
    return defaults | view


def _default_view(type_: Type, default: JsonView) -> JsonView:
    """The default of a field as data would have it: defaults of unions are of their first branch, and say no name."""
    match type_:
        case Union():
            if default is None:
                return None
            branch = type_.branches[0]
            return {label(branch): _default_view(branch, default)}
        case Array() if isinstance(default, list):
            return [_default_view(type_.items, part) for part in default]
        case Map() if isinstance(default, dict):
            return {key: _default_view(type_.values, part) for key, part in default.items()}
        case Record() if isinstance(default, dict):
            types = {field.name: field.type for field in type_.fields}
            return {name: _default_view(types[name], part) for name, part in default.items() if name in types}
        case _:
            return default


def _unlike(wanted: str, view: JsonView) -> Mismatch:
    shown = {type(None): "null", bool: "a boolean", str: "text", list: "an array", dict: "an object"}
    return Mismatch(f"expected {wanted}, not {shown.get(type(view), 'a number')}")


def varint(number: int) -> bytes:
    """A number as Avro writes it."""
    rest = number << 1 if number >= 0 else (-number << 1) - 1  # zigzag
    if _LEAST_TIME <= rest < _LEAST_TIME << 7:
        return bytes(
            (
                rest & 0x7F | 0x80,
                rest >> 7 & 0x7F | 0x80,
                rest >> 14 & 0x7F | 0x80,
                rest >> 21 & 0x7F | 0x80,
                rest >> 28 & 0x7F | 0x80,
                rest >> 35,
            )
        )
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


SMALL = tuple(varint(number) for number in range(1024))
"""Lengths, counts and most numbers."""


def _number(number: int) -> bytes:
    return SMALL[number] if 0 <= number < 1024 else varint(number)


def _write_null(view: JsonView, append: Append) -> None:  # noqa: ARG001 - null takes no bytes
    if view is not None:
        raise _unlike("null", view)


def _write_boolean(view: JsonView, append: Append) -> None:
    if view is True:
        append(_TRUE)
    elif view is False:
        append(_FALSE)
    else:
        raise _unlike("a boolean", view)


def _integer(kind: str) -> Write:
    limit = RANGES[kind]

    def write(view: JsonView, append: Append) -> None:
        if type(view) is not int:
            if type(view) is not float or not view.is_integer():
                raise _unlike(f"{'an' if kind == 'int' else 'a'} {kind}", view)
            view = int(view)
        if 0 <= view < 1024:
            append(SMALL[view])
        elif -limit <= view < limit:
            append(varint(view))
        else:
            raise Mismatch(f"{view} is out of the range of {kind}")

    return write


def _floating(layout: str) -> Write:
    pack = struct.Struct(layout).pack

    def write(view: JsonView, append: Append) -> None:
        if type(view) is not float and type(view) is not int:
            if type(view) is not str or view not in _NOT_NUMBERS:
                raise _unlike("a number", view)
            view = _NOT_NUMBERS[view]
        try:
            append(pack(view))
        except (OverflowError, struct.error):
            raise Mismatch("the number is too large") from None

    return write


def _write_text(view: JsonView, append: Append) -> None:
    if not isinstance(view, str):
        raise _unlike("text", view)
    try:
        data = view.encode()
    except UnicodeEncodeError:
        raise Mismatch("the text has half a surrogate pair") from None
    size = len(data)
    append((SMALL[size] if size < 1024 else varint(size)) + data)


def plain_bytes(view: JsonView) -> bytes:
    """Bytes alone, from text with one character per byte."""
    if not isinstance(view, str):
        raise _unlike("text", view)
    try:
        return view.encode("latin-1")
    except UnicodeEncodeError:
        raise Mismatch("bytes are text with one character up to U+00FF per byte") from None


def _write_bytes(view: JsonView, append: Append) -> None:
    data = plain_bytes(view)
    append(_number(len(data)))
    append(data)


def _fixed(fixed: Fixed) -> Write:
    def write(view: JsonView, append: Append) -> None:
        value = plain_bytes(view)
        if len(value) != fixed.size:
            raise Mismatch(f"{fixed.name.full} takes {fixed.size} bytes, not {len(value)}")
        append(value)

    return write


def _enum(enum: Enum) -> Write:
    symbols = {symbol: _number(index) for index, symbol in enumerate(enum.symbols)}

    def write(view: JsonView, append: Append) -> None:
        if not isinstance(view, str):
            raise _unlike("text", view)
        if view not in symbols:
            raise Mismatch(f"{enum.name.full} has no symbol {view[:200]!r}")
        append(symbols[view])

    return write


_PRIMITIVE_WRITINGS: dict[str, Write] = {
    "null": _write_null,
    "boolean": _write_boolean,
    "int": _integer("int"),
    "long": _integer("long"),
    "float": _floating("<f"),
    "double": _floating("<d"),
    "bytes": _write_bytes,
    "string": _write_text,
}
