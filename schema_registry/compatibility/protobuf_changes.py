"""The kinds of difference between two Protobuf schemas, and their descriptions."""

from schema_registry.compatibility.difference import Difference

Trail = tuple[str, ...]
"""The names of messages, then of a oneof, if any, then the number of a field or value."""

_INCOMPATIBLE = {
    "PACKAGE_CHANGED": "The {{reader}} schema is in another package than the {{writer}} schema (path '{path}')",
    "MESSAGE_REMOVED": "The {{reader}} schema does not have the message at path '{path}' of the {{writer}} schema",
    "FIELD_KIND_CHANGED": (
        "The field at path '{path}' has different kinds (scalar, message or map) in the {{reader}} schema "
        "and the {{writer}} schema"
    ),
    "FIELD_SCALAR_KIND_CHANGED": (
        "The field at path '{path}' has different encodings in the {{reader}} schema and the {{writer}} schema"
    ),
    "FIELD_NAMED_TYPE_CHANGED": (
        "The message type of the field at path '{path}' in the {{reader}} schema cannot read "
        "that of the {{writer}} schema"
    ),
    "FIELD_NUMERIC_LABEL_CHANGED": (
        "The numeric field at path '{path}' is repeated in only one of the {{reader}} and the {{writer}} schema"
    ),
    "REQUIRED_FIELD_ADDED": (
        "The {{reader}} schema requires a field at path '{path}' that the {{writer}} schema does not have"
    ),
    "REQUIRED_FIELD_REMOVED": (
        "The {{writer}} schema requires a field at path '{path}' that the {{reader}} schema does not have"
    ),
    "ONEOF_FIELD_REMOVED": (
        "The {{reader}} schema lacks the field at path '{path}', which is in a oneof of the {{writer}} schema"
    ),
    "MULTIPLE_FIELDS_MOVED_TO_ONEOF": (
        "The oneof at path '{path}' of the {{reader}} schema contains several fields "
        "that are outside it in the {{writer}} schema, of which only one could be kept"
    ),
    "FIELD_MOVED_TO_EXISTING_ONEOF": (
        "The oneof at path '{path}' of the {{reader}} schema contains a field "
        "that the {{writer}} schema can set together with the others"
    ),
}
_COMPATIBLE = {
    "MESSAGE_ADDED": "The {{writer}} schema has no MESSAGE type at path '{path}' of the {{reader}} schema",
    "MESSAGE_MOVED": "The message at path '{path}' has another index in the {{reader}} than in the {{writer}} schema",
    "ENUM_ADDED": "The {{writer}} schema has no enum at path '{path}' of the {{reader}} schema",
    "ENUM_REMOVED": "The {{reader}} schema has no enum at path '{path}' of the {{writer}} schema",
    "ENUM_CONST_ADDED": "The {{writer}} schema has no enum value at path '{path}' of the {{reader}} schema",
    "ENUM_CONST_CHANGED": "The enum value at path '{path}' has different names in the {{reader}} and {{writer}} schema",
    "ENUM_CONST_REMOVED": "The {{reader}} schema has no enum value at path '{path}' of the {{writer}} schema",
    "FIELD_ADDED": "The {{writer}} schema has no field at path '{path}' of the {{reader}} schema",
    "FIELD_REMOVED": "The {{reader}} schema has no field at path '{path}' of the {{writer}} schema",
    "FIELD_NAME_CHANGED": "The field at path '{path}' has different names in the {{reader}} and {{writer}} schema",
    "FIELD_STRING_OR_BYTES_LABEL_CHANGED": (
        "The string or bytes field at path '{path}' has another label in the {{reader}} than in the {{writer}} schema"
    ),
    "ONEOF_ADDED": "The {{writer}} schema has no oneof at path '{path}' of the {{reader}} schema",
    "ONEOF_REMOVED": "The {{reader}} schema has no oneof at path '{path}' of the {{writer}} schema",
    "ONEOF_FIELD_ADDED": "The {{writer}} schema has no oneof field at path '{path}' of the {{reader}} schema",
    "ONEOF_FIELD_MOVED_TO_TOP_LEVEL": (
        "The field at path '{path}' of the {{reader}} schema is in a oneof of the {{writer}} schema"
    ),
}
COMPATIBLE = frozenset(_COMPATIBLE)
INCOMPATIBLE = frozenset(_INCOMPATIBLE)


class Changes:
    """The differences found so far."""

    def __init__(self) -> None:
        self.differences: list[Difference] = []
        self.incompatible = 0
        """The number of incompatible ones."""

    def add(self, kind: str, trail: Trail) -> None:
        """Add a difference."""
        is_compatible = kind in COMPATIBLE
        path = "#/" + "/".join(trail)
        sentence = _COMPATIBLE[kind] if is_compatible else _INCOMPATIBLE[kind]
        self.incompatible += not is_compatible
        self.differences.append(
            Difference(type=kind, path=path, is_compatible=is_compatible, description=sentence.format(path=path))
        )
