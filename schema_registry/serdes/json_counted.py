"""JSON Schema validators that say in words what is wrong, and give up after a while.

If schemas refer to one another, a few lines can take 2^n steps, in the schema alone or with every level of a document.
None can without references, so these are counted. `jsonschema` continues with a validator of its own wherever there is
a `$schema`; ours continues with ours, which also limits patterns there: RE2 matches most, and backtracking is limited.
No formats are asserted.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import jsonschema_rs
from jsonschema import Draft4Validator, Draft6Validator, Draft7Validator, Draft201909Validator, Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from schema_registry.formats.json_drafts import Draft, draft_of
from schema_registry.formats.json_patterns import matches, numbered
from schema_registry.formats.json_references import REFERENCE_KEYWORDS
from schema_registry.formats.json_schema import JsonSchema
from schema_registry.formats.json_text import JsonObject, JsonValue

BACKTRACKING = jsonschema_rs.FancyRegexOptions(backtrack_limit=20_000)
"""About a millisecond; a text that takes longer does not match."""
_MAX_COMPILED_PATTERNS = 128

Validator = Any
"""The library generates its classes without types."""
Errors = Iterator[ValidationError]


class TooManySteps(Exception):
    """Checking a document by a schema takes too many steps."""


class UnknownPattern(Exception):
    """No engine with limits supports this pattern."""


class _Work(threading.local):
    left = 0


_work = _Work()


@contextmanager
def steps(limit: int) -> Iterator[None]:
    """Limit how many references are followed in a block; raises TooManySteps."""
    _work.left = limit
    yield


def counting_validator(schema: JsonSchema) -> Validator:
    """The validator of a schema, for use inside `steps`."""
    return _CLASSES[schema.draft](schema.document, registry=schema.registry)


def _counted(check: Callable[..., Any]) -> Callable[..., Any]:
    def follow(*arguments: Any) -> Any:
        _work.left -= 1
        if _work.left < 0:
            raise TooManySteps
        return check(*arguments)

    return follow


def _evolve(validator: Validator, **changes: Any) -> Validator:
    """The validator for another part of the schema, in the draft that the part names."""
    kind = type(validator)
    schema = changes.get("schema")
    if isinstance(schema, dict) and "$schema" in schema:
        kind = _CLASSES[draft_of(schema, kind.draft)]
    for field in kind.__attrs_attrs__:
        if field.init:
            changes.setdefault(field.alias, getattr(validator, field.name))
    return kind(**changes)


def _is_found(pattern: str, text: str) -> bool:
    """Whether the pattern is found in the text; raises UnknownPattern."""
    linear = matches(pattern, text)
    return _backtracking(pattern).is_valid(text) if linear is None else linear


@lru_cache(maxsize=_MAX_COMPILED_PATTERNS)
def _backtracking(pattern: str) -> jsonschema_rs.Draft7Validator:
    try:
        return jsonschema_rs.Draft7Validator({"pattern": numbered(pattern)}, pattern_options=BACKTRACKING)
    except (jsonschema_rs.ValidationError, LookupError):
        raise UnknownPattern(pattern) from None


def _pattern(_: Validator, pattern: str, instance: JsonValue, __: JsonObject) -> Errors:
    if isinstance(instance, str) and not _is_found(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(validator: Validator, patterns: JsonObject, instance: JsonValue, _: JsonObject) -> Errors:
    if not isinstance(instance, dict):
        return
    for pattern, subschema in patterns.items():
        for name, value in instance.items():
            if _is_found(pattern, name):
                yield from validator.descend(value, subschema, path=name, schema_path=pattern)


def _additional_properties(validator: Validator, allowed: JsonValue, instance: JsonValue, schema: JsonObject) -> Errors:
    if not isinstance(instance, dict):
        return
    patterns = schema.get("patternProperties", {})
    extras = [
        name
        for name in instance
        if name not in schema.get("properties", {}) and not any(_is_found(pattern, name) for pattern in patterns)
    ]
    if isinstance(allowed, dict):
        for name in extras:
            yield from validator.descend(instance[name], allowed, path=name)
    elif not allowed and extras:
        names = ", ".join(repr(name) for name in extras)
        yield ValidationError(f"additional properties are not allowed ({names} unexpected)")


def _after_listed(check: Callable[..., Any]) -> Callable[..., Any]:
    """`additionalItems` means something beside a list of `items` alone; the library stumbles over `"items": false`."""

    def follow(validator: Validator, allowed: JsonValue, instance: JsonValue, schema: JsonObject) -> Errors:
        if isinstance(schema.get("items"), list):
            yield from check(validator, allowed, instance, schema) or ()

    return follow


def _unique_items(_: Validator, is_unique: bool, instance: JsonValue, __: JsonObject) -> Errors:
    # The library compares every item with every other.
    if is_unique and isinstance(instance, list) and not _UNIQUE.is_valid(instance):
        yield ValidationError(f"{instance!r} has non-unique elements")


def _class_of(draft: Draft, library_class: Validator) -> Validator:
    checks = {keyword: check for keyword, check in library_class.VALIDATORS.items() if keyword in REFERENCE_KEYWORDS}
    changed = {keyword: _counted(check) for keyword, check in checks.items()} | {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique_items,
    }
    if "additionalItems" in library_class.VALIDATORS:
        changed["additionalItems"] = _after_listed(library_class.VALIDATORS["additionalItems"])
    made: Validator = extend(library_class, changed)  # type: ignore[no-untyped-call]  # its stubs have no types
    made.evolve = _evolve
    made.draft = draft
    return made


_UNIQUE = jsonschema_rs.Draft7Validator({"uniqueItems": True})
_CLASSES = {
    Draft.DRAFT_4: _class_of(Draft.DRAFT_4, Draft4Validator),
    Draft.DRAFT_6: _class_of(Draft.DRAFT_6, Draft6Validator),
    Draft.DRAFT_7: _class_of(Draft.DRAFT_7, Draft7Validator),
    Draft.DRAFT_2019_09: _class_of(Draft.DRAFT_2019_09, Draft201909Validator),
    Draft.DRAFT_2020_12: _class_of(Draft.DRAFT_2020_12, Draft202012Validator),
}
