"""The names that Avro allows, and how they are qualified."""

import re
from typing import Final

from schema_registry.formats.avro_types import PRIMITIVES, JsonValue, Name
from schema_registry.formats.schema import InvalidSchema

_is_name: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*").fullmatch
_is_name_of_any_script: Final = re.compile(r"[^\W\d]\w*").fullmatch


class NameRules:
    """The rules for names. New schemas follow Avro's specification.

    Without `strict`, letters of any script are allowed, and namespaces and the aliases of types are not checked, as
    in schemas that older registries accepted.
    """

    def __init__(self, *, strict: bool) -> None:
        self._strict = strict
        self._matches = _is_name if strict else _is_name_of_any_script

    def check(self, name: JsonValue, what: str, path: str) -> str:
        """The name of a type, field or symbol, if it is valid."""
        if not isinstance(name, str):
            raise InvalidSchema(f"{path or '/'}: the {what} must be text, not {_shorten(name)}")
        if not self._matches(name):
            raise InvalidSchema(
                f"{path or '/'}: {what} {_shorten(name)} is not allowed: use letters, digits and _, not a digit first"
            )
        return name

    def define(self, name: JsonValue, namespace: str | None, path: str) -> Name:
        """The full name of a type that is defined here; a dot in the name overrides the namespace."""
        if not isinstance(name, str):
            raise InvalidSchema(f"{path or '/'}: the name must be text, not {_shorten(name)}")
        found = qualify(name, namespace)
        self.check(found.simple, "name", path)
        if found.namespace and self._strict and not all(map(self._matches, found.namespace.split("."))):
            raise InvalidSchema(
                f"{path or '/'}: namespace {_shorten(found.namespace)} is not allowed: use names separated by dots"
            )
        if found.full in PRIMITIVES:
            raise InvalidSchema(f"{path or '/'}: a type must not be named like the primitive type {found.full!r}")
        return found

    def alias(self, name: JsonValue, namespace: str | None, path: str) -> Name:
        """The full name of an alias."""
        if not isinstance(name, str):
            raise InvalidSchema(f"{path or '/'}: an alias must be text, not {_shorten(name)}")
        found = qualify(name, namespace)
        if self._strict:
            self.check(found.simple, "alias", path)
        return found


def qualify(name: str, namespace: str | None) -> Name:
    """The full name of a name inside a namespace; one that begins with a dot has no namespace."""
    before, dot, simple = name.rpartition(".")
    if dot:
        return Name(simple, before or None)
    return Name(name, namespace or None)


def _shorten(value: JsonValue) -> str:
    """A value for a message; long ones are cut."""
    text = repr(value)
    return text if len(text) <= 100 else text[:100] + "…"
