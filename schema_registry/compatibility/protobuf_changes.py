"""The kinds of change between two Protobuf schemas, and the sentences that tell them."""

from schema_registry.compatibility.difference import Difference

Trail = tuple[str, ...]
"""Names of messages, then perhaps of a oneof, then the number of a field or value."""

_INCOMPATIBLE = {
    "PACKAGE_CHANGED": (
        "The package at '{path}' in the {{reader}} schema does not match the one in the {{writer}} schema"
    ),
    "MESSAGE_REMOVED": "The {{reader}} schema is missing a MESSAGE type at path '{path}' in the {{writer}} schema",
    "FIELD_KIND_CHANGED": (
        "The type of a field at path '{path}' in the {{reader}} schema does not match the {{writer}} schema"
    ),
    "FIELD_SCALAR_KIND_CHANGED": (
        "The kind of a SCALAR field at path '{path}' in the {{reader}} schema "
        "does not match its kind in the {{writer}} schema"
    ),
    "FIELD_NAMED_TYPE_CHANGED": (
        "The type of a MESSAGE field at path '{path}' in the {{reader}} schema "
        "does not match its type in the {{writer}} schema"
    ),
    "FIELD_NUMERIC_LABEL_CHANGED": (
        "The label of a NUMERIC field at path '{path}' in the {{reader}} schema "
        "does not match its label in the {{writer}} schema"
    ),
    "REQUIRED_FIELD_ADDED": (
        "The required field at path '{path}' in the {{reader}} schema is missing in the {{writer}} schema"
    ),
    "REQUIRED_FIELD_REMOVED": (
        "The {{reader}} schema is missing the required field at path '{path}' in the {{writer}} schema"
    ),
    "ONEOF_FIELD_REMOVED": "The {{reader}} schema is missing a oneof field at path '{path}' in the {{writer}} schema",
    "MULTIPLE_FIELDS_MOVED_TO_ONEOF": (
        "Several fields of the oneof at path '{path}' in the {{reader}} schema "
        "are outside a oneof in the {{writer}} schema"
    ),
    "FIELD_MOVED_TO_EXISTING_ONEOF": (
        "A field of the oneof at path '{path}' in the {{reader}} schema "
        "does not exclude the others in the {{writer}} schema"
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
    """The differences that were found so far."""

    def __init__(self) -> None:
        self.differences: list[Difference] = []
        self.incompatible = 0
        """How many of them break reading."""

    def add(self, kind: str, trail: Trail) -> None:
        """Note one difference."""
        is_compatible = kind in COMPATIBLE
        path = "#/" + "/".join(trail)
        sentence = _COMPATIBLE[kind] if is_compatible else _INCOMPATIBLE[kind]
        self.incompatible += not is_compatible
        self.differences.append(
            Difference(type=kind, path=path, is_compatible=is_compatible, description=sentence.format(path=path))
        )
