"""Differences between strings, numbers, enums and constants, and between limits of any kind."""

from fractions import Fraction

from schema_registry.compatibility.json_comparison import Comparison
from schema_registry.compatibility.json_findings import Findings
from schema_registry.compatibility.json_shapes import Shape
from schema_registry.formats.json_text import JsonObject, SpelledNumber

Number = int | float


def compare_limit(found: Findings, keyword: str, kind: str, *, original: Number | None, update: Number | None) -> None:
    """Add the change of a limit; the names of the differences begin with `kind`."""
    if original == update:
        return
    if original is None or update is None:
        change = "ADDED" if original is None else "REMOVED"
    else:
        change = "INCREASED" if original < update else "DECREASED"
    found.add(f"{kind}_{change}", keyword)


def compare_limits(found: Findings, original: Shape, update: Shape, *, keywords: dict[str, str]) -> None:
    """Add the changes of several limits, by keyword."""
    for keyword, kind in keywords.items():
        old, new = original.keywords.get(keyword), update.keywords.get(keyword)
        compare_limit(found, keyword, kind, original=old, update=new)


def compare_strings(_: Comparison, original: Shape, update: Shape, found: Findings) -> None:
    """Compare lengths and pattern."""
    compare_limits(found, original, update, keywords={"maxLength": "MAX_LENGTH", "minLength": "MIN_LENGTH"})
    old, new = original.keywords.get("pattern"), update.keywords.get("pattern")
    if old == new:
        return
    change = "ADDED" if old is None else "REMOVED" if new is None else "CHANGED"
    found.add(f"PATTERN_{change}", "pattern")


def compare_numbers(_: Comparison, original: Shape, update: Shape, found: Findings) -> None:
    """Compare bounds, divisor, and whether fractions are allowed."""
    compare_limits(found, original, update, keywords={"maximum": "MAXIMUM", "minimum": "MINIMUM"})
    for limit in ("maximum", "minimum"):
        keyword = f"exclusive{limit.capitalize()}"
        old = _exclusive_limit(original.keywords, keyword, limit)
        new = _exclusive_limit(update.keywords, keyword, limit)
        compare_limit(found, keyword, f"EXCLUSIVE_{limit.upper()}", original=old, update=new)
    _compare_divisors(found, original, update)
    if original.is_integer != update.is_integer:
        found.add("TYPE_EXTENDED" if original.is_integer else "TYPE_NARROWED")


def _exclusive_limit(keywords: JsonObject, keyword: str, limit: str) -> Number | None:
    """The exclusive limit; in draft 4 the keyword is a boolean that makes the other keyword's limit exclusive."""
    value: Number | bool | None = keywords.get(keyword)
    if isinstance(value, bool):
        return keywords.get(limit) if value else None
    return value


def _compare_divisors(found: Findings, original: Shape, update: Shape) -> None:
    old, new = _exact(original.keywords.get("multipleOf")), _exact(update.keywords.get("multipleOf"))
    if old == new:
        return
    if old is None or new is None:
        change = "ADDED" if old is None else "REMOVED"
    elif new % old == 0:
        change = "EXPANDED"
    else:
        change = "REDUCED" if old % new == 0 else "CHANGED"
    found.add(f"MULTIPLE_OF_{change}", "multipleOf")


def _exact(number: Number | None) -> Fraction | None:
    if number is None:
        return None
    return Fraction(number.spelling) if isinstance(number, SpelledNumber) else Fraction(number)


def compare_enums(comparison: Comparison, original: Shape, update: Shape, found: Findings) -> None:
    """Compare the allowed values, in any order."""
    old, new = _values(comparison, original), _values(comparison, update)
    if old == new:
        return
    change = "EXTENDED" if new > old else "NARROWED" if new < old else "CHANGED"
    found.add(f"ENUM_ARRAY_{change}", "enum")


def _values(comparison: Comparison, shape: Shape) -> frozenset[object]:
    if shape.members is None:
        shape.members = frozenset(map(comparison.equality.key, shape.keywords["enum"]))
    return shape.members


def compare_constants(comparison: Comparison, original: Shape, update: Shape, found: Findings) -> None:
    """Compare the single allowed value."""
    key = comparison.equality.key
    if key(original.keywords["const"]) != key(update.keywords["const"]):
        found.add("ENUM_ARRAY_CHANGED", "const")
