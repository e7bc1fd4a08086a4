"""Equality of JSON values, computed once per value."""

from collections.abc import Hashable

from schema_registry.formats.json_text import JsonValue


class Equality:
    """Returns equal keys for equal values: 1 and 1.0 are equal, 1 and true are not, the order of members is ignored.

    Arrays and objects are cached by identity, so they must live as long as this object.
    """

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._known: dict[int, Hashable] = {}

    def key(self, value: JsonValue) -> Hashable:
        """A hashable key that is equal for equal values."""
        if isinstance(value, str) or (isinstance(value, int | float) and not isinstance(value, bool)):
            return value
        if not isinstance(value, dict | list):
            return (value,)
        known = self._known.get(id(value))
        if known is None:
            known = self._known[id(value)] = self._container_key(value)
        return known

    def _container_key(self, value: JsonValue) -> Hashable:
        content: Hashable
        if isinstance(value, dict):
            content = ("object", frozenset((name, self.key(member)) for name, member in value.items()))
        else:
            assert isinstance(value, list)
            content = ("array", *map(self.key, value))
        return ("container", self._numbers.setdefault(content, len(self._numbers)))
