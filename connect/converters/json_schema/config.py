"""Options of the JSON Schema converter, and the names that Confluent's uses for what only Connect has."""

from typing import Final

from connect.api.config import BOOLEAN, STRING, one_of, option
from connect.api.data import Schema, Type
from connect.converters.registry import RegistryConfig

NAMESPACE: Final = "io.confluent.connect.json"
KEY, VALUE = "key", "value"
ENUM: Final = f"{NAMESPACE}.Enum"
ONE_OF: Final = f"{NAMESPACE}.OneOf"
GENERAL_UNION: Final = "org.apache.kafka.connect.data.Union"
GENERAL_ENUM: Final = "org.apache.kafka.connect.data.Enum"
GENERAL_UNION_PREFIX: Final = "connect_union_"
NULL_SYMBOL: Final = "<NULL>"
ADDITIONAL: Final = "__connect_additional_properties__"
"""The field that keeps properties which the schema does not name."""
JSON_TEXT: Final = f"{NAMESPACE}.Text"
"""The parameter that marks text as JSON, for properties that may be anything."""

CONNECT_TYPE: Final = "connect.type"
CONNECT_VERSION: Final = "connect.version"
CONNECT_PARAMETERS: Final = "connect.parameters"
CONNECT_INDEX: Final = "connect.index"
BASE64, NUMERIC = "BASE64", "NUMERIC"


class JsonSchemaConfig(RegistryConfig):
    """Options of the JSON Schema converter."""

    object_additional_properties: bool = option(BOOLEAN, default=True)
    """Let objects have properties that the schema does not name."""
    use_optional_for_nonrequired: bool = option(BOOLEAN, default=False)
    """Read properties that are not required as optional fields."""
    preserve_additional_properties: bool = option(BOOLEAN, default=False)
    """Keep properties that the schema does not name, in a field `__connect_additional_properties__`; otherwise they are
    dropped."""
    decimal_format: str = option(STRING, default=BASE64, check=one_of(BASE64, NUMERIC, BASE64.lower(), NUMERIC.lower()))
    """Write decimals as the base64 of their digits, or as numbers; both are read."""
    flatten_singleton_unions: bool = option(BOOLEAN, default=True)
    """Read a choice of one schema as that schema."""
    json_fail_invalid_schema: bool = option(BOOLEAN, default=False)
    """Check every document against its schema."""
    ignore_modern_dialects: bool = option(BOOLEAN, default=False)
    """Accepted for compatibility: schemas are read by the draft that they name."""

    @property
    def has_numeric_decimals(self) -> bool:
        """Whether decimals are written as numbers."""
        return self.decimal_format.upper() == NUMERIC

    @property
    def enum_key(self) -> str:
        """The parameter that marks text as an enum."""
        return GENERAL_ENUM if self.generalized_sum_type_support else ENUM

    def branch_name(self, index: int) -> str:
        """The name of a schema's field in the struct of a union."""
        if self.generalized_sum_type_support:
            return f"{GENERAL_UNION_PREFIX}field_{index}"
        return f"{ONE_OF}.field.{index}"


def is_union(schema: Schema) -> bool:
    """Whether a STRUCT represents a choice between several schemas."""
    return schema.type is Type.STRUCT and (schema.name == ONE_OF or GENERAL_UNION in schema.parameters)


def has_text_keys(schema: Schema) -> bool:
    """Whether JSON can write a MAP as an object."""
    keys = schema.key_schema
    return keys is not None and keys.type is Type.STRING and not keys.optional
