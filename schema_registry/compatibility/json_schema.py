"""May this JSON Schema follow that one? Confluent's rules and names, in bounded time.

What the rules do not look at: the schemas in `contains`, `propertyNames`, `patternProperties`, `if`, and formats.
And they trust defaults: a required property with one may be added, although old data lacks it.
"""

from schema_registry.compatibility.difference import Difference
from schema_registry.compatibility.json_arrays import compare_arrays
from schema_registry.compatibility.json_combined import compare_combined, compare_negations, compare_with_parts
from schema_registry.compatibility.json_comparison import Comparison, TooComplex
from schema_registry.compatibility.json_difference_types import TOO_COMPLEX, compatible_types
from schema_registry.compatibility.json_findings import Findings
from schema_registry.compatibility.json_objects import compare_objects
from schema_registry.compatibility.json_scalars import (
    compare_constants,
    compare_enums,
    compare_numbers,
    compare_strings,
)
from schema_registry.compatibility.json_shapes import Kind, Shape, ShapeReader
from schema_registry.compatibility.policy import Policy
from schema_registry.formats.json_schema import JsonSchema


def compare(reader: JsonSchema, writer: JsonSchema, policy: Policy = Policy.STRICT) -> list[Difference]:
    """All differences, those that do not matter included: can everything that was valid before still be read?"""
    allowed = compatible_types(policy)
    comparison = Comparison(
        ShapeReader(writer), ShapeReader(reader), compare_pair=_compare_pair, compatible_types=allowed
    )
    try:
        found = comparison.run()
    except TooComplex:
        found = Findings(allowed)
        found.add(TOO_COMPLEX)
    return found.differences()


def _compare_pair(comparison: Comparison, original: Shape, update: Shape, found: Findings) -> None:
    if (original.kind is Kind.COMBINED) != (update.kind is Kind.COMBINED) and compare_with_parts(
        comparison, original, update, found
    ):
        return
    if original.kind is not update.kind:
        if not _is_any_change_fine(original, update):
            found.add("TYPE_CHANGED")
        return
    _compare_annotations(original, update, found)
    compare_kind = _COMPARE_KIND.get(original.kind)
    if compare_kind is not None:
        compare_kind(comparison, original, update, found)


def _is_any_change_fine(original: Shape, update: Shape) -> bool:
    if original.kind is Kind.NOTHING or update.kind is Kind.ANYTHING:
        return True
    # Kafka Connect's converter has changed how it writes decimals; both ways mean bytes.
    kinds = {shape.annotations.get("connect.type") == "bytes" for shape in (original, update)}
    return kinds == {True}


def _compare_annotations(original: Shape, update: Shape, found: Findings) -> None:
    old, new = original.annotations, update.annotations
    if old.get("$id", old.get("id")) != new.get("$id", new.get("id")):
        found.add("ID_CHANGED")
    for keyword in ("title", "description", "default"):
        if old.get(keyword) != new.get(keyword):
            found.add(f"{keyword.upper()}_CHANGED")


_COMPARE_KIND = {
    Kind.STRING: compare_strings,
    Kind.NUMBER: compare_numbers,
    Kind.ENUM: compare_enums,
    Kind.CONST: compare_constants,
    Kind.COMBINED: compare_combined,
    Kind.NOT: compare_negations,
    Kind.OBJECT: compare_objects,
    Kind.ARRAY: compare_arrays,
}
