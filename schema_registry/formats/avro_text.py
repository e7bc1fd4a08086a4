"""Print Avro types as text: as Java's Schema.toString() does, which Confluent's registry stores, and in normal form."""

import math
from collections.abc import Iterable
from operator import attrgetter
from typing import Final

from msgspec.structs import replace

from schema_registry.formats.avro_defaults import Defaults
from schema_registry.formats.avro_json import quote, to_single, write
from schema_registry.formats.avro_types import (
    TYPE_NAMES,
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
)

_KINDS_OF_LOGICAL_TYPES: Final = {
    "big-decimal": ("bytes",),
    "date": ("int",),
    "decimal": ("bytes", "fixed"),
    "local-timestamp-micros": ("long",),
    "local-timestamp-millis": ("long",),
    "local-timestamp-nanos": ("long",),
    "time-micros": ("long",),
    "time-millis": ("int",),
    "timestamp-micros": ("long",),
    "timestamp-millis": ("long",),
    "timestamp-nanos": ("long",),
    "uuid": ("string", "fixed"),
}


def canonical(type_: Type, known: Iterable[str] = ()) -> str:
    """The text that is stored: compact, with keys in Java's order; known types are used by name only."""
    return _Printer(set(known)).text_of(type_, None)


def normalize(type_: Type, known: Iterable[str] = ()) -> str:
    """The text in normal form: as the stored text, but properties and aliases are sorted, and defaults converted to
    the type of their field.

    Confluent's normal form is the stored text of its own normalised text, so the layout is the same.
    """
    return _Printer(set(known), normal=True).text_of(type_, None)


def same_definition(one: Named, other: Named) -> bool:
    """Whether two definitions of a name are equal, documentation and aliases aside.

    Types inside them are compared by name only: if they are defined again as well, that definition is compared itself.
    """
    return _essence(one) == _essence(other)


def _essence(type_: Named) -> str:
    bare = replace(type_, doc=None, aliases=())
    if isinstance(bare, Record):
        bare.fields = [replace(field, doc=None, aliases=()) for field in bare.fields]
    return _Printer(_AllNames(), normal=True).definition_of(bare, None)


class _AllNames(set[str]):
    """A set of all names, so that only the definition at hand is printed and every other type by name."""

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str)


class _Printer:
    """Prints types; a named type is defined where it comes first, and used by name after that."""

    def __init__(self, known: set[str], *, normal: bool = False) -> None:
        self._known = known
        self._normal = normal
        self._defaults = Defaults()

    def text_of(self, type_: Type, namespace: str | None) -> str:
        match type_:
            case Primitive():
                properties = self._properties(type_.properties, type_)
                return f'{{"type":"{type_.kind}"{properties}}}' if properties else f'"{type_.kind}"'
            case Union():
                return f"[{','.join([self.text_of(branch, namespace) for branch in type_.branches])}]"
            case Array():
                inner = self.text_of(type_.items, namespace)
                return f'{{"type":"array","items":{inner}{self._properties(type_.properties, type_)}}}'
            case Map():
                inner = self.text_of(type_.values, namespace)
                return f'{{"type":"map","values":{inner}{self._properties(type_.properties, type_)}}}'
            case _:
                if type_.name.full in self._known:
                    return quote(self._short_name(type_.name, namespace))
                return self.definition_of(type_, namespace)

    def _short_name(self, name: Name, namespace: str | None) -> str:
        if name.namespace == namespace and name.simple not in TYPE_NAMES:
            return name.simple
        if name.namespace is None and f"{namespace}.{name.simple}" in self._known:
            return f".{name.simple}"
        return name.full

    def definition_of(self, type_: Named, namespace: str | None) -> str:
        self._known.add(type_.name.full)
        kind = "error" if isinstance(type_, Record) and type_.is_error else type_.kind
        # An empty documentation means nothing; Confluent drops it for types, but not for fields.
        has_doc = bool(type_.doc) if self._normal else type_.doc is not None
        return (
            f'{{"type":"{kind}","name":{quote(type_.name.simple)}{_namespace(type_.name, namespace)}'
            f"{_doc(type_.doc) if has_doc else ''}{self._content(type_)}{self._properties(type_.properties, type_)}"
            f"{self._aliases(type_)}}}"
        )

    def _content(self, type_: Named) -> str:
        match type_:
            case Record():
                namespace = type_.name.namespace
                return f',"fields":[{",".join([self._field(field, namespace) for field in type_.fields])}]'
            case Enum():
                default = "" if type_.default is None else f',"default":{quote(type_.default)}'
                return f',"symbols":{write(type_.symbols)}{default}'
            case Fixed():
                return f',"size":{type_.size}'

    def _field(self, field: Field, namespace: str | None) -> str:
        parts = [f'{{"name":{quote(field.name)},"type":{self.text_of(field.type, namespace)}{_doc(field.doc)}']
        if field.has_default:
            default = self._convert(field.type, field.default) if self._normal else field.default
            parts.append(f',"default":{write(default, sort_keys=self._normal)}')
        if field.order != "ascending":
            parts.append(f',"order":"{field.order}"')
        if field.aliases:
            parts.append(f',"aliases":{write(sorted(field.aliases) if self._normal else field.aliases)}')
        parts.append(self._properties(field.properties))
        parts.append("}")
        return "".join(parts)

    def _convert(self, type_: Type, value: JsonValue) -> JsonValue:
        """Convert a default to a value of its type: whole numbers of floating-point fields get a fraction."""
        match type_:
            case Primitive(kind="float" | "double") if type(value) in (int, float):
                return _to_float(type_.kind, value)
            case Union() if branch := self._defaults.branch(type_, value):
                return self._convert(branch, value)
            case Array() if isinstance(value, list):
                return [self._convert(type_.items, item) for item in value]
            case Map() if isinstance(value, dict):
                return {key: self._convert(type_.values, item) for key, item in value.items()}
            case Record() if isinstance(value, dict):
                types = {field.name: field.type for field in type_.fields}
                return {key: self._convert(types[key], item) if key in types else item for key, item in value.items()}
            case _:
                return value

    def _aliases(self, type_: Named) -> str:
        if not type_.aliases:
            return ""
        aliases = sorted(type_.aliases, key=attrgetter("full")) if self._normal else type_.aliases
        return f',"aliases":{write([_alias(alias, type_.name.namespace) for alias in aliases])}'

    def _properties(self, properties: Properties, owner: Type | None = None) -> str:
        if not properties:
            return ""
        keys: Iterable[str] = properties
        if self._normal:
            first = _leading_properties(properties, owner)
            keys = [*first, *sorted(properties.keys() - set(first))]
        return "".join([f",{quote(key)}:{write(properties[key], sort_keys=self._normal)}" for key in keys])


def _doc(doc: str | None) -> str:
    return "" if doc is None else f',"doc":{quote(doc)}'


def _namespace(name: Name, surrounding: str | None) -> str:
    if name.namespace == surrounding:
        return ""
    return f',"namespace":{quote(name.namespace or "")}'


def _alias(alias: Name, namespace: str | None) -> str:
    """An alias in its shortest form; without a dot it would belong to the type's own namespace."""
    if alias.namespace == namespace and alias.simple not in TYPE_NAMES:
        return alias.simple
    return f".{alias.simple}" if alias.namespace is None and namespace else alias.full


def _to_float(kind: str, value: float) -> float:
    try:
        return to_single(float(value)) if kind == "float" else float(value)
    except OverflowError:
        return value


def _leading_properties(properties: Properties, owner: Type | None) -> list[str]:
    """The properties of a valid logical type, which come first in Confluent's normal form."""
    logical = properties.get("logicalType")
    if not isinstance(owner, Primitive | Fixed) or owner.kind not in _KINDS_OF_LOGICAL_TYPES.get(str(logical), ()):
        return []
    if logical != "decimal":
        return ["logicalType"]
    if not _is_decimal(owner, properties):
        return []
    return ["logicalType", "precision", *(["scale"] if properties.get("scale") else [])]


def _is_decimal(owner: Primitive | Fixed, properties: Properties) -> bool:
    precision, scale = properties.get("precision"), properties.get("scale", 0)
    if type(precision) is not int or type(scale) is not int:
        return False
    digits_max = math.floor(math.log10(2) * (8 * owner.size - 1)) if isinstance(owner, Fixed) else 1 << 31
    return 0 < precision <= digits_max and 0 <= scale <= precision
