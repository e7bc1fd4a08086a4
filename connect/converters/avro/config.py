"""Options of the Avro converter, and the names that Confluent's uses in Avro schemas for what only Connect has."""

from typing import Final

from connect.api.config import BOOLEAN, option
from connect.api.data import Schema, Type
from connect.converters.registry import RegistryConfig
from connect.converters.scrubbing import scrubbed
from schema_registry.formats.avro_types import Enum, Fixed, Record
from schema_registry.formats.avro_types import Type as AvroType

NAMESPACE: Final = "io.confluent.connect.avro"
DEFAULT_NAME: Final = "ConnectDefault"
MAP_ENTRY: Final = "MapEntry"
KEY, VALUE = "key", "value"
ANYTHING: Final = f"{NAMESPACE}.Anything"
UNION: Final = f"{NAMESPACE}.Union"
ENUM: Final = f"{NAMESPACE}.Enum"
RECORD_DOC: Final = f"{NAMESPACE}.record.doc"
ENUM_DOC: Final = f"{NAMESPACE}.enum.doc."
ENUM_DEFAULT: Final = f"{NAMESPACE}.enum.default."
FIELD_DOC: Final = f"{NAMESPACE}.field.doc."
FIELD_DEFAULT: Final = f"{NAMESPACE}.field.default"
GENERAL_UNION: Final = "org.apache.kafka.connect.data.Union"
GENERAL_ENUM: Final = "org.apache.kafka.connect.data.Enum"
GENERAL_UNION_PREFIX: Final = "connect_union_"

CONNECT_NAME: Final = "connect.name"
CONNECT_DOC: Final = "connect.doc"
CONNECT_RECORD_DOC: Final = "connect.record.doc"
CONNECT_ENUM_DOC: Final = "connect.enum.doc"
CONNECT_VERSION: Final = "connect.version"
CONNECT_DEFAULT: Final = "connect.default"
CONNECT_PARAMETERS: Final = "connect.parameters"
CONNECT_TYPE: Final = "connect.type"
CONNECT_INTERNAL_TYPE: Final = "connect.internal.type"
PRECISION: Final = "connect.decimal.precision"
FIXED_SIZE: Final = "connect.fixed.size"
DEFAULT_PRECISION: Final = 64


class AvroConfig(RegistryConfig):
    """Options of the Avro converter."""

    enhanced_avro_schema_support: bool = option(BOOLEAN, default=False)
    """Write enums as enums again, and call branches of unions by their full names."""
    connect_meta_data: bool = option(BOOLEAN, default=True)
    """Keep names, versions, defaults and parameters of Connect in Avro schemas, as `connect.…`."""
    scrub_invalid_names: bool = option(BOOLEAN, default=False)
    """Replace what Avro does not allow in names, instead of refusing them."""
    allow_optional_map_keys: bool = option(BOOLEAN, default=False)
    """Write maps with optional text keys as Avro's maps, not as lists of entries."""
    flatten_singleton_unions: bool = option(BOOLEAN, default=True)
    """Read a union of one type as that type."""
    discard_type_doc_default: bool = option(BOOLEAN, default=False)
    """Take documentation from fields; parameters have neither that of types nor whether defaults are Avro's own."""

    def scrub(self, name: str) -> str:
        """The name of a field or type in Avro."""
        return scrubbed(name) if self.scrub_invalid_names else name

    def split(self, full_name: str) -> tuple[str | None, str]:
        """Namespace and simple name."""
        parts = [self.scrub(part) for part in full_name.split(".")]
        return ".".join(parts[:-1]) or None, parts[-1]

    def has_text_keys(self, schema: Schema) -> bool:
        """Whether Avro can write a MAP as its own kind of map."""
        keys = schema.key_schema
        return keys is not None and keys.type is Type.STRING and (not keys.optional or self.allow_optional_map_keys)

    def branch_name(self, branch: AvroType, index: int) -> str:
        """The name of a branch's field in the struct of a union."""
        if self.generalized_sum_type_support:
            return f"{GENERAL_UNION_PREFIX}field_{index}"
        if isinstance(branch, Record | Enum | Fixed):
            return branch.name.full if self.enhanced_avro_schema_support else branch.name.simple
        return branch.kind


def is_union(schema: Schema) -> bool:
    """Whether a STRUCT represents a union of several types."""
    return schema.type is Type.STRUCT and (schema.name == UNION or GENERAL_UNION in schema.parameters)
