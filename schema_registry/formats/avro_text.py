"""Avro's types as text: as Java's Schema.toString() writes them, which Confluent's registry stores, and normalised."""

import math
from collections.abc import Iterable
from operator import attrgetter
from typing import Final

from msgspec.structs import replace

from schema_registry.formats.avro_defaults import Defaults
from schema_registry.formats.avro_json import as_single, quoted, written
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
    """The text that is stored: compact, keys in Java's order; types whose full names are known are only mentioned."""
    return _Printer(set(known)).text_of(type_, None)


def normalized(type_: Type, known: Iterable[str] = ()) -> str:
    """The text in normal form: besides, properties and aliases are sorted, and defaults written as their type has them.

    Confluent's normal form is the stored text of its own normalised text, so the layout is the same.
    """
    return _Printer(set(known), normal=True).text_of(type_, None)


def same_definition(one: Named, other: Named) -> bool:
    """Whether two definitions of a name say the same, documentation and aliases aside.

    Types within them are compared by name alone: where they are defined again, that definition is compared itself.
    """
    return _essence(one) == _essence(other)


def _essence(type_: Named) -> str:
    bare = replace(type_, doc=None, aliases=())
    if isinstance(bare, Record):
        bare.fields = [replace(field, doc=None, aliases=()) for field in bare.fields]
    return _Printer(_AllNames(), normal=True).definition_of(bare, None)


class _AllNames(set[str]):
    """The names that are known when nothing but the definition at hand is to be written."""

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str)


class _Printer:
    """Writes types; a named type is written out where it comes first, and mentioned after that."""

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
                    return quoted(self._mention(type_.name, namespace))
                return self.definition_of(type_, namespace)

    def _mention(self, name: Name, namespace: str | None) -> str:
        if name.namespace == namespace and name.simple not in TYPE_NAMES:
            return name.simple
        if name.namespace is None and f"{namespace}.{name.simple}" in self._known:
            return f".{name.simple}"
        return name.full

    def definition_of(self, type_: Named, namespace: str | None) -> str:
        self._known.add(type_.name.full)
        kind = "error" if isinstance(type_, Record) and type_.is_error else type_.kind
        # An empty documentation has no meaning; Confluent drops it for types, yet not for fields.
        has_doc = bool(type_.doc) if self._normal else type_.doc is not None
        return (
            f'{{"type":"{kind}","name":{quoted(type_.name.simple)}{_namespace(type_.name, namespace)}'
            f"{_doc(type_.doc) if has_doc else ''}{self._content(type_)}{self._properties(type_.properties, type_)}"
            f"{self._aliases(type_)}}}"
        )

    def _content(self, type_: Named) -> str:
        match type_:
            case Record():
                namespace = type_.name.namespace
                return f',"fields":[{",".join([self._field(field, namespace) for field in type_.fields])}]'
            case Enum():
                default = "" if type_.default is None else f',"default":{quoted(type_.default)}'
                return f',"symbols":{written(type_.symbols)}{default}'
            case Fixed():
                return f',"size":{type_.size}'

    def _field(self, field: Field, namespace: str | None) -> str:
        parts = [f'{{"name":{quoted(field.name)},"type":{self.text_of(field.type, namespace)}{_doc(field.doc)}']
        if field.has_default:
            parts.append(f',"default":{self._default(field)}')
        if field.order != "ascending":
            parts.append(f',"order":"{field.order}"')
        if field.aliases:
            parts.append(f',"aliases":{written(sorted(field.aliases) if self._normal else field.aliases)}')
        parts.append(self._properties(field.properties))
        parts.append("}")
        return "".join(parts)

    def _default(self, field: Field) -> str:
        if self._normal:
            return written(self._converted(field.type, field.default), sort_keys=True)
        return written(field.default)

    def _converted(self, type_: Type, value: JsonValue) -> JsonValue:
        """A default as a value of its type: whole numbers of floating-point fields get a fraction."""
        match type_:
            case Primitive(kind="float" | "double") if type(value) in (int, float):
                return _floating(type_.kind, value)
            case Union() if branch := self._defaults.branch(type_, value):
                return self._converted(branch, value)
            case Array() if isinstance(value, list):
                return [self._converted(type_.items, item) for item in value]
            case Map() if isinstance(value, dict):
                return {key: self._converted(type_.values, item) for key, item in value.items()}
            case Record() if isinstance(value, dict):
                types = {field.name: field.type for field in type_.fields}
                return {key: self._converted(types[key], item) if key in types else item for key, item in value.items()}
            case _:
                return value

    def _aliases(self, type_: Named) -> str:
        if not type_.aliases:
            return ""
        aliases = sorted(type_.aliases, key=attrgetter("full")) if self._normal else type_.aliases
        return f',"aliases":{written([_alias(alias, type_.name.namespace) for alias in aliases])}'

    def _properties(self, properties: Properties, owner: Type | None = None) -> str:
        if not properties:
            return ""
        keys: Iterable[str] = properties
        if self._normal:
            first = _leading_properties(properties, owner)
            keys = [*first, *sorted(properties.keys() - set(first))]
        return "".join([f",{quoted(key)}:{written(properties[key], sort_keys=self._normal)}" for key in keys])


def _doc(doc: str | None) -> str:
    return "" if doc is None else f',"doc":{quoted(doc)}'


def _namespace(name: Name, surrounding: str | None) -> str:
    if name.namespace == surrounding:
        return ""
    return f',"namespace":{quoted(name.namespace or "")}'


def _alias(alias: Name, namespace: str | None) -> str:
    """An alias as short as it may be; without a dot it would be taken for one of the type's own namespace."""
    if alias.namespace == namespace and alias.simple not in TYPE_NAMES:
        return alias.simple
    return f".{alias.simple}" if alias.namespace is None and namespace else alias.full


def _floating(kind: str, value: float) -> float:
    try:
        return as_single(float(value)) if kind == "float" else float(value)
    except OverflowError:
        return value


def _leading_properties(properties: Properties, owner: Type | None) -> list[str]:
    """The properties of a valid logical type come first in Confluent's normal form; others are like any property."""
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
