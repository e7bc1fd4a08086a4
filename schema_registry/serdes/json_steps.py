"""JSON Schema validators that give up: schemas can ask for any number of steps.

Where schemas mention one another, a few lines can ask for 2^n steps, of the schema alone or with every level of a
document. None can without references, so these are counted. `jsonschema` goes on with a validator of its own wherever
it meets a `$schema`; ours goes on with ours, which also keeps patterns linear there.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from jsonschema.validators import extend

from schema_registry.formats.json_drafts import Draft, draft_of
from schema_registry.formats.json_references import REFERENCE_KEYWORDS
from schema_registry.formats.json_schema import JsonSchema
from schema_registry.formats.json_validators import validator_class

Validator = Any
"""The library makes its classes as it goes, and types them as little."""


class TooManySteps(Exception):
    """A schema sends its checker round and round."""


class _Work(threading.local):
    left = 0


_work = _Work()


@contextmanager
def steps(limit: int) -> Iterator[None]:
    """Allow so many references to be followed in a block; raises TooManySteps."""
    _work.left = limit
    yield


def counting_validator(schema: JsonSchema) -> Validator:
    """The validator of a schema, for use inside `steps`."""
    return _class_of(schema.draft)(schema.document, registry=schema.validator._registry)  # type: ignore[attr-defined]  # noqa: SLF001


_classes: dict[Draft, Validator] = {}


def _class_of(draft: Draft) -> Validator:
    if draft not in _classes:
        kind: Validator = validator_class(draft)
        checks = kind.VALIDATORS.items()
        counted = {keyword: _counted(check) for keyword, check in checks if keyword in REFERENCE_KEYWORDS}
        made: Validator = extend(kind, counted)  # type: ignore[no-untyped-call]
        made.evolve = _evolve
        made.draft = draft
        _classes[draft] = made
    return _classes[draft]


def _counted(check: Callable[..., Any]) -> Callable[..., Any]:
    def follow(*arguments: Any) -> Any:
        _work.left -= 1
        if _work.left < 0:
            raise TooManySteps
        return check(*arguments)

    return follow


def _evolve(validator: Validator, **changes: Any) -> Validator:
    """The validator for another part of the schema, of the draft that the part names."""
    kind = type(validator)
    schema = changes.get("schema")
    if isinstance(schema, dict) and "$schema" in schema:
        kind = _class_of(draft_of(schema, kind.draft))
    for field in kind.__attrs_attrs__:
        if field.init:
            changes.setdefault(field.alias, getattr(validator, field.name))
    return kind(**changes)
