"""Which names Avro allows, and what a name means in its surroundings."""

import re
from typing import Final

from schema_registry.formats.avro_types import PRIMITIVES, JsonValue, Name
from schema_registry.formats.schema import InvalidSchema

_is_name: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*").fullmatch
_is_name_of_any_script: Final = re.compile(r"[^\W\d]\w*").fullmatch


class NameRules:
    """What is asked of names. New schemas follow Avro's specification.

    Otherwise (`strict=False`) letters of any script pass, and namespaces and the aliases of types may be anything,
    as in schemas that older registries let in.
    """

    def __init__(self, *, strict: bool) -> None:
        self._strict = strict
        self._matches = _is_name if strict else _is_name_of_any_script

    def check(self, name: JsonValue, what: str, path: str) -> str:
        """The name of a type, field or symbol, if it is one."""
        if not isinstance(name, str):
            raise InvalidSchema(f"{path or '/'}: the {what} must be text, not {_shown(name)}")
        if not self._matches(name):
            raise InvalidSchema(
                f"{path or '/'}: {what} {_shown(name)} is not allowed: letters, digits and _, no digit first"
            )
        return name

    def defined(self, name: JsonValue, namespace: str | None, path: str) -> Name:
        """The full name of a type that is defined here; a dot in the name overrules the namespace."""
        if not isinstance(name, str):
            raise InvalidSchema(f"{path or '/'}: the name must be text, not {_shown(name)}")
        found = qualified(name, namespace)
        self.check(found.simple, "name", path)
        if found.namespace and self._strict:
            self._check_namespace(found.namespace, path)
        if found.full in PRIMITIVES:
            raise InvalidSchema(f"{path or '/'}: a type must not be named like the primitive type {found.full!r}")
        return found

    def alias(self, name: JsonValue, namespace: str | None, path: str) -> Name:
        """The full name under which a type was known before."""
        if not isinstance(name, str):
            raise InvalidSchema(f"{path or '/'}: an alias must be text, not {_shown(name)}")
        found = qualified(name, namespace)
        if self._strict:
            self.check(found.simple, "alias", path)
        return found

    def _check_namespace(self, namespace: str, path: str) -> None:
        for part in namespace.split("."):
            if not self._matches(part):
                raise InvalidSchema(
                    f"{path or '/'}: namespace {_shown(namespace)} is not allowed: names with dots between them"
                )


def qualified(name: str, namespace: str | None) -> Name:
    """The full name that a name means within a namespace; one that begins with a dot has no namespace."""
    before, dot, simple = name.rpartition(".")
    if dot:
        return Name(simple, before or None)
    return Name(name, namespace or None)


def _shown(value: JsonValue) -> str:
    """A value as it appears in a message, however long it is."""
    text = repr(value)
    return text if len(text) <= 100 else text[:100] + "…"
