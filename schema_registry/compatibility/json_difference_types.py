"""The kinds of difference between JSON Schemas: Confluent's names, which of them are compatible, and descriptions."""

from schema_registry.compatibility.policy import Policy

TOO_COMPLEX = "TOO_COMPLEX"
"""Our own: the comparison was given up, so it is unknown whether the schemas are compatible."""

_COMPATIBLE = frozenset(
    {"ID_CHANGED", "DESCRIPTION_CHANGED", "TITLE_CHANGED", "DEFAULT_CHANGED", "SCHEMA_REMOVED", "TYPE_EXTENDED"}
    | {"MAX_LENGTH_INCREASED", "MAX_LENGTH_REMOVED", "MIN_LENGTH_DECREASED", "MIN_LENGTH_REMOVED", "PATTERN_REMOVED"}
    | {"MAXIMUM_INCREASED", "MAXIMUM_REMOVED", "MINIMUM_DECREASED", "MINIMUM_REMOVED"}
    | {"EXCLUSIVE_MAXIMUM_INCREASED", "EXCLUSIVE_MAXIMUM_REMOVED"}
    | {"EXCLUSIVE_MINIMUM_DECREASED", "EXCLUSIVE_MINIMUM_REMOVED"}
    | {"MULTIPLE_OF_REDUCED", "MULTIPLE_OF_REMOVED"}
    | {"REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED", "REQUIRED_ATTRIBUTE_REMOVED"}
    | {"DEPENDENCY_ARRAY_NARROWED", "DEPENDENCY_ARRAY_REMOVED", "DEPENDENCY_SCHEMA_REMOVED"}
    | {"MAX_PROPERTIES_INCREASED", "MAX_PROPERTIES_REMOVED", "MIN_PROPERTIES_DECREASED", "MIN_PROPERTIES_REMOVED"}
    | {"ADDITIONAL_PROPERTIES_ADDED", "ADDITIONAL_PROPERTIES_EXTENDED"}
    | {"UNEVALUATED_PROPERTIES_ADDED", "UNEVALUATED_PROPERTIES_EXTENDED"}
    | {"PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL"}
    | {"REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL"}
    | {"OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL", "PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL"}
    | {"PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL", "PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"}
    | {"PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"}
    | {"MAX_ITEMS_INCREASED", "MAX_ITEMS_REMOVED", "MIN_ITEMS_DECREASED", "MIN_ITEMS_REMOVED"}
    | {"MAX_CONTAINS_INCREASED", "MAX_CONTAINS_REMOVED", "MIN_CONTAINS_DECREASED", "MIN_CONTAINS_REMOVED"}
    | {"UNIQUE_ITEMS_REMOVED", "ADDITIONAL_ITEMS_ADDED", "ADDITIONAL_ITEMS_EXTENDED"}
    | {"UNEVALUATED_ITEMS_ADDED", "UNEVALUATED_ITEMS_EXTENDED"}
    | {"ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL", "ITEM_ADDED_TO_CLOSED_CONTENT_MODEL"}
    | {"ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL", "ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL"}
    | {"ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"}
    | {"ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"}
    | {"ENUM_ARRAY_EXTENDED", "COMBINED_TYPE_EXTENDED", "PRODUCT_TYPE_NARROWED", "SUM_TYPE_EXTENDED"}
    | {"NOT_TYPE_NARROWED"}
)
_COMPATIBLE_IF_LENIENT = frozenset(
    {"ADDITIONAL_PROPERTIES_NARROWED", "ADDITIONAL_PROPERTIES_REMOVED"}
    | {"UNEVALUATED_PROPERTIES_NARROWED", "UNEVALUATED_PROPERTIES_REMOVED"}
    | {"REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL", "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"}
    | {"PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL"}
    | {"PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"}
    | {"PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"}
)


def compatible_types(policy: Policy) -> frozenset[str]:
    """The kinds of difference that a policy allows."""
    return _COMPATIBLE | _COMPATIBLE_IF_LENIENT if policy is Policy.LENIENT else _COMPATIBLE


def describe(kind: str, path: str) -> str:
    """The description of a difference; `{reader}` and `{writer}` stand for new and old."""
    text = _template(kind).replace("{path}", path)
    # What a partially open model does not cover also differs in type or limits, which no policy allows.
    if kind in _COMPATIBLE_IF_LENIENT and "_NOT_COVERED_" not in kind:
        text += f". {_REASONS.get(kind, '')}compatibilityPolicy LENIENT would allow this"
    return text


_REASONS = {
    "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL": (
        "The {writer} schema allows any other property (additionalProperties is not false), so data may already have "
        "this property with values that the {reader} schema refuses. "
    ),
    "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL": (
        "The {writer} schema allows any other property (additionalProperties is not false), so data may already have "
        "this property with values that the {reader} schema refuses. "
    ),
}
_KEYWORD = "The {reader} schema has a restriction at path '{path}' that the {writer} schema does not have"
_MORE = "The {reader} schema raises the limit at path '{path}' above that of the {writer} schema"
_LESS = "The {reader} schema lowers the limit at path '{path}' below that of the {writer} schema"
_OTHER = "The {reader} schema and the {writer} schema have different values at path '{path}'"
_FEWER = "The {reader} schema has fewer elements at path '{path}' than the {writer} schema"
_MORE_ELEMENTS = "The {reader} schema has more elements at path '{path}' than the {writer} schema"
_TYPE = "The {reader} schema refuses values at path '{path}' that the type in the {writer} schema allows"
_GONE = "The {reader} schema lacks a keyword that the {writer} schema has at path '{path}'"

_TEMPLATES = {
    "TYPE_NARROWED": _TYPE,
    "TYPE_CHANGED": _TYPE,
    "COMBINED_TYPE_CHANGED": _TYPE,
    "COMBINED_TYPE_SUBSCHEMAS_CHANGED": _TYPE,
    "ENUM_ARRAY_CHANGED": _TYPE,
    "SCHEMA_ADDED": _KEYWORD,
    "PRODUCT_TYPE_EXTENDED": _MORE_ELEMENTS,
    "SUM_TYPE_EXTENDED": _MORE_ELEMENTS,
    "NOT_TYPE_EXTENDED": _MORE_ELEMENTS,
    "DEPENDENCY_ARRAY_EXTENDED": _MORE_ELEMENTS,
    "MULTIPLE_OF_EXPANDED": _MORE,
    "ADDITIONAL_PROPERTIES_REMOVED": _KEYWORD,
    "ADDITIONAL_ITEMS_REMOVED": _KEYWORD,
    "UNEVALUATED_PROPERTIES_REMOVED": _KEYWORD,
    "UNEVALUATED_ITEMS_REMOVED": _KEYWORD,
    "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL": (
        "The {reader} schema requires a property at path '{path}' that objects of the {writer} schema cannot all have"
    ),
    TOO_COMPLEX: "The {reader} and the {writer} schema have too many alternatives and references to be compared",
}
_TEMPLATES_BY_ENDING = {
    "ADDED_TO_OPEN_CONTENT_MODEL": (
        "The {reader} schema restricts a property or item at path '{path}' that the {writer} schema does not define "
        "but allows (open content model)"
    ),
    "REMOVED_FROM_CLOSED_CONTENT_MODEL": (
        "The {reader} schema does not define the property or item at path '{path}' of the {writer} schema and allows "
        "no others (closed content model)"
    ),
    "REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": (
        "The {reader} schema does not define the property or item at path '{path}' of the {writer} schema, and its "
        "schema for other properties or items does not allow it (partially open content model)"
    ),
    "ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": (
        "The {reader} schema defines a property or item at path '{path}' and refuses values that the {writer} schema "
        "allows by its schema for other properties or items (partially open content model)"
    ),
    "_ADDED": _KEYWORD,
    "_INCREASED": _MORE,
    "_DECREASED": _LESS,
    "_NARROWED": _FEWER,
    "_CHANGED": _OTHER,
    "_REMOVED": _GONE,
}


def _template(kind: str) -> str:
    if kind in _TEMPLATES:
        return _TEMPLATES[kind]
    for ending, template in _TEMPLATES_BY_ENDING.items():
        if kind.endswith(ending):
            return template
    return "The {reader} and the {writer} schema differ at path '{path}'"
