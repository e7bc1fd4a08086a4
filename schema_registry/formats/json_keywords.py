"""The values that each keyword of JSON Schema may have, per draft: the metaschemas as a table.

The table has the same verdicts as the published metaschemas (the tests compare them), but needs one pass whose time is
bounded by the size of the document. Validating a hostile document against the metaschemas takes seconds.
"""

import re
from collections.abc import Callable, Iterator
from enum import Enum
from typing import NamedTuple

from schema_registry.formats.json_drafts import Draft
from schema_registry.formats.json_patterns import SchemaPatterns
from schema_registry.formats.json_text import JsonObject, JsonValue, write

TYPE_NAMES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})

Key = str | int
Child = tuple[tuple[Key, ...], JsonValue]


class Holds(Enum):
    """Where a keyword's value has subschemas."""

    NOTHING = "no schema"
    SCHEMA = "a schema"
    LIST = "a non-empty array of schemas"
    MAP = "an object whose values are schemas"
    SCHEMA_OR_LIST = "a schema or an array of schemas"
    DEPENDENCIES = "an object whose values are schemas or arrays of names"


class Keyword(NamedTuple):
    """One keyword: the values that it takes, as a description and as a check, and where its subschemas are."""

    expected: str
    accepts: Callable[[JsonValue], bool]
    holds: Holds = Holds.NOTHING


def keyword_faults(schema: JsonObject, draft: Draft, patterns: SchemaPatterns) -> Iterator[tuple[tuple[Key, ...], str]]:
    """The keywords of one schema object with invalid values, and what was expected."""
    keywords = _KEYWORDS[draft]
    for name, value in schema.items():
        keyword = keywords.get(name)
        if keyword is not None and not keyword.accepts(value):
            yield (name,), f"expected {keyword.expected}"
    yield from _pattern_faults(schema, patterns)
    if draft is Draft.DRAFT_4:
        for limit in ("maximum", "minimum"):
            if f"exclusive{limit.capitalize()}" in schema and limit not in schema:
                yield (f"exclusive{limit.capitalize()}",), f"requires {limit}"


def subschemas(schema: JsonObject, draft: Draft) -> Iterator[Child]:
    """The schemas directly inside one, each with the keys that lead to it; the keywords must be valid."""
    keywords = _KEYWORDS[draft]
    for name, value in schema.items():
        keyword = keywords.get(name)
        if keyword is None or keyword.holds is Holds.NOTHING:
            continue
        if isinstance(value, list):
            for index, item in enumerate(value):
                yield (name, index), item
        elif keyword.holds is Holds.MAP or keyword.holds is Holds.DEPENDENCIES:
            for key, item in value.items():
                if not isinstance(item, list):
                    yield (name, key), item
        else:
            yield (name,), value


def is_schema(value: JsonValue, draft: Draft) -> bool:
    """Whether a value can be a schema: since draft 6, true and false can."""
    return isinstance(value, dict) or (isinstance(value, bool) and draft is not Draft.DRAFT_4)


def _pattern_faults(schema: JsonObject, patterns: SchemaPatterns) -> Iterator[tuple[tuple[Key, ...], str]]:
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and (fault := patterns.fault(pattern)):
        yield ("pattern",), f"not a valid regular expression: {fault}"
    named = schema.get("patternProperties")
    if isinstance(named, dict):
        for name in named:
            if fault := patterns.fault(name):
                yield ("patternProperties", name), f"not a valid regular expression: {fault}"


def _is_count(value: JsonValue) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return value >= 0 and (isinstance(value, int) or value.is_integer())


def _is_plain_count(value: JsonValue) -> bool:
    """As `_is_count` in draft 4, where 1.0 is not an integer."""
    return isinstance(value, int) and _is_count(value)


def _are_names(value: JsonValue) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value) and len(set(value)) == len(value)


def _are_some_names(value: JsonValue) -> bool:
    return _are_names(value) and bool(value)


def _is_type(value: JsonValue) -> bool:
    if isinstance(value, str):
        return value in TYPE_NAMES
    return _are_some_names(value) and isinstance(value, list) and TYPE_NAMES.issuperset(value)


def _map_of(accepts: Callable[[JsonValue], bool]) -> Callable[[JsonValue], bool]:
    return lambda value: isinstance(value, dict) and all(map(accepts, value.values()))


def _matching(pattern: str) -> Callable[[JsonValue], bool]:
    compiled = re.compile(pattern)
    return lambda value: isinstance(value, str) and compiled.search(value) is not None


def _are_some_values(value: JsonValue) -> bool:
    if not isinstance(value, list):
        return False
    return bool(value) and len({write(item, sort_keys=True) for item in value}) == len(value)


_STRING = Keyword("a string", lambda value: isinstance(value, str))
_NUMBER = Keyword("a number", lambda value: isinstance(value, int | float) and not isinstance(value, bool))
_COUNT = Keyword("a non-negative integer", _is_count)
_BOOLEAN = Keyword("true or false", lambda value: isinstance(value, bool))
_ARRAY = Keyword("an array", lambda value: isinstance(value, list))
_NAMES = Keyword("an array of distinct strings", _are_names)


def _schema_keywords(draft: Draft) -> dict[str, Keyword]:
    """The keywords with schemas inside."""

    def is_schema_here(value: JsonValue) -> bool:
        return is_schema(value, draft)

    def are_schemas(value: JsonValue) -> bool:
        return isinstance(value, list) and bool(value) and all(map(is_schema_here, value))

    def are_schemas_or_schema(value: JsonValue) -> bool:
        return are_schemas(value) or is_schema_here(value)

    def is_boolean_or_schema(value: JsonValue) -> bool:
        return isinstance(value, bool | dict)

    def is_dependency(value: JsonValue) -> bool:
        names = _are_some_names if draft is Draft.DRAFT_4 else _are_names
        return is_schema_here(value) or names(value)

    one = Keyword(Holds.SCHEMA.value, is_schema_here, Holds.SCHEMA)
    several = Keyword(Holds.LIST.value, are_schemas, Holds.LIST)
    named = Keyword(Holds.MAP.value, _map_of(is_schema_here), Holds.MAP)
    keywords = dict.fromkeys(("allOf", "anyOf", "oneOf"), several)
    keywords |= dict.fromkeys(("properties", "patternProperties", "definitions"), named)
    keywords["not"] = one
    keywords["additionalProperties"] = Keyword(Holds.SCHEMA.value, is_boolean_or_schema, Holds.SCHEMA)
    keywords["dependencies"] = Keyword(Holds.DEPENDENCIES.value, _map_of(is_dependency), Holds.DEPENDENCIES)
    if draft is Draft.DRAFT_2020_12:
        keywords |= {"items": one, "prefixItems": several}
    else:
        keywords["items"] = Keyword(Holds.SCHEMA_OR_LIST.value, are_schemas_or_schema, Holds.SCHEMA_OR_LIST)
        keywords["additionalItems"] = Keyword(Holds.SCHEMA.value, is_boolean_or_schema, Holds.SCHEMA)
    if draft is not Draft.DRAFT_4:
        keywords |= dict.fromkeys(("contains", "propertyNames"), one)
    if draft not in {Draft.DRAFT_4, Draft.DRAFT_6}:
        keywords |= dict.fromkeys(("if", "then", "else"), one)
    if draft.is_modern:
        keywords |= dict.fromkeys(("unevaluatedItems", "unevaluatedProperties", "contentSchema"), one)
        keywords |= dict.fromkeys(("$defs", "dependentSchemas"), named)
    return keywords


def _plain_keywords(draft: Draft) -> dict[str, Keyword]:
    """The keywords without schemas inside."""
    texts = ("$schema", "title", "description", "pattern", "format", "$ref", draft.id_keyword)
    keywords = dict.fromkeys(texts, _STRING)
    keywords |= dict.fromkeys(("maximum", "minimum"), _NUMBER)
    keywords |= dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum"), _BOOLEAN if draft is Draft.DRAFT_4 else _NUMBER)
    counts = ("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties")
    keywords |= dict.fromkeys(counts, _COUNT)
    keywords["multipleOf"] = Keyword(
        "a number greater than 0",
        lambda value: isinstance(value, int | float) and not isinstance(value, bool) and value > 0,
    )
    keywords["uniqueItems"] = _BOOLEAN
    keywords["type"] = Keyword("the name of a type or an array of distinct ones", _is_type)
    keywords["enum"] = _ARRAY
    keywords["required"] = _NAMES
    if draft is Draft.DRAFT_4:
        keywords |= dict.fromkeys(counts, Keyword("a non-negative integer", _is_plain_count))
        keywords["enum"] = Keyword("a non-empty array of distinct values", _are_some_values)
        keywords["required"] = Keyword("a non-empty array of distinct strings", _are_some_names)
    else:
        keywords["examples"] = _ARRAY
    if draft not in {Draft.DRAFT_4, Draft.DRAFT_6}:
        keywords |= dict.fromkeys(("$comment", "contentMediaType", "contentEncoding"), _STRING)
        keywords["readOnly"] = _BOOLEAN
    if draft.is_modern:
        keywords |= _modern_keywords(draft)
    return keywords


def _modern_keywords(draft: Draft) -> dict[str, Keyword]:
    anchor = r"^[A-Za-z_][-A-Za-z0-9._]*$" if draft is Draft.DRAFT_2020_12 else r"^[A-Za-z][-A-Za-z0-9.:_]*$"
    is_anchor = Keyword("a name of letters, digits, '-', '.' and '_'", _matching(anchor))
    keywords = dict.fromkeys(("maxContains", "minContains"), _COUNT)
    keywords |= dict.fromkeys(("deprecated", "writeOnly"), _BOOLEAN)
    keywords["dependentRequired"] = Keyword("an object whose values are arrays of names", _map_of(_are_names))
    keywords["$vocabulary"] = Keyword("an object whose values are true or false", _map_of(_BOOLEAN.accepts))
    keywords["$id"] = Keyword("a URI without fragment", _matching("^[^#]*#?$"))
    keywords["$anchor"] = is_anchor
    keywords["$recursiveRef"] = _STRING
    if draft is Draft.DRAFT_2020_12:
        keywords |= {"$dynamicRef": _STRING, "$dynamicAnchor": is_anchor, "$recursiveAnchor": is_anchor}
    else:
        keywords["$recursiveAnchor"] = _BOOLEAN
    return keywords


_KEYWORDS = {draft: _plain_keywords(draft) | _schema_keywords(draft) for draft in Draft}
