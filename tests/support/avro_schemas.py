"""Random Avro schemas for Hypothesis: valid ones, and pairs that differ by a few changes."""

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import strategies as st

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
NAMESPACES = (None, "n", "n.m", "")
SYMBOLS = ("RED", "GREEN", "BLUE", "GREY")
Json = Any
PROPERTIES = st.dictionaries(
    st.sampled_from(("a", "b", "logicalType")), st.sampled_from((1, 1.5, "x", None, [1], {"z": 1, "y": 2}))
)
DEFAULTS: dict[str, Json] = {
    "null": None,
    "boolean": True,
    "int": 3,
    "long": 4,
    "float": 1,
    "double": 2.5,
    "bytes": "ÿ",
    "string": "é\n",
}


class _Maker:
    def __init__(self, draw: st.DrawFn, *, namespaces: bool, extras: bool) -> None:
        self.draw = draw
        self.namespaces = NAMESPACES if namespaces else (None,)
        self.extras = extras
        self.known: dict[str, str] = {}

    def type(self, namespace: str | None, depth: int, *, union: bool = True) -> Json:
        kinds = ["primitive", "primitive", "mention"]
        if depth:
            kinds += ["array", "map", "record", "record", "enum", "fixed", *(["union"] if union else [])]
        match self.draw(st.sampled_from(kinds)):
            case "array":
                return {"type": "array", "items": self.type(namespace, depth - 1), **self.more()}
            case "map":
                return {"type": "map", "values": self.type(namespace, depth - 1), **self.more()}
            case "union":
                return self.union(namespace, depth)
            case "record" | "enum" | "fixed" as kind:
                return self.named(kind, namespace, depth)
            case "mention":
                return self.mention(namespace)
            case _:
                kind = self.draw(st.sampled_from(PRIMITIVES))
                return {"type": kind, **more} if (more := self.more()) else kind

    def more(self) -> dict[str, Json]:
        return self.draw(PROPERTIES) if self.extras and self.draw(st.integers(0, 4)) == 0 else {}

    def mention(self, namespace: str | None) -> Json:
        names = [name for name in self.known if "." in name or not namespace or f"{namespace}.{name}" not in self.known]
        return self.draw(st.sampled_from(names)) if names else "string"

    def union(self, namespace: str | None, depth: int) -> Json:
        found: dict[str, Json] = {}
        for _ in range(self.draw(st.integers(1, 3))):
            known = dict(self.known)
            branch = self.type(namespace, depth - 1, union=False)
            label = branch if isinstance(branch, str) else branch["type"]
            if label in ("record", "enum", "fixed"):
                label = full_name(branch, namespace)
            if label in found:
                self.known = known  # What a branch defined that is left out is not there to be mentioned.
            else:
                found[label] = branch
        return list(found.values())

    def named(self, kind: str, namespace: str | None, depth: int) -> Json:
        value: dict[str, Json] = {"type": kind, "name": f"T{len(self.known)}"}
        own = self.draw(st.sampled_from(self.namespaces))
        if own is not None:
            value["namespace"] = own
        self.known[full_name(value, namespace)] = kind
        inner = namespace if own is None else own
        if self.extras:
            value |= self.draw(st.sampled_from(({}, {"doc": ""}, {"doc": 'd"'}, {"aliases": ["Old", "x.Old", "Old"]})))
            value |= self.more()
        match kind:
            case "record":
                value["fields"] = [
                    self.field(f"f{index}", inner, depth) for index in range(self.draw(st.integers(0, 4)))
                ]
            case "enum":
                value["symbols"] = self.draw(st.permutations(SYMBOLS))[: self.draw(st.integers(1, 4))]
                if self.draw(st.booleans()):
                    value["default"] = value["symbols"][0]
            case _:
                value["size"] = self.draw(st.integers(0, 3))
        return value

    def field(self, name: str, namespace: str | None, depth: int) -> Json:
        type_ = self.type(namespace, depth - 1)
        value: dict[str, Json] = {"name": name, "type": type_}
        first = type_[0] if isinstance(type_, list) else type_
        if isinstance(first, str) and first in DEFAULTS and self.draw(st.booleans()):
            value["default"] = DEFAULTS[first]
        if self.extras:
            value |= self.draw(
                st.sampled_from(
                    ({}, {"doc": ""}, {"order": "ignore"}, {"aliases": ["z", "y"]}, {"b": 1, "a": {"d": 1, "c": 2}})
                )
            )
        return value


def full_name(value: Json, namespace: str | None) -> str:
    own = value.get("namespace", namespace)
    return f"{own}.{value['name']}" if own else str(value["name"])


@st.composite
def schemas(draw: st.DrawFn, *, namespaces: bool = True, extras: bool = True) -> Json:
    """The JSON of a valid schema."""
    return _Maker(draw, namespaces=namespaces, extras=extras).type(None, 4)


@st.composite
def record_pairs(draw: st.DrawFn) -> tuple[Json, Json]:
    """Two schemas that both are changed copies of one record; the changes may leave them invalid."""
    original = _Maker(draw, namespaces=False, extras=False).named("record", None, 4)
    return _changed(draw, original), _changed(draw, original)


def _changed(draw: st.DrawFn, original: Json) -> Json:
    changed = [copy.deepcopy(original)]
    for _ in range(draw(st.integers(0, 2))):
        places = list(_places(changed))
        holder, key = draw(st.sampled_from(places))
        draw(st.sampled_from(_CHANGES))(draw, holder, key)
    return changed[0]


def _places(holder: Json) -> Iterator[tuple[Json, Json]]:
    """Where types stand: the container and the key or index."""
    for key, value in enumerate(holder) if isinstance(holder, list) else list(holder.items()):
        if isinstance(holder, list) or key in ("type", "items", "values"):
            yield holder, key
        if isinstance(value, dict):
            for inner in ("items", "values"):
                if inner in value:
                    yield from _places({inner: value[inner]}) if isinstance(value[inner], list | dict) else ()
                    yield value, inner
            for field in value.get("fields", ()):
                yield field, "type"
                if isinstance(field["type"], list | dict):
                    yield from _places({"type": field["type"]})
        elif isinstance(value, list):
            yield from _places(value)


def _other_primitive(draw: st.DrawFn, holder: Json, key: Json) -> None:
    if isinstance(holder[key], str) or draw(st.integers(0, 4)) == 0:
        holder[key] = draw(st.sampled_from(PRIMITIVES))
        if isinstance(holder, dict):
            holder.pop("default", None)


def _optional(draw: st.DrawFn, holder: Json, key: Json) -> None:
    if isinstance(holder, dict) and not isinstance(holder[key], list):
        holder[key] = ["null", holder[key]]
        holder.pop("default", None)


def _fewer_branches(draw: st.DrawFn, holder: Json, key: Json) -> None:
    if isinstance(holder[key], list) and len(holder[key]) > 1:
        holder[key].pop(draw(st.integers(0, len(holder[key]) - 1)))
        if isinstance(holder, dict):
            holder.pop("default", None)


def _within(draw: st.DrawFn, holder: Json, key: Json) -> None:
    """Change a named type itself."""
    value = holder[key]
    if not isinstance(value, dict):
        return
    if fields := value.get("fields"):
        match draw(st.integers(0, 3)):
            case 0:
                fields.pop(draw(st.integers(0, len(fields) - 1)))
            case 1:
                fields.append({"name": "added", "type": "int", **draw(st.sampled_from(({}, {"default": 1})))})
            case 2:
                draw(st.sampled_from(fields)).pop("default", None)
            case _:
                field = draw(st.sampled_from(fields))
                field |= {"name": f"{field['name']}x", **draw(st.sampled_from(({}, {"aliases": [field["name"]]})))}
    elif "symbols" in value:
        value["symbols"] = draw(st.permutations(SYMBOLS))[: draw(st.integers(1, 4))]
        value.pop("default", None)
    elif "size" in value:
        value["size"] += draw(st.integers(0, 1))


def _renamed(draw: st.DrawFn, holder: Json, key: Json) -> None:
    value = holder[key]
    if isinstance(value, dict) and "name" in value:
        value |= draw(st.sampled_from(({}, {"aliases": [value["name"]]})))
        value["name"] += "x"


_CHANGES: tuple[Callable[[st.DrawFn, Json, Json], None], ...] = (
    _other_primitive,
    _other_primitive,
    _optional,
    _fewer_branches,
    _within,
    _within,
    _within,
    _renamed,
)


@st.composite
def reordered_pairs(draw: st.DrawFn) -> tuple[Json, str]:
    """The JSON of a valid schema, and the same with keys in another order and other white space."""
    value = draw(schemas())
    return value, _reordered(value, draw)


def _reordered(value: Json, draw: st.DrawFn) -> str:
    return json.dumps(_shuffled(value, draw), indent=draw(st.sampled_from((None, 1))), ensure_ascii=draw(st.booleans()))


def _shuffled(value: Json, draw: st.DrawFn) -> Json:
    if isinstance(value, dict):
        return {key: _shuffled(value[key], draw) for key in draw(st.permutations(list(value)))}
    return [_shuffled(item, draw) for item in value] if isinstance(value, list) else value
