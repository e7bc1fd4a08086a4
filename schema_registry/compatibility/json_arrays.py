"""Differences between arrays: items at fixed positions, other items, `contains`, sizes."""

from schema_registry.compatibility.json_comparison import Comparison
from schema_registry.compatibility.json_content_models import (
    check_removed,
    compare_additional,
    compare_covered,
    compare_unevaluated,
)
from schema_registry.compatibility.json_findings import Findings
from schema_registry.compatibility.json_scalars import Number, compare_limit, compare_limits
from schema_registry.compatibility.json_shapes import Shape
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
    compare_additional(comparison, old.additional, new.additional, found, keyword="additionalItems")
    compare_unevaluated(comparison, original, update, found, keyword="unevaluatedItems")
    _compare_sizes(original, update, found)


def _compare_prefixes(comparison: Comparison, old: _Items, new: _Items, found: Findings) -> None:
    comparison.spend(len(old.prefix) + len(new.prefix))
    both = min(len(old.prefix), len(new.prefix))
    for index in range(both):
        found.include(comparison.compare(old.prefix[index], new.prefix[index]), f"items/{index}")
    for index in range(both, len(old.prefix)):
        path = f"items/{index}"
        if _is_open(comparison, new, of_update=True):
            found.add("ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL", path)
        else:
            check_removed(comparison, old.prefix[index], _covering_schema(new), found, what="ITEM", path=path)
    for index in range(both, len(new.prefix)):
        _check_added(comparison, old, new.prefix[index], found, path=f"items/{index}")


def _check_added(comparison: Comparison, old: _Items, added: Node, found: Findings, *, path: str) -> None:
    if _is_open(comparison, old, of_update=False):
        is_anything = comparison.is_anything(added, of_update=True)
        kind = "ITEM_WITH_EMPTY_SCHEMA_ADDED" if is_anything else "ITEM_ADDED"
        found.add(f"{kind}_TO_OPEN_CONTENT_MODEL", path)
        return
    covering = _covering_schema(old)
    if covering is None:
        found.add("ITEM_ADDED_TO_CLOSED_CONTENT_MODEL", path)
    else:
        compare_covered(comparison, covering, added, found, what="ITEM_ADDED", path=path)


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
