"""Differences between combinations: allOf, anyOf, oneOf, several types, and `not`."""

from collections.abc import Iterator
from itertools import chain

from schema_registry.compatibility.json_comparison import Comparison
from schema_registry.compatibility.json_findings import Findings
from schema_registry.compatibility.json_matching import match_pairs
from schema_registry.compatibility.json_shapes import Shape, ShapeKind
from schema_registry.formats.json_references import Node


def compare_combined(comparison: Comparison, original: Shape, update: Shape, found: Findings) -> None:
    """Compare two combinations; their parts are paired so that as many as possible are compatible."""
    if original.criterion != update.criterion:
        widened = _is_wider_criterion(original, update)
        found.add("COMBINED_TYPE_EXTENDED" if widened else "COMBINED_TYPE_CHANGED")
        if not widened:
            return
    old, new = _distinct_parts(comparison, original), _distinct_parts(comparison, update)
    if len(old) < len(new):
        found.add("PRODUCT_TYPE_EXTENDED" if update.criterion == "allOf" else "SUM_TYPE_EXTENDED")
    elif len(old) > len(new):
        found.add("PRODUCT_TYPE_NARROWED" if original.criterion == "allOf" else "SUM_TYPE_NARROWED")
    _pair_parts(comparison, old, new, found, criterion=original.criterion)


def compare_with_parts(comparison: Comparison, original: Shape, update: Shape, found: Findings) -> bool:
    """Compare a combination with a plain schema; whether a single compatible part is enough, and there is one."""
    pairs: list[tuple[Shape | Node, Shape | Node]]
    if update.kind is ShapeKind.COMBINED:
        pairs = [(original, part) for part in update.parts]
        is_enough, change = update.criterion in {"anyOf", "oneOf"}, "SUM_TYPE_EXTENDED"
    else:
        pairs = [(part, update) for part in original.parts]
        is_enough, change = original.criterion == "allOf", "PRODUCT_TYPE_NARROWED"
    if len(pairs) > 1 and not is_enough:
        return False
    for old, new in pairs:
        inside = comparison.compare(old, new)
        if inside.is_compatible:
            found.include(inside)
            if len(pairs) > 1:
                found.add(change)
            return True
    return False


def compare_negations(comparison: Comparison, original: Shape, update: Shape, found: Findings) -> None:
    """Compare what must not match, which may only become narrower."""
    is_less = comparison.could_precede(original.keywords["not"], update.keywords["not"])
    found.add("NOT_TYPE_NARROWED" if is_less else "NOT_TYPE_EXTENDED", "not")


def _is_wider_criterion(original: Shape, update: Shape) -> bool:
    if update.criterion == "anyOf" or (len(original.parts) == 1 and len(update.parts) == 1):
        return True
    if update.criterion == "oneOf":
        return len(original.parts) == 1 or (original.criterion == "allOf" and len(update.parts) == 1)
    return False


def _distinct_parts(comparison: Comparison, shape: Shape) -> dict[object, Shape | Node]:
    """The parts by content, without duplicates."""
    comparison.spend(len(shape.parts))
    distinct: dict[object, Shape | Node] = {}
    for part in shape.parts:
        distinct.setdefault(id(part) if isinstance(part, Shape) else comparison.equality.key(part), part)
    return distinct


def _pair_parts(
    comparison: Comparison,
    old: dict[object, Shape | Node],
    new: dict[object, Shape | Node],
    found: Findings,
    *,
    criterion: str,
) -> None:
    """Find a compatible partner for each part of the smaller side."""
    old_parts, new_parts = list(old.values()), list(new.values())
    is_old_smaller = len(old) <= len(new)
    likely = _likely_partners(old, new) if is_old_smaller else _likely_partners(new, old)

    def compare(member: int, candidate: int) -> Findings:
        old_index, new_index = (member, candidate) if is_old_smaller else (candidate, member)
        return comparison.compare(old_parts[old_index], new_parts[new_index])

    def candidates(member: int) -> Iterator[int]:
        first = likely[member]
        others = (other for other in range(max(len(old), len(new))) if other != first)
        return (candidate for candidate in chain((first,), others) if compare(member, candidate).is_compatible)

    smaller = min(len(old), len(new))
    partners = match_pairs(smaller, candidates)
    for member, candidate in partners.items():
        found.include(compare(member, candidate), f"{criterion}/{member if is_old_smaller else candidate}")
    if len(partners) < smaller:
        found.add("COMBINED_TYPE_SUBSCHEMAS_CHANGED")


def _likely_partners(smaller: dict[object, Shape | Node], larger: dict[object, Shape | Node]) -> list[int]:
    """For each part the index of the one with the same content, or else the same index."""
    indexes = {key: index for index, key in enumerate(larger)}
    return [indexes.get(key, index) for index, key in enumerate(smaller)]
