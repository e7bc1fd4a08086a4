"""JSON Schemas for `jsonschema_rs`, which takes a hundredth of the time but does not limit its steps.

A schema is passed as one document: every reference leads to a definition of its own and no address is left, so that
nothing is fetched, and only keywords that check a value are kept (no formats, no encodings of contents). Schemas that
could take too many steps are not passed, nor are those of several drafts.
"""

from typing import NamedTuple

import jsonschema_rs

from schema_registry.formats.json_drafts import Draft, draft_of
from schema_registry.formats.json_keywords import subschemas
from schema_registry.formats.json_references import SAME_PLACE_KEYWORDS, Node
from schema_registry.formats.json_schema import JsonSchema
from schema_registry.formats.json_text import JsonObject, JsonValue, write
from schema_registry.serdes.json_counted import BACKTRACKING

_MAX_VISITS = 1_000
"""How many schemas may check one value."""
_ROUNDS = 30

_KEPT = frozenset(
    {
        *("type", "enum", "const", "multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"),
        *("maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "items", "additionalItems"),
        *("prefixItems", "contains", "maxContains", "minContains", "unevaluatedItems", "maxProperties"),
        *("minProperties", "required", "properties", "patternProperties", "additionalProperties", "propertyNames"),
        *("unevaluatedProperties", "dependentRequired", *SAME_PLACE_KEYWORDS),
    }
)
_UNEVALUATED = ("unevaluatedItems", "unevaluatedProperties")
_VALIDATORS = {
    Draft.DRAFT_4: jsonschema_rs.Draft4Validator,
    Draft.DRAFT_6: jsonschema_rs.Draft6Validator,
    Draft.DRAFT_7: jsonschema_rs.Draft7Validator,
    Draft.DRAFT_2019_09: jsonschema_rs.Draft201909Validator,
    Draft.DRAFT_2020_12: jsonschema_rs.Draft202012Validator,
}


def compiled(schema: JsonSchema) -> jsonschema_rs.Validator | None:
    """The validator of a schema; None if it needs one that counts its steps, or supports other patterns."""
    flattening = _Flattening(schema)
    try:
        text = flattening.text()
    except _NotOneDocument:
        return None
    if not flattening.is_bounded():
        return None
    make = _VALIDATORS[schema.draft]
    try:
        return make(text, validate_formats=False, offline=True, pattern_options=BACKTRACKING)
    except (ValueError, jsonschema_rs.ReferencingError):
        return None


class _NotOneDocument(Exception):
    """Parts are of another draft, or references depend on the value."""


class _Ways(NamedTuple):
    """The schemas by which a schema checks a value and its parts."""

    same: list[int]
    """Those for the value itself."""
    items: list[int]
    """Those for its items: one for each."""
    more_items: list[int]
    """Further ones for any item."""
    properties: list[int]
    more_properties: list[int]

    def of(self, keyword: str) -> list[int]:
        """The list that the schemas of a keyword are in."""
        if keyword in SAME_PLACE_KEYWORDS:
            return self.same
        if keyword in {"items", "prefixItems", "additionalItems"}:
            return self.items
        if keyword in {"contains", "unevaluatedItems"}:
            return self.more_items
        return self.properties if keyword in {"properties", "additionalProperties"} else self.more_properties


class _Flattening:
    def __init__(self, schema: JsonSchema) -> None:
        self._schema = schema
        self._kept = _KEPT - {"dependencies"} if schema.draft.is_modern else _KEPT
        self._pointers = {id(schema.document): "#"}
        self._pending: list[tuple[str, Node]] = []
        self._ways: dict[int, _Ways] = {}

    def text(self) -> str:
        """The schema as one document."""
        root = self._copy(self._schema.document)
        definitions: JsonObject = {}
        while self._pending:
            name, node = self._pending.pop()
            definitions[name] = self._copy(node)
        return write({**root, "definitions": definitions} if isinstance(root, dict) else root)

    def is_bounded(self) -> bool:
        """Whether no value can be checked too often, however deep in a document it is."""
        here = dict.fromkeys(self._ways, 1)
        below = dict.fromkeys(self._ways, 0)

        def most(node: int) -> int:
            return max(here.get(node, 0), below.get(node, 0))

        for _ in range(_ROUNDS):
            is_settled = True
            for node, ways in reversed(self._ways.items()):
                visits = 1 + sum(here.get(other, 0) for other in ways.same)
                items = max(map(most, ways.items), default=0) + sum(map(most, ways.more_items))
                properties = max(map(most, ways.properties), default=0) + sum(map(most, ways.more_properties))
                deeper = sum(below.get(other, 0) for other in ways.same) + max(items, properties)
                if max(visits, deeper) > _MAX_VISITS:
                    return False
                is_settled = is_settled and (visits, deeper) == (here[node], below[node])
                here[node], below[node] = visits, deeper
            if is_settled:
                return True
        return False

    def _copy(self, node: JsonValue) -> JsonValue:
        if not isinstance(node, dict):
            return node
        draft = self._schema.draft
        if draft_of(node, draft) is not draft or "$dynamicRef" in node or "$recursiveRef" in node:
            raise _NotOneDocument
        ways = self._ways[id(node)] = _Ways([], [], [], [], [])
        copy: JsonObject = {}
        if "$ref" in node:
            target = self._schema.targets[id(node), "$ref"]
            ways.same.append(id(target))
            copy["$ref"] = self._pointer(target)
            if not draft.is_modern:
                return copy
        kept = {name: value for name, value in node.items() if name in self._kept}
        copy |= {name: value.copy() if isinstance(value, dict | list) else value for name, value in kept.items()}
        for (name, *key), child in subschemas(node, draft):
            if name in copy:
                if key:
                    copy[str(name)][key[0]] = self._copy(child)
                else:
                    copy[str(name)] = self._copy(child)
                ways.of(str(name)).append(id(child))
        if any(name in node for name in _UNEVALUATED):  # Finding what the others have checked takes checking once more.
            ways.same.extend(ways.same[:])
        return copy

    def _pointer(self, target: Node) -> str:
        if id(target) not in self._pointers:
            name = str(len(self._pointers))
            self._pointers[id(target)] = f"#/definitions/{name}"
            self._pending.append((name, target))
        return self._pointers[id(target)]
