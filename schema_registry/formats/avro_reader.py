"""Read Avro types from the JSON of a schema, and check them against Avro's rules."""

import re
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from schema_registry.formats.avro_defaults import NOT_NUMBERS, Defaults
from schema_registry.formats.avro_names import NameRules, qualify
from schema_registry.formats.avro_text import same_definition
from schema_registry.formats.avro_types import (
    PRIMITIVES,
    Array,
    Enum,
    Field,
    Fixed,
    JsonValue,
    Map,
    Name,
    Named,
    Primitive,
    Properties,
    Record,
    Type,
    Union,
    label,
)
from schema_registry.formats.schema import InvalidSchema

_Object = dict[str, JsonValue]
_RESERVED: Final = frozenset(
    {"doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases"}
)
_RESERVED_OF_ENUMS: Final = _RESERVED | {"default"}
_RESERVED_OF_FIELDS: Final = frozenset({"default", "doc", "name", "order", "type", "aliases"})
_ORDERS: Final = frozenset({"ascending", "descending", "ignore"})
_FIXED_BYTES_MAX: Final = (1 << 31) - 9
_is_decimal: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?").fullmatch
_PLAIN_PRIMITIVES: Final = {kind: Primitive(kind) for kind in PRIMITIVES}


class Reader:
    """Reads one schema after another; each may use the named types of those before it."""

    def __init__(self, known: Mapping[str, Named] | None = None, *, strict: bool = True) -> None:
        self.known: dict[str, Named] = dict(known or {})
        self._strict = strict
        self._rules = NameRules(strict=strict)
        self._with_defaults: list[tuple[str, Field]] = []
        self._unfinished: set[str] = set()
        self._readers: dict[str, Callable[[_Object, str | None, str], Type]] = {
            "record": self._record,
            "error": self._record,
            "enum": self._enum,
            "fixed": self._fixed,
            "array": self._array,
            "map": self._map,
        }

    def read(self, value: JsonValue) -> Type:
        """The type at the top of a schema."""
        found = self._type(value, None, "")
        if self._strict and self._with_defaults:
            Defaults().check(self._with_defaults)
        return found

    def _type(self, value: JsonValue, namespace: str | None, path: str) -> Type:
        if isinstance(value, str):
            return _PLAIN_PRIMITIVES.get(value) or self._find_named(value, namespace, path)
        if isinstance(value, list):
            return self._union(value, namespace, path)
        if not isinstance(value, dict):
            raise _invalid(path, f"a type is a name, an object or an array of types, not {_kind(value)}")
        kind = value.get("type")
        if not isinstance(kind, str):
            problem = f"the type must be a name, not {_kind(kind)}" if "type" in value else "there is no type"
            raise _invalid(path, problem)
        if kind in PRIMITIVES:
            properties = _properties(value, _RESERVED)
            return Primitive(kind, properties) if properties else _PLAIN_PRIMITIVES[kind]
        if read := self._readers.get(kind):
            return read(value, namespace, path)
        return self._find_named(kind, namespace, path)

    def _find_named(self, name: str, namespace: str | None, path: str) -> Named:
        """A named type, in the current namespace or else without one."""
        found = self.known.get(qualify(name, namespace).full) or self.known.get(name)
        if found is None:
            raise _invalid(
                path, f"the type {name[:200]!r} is unknown: define it before it is used, or add a reference to it"
            )
        return found

    def _union(self, value: list[JsonValue], namespace: str | None, path: str) -> Union:
        branches: dict[str, Type] = {}
        for index, item in enumerate(value):
            branch = self._type(item, namespace, f"{path}/{index}")
            if isinstance(branch, Union):
                raise _invalid(f"{path}/{index}", "a union must not directly contain another union")
            if label(branch) in branches:
                raise _invalid(f"{path}/{index}", f"the union has {label(branch)!r} twice")
            branches[label(branch)] = branch
        return Union(tuple(branches.values()))

    def _array(self, value: _Object, namespace: str | None, path: str) -> Array:
        if "items" not in value:
            raise _invalid(path, "an array needs the type of its items")
        return Array(self._type(value["items"], namespace, f"{path}/items"), _properties(value, _RESERVED))

    def _map(self, value: _Object, namespace: str | None, path: str) -> Map:
        if "values" not in value:
            raise _invalid(path, "a map needs the type of its values")
        return Map(self._type(value["values"], namespace, f"{path}/values"), _properties(value, _RESERVED))

    def _fixed(self, value: _Object, namespace: str | None, path: str) -> Named:
        size = value.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= _FIXED_BYTES_MAX:
            raise _invalid(f"{path}/size", f"the size of a fixed must be a number of bytes up to {_FIXED_BYTES_MAX}")
        name = self._name(value, namespace, path)
        found = Fixed(
            name=name,
            size=size,
            doc=_doc(value),
            aliases=self._aliases(value, name, path),
            properties=_properties(value, _RESERVED),
        )
        return self._define(found, self.known.get(name.full), path)

    def _enum(self, value: _Object, namespace: str | None, path: str) -> Named:
        symbols = value.get("symbols")
        if not isinstance(symbols, list):
            raise _invalid(path, "an enum needs an array of symbols")
        name = self._name(value, namespace, path)
        for index, symbol in enumerate(symbols):
            self._rules.check(symbol, "symbol", f"{path}/symbols/{index}")
        _refuse_repeated(symbols, "symbol", f"{path}/symbols")
        default = value.get("default")
        if default is not None and default not in symbols:
            raise _invalid(f"{path}/default", "the default of an enum must be one of its symbols")
        found = Enum(
            name=name,
            symbols=symbols,
            default=default,
            doc=_doc(value),
            aliases=self._aliases(value, name, path),
            properties=_properties(value, _RESERVED_OF_ENUMS),
        )
        return self._define(found, self.known.get(name.full), path)

    def _record(self, value: _Object, namespace: str | None, path: str) -> Named:
        fields = value.get("fields")
        if not isinstance(fields, list):
            raise _invalid(path, "a record needs an array of fields")
        name = self._name(value, namespace, path)
        found = Record(
            name=name,
            is_error=value["type"] == "error",
            doc=_doc(value),
            aliases=self._aliases(value, name, path),
            properties=_properties(value, _RESERVED),
        )
        if name.full in self._unfinished:
            raise _invalid(path, f"the type {name.full!r} is defined inside itself")
        earlier = self.known.setdefault(name.full, found)
        self._unfinished.add(name.full)
        for index, field in enumerate(fields):
            found.fields.append(self._field(field, name.namespace, f"{path}/fields/{index}"))
        self._unfinished.remove(name.full)
        _refuse_repeated([field.name for field in found.fields], "field", f"{path}/fields")
        return self._define(found, None if earlier is found else earlier, path)

    def _field(self, value: JsonValue, namespace: str | None, path: str) -> Field:
        if not isinstance(value, dict):
            raise _invalid(path, f"a field is an object, not {_kind(value)}")
        name = self._rules.check(value.get("name"), "name", path)
        if "type" not in value:
            raise _invalid(path, f"the field {name!r} has no type")
        type_ = self._type(value["type"], namespace, f"{path}/type")
        order = value.get("order", "ascending")
        if not isinstance(order, str) or order.lower() not in _ORDERS:
            raise _invalid(f"{path}/order", "the order must be ascending, descending or ignore")
        field = Field(
            name=name,
            type=type_,
            default=_default(value, type_, path) if "default" in value else msgspec.UNSET,
            doc=_doc(value),
            order=order.lower(),
            aliases=_alias_names(value, path) if "aliases" in value else (),
            properties=_properties(value, _RESERVED_OF_FIELDS),
        )
        if field.has_default:
            self._with_defaults.append((path, field))
        return field

    def _name(self, value: _Object, namespace: str | None, path: str) -> Name:
        if value.get("name") is None:
            raise _invalid(path, f"this {value['type']} has no name")
        own = value.get("namespace")
        return self._rules.define(value["name"], own if isinstance(own, str) else namespace, path)

    def _aliases(self, value: _Object, name: Name, path: str) -> tuple[Name, ...]:
        if "aliases" not in value:
            return ()
        aliases = (self._rules.alias(alias, name.namespace, f"{path}/aliases") for alias in _alias_names(value, path))
        return tuple(dict.fromkeys(aliases))

    def _define(self, found: Named, earlier: Named | None, path: str) -> Named:
        """Register a named type; it may be defined again if the definition is equal (since Avro 1.12)."""
        if earlier is None:
            self.known[found.name.full] = found
            return found
        if not same_definition(found, earlier):
            raise _invalid(path, f"the type {found.name.full!r} already has a different definition")
        return earlier


def _invalid(path: str, problem: str) -> InvalidSchema:
    return InvalidSchema(f"{path or '/'}: {problem}")


def _kind(value: JsonValue) -> str:
    """The kind of a JSON value, for messages."""
    names = {dict: "an object", list: "an array", str: "text", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def _doc(value: _Object) -> str | None:
    doc = value.get("doc")
    return doc if isinstance(doc, str) else None


def _properties(value: _Object, reserved: frozenset[str]) -> Properties:
    if value.keys() <= reserved:
        return {}
    return {key: item for key, item in value.items() if key not in reserved}


def _alias_names(value: _Object, path: str) -> tuple[str, ...]:
    """The aliases without duplicates."""
    aliases = value["aliases"]
    if not isinstance(aliases, list) or not all(isinstance(alias, str) for alias in aliases):
        raise _invalid(f"{path}/aliases", "aliases must be an array of names")
    return tuple(dict.fromkeys(aliases))


def _refuse_repeated(names: list[str], what: str, path: str) -> None:
    if len(set(names)) == len(names):
        return
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name in seen:
            raise _invalid(f"{path}/{index}", f"there are two {what}s {name!r}")
        seen.add(name)


def _default(value: _Object, type_: Type, path: str) -> JsonValue:
    """The default; numbers that are written as text are parsed, as Java does."""
    default = value["default"]
    if type_.kind not in ("float", "double") or not isinstance(default, str) or default in NOT_NUMBERS:
        return default
    if not _is_decimal(default):
        raise _invalid(f"{path}/default", f"{default[:100]!r} is not a number")
    return float(default)
