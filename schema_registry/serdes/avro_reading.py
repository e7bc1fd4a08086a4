"""JSON in Avro's own encoding, as the values that fastavro writes; whatever does not fit is told with its place."""

import math
from collections.abc import Callable
from typing import Any

from schema_registry.formats.avro_types import Array, Enum, Fixed, Map, Primitive, Record, Type, Union, label
from schema_registry.serdes.codec import JsonView

Change = Callable[[JsonView], Any]

_RANGES = {"int": 1 << 31, "long": 1 << 63}
_NOT_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class Mismatch(Exception):
    """JSON does not fit the schema; `path` is filled in from the inside out."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.path: list[str] = []

    def __str__(self) -> str:
        return f"/{'/'.join(reversed(self.path))}: {self.problem}"


class Readings:
    """How JSON becomes what fastavro writes: one function per type; they raise Mismatch."""

    def __init__(self) -> None:
        self._records: dict[int, Change] = {}

    def of(self, type_: Type) -> Change:
        """The function for a type."""
        match type_:
            case Primitive():
                return _PRIMITIVE_READINGS[type_.kind]
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

    def _array(self, array: Array) -> Change:
        item = self.of(array.items)

        def read(view: JsonView) -> list[Any]:
            if not isinstance(view, list):
                raise _unlike("an array", view)
            return [_at(str(index), item, part) for index, part in enumerate(view)]

        return read

    def _map(self, map_: Map) -> Change:
        value = self.of(map_.values)

        def read(view: JsonView) -> dict[str, Any]:
            if not isinstance(view, dict):
                raise _unlike("a map", view)
            return {key: _at(key, value, part) for key, part in view.items()}

        return read

    def _union(self, union: Union) -> Change:
        branches = {label(branch): self.of(branch) for branch in union.branches}
        choice = ", ".join(branches)

        def read(view: JsonView) -> Any:
            if view is None and "null" in branches:
                return None
            if not isinstance(view, dict) or len(view) != 1:
                raise Mismatch(f'a value of a union is written as {{"type": value}}, the type being one of {choice}')
            ((name, part),) = view.items()
            if name not in branches or name == "null":
                raise Mismatch(f"the union has no type {name[:200]!r}, but {choice}")
            return name, _at(name, branches[name], part)

        return read

    def _record(self, record: Record) -> Change:
        if id(record) in self._records:
            return self._records[id(record)]
        fields: dict[str, Change] = {}
        defaults: dict[str, JsonView] = {}

        def read(view: JsonView) -> dict[str, Any]:
            if not isinstance(view, dict):
                raise _unlike(f"a record {record.name.full}", view)
            if not view.keys() <= fields.keys():
                unknown = next(name for name in view if name not in fields)
                raise Mismatch(f"the record has no field {unknown[:200]!r}")
            value = {}
            for name, part in fields.items():
                if name not in view and name not in defaults:
                    raise Mismatch(f"the field {name!r} is missing")
                value[name] = _at(name, part, view[name] if name in view else defaults[name])
            return value

        self._records[id(record)] = read
        for field in record.fields:
            fields[field.name] = self.of(field.type)
            if field.has_default:
                defaults[field.name] = _default_view(field.type, field.default)
        return read


def _at(segment: str, read: Change, view: JsonView) -> Any:
    """Read a part; whatever is wrong with it is told with its place."""
    try:
        return read(view)
    except Mismatch as mismatch:
        mismatch.path.append(segment)
        raise


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


def _read_null(view: JsonView) -> None:
    if view is not None:
        raise _unlike("null", view)


def _read_boolean(view: JsonView) -> bool:
    if not isinstance(view, bool):
        raise _unlike("a boolean", view)
    return view


def _integer(kind: str) -> Change:
    limit = _RANGES[kind]

    def read(view: JsonView) -> int:
        if type(view) is float and view.is_integer():
            view = int(view)
        if type(view) is not int:
            raise _unlike(f"{'an' if kind == 'int' else 'a'} {kind}", view)
        if not -limit <= view < limit:
            raise Mismatch(f"{view} is out of the range of {kind}")
        return view

    return read


def _read_float(view: JsonView) -> float:
    if type(view) is str and view in _NOT_NUMBERS:
        return _NOT_NUMBERS[view]
    if type(view) is not float and type(view) is not int:
        raise _unlike("a number", view)
    try:
        return float(view)
    except OverflowError:
        raise Mismatch("the number is too large") from None


def _read_text(view: JsonView) -> str:
    if not isinstance(view, str):
        raise _unlike("text", view)
    return view


def _read_bytes(view: JsonView) -> bytes:
    try:
        return _read_text(view).encode("latin-1")
    except UnicodeEncodeError:
        raise Mismatch("bytes are text with one character up to U+00FF per byte") from None


def _fixed(fixed: Fixed) -> Change:
    def read(view: JsonView) -> bytes:
        value = _read_bytes(view)
        if len(value) != fixed.size:
            raise Mismatch(f"{fixed.name.full} takes {fixed.size} bytes, not {len(value)}")
        return value

    return read


def _enum(enum: Enum) -> Change:
    symbols = frozenset(enum.symbols)

    def read(view: JsonView) -> str:
        if _read_text(view) not in symbols:
            raise Mismatch(f"{enum.name.full} has no symbol {view[:200]!r}")
        return str(view)

    return read


_PRIMITIVE_READINGS: dict[str, Change] = {
    "null": _read_null,
    "boolean": _read_boolean,
    "int": _integer("int"),
    "long": _integer("long"),
    "float": _read_float,
    "double": _read_float,
    "bytes": _read_bytes,
    "string": _read_text,
}
