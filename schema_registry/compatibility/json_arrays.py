"""Differences between arrays: items at fixed positions, other items, `contains`, sizes."""

from schema_registry.compatibility.json_comparison import Comparison
from schema_registry.compatibility.json_findings import Findings
from schema_registry.compatibility.json_scalars import Number, compare_limit, compare_limits
from schema_registry.compatibility.json_shapes import Shape
from schema_registry.compatibility.json_unevaluated import compare_unevaluated
from schema_registry.formats.json_references import Node
from schema_registry.formats.json_text import JsonObject


class _Items:
    """The schemas of an array's items, in one form for all drafts."""

    def __init__(self, keywords: JsonObject) -> None:
        items = keywords.get("items")
        self.all: Node | None = None
        self.additional: Node = keywords.get("additionalItems", True)
        self.prefix: list[Node] = keywords.get("prefixItems", [])
        if isinstance(items, list):
            self.prefix = items
        elif self.prefix or (isinstance(items, bool) and "additionalItems" not in keywords and items is False):
            self.additional = True if items is None else items
        elif isinstance(items, dict):
            self.all = items
        self.unevaluated: Node | None = keywords.get("unevaluatedItems")


def compare_arrays(comparison: Comparison, original: Shape, update: Shape, found: Findings) -> None:
    """Compare all keywords of arrays."""
    old, new = _Items(original.keywords), _Items(update.keywords)
    found.include(comparison.compare(old.all, new.all), "items")
    _compare_prefixes(comparison, old, new, found)
    _compare_additional(comparison, old.additional, new.additional, found)
    compare_unevaluated(comparison, original, update, found, keyword="unevaluatedItems")
    _compare_sizes(original, update, found)


def _compare_prefixes(comparison: Comparison, old: _Items, new: _Items, found: Findings) -> None:
    comparison.spend(len(old.prefix) + len(new.prefix))
    both = min(len(old.prefix), len(new.prefix))
    for index in range(both):
        found.include(comparison.compare(old.prefix[index], new.prefix[index]), f"items/{index}")
    for index in range(both, len(old.prefix)):
        _check_removed(comparison, old.prefix[index], new, found, path=f"items/{index}")
    for index in range(both, len(new.prefix)):
        _check_added(comparison, old, new.prefix[index], found, path=f"items/{index}")


def _check_removed(comparison: Comparison, removed: Node, new: _Items, found: Findings, *, path: str) -> None:
    if _is_open(comparison, new, of_update=True):
        found.add("ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL", path)
        return
    covering = _covering_schema(new)
    if covering is not None:
        inside = comparison.compare(removed, covering)
        found.include(inside, path)
        verdict = "IS" if inside.is_compatible else "NOT"
        found.add(f"ITEM_REMOVED_{verdict}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path)
    elif removed is False:
        found.add("ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL", path)
    else:
        found.add("ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL", path)


def _check_added(comparison: Comparison, old: _Items, added: Node, found: Findings, *, path: str) -> None:
    if _is_open(comparison, old, of_update=False):
        is_anything = comparison.is_anything(added, of_update=True)
        kind = "ITEM_WITH_EMPTY_SCHEMA_ADDED" if is_anything else "ITEM_ADDED"
        found.add(f"{kind}_TO_OPEN_CONTENT_MODEL", path)
        return
    covering = _covering_schema(old)
    if covering is None:
        found.add("ITEM_ADDED_TO_CLOSED_CONTENT_MODEL", path)
        return
    inside = comparison.compare(covering, added)
    found.include(inside, path)
    verdict = "IS" if inside.is_compatible else "NOT"
    found.add(f"ITEM_ADDED_{verdict}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path)


def _is_open(comparison: Comparison, items: _Items, *, of_update: bool) -> bool:
    if items.additional is not True:
        return False
    return items.unevaluated is None or comparison.is_anything(items.unevaluated, of_update=of_update)


def _covering_schema(items: _Items) -> Node | None:
    """The schema of items after those at fixed positions."""
    for schema in (items.additional, items.unevaluated):
        if isinstance(schema, dict):
            return schema
        if schema is False:
            return None
    return None


def _compare_additional(comparison: Comparison, old: Node, new: Node, found: Findings) -> None:
    path = "additionalItems"
    if (old is False) != (new is False):
        found.add("ADDITIONAL_ITEMS_ADDED" if old is False else "ADDITIONAL_ITEMS_REMOVED", path)
    elif isinstance(old, dict) and isinstance(new, dict):
        found.include(comparison.compare(old, new), path)
    elif isinstance(new, dict):
        found.add("ADDITIONAL_ITEMS_NARROWED", path)
    elif isinstance(old, dict):
        found.add("ADDITIONAL_ITEMS_EXTENDED", path)


def _compare_sizes(original: Shape, update: Shape, found: Findings) -> None:
    compare_limits(found, original, update, keywords={"maxItems": "MAX_ITEMS", "minItems": "MIN_ITEMS"})
    old_unique, new_unique = original.keywords.get("uniqueItems", False), update.keywords.get("uniqueItems", False)
    if old_unique != new_unique:
        found.add("UNIQUE_ITEMS_REMOVED" if old_unique else "UNIQUE_ITEMS_ADDED", "uniqueItems")
    for keyword, kind, default in (("maxContains", "MAX_CONTAINS", None), ("minContains", "MIN_CONTAINS", 1)):
        old, new = _contains_limit(original, keyword, default), _contains_limit(update, keyword, default)
        compare_limit(found, keyword, kind, original=old, update=new)


def _contains_limit(shape: Shape, keyword: str, default: int | None) -> Number | None:
    """The number of items that must match `contains`; None without that keyword."""
    number: Number | None = shape.keywords.get(keyword, default) if "contains" in shape.keywords else None
    return number
