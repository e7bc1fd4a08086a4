"""Differences in content models: what objects and arrays may have besides the properties and items that they define."""

from schema_registry.compatibility.json_comparison import Comparison
from schema_registry.compatibility.json_findings import Findings
from schema_registry.compatibility.json_shapes import Shape
from schema_registry.formats.json_references import Node

_KINDS = {
    "additionalProperties": "ADDITIONAL_PROPERTIES",
    "additionalItems": "ADDITIONAL_ITEMS",
    "unevaluatedProperties": "UNEVALUATED_PROPERTIES",
    "unevaluatedItems": "UNEVALUATED_ITEMS",
}


def compare_additional(comparison: Comparison, old: Node, new: Node, found: Findings, *, keyword: str) -> None:
    """Compare the schemas of properties or items that are not defined."""
    kind = _KINDS[keyword]
    if (old is False) != (new is False):
        found.add(f"{kind}_ADDED" if old is False else f"{kind}_REMOVED", keyword)
    elif isinstance(old, dict) and isinstance(new, dict):
        found.include(comparison.compare(old, new), keyword)
    elif isinstance(new, dict):
        found.add(f"{kind}_NARROWED", keyword)
    elif isinstance(old, dict):
        found.add(f"{kind}_EXTENDED", keyword)


def compare_unevaluated(
    comparison: Comparison, original: Shape, update: Shape, found: Findings, *, keyword: str
) -> None:
    """Compare the schemas of what no other keyword covers; without the keyword, everything is allowed."""
    old: Node = original.keywords.get(keyword, True)
    new: Node = update.keywords.get(keyword, True)
    old_is_open = comparison.is_anything(old, of_update=False)
    new_is_open = comparison.is_anything(new, of_update=True)
    kind = _KINDS[keyword]
    if (old is False) != (new is False):
        found.add(f"{kind}_ADDED" if old is False else f"{kind}_REMOVED", keyword)
    elif old_is_open != new_is_open:
        found.add(f"{kind}_NARROWED" if old_is_open else f"{kind}_EXTENDED", keyword)
    elif old is not False and not old_is_open:
        found.include(comparison.compare(old, new), keyword)


def check_removed(
    comparison: Comparison, removed: Node, covering: Node | None, found: Findings, *, what: str, path: str
) -> None:
    """Add what follows from removing a property or item (`what`); the model is not open, `covering` is its schema."""
    if covering is not None:
        compare_covered(comparison, removed, covering, found, what=f"{what}_REMOVED", path=path)
    elif removed is False:
        found.add(f"{what}_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL", path)
    else:
        found.add(f"{what}_REMOVED_FROM_CLOSED_CONTENT_MODEL", path)


def compare_covered(comparison: Comparison, old: Node, new: Node, found: Findings, *, what: str, path: str) -> None:
    """Compare a property or item that one schema defines with the other's schema for those that it does not define."""
    inside = comparison.compare(old, new)
    found.include(inside, path)
    verdict = "IS" if inside.is_compatible else "NOT"
    found.add(f"{what}_{verdict}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path)
