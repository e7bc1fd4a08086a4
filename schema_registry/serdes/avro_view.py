"""Avro data as JSON, in Avro's own JSON encoding, which REST proxies speak.

A value of a union stands in an object under the name of its type, null stands alone; bytes and fixed are text with one
character per byte; logical types are told by what is stored for them.

Data is read by fastavro, by a schema of the same layout without logical types. It tells the branch of a
union by the Python type of the value, which does not tell int from long, or float from double: where a union has both,
they are marked by a logical type of our own whose values come with the name.
"""

import math
from collections.abc import Callable
from typing import Any

import fastavro.read

from schema_registry.formats.avro_types import Array, Enum, Fixed, Map, Named, Primitive, Record, Type, Union, label
from schema_registry.serdes.codec import JsonView

Structure = Any
"""A schema as fastavro takes it."""
Change = Callable[[Any], Any]

_MARK = "caudal-branch"
_PYTHON_TYPES = {
    "boolean": bool,
    "int": int,
    "long": int,
    "float": float,
    "double": float,
    "bytes": bytes,
    "string": str,
    "array": list,
    "map": dict,
}


def layout(root: Type) -> Structure:
    """The schema without logical types, with those branches marked that Python cannot tell apart."""
    return _Layout().of(root)


class _Layout:
    def __init__(self) -> None:
        self._written: set[str] = set()

    def of(self, type_: Type) -> Structure:
        match type_:
            case Primitive():
                return type_.kind
            case Array():
                return {"type": "array", "items": self.of(type_.items)}
            case Map():
                return {"type": "map", "values": self.of(type_.values)}
            case Union():
                return self._union(type_)
            case Record() | Enum() | Fixed():
                return self._named(type_)

    def _named(self, type_: Named) -> Structure:
        name = type_.name.full
        if name in self._written:
            return name
        self._written.add(name)
        if isinstance(type_, Fixed):
            return {"type": "fixed", "name": name, "size": type_.size}
        if isinstance(type_, Enum):
            return {"type": "enum", "name": name, "symbols": list(type_.symbols)}
        fields = [{"name": field.name, "type": self.of(field.type)} for field in type_.fields]
        return {"type": "record", "name": name, "fields": fields}

    def _union(self, union: Union) -> Structure:
        kinds = {branch.kind for branch in union.branches}
        doubtful = {kind for pair in ({"int", "long"}, {"float", "double"}) if pair <= kinds for kind in pair}
        return [
            {"type": branch.kind, "logicalType": _MARK} if branch.kind in doubtful else self.of(branch)
            for branch in union.branches
        ]


def _named(kind: str) -> Callable[..., tuple[str, Any]]:
    return lambda data, *_: (kind, data)


for _kind in ("int", "long", "float", "double"):
    fastavro.read.LOGICAL_READERS[f"{_kind}-{_MARK}"] = _named(_kind)


class Views:
    """How what fastavro read becomes JSON: one function per type, None where nothing changes."""

    def __init__(self) -> None:
        self._records: dict[int, Change] = {}

    def of(self, type_: Type) -> Change | None:
        """The function for a type; it may change lists and dicts in place, because they were made for it."""
        match type_:
            case Primitive():
                return _PRIMITIVE_VIEWS.get(type_.kind)
            case Fixed():
                return _bytes_as_text
            case Enum():
                return None
            case Array():
                return _each_item(self.of(type_.items))
            case Map():
                return _each_value(self.of(type_.values))
            case Union():
                return self._union(type_)
            case Record():
                return self._record(type_)

    def _record(self, record: Record) -> Change | None:
        if id(record) in self._records:
            return self._records[id(record)]
        changes: list[tuple[str, Change]] = []

        def change(value: dict[str, Any]) -> JsonView:
            for name, part in changes:
                value[name] = part(value[name])
            return value

        self._records[id(record)] = change
        for field in record.fields:
            part = self.of(field.type)
            if part is not None:
                changes.append((field.name, part))
        return change if changes else None

    def _union(self, union: Union) -> Change:
        by_label = {label(branch): self.of(branch) for branch in union.branches}
        # Values of named types, and of those that were marked, come with the name.
        unnamed = [branch for branch in union.branches if isinstance(branch, Primitive | Array | Map)]
        by_type = {_PYTHON_TYPES[branch.kind]: branch.kind for branch in unnamed if branch.kind != "null"}

        def change(value: Any) -> JsonView:
            if value is None:
                return None
            if type(value) is tuple:
                name, value = value
            else:
                name = by_type[type(value)]
            part = by_label[name]
            return {name: value if part is None else part(value)}

        return change


def _each_item(change: Change | None) -> Change | None:
    return None if change is None else lambda value: [change(part) for part in value]


def _each_value(change: Change | None) -> Change | None:
    return None if change is None else lambda value: {key: change(part) for key, part in value.items()}


def _bytes_as_text(value: bytes) -> str:
    return value.decode("latin-1")


def _number_or_name(value: float) -> JsonView:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


_PRIMITIVE_VIEWS: dict[str, Change] = {
    "bytes": _bytes_as_text,
    "float": _number_or_name,
    "double": _number_or_name,
}
