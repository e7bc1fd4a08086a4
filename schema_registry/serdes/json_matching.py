"""Patterns of JSON Schema, matched within bounds: RE2 knows most; what needs backtracking is given up after a while."""

from functools import lru_cache

from jsonschema_rs import Draft7Validator, FancyRegexOptions, ValidationError

from schema_registry.formats.json_patterns import matches, numbered

BACKTRACKING = FancyRegexOptions(backtrack_limit=20_000)
"""About a millisecond; a text that takes longer counts as no match."""
_MAX_COMPILED_PATTERNS = 128


class UnknownPattern(Exception):
    """No engine with bounds reads this pattern."""


def is_found(pattern: str, text: str) -> bool:
    """Whether the pattern is found in the text; raises UnknownPattern."""
    linear = matches(pattern, text)
    return _backtracking(pattern).is_valid(text) if linear is None else linear


@lru_cache(maxsize=_MAX_COMPILED_PATTERNS)
def _backtracking(pattern: str) -> Draft7Validator:
    try:
        return Draft7Validator({"pattern": numbered(pattern)}, pattern_options=BACKTRACKING)
    except (ValidationError, LookupError):
        raise UnknownPattern(pattern) from None
