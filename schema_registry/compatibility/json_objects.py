"""Differences between objects: properties, other properties, dependencies, sizes.

A content model is open if any other property is allowed, partially open if other properties must match a schema, and
closed if there must be none. Added properties are checked against the original's model, removed ones against the
update's.
"""

from schema_registry.compatibility.json_comparison import Comparison
from schema_registry.compatibility.json_content_models import (
    check_removed,
    compare_additional,
    compare_covered,
    compare_unevaluated,
)
from schema_registry.compatibility.json_findings import Findings, step
from schema_registry.compatibility.json_scalars import compare_limits
from schema_registry.compatibility.json_shapes import Shape
from schema_registry.formats.json_patterns import matches
from schema_registry.formats.json_references import Node
from schema_registry.formats.json_text import JsonObject

_NO_PROPERTIES: JsonObject = {}
_STEPS_PER_PATTERN = 20
"""Compiling a pattern costs this many times an ordinary step."""


def compare_objects(comparison: Comparison, original: Shape, update: Shape, found: Findings) -> None:
    """Compare all keywords of objects."""
    _compare_required(original, update, found)
    _compare_properties(comparison, original, update, found)
    _compare_dependencies(comparison, original, update, found)
    keyword = "additionalProperties"
    old, new = original.keywords.get(keyword, True), update.keywords.get(keyword, True)
    compare_additional(comparison, old, new, found, keyword=keyword)
    compare_unevaluated(comparison, original, update, found, keyword="unevaluatedProperties")
    limits = {"maxProperties": "MAX_PROPERTIES", "minProperties": "MIN_PROPERTIES"}
    compare_limits(found, original, update, keywords=limits)


def _compare_required(original: Shape, update: Shape, found: Findings) -> None:
    """Compare which properties of both schemas are required; the others are added or removed properties."""
    old, new = _required_names(original), _required_names(update)
    if old == new:
        return
    properties = update.keywords.get("properties", _NO_PROPERTIES)
    for name in original.keywords.get("properties", _NO_PROPERTIES):
        if name not in properties or (name in old) == (name in new):
            continue
        if name in old:
            change = "REQUIRED_ATTRIBUTE_REMOVED"
        elif _has_default(properties[name]):
            change = "REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED"
        else:
            change = "REQUIRED_ATTRIBUTE_ADDED"
        found.add(change, f"required/{step(name)}")


def _compare_properties(comparison: Comparison, original: Shape, update: Shape, found: Findings) -> None:
    old, new = original.keywords.get("properties", _NO_PROPERTIES), update.keywords.get("properties", _NO_PROPERTIES)
    comparison.spend(len(old) + len(new))
    for name in sorted(old.keys() | new.keys()):
        path = f"properties/{step(name)}"
        if name not in new:
            if _is_open(comparison, update, of_update=True):
                found.add("PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL", path)
                continue
            covering = _covering_schema(comparison, update, name=name, of_update=True)
            check_removed(comparison, old[name], covering, found, what="PROPERTY", path=path)
        elif name not in old:
            _check_added(comparison, original, update, found, name=name, path=path)
        else:
            found.include(comparison.compare(old[name], new[name]), path)


def _check_added(
    comparison: Comparison, original: Shape, update: Shape, found: Findings, *, name: str, path: str
) -> None:
    added: Node = update.keywords["properties"][name]
    model = "UNOPEN"
    if _is_open(comparison, original, of_update=False):
        if comparison.is_anything(added, of_update=True) and name not in _required_names(update):
            found.add("PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL", path)
            return
        model = "OPEN"
    else:
        covering = _covering_schema(comparison, original, name=name, of_update=False)
        if covering is not None:
            compare_covered(comparison, covering, added, found, what="PROPERTY_ADDED", path=path)
    if name not in _required_names(update):
        kind = "OPTIONAL_PROPERTY"
    else:
        kind = "REQUIRED_PROPERTY_WITH_DEFAULT" if _has_default(added) else "REQUIRED_PROPERTY"
    found.add(f"{kind}_ADDED_TO_{model}_CONTENT_MODEL", path)


def _required_names(shape: Shape) -> frozenset[str]:
    if shape.members is None:
        shape.members = frozenset(shape.keywords.get("required", ()))
    return shape.members


def _has_default(schema: Node) -> bool:
    return isinstance(schema, dict) and "default" in schema


def _is_open(comparison: Comparison, shape: Shape, *, of_update: bool) -> bool:
    keywords = shape.keywords
    if keywords.get("patternProperties"):
        return False
    if "additionalProperties" in keywords:
        return keywords["additionalProperties"] is True
    unevaluated = keywords.get("unevaluatedProperties")
    return unevaluated is None or comparison.is_anything(unevaluated, of_update=of_update)


def _covering_schema(comparison: Comparison, shape: Shape, *, name: str, of_update: bool) -> Node | None:
    """The schema that a property of this name must match, although the schema does not define it."""
    keywords = shape.keywords
    patterns: JsonObject = keywords.get("patternProperties", _NO_PROPERTIES)
    comparison.spend(len(patterns) * (_STEPS_PER_PATTERN + len(name) // 50))
    for pattern, schema in patterns.items():
        is_match = matches(pattern, name)
        # If it is unknown, assume the worse: old data may have matched the pattern, new data may not.
        if is_match or (is_match is None and not of_update):
            node: Node = schema
            return node
    additional = keywords.get("additionalProperties")
    if additional is None and not patterns:
        additional = keywords.get("unevaluatedProperties")
    return additional if isinstance(additional, dict) else None


def _compare_dependencies(comparison: Comparison, original: Shape, update: Shape, found: Findings) -> None:
    old, new = _dependencies(original.keywords), _dependencies(update.keywords)
    comparison.spend(len(old) + len(new))
    # Arrays of names first, then schemas, each sorted by name.
    for name, is_names in sorted(old | new, key=lambda key: (not key[1], key[0])):
        path = f"dependencies/{step(name)}"
        before, after = old.get((name, is_names)), new.get((name, is_names))
        kind = "DEPENDENCY_ARRAY" if is_names else "DEPENDENCY_SCHEMA"
        if before is None or after is None:
            found.add(f"{kind}_{'ADDED' if before is None else 'REMOVED'}", path)
        elif isinstance(before, list) and isinstance(after, list):
            old_names, new_names = set(before), set(after)
            if old_names != new_names:
                change = "EXTENDED" if new_names > old_names else "NARROWED" if new_names < old_names else "CHANGED"
                found.add(f"DEPENDENCY_ARRAY_{change}", path)
        elif not isinstance(before, list) and not isinstance(after, list):
            found.include(comparison.compare(before, after), path)


def _dependencies(keywords: JsonObject) -> dict[tuple[str, bool], Node | list[str]]:
    """The dependencies of each property, by its name and whether they are a list of names, in all drafts."""
    collected: dict[tuple[str, bool], Node | list[str]] = {}
    for keyword in ("dependencies", "dependentRequired", "dependentSchemas"):
        for name, dependency in keywords.get(keyword, _NO_PROPERTIES).items():
            collected[name, isinstance(dependency, list)] = dependency
    return collected
