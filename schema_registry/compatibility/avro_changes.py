"""What changed from one Avro schema to the next, for people to read: harmless changes too, unlike `avro.compare`."""

from collections.abc import Iterator
from typing import TypeAlias

from schema_registry.compatibility.avro_readable import Key, Readable, TooManyPairs, is_same_name, key_of, matching
from schema_registry.compatibility.difference import Difference
from schema_registry.formats.avro import AvroSchema
from schema_registry.formats.avro_json import written
from schema_registry.formats.avro_types import (
    Array,
    Enum,
    Field,
    Fixed,
    Map,
    Named,
    Primitive,
    Record,
    Type,
    Union,
    label,
)

_Step: TypeAlias = Difference | tuple[Type, Type, str]


def changes(new: AvroSchema, old: AvroSchema) -> list[Difference]:
    """Every change, in the order of the new schema; it is compatible if the new schema reads what was there before.

    The names of the kinds of change are ours. Paths lead into the new schema, those to what was removed into the old.
    """
    walk = _Walk()
    told: set[Key] = set()
    found: list[Difference] = []
    stack = [iter(walk.steps(new.root, old.root, ""))]
    while stack:
        step = next(stack[-1], None)
        if step is None:
            stack.pop()
        elif isinstance(step, Difference):
            found.append(step)
        elif (key := key_of(step[0], step[1])) not in told:
            if isinstance(step[0], Named):
                told.add(key)
            stack.append(walk.steps(*step))
    return found


class _Walk:
    """Tells the changes at one place, and the places below it, in order."""

    def __init__(self) -> None:
        self._readable = Readable()

    def steps(self, new: Type, old: Type, path: str) -> Iterator[_Step]:
        match new, old:
            case Union(), Union():
                yield from self._union(new, old, path)
            case Array(), Array():
                yield new.items, old.items, f"{path}/items"
            case Map(), Map():
                yield new.values, old.values, f"{path}/values"
            case Record(), Record():
                yield from _named(new, old, path)
                yield from _fields(new, old, path)
            case Enum(), Enum():
                yield from _named(new, old, path)
                yield from _symbols(new, old, path)
            case Fixed(), Fixed():
                yield from _named(new, old, path)
                if new.size != old.size:
                    yield _change("SIZE_CHANGED", f"{path}/size", f"{old.size} bytes became {new.size}", ok=False)
            case _ if new.kind != old.kind:
                text = f"{_shown(old)} became {_shown(new)}"
                yield _change("TYPE_CHANGED", path, text, ok=self._reads(new, old))
        if not isinstance(new, Union) and not isinstance(old, Union) and new.properties != old.properties:
            yield _properties(new, old, path)

    def _union(self, new: Union, old: Union, path: str) -> Iterator[_Step]:
        before = {label(branch): (index, branch) for index, branch in enumerate(old.branches)}
        for index, branch in enumerate(new.branches):
            found = before.pop(label(branch), None)
            if found is None:
                yield _change("BRANCH_ADDED", f"{path}/{index}", f"{_shown(branch)} was added to the union")
            else:
                yield branch, found[1], f"{path}/{index}"
        for index, branch in before.values():
            text = f"{_shown(branch)} was removed from the union"
            yield _change("BRANCH_REMOVED", f"{path}/{index}", text, ok=self._reads(new, branch))

    def _reads(self, new: Type, old: Type) -> bool:
        try:
            return self._readable(new, old)
        except TooManyPairs:
            return False


def _named(new: Named, old: Named, path: str) -> Iterator[Difference]:
    if new.name != old.name:
        text = f"{old.name.full} was renamed {new.name.full}"
        yield _change("NAME_CHANGED", f"{path}/name", text, ok=is_same_name(new, old))
    if new.aliases != old.aliases:
        yield _change("ALIASES_CHANGED", f"{path}/aliases", f"the aliases of {new.name.full} changed")
    if new.doc != old.doc:
        yield _change("DOC_CHANGED", f"{path}/doc", f"the documentation of {new.name.full} changed")


def _symbols(new: Enum, old: Enum, path: str) -> Iterator[Difference]:
    before, now = set(old.symbols), set(new.symbols)
    if added := [symbol for symbol in new.symbols if symbol not in before]:
        yield _change("SYMBOLS_ADDED", f"{path}/symbols", f"{', '.join(added)} came to enum {new.name.full}")
    if removed := [symbol for symbol in old.symbols if symbol not in now]:
        text = f"{', '.join(removed)} left enum {new.name.full}"
        yield _change("SYMBOLS_REMOVED", f"{path}/symbols", text, ok=new.default is not None)
    if new.default != old.default:
        text = f"the default of enum {new.name.full} was {old.default or 'none'} and is {new.default or 'none'}"
        yield _change("ENUM_DEFAULT_CHANGED", f"{path}/default", text)


def _fields(new: Record, old: Record, path: str) -> Iterator[_Step]:
    before = {field.name: field for field in old.fields}
    taken: set[str] = set()
    for index, field in enumerate(new.fields):
        where = f"{path}/fields/{index}"
        found = matching(field, before)
        taken.update(match.name for match in found)
        if len(found) > 1:
            text = f"field {field.name!r} matches several: {', '.join(match.name for match in found)}"
            yield _change("FIELD_AMBIGUOUS", where, text, ok=False)
        elif found:
            yield from _field(field, found[0], where)
        else:
            default = f"default {written(field.default)}" if field.has_default else "no default"
            text = f"field {field.name!r} was added: {_shown(field.type)}, {default}"
            yield _change("FIELD_ADDED", where, text, ok=field.has_default)
    for index, field in enumerate(old.fields):
        if field.name not in taken:
            yield _change("FIELD_REMOVED", f"{path}/fields/{index}", f"field {field.name!r} was removed")


def _field(new: Field, old: Field, path: str) -> Iterator[_Step]:
    name = repr(new.name)
    if new.name != old.name:
        yield _change("FIELD_RENAMED", path, f"field {old.name!r} was renamed {name}")
    yield new.type, old.type, f"{path}/type"
    if new.has_default != old.has_default or (new.has_default and written(new.default) != written(old.default)):
        was = written(old.default) if old.has_default else "none"
        now = written(new.default) if new.has_default else "none"
        yield _change("DEFAULT_CHANGED", f"{path}/default", f"the default of field {name} was {was} and is {now}")
    if new.doc != old.doc:
        yield _change("DOC_CHANGED", f"{path}/doc", f"the documentation of field {name} changed")
    if new.order != old.order:
        yield _change("ORDER_CHANGED", f"{path}/order", f"field {name} sorts {new.order}, not {old.order}")
    if new.aliases != old.aliases:
        yield _change("ALIASES_CHANGED", f"{path}/aliases", f"the aliases of field {name} changed")
    if new.properties != old.properties:
        yield _properties(new, old, path)


def _properties(
    new: Primitive | Array | Map | Named | Field, old: Primitive | Array | Map | Named | Field, path: str
) -> Difference:
    keys = sorted(new.properties.keys() | old.properties.keys())
    absent = object()
    changed = [key for key in keys if new.properties.get(key, absent) != old.properties.get(key, absent)]
    return _change("PROPERTIES_CHANGED", path, f"the properties {', '.join(changed)} changed")


def _shown(type_: Type) -> str:
    if isinstance(type_, Union):
        return f"a union of {', '.join(map(_shown, type_.branches)) or 'nothing'}"
    return f"{type_.kind} {label(type_)}" if isinstance(type_, Named) else type_.kind


def _change(type_: str, path: str, description: str, *, ok: bool = True) -> Difference:
    return Difference(type=type_, path=path or "/", is_compatible=ok, description=description)
