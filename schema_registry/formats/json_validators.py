"""`jsonschema` validators that match patterns in linear time, wherever RE2 knows the pattern."""

import re
from collections.abc import Iterator
from typing import Any

from jsonschema import Draft4Validator, Draft6Validator, Draft7Validator, Draft201909Validator, Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend

from schema_registry.formats.json_drafts import Draft
from schema_registry.formats.json_patterns import in_python_spelling, matches
from schema_registry.formats.json_text import JsonObject, JsonValue

Errors = Iterator[ValidationError]


def validator_class(draft: Draft) -> type[Validator]:
    """The validator of a draft; it asserts no formats."""
    return _VALIDATORS[draft]


def _found(pattern: str, text: str) -> bool:
    linear = matches(pattern, text)
    # Look-around and back references are left to Python, whose time may explode; only who registers schemas can do it.
    return re.search(in_python_spelling(pattern), text) is not None if linear is None else linear


def _pattern(_: Validator, pattern: str, instance: JsonValue, __: JsonObject) -> Errors:
    if isinstance(instance, str) and not _found(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: JsonObject, instance: JsonValue, _: JsonObject) -> Errors:
    if not isinstance(instance, dict):
        return
    for pattern, subschema in patterns.items():
        for name, value in instance.items():
            if _found(pattern, name):
                yield from validator.descend(value, subschema, path=name, schema_path=pattern)


def _additional_properties(validator: Any, allowed: JsonValue, instance: JsonValue, schema: JsonObject) -> Errors:
    if not isinstance(instance, dict):
        return
    patterns = schema.get("patternProperties", {})
    extras = [
        name
        for name in instance
        if name not in schema.get("properties", {}) and not any(_found(pattern, name) for pattern in patterns)
    ]
    if isinstance(allowed, dict):
        for name in extras:
            yield from validator.descend(instance[name], allowed, path=name)
    elif not allowed and extras:
        names = ", ".join(repr(name) for name in extras)
        yield ValidationError(f"additional properties are not allowed ({names} unexpected)")


_PATTERN_KEYWORDS = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
}
_LIBRARY_VALIDATORS = {
    Draft.DRAFT_4: Draft4Validator,
    Draft.DRAFT_6: Draft6Validator,
    Draft.DRAFT_7: Draft7Validator,
    Draft.DRAFT_2019_09: Draft201909Validator,
    Draft.DRAFT_2020_12: Draft202012Validator,
}
_VALIDATORS: dict[Draft, type[Validator]] = {
    draft: extend(library_class, _PATTERN_KEYWORDS)  # type: ignore[no-untyped-call]  # its stubs have no types
    for draft, library_class in _LIBRARY_VALIDATORS.items()
}
