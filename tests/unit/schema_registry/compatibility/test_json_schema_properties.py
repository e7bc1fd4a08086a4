"""What holds for all pairs of JSON Schemas: made-up ones, changed a little, with documents made up to follow them.

The documents leave out what the rules knowingly pass over: required properties that have a default, `oneOf` whose
alternatives overlap, schemas without a type, patterns, formats, `contains`, `propertyNames` and `if`.
"""

import json

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from schema_registry.compatibility.json_schema import compare
from schema_registry.compatibility.policy import Policy
from schema_registry.formats.json_schema import JsonSchema, parse
from schema_registry.formats.json_text import JsonObject, JsonValue
from tests.support.json_documents import is_valid
from tests.support.level_laws import laws_hold

_QUICK = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))

_NAMES = st.sampled_from(["a", "b", "c"])


def _limited(type_name: str, **limits: st.SearchStrategy[object]) -> st.SearchStrategy[JsonObject]:
    return st.fixed_dictionaries({"type": st.just(type_name)}, optional=limits)


_SCALARS: st.SearchStrategy[JsonObject] = st.one_of(
    _limited("string", maxLength=st.integers(3, 5), minLength=st.integers(0, 3)),
    _limited("integer", maximum=st.integers(20, 30), minimum=st.integers(-5, 5), multipleOf=st.integers(1, 4)),
    _limited("number", exclusiveMaximum=st.integers(20, 30), exclusiveMinimum=st.integers(-5, 5)),
    st.sampled_from([{"type": "boolean"}, {"type": "null"}, {}]),
    st.fixed_dictionaries({"enum": st.lists(st.sampled_from([1, "x", None, True]), min_size=1, unique_by=repr)}),
    st.lists(st.sampled_from(["string", "null", "integer"]), min_size=1, unique=True).map(
        lambda names: {"type": names}
    ),
)


def _objects(children: st.SearchStrategy[JsonObject]) -> st.SearchStrategy[JsonObject]:
    more = st.booleans() | children
    return st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(_NAMES, children, max_size=3)},
        optional={"additionalProperties": more, "maxProperties": st.integers(3, 5), "minProperties": st.integers(0, 1)},
    ).flatmap(_with_required)


def _with_required(schema: JsonObject) -> st.SearchStrategy[JsonObject]:
    names = sorted(schema["properties"])
    required = st.lists(st.sampled_from(names), unique=True) if names else st.just([])
    return required.map(lambda chosen: schema | ({"required": chosen} if chosen else {}))


def _arrays(children: st.SearchStrategy[JsonObject]) -> st.SearchStrategy[JsonObject]:
    sizes = {"maxItems": st.integers(3, 5), "minItems": st.integers(0, 1), "uniqueItems": st.booleans()}
    return st.one_of(
        _limited("array", items=children, **sizes),
        _limited("array", items=st.lists(children, min_size=1, max_size=2), additionalItems=st.booleans() | children),
    )


def _combined(children: st.SearchStrategy[JsonObject]) -> st.SearchStrategy[JsonObject]:
    several = st.lists(children, min_size=1, max_size=3)
    return several.map(lambda parts: {"anyOf": parts}) | children.map(lambda part: {"not": part})


_SCHEMAS = st.recursive(
    _SCALARS, lambda children: st.one_of(_objects(children), _arrays(children), _combined(children)), max_leaves=5
)


@st.composite
def _changed(draw: st.DrawFn, schema: JsonObject) -> JsonObject:
    """The schema with one small change somewhere in it."""
    keyword = draw(st.sampled_from(sorted(schema) or ["type"]))
    value = schema.get(keyword)
    if keyword == "properties" and isinstance(value, dict) and value and draw(st.booleans()):
        name = draw(st.sampled_from(sorted(value)))
        return schema | {"properties": value | {name: draw(_changed(value[name]))}}
    if keyword == "properties" and isinstance(value, dict):
        return schema | {"properties": value | {draw(_NAMES): draw(_SCHEMAS)}}
    if keyword in {"anyOf", "items"} and isinstance(value, list):
        if len(value) > 1 and draw(st.booleans()):
            return schema | {keyword: value[:-1]}
        index = draw(st.integers(0, len(value)))
        part = draw(_changed(value[index])) if index < len(value) else draw(_SCHEMAS)
        return schema | {keyword: [*value[:index], part, *value[index + 1 :]]}
    if keyword == "type" and schema.get("properties"):
        return schema | {"required": sorted(schema["properties"])}
    if isinstance(value, dict) and draw(st.booleans()):
        return schema | {keyword: draw(_changed(value))}
    if isinstance(value, int) and not isinstance(value, bool):
        return schema | {keyword: max(value + draw(st.sampled_from([-1, 1])), 0 if keyword != "multipleOf" else 1)}
    if draw(st.booleans()):
        return {"anyOf": [schema, draw(_SCHEMAS)]}
    # Without a type, the other keywords would still make Confluent take it for a schema of that type.
    return {name: schema[name] for name in schema if name != keyword or (name == "type" and len(schema) > 1)}


_ANYTHING: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 40) | st.sampled_from([0.5, 20.5]) | st.text("xyz", max_size=6),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(_NAMES | st.just("d"), children, max_size=3),
    max_leaves=4,
)


@st.composite
def _following(draw: st.DrawFn, schema: JsonObject | bool) -> JsonValue:
    """A document that most likely follows the schema."""
    if isinstance(schema, bool) or not schema or "not" in schema:
        return draw(_ANYTHING)
    if "enum" in schema:
        value: JsonValue = draw(st.sampled_from(schema["enum"]))
        return value
    if "anyOf" in schema:
        return draw(_following(draw(st.sampled_from(schema["anyOf"]))))
    types = schema["type"]
    type_name = types if isinstance(types, str) else draw(st.sampled_from(types))
    if type_name == "object":
        return draw(_object_following(schema))
    if type_name == "array":
        return draw(_array_following(schema))
    return draw(_scalar_following(schema, type_name))


def _scalar_following(schema: JsonObject, type_name: str) -> st.SearchStrategy[JsonValue]:
    if type_name == "string":
        lengths = st.sampled_from([schema.get("minLength", 0), schema.get("maxLength", 6)])
        return lengths.map(lambda length: "x" * length)
    if type_name == "boolean":
        return st.booleans()
    if type_name == "null":
        return st.none()
    divisor = schema.get("multipleOf", 1)
    limits = st.sampled_from([schema.get("minimum", -9), schema.get("maximum", 40), 12])
    numbers = limits.map(lambda number: number // divisor * divisor)
    return numbers if type_name == "integer" else numbers | st.sampled_from([0.5, 20.5])


@st.composite
def _object_following(draw: st.DrawFn, schema: JsonObject) -> JsonValue:
    properties, required = schema["properties"], schema.get("required", ())
    document = {
        name: draw(_following(properties[name])) for name in properties if name in required or draw(st.booleans())
    }
    more = schema.get("additionalProperties", True)
    if more is not False:
        extra = draw(_NAMES | st.just("d"))
        document.setdefault(extra, draw(_following(properties.get(extra, more))))
    return document


@st.composite
def _array_following(draw: st.DrawFn, schema: JsonObject) -> JsonValue:
    items = schema.get("items", True)
    listed = items if isinstance(items, list) else []
    others = schema.get("additionalItems", True) if listed else items
    length = draw(st.integers(schema.get("minItems", 0), schema.get("maxItems", 4)))
    if others is False:
        length = min(length, len(listed))
    return [draw(_following(listed[place] if place < len(listed) else others)) for place in range(length)]


def _parsed(schema: JsonObject) -> JsonSchema:
    return parse(json.dumps(schema))


def _is_compatible(new: JsonSchema, old: JsonSchema, policy: Policy = Policy.STRICT) -> bool:
    return all(difference.is_compatible for difference in compare(new, old, policy))


_PAIRS = _SCHEMAS.flatmap(
    lambda old: st.tuples(st.just(old), _changed(old).flatmap(lambda new: st.just(new) | _changed(new)))
)


@_QUICK
@given(_SCHEMAS)
def test_a_schema_may_follow_itself(schema: JsonObject) -> None:
    differences = compare(_parsed(schema), _parsed(schema))

    assert {difference.type for difference in differences} <= {"NOT_TYPE_NARROWED"}


@_QUICK
@given(_PAIRS)
def test_the_lenient_policy_lets_pass_whatever_the_strict_one_does(pair: tuple[JsonObject, JsonObject]) -> None:
    old, new = map(_parsed, pair)

    assert not _is_compatible(new, old) or _is_compatible(new, old, Policy.LENIENT)


@settings(_QUICK, max_examples=250)
@given(_PAIRS, st.data())
def test_what_was_valid_stays_valid_after_a_compatible_change(
    pair: tuple[JsonObject, JsonObject], data: st.DataObject
) -> None:
    old, new = map(_parsed, pair)
    assume(_is_compatible(new, old))
    documents = data.draw(st.lists(_following(pair[0]), min_size=4, max_size=4))

    for document in documents:
        assert not is_valid(old, document) or is_valid(new, document)


@_QUICK
@given(_SCHEMAS)
def test_what_only_looks_different_may_be_changed_there_and_back(schema: JsonObject) -> None:
    one, other = _parsed(schema), _parsed(_turned_round(schema))

    assert _is_compatible(one, other)
    assert _is_compatible(other, one)


def _turned_round(value: JsonObject) -> JsonObject:
    """The same schema with another title, other defaults and all sets in another order."""
    turned = {key: _turned_value(key, member) for key, member in reversed(value.items())}
    return turned | {"title": "turned", "default": 0}


def _turned_value(key: str, value: JsonValue) -> JsonValue:
    if key == "properties" and isinstance(value, dict):
        return {name: _turned_round(member) for name, member in reversed(value.items())}
    if key in {"anyOf", "enum", "type", "required"} and isinstance(value, list):
        return [_turned_round(member) if key == "anyOf" else member for member in reversed(value)]
    return _turned_round(value) if isinstance(value, dict) and value else value


@_QUICK
@given(st.lists(_PAIRS, min_size=1, max_size=2))
def test_full_is_both_ways_and_transitive_is_more(pairs: list[tuple[JsonObject, JsonObject]]) -> None:
    laws_hold([_parsed(schema) for pair in pairs for schema in reversed(pair)])
