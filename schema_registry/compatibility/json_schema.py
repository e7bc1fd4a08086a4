"""Compare two JSON Schemas by Confluent's rules, in bounded time.

The rules ignore the schemas in `contains`, `propertyNames`, `patternProperties` and `if`, and they ignore formats. They
trust defaults: a required property with a default may be added, although old data lacks it.
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
from schema_registry.compatibility.json_shapes import Shape, ShapeKind, ShapeReader
from schema_registry.compatibility.policy import Policy
from schema_registry.formats.json_schema import JsonSchema


def compare(reader: JsonSchema, writer: JsonSchema, policy: Policy = Policy.STRICT) -> list[Difference]:
    """All differences, including compatible ones: whether the reader's schema accepts all data of the writer's."""
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
    if (original.kind is ShapeKind.COMBINED) != (update.kind is ShapeKind.COMBINED) and compare_with_parts(
        comparison, original, update, found
    ):
        return
    if original.kind is not update.kind:
        if not _may_change_kind(original, update):
            found.add("TYPE_CHANGED")
        return
    _compare_annotations(original, update, found)
    compare_kind = _COMPARE_KIND.get(original.kind)
    if compare_kind is not None:
        compare_kind(comparison, original, update, found)


def _may_change_kind(original: Shape, update: Shape) -> bool:
    if original.kind is ShapeKind.NOTHING or update.kind is ShapeKind.ANYTHING:
        return True
    # Kafka Connect's converter has changed its schema of decimals; both are bytes.
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
    ShapeKind.STRING: compare_strings,
    ShapeKind.NUMBER: compare_numbers,
    ShapeKind.ENUM: compare_enums,
    ShapeKind.CONST: compare_constants,
    ShapeKind.COMBINED: compare_combined,
    ShapeKind.NOT: compare_negations,
    ShapeKind.OBJECT: compare_objects,
    ShapeKind.ARRAY: compare_arrays,
}
