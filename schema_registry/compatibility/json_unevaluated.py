"""Differences in unevaluated properties and items: those that no other keyword covers."""

from schema_registry.compatibility.json_comparison import Comparison
from schema_registry.compatibility.json_findings import Findings
from schema_registry.compatibility.json_shapes import Shape
from schema_registry.formats.json_references import Node

_KINDS = {"unevaluatedProperties": "UNEVALUATED_PROPERTIES", "unevaluatedItems": "UNEVALUATED_ITEMS"}


def compare_unevaluated(
    comparison: Comparison, original: Shape, update: Shape, found: Findings, *, keyword: str
) -> None:
    """Compare one of the two keywords, whose rules are the same; without it, everything is allowed."""
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
