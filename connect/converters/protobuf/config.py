"""Options of the Protobuf converter, and the names that Confluent's uses for what only one side has."""

import re
from typing import Final

from connect.api.config import BOOLEAN, option
from connect.api.data import Schema, Type
from connect.converters.registry import RegistryConfig
from connect.converters.scrubbing import scrubbed

NAMESPACE: Final = "io.confluent.connect.protobuf"
DEFAULT_NAME: Final = "ConnectDefault"
KEY, VALUE = "key", "value"
ENUM: Final = f"{NAMESPACE}.Enum"
UNION: Final = f"{NAMESPACE}.Union"
TAG: Final = f"{NAMESPACE}.Tag"
TYPE: Final = f"{NAMESPACE}.Type"
GENERAL_UNION: Final = "org.apache.kafka.connect.data.Union"
GENERAL_ENUM: Final = "org.apache.kafka.connect.data.Enum"
CONNECT_TYPE: Final = "connect.type"
ENTRY: Final = "Entry"

DECIMAL_MESSAGE: Final = "confluent.type.Decimal"
DATE_MESSAGE: Final = "google.type.Date"
TIME_MESSAGE: Final = "google.type.TimeOfDay"
TIMESTAMP_MESSAGE: Final = "google.protobuf.Timestamp"
_REFUSED_FIRST: Final = "0123456789_"
_is_simple: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*").fullmatch


class ProtobufConfig(RegistryConfig):
    """Options of the Protobuf converter."""

    enhanced_protobuf_schema_support: bool = option(BOOLEAN, default=False)
    """Call messages and enums by their full names."""
    scrub_invalid_names: bool = option(BOOLEAN, default=False)
    """Replace what Protobuf does not allow in names, instead of refusing them."""
    int_for_enums: bool = option(BOOLEAN, default=False)
    """Read enums as numbers, not as text."""
    optional_for_nullables: bool = option(BOOLEAN, default=False)
    """Write optional fields as `optional` ones, and read only these as optional."""
    optional_for_proto2: bool = option(BOOLEAN, default=True)
    """Read `optional` fields of proto2 that are not set as null, not as their defaults."""
    wrapper_for_nullables: bool = option(BOOLEAN, default=False)
    """Write optional fields as messages that hold the value, such as google.protobuf.StringValue, and read these so."""
    wrapper_for_raw_primitives: bool = option(BOOLEAN, default=True)
    """Read a record that is such a message as its value."""
    generate_struct_for_nulls: bool = option(BOOLEAN, default=False)
    """Read messages that are not set as structs of defaults, not as null."""
    generate_index_for_unions: bool = option(BOOLEAN, default=True)
    """Call the field of a oneof by its name and its number."""
    flatten_unions: bool = option(BOOLEAN, default=False)
    """Read the fields of a oneof as fields of the message, without a struct around them."""

    @property
    def enum_key(self) -> str:
        """The parameter that marks the values of an enum."""
        return GENERAL_ENUM if self.generalized_sum_type_support else ENUM

    def scrub(self, name: str) -> str:
        """The name of a field or type in Protobuf."""
        return scrubbed(name, refused_first=_REFUSED_FIRST) if self.scrub_invalid_names else name

    def split(self, full_name: str) -> tuple[str, str]:
        """Package, which may be empty, and simple name."""
        *package, name = [self.scrub(part) for part in full_name.split(".")]
        return ".".join(package), name


def is_union(schema: Schema) -> bool:
    """Whether a STRUCT represents a oneof."""
    is_ours = schema.name is not None and schema.name.startswith(UNION)
    return schema.type is Type.STRUCT and (is_ours or GENERAL_UNION in schema.parameters)


def enum_key_of(schema: Schema) -> str | None:
    """The parameter by which a schema marks its values as those of an enum."""
    return next((key for key in (GENERAL_ENUM, ENUM) if key in schema.parameters), None)


def entry_name(name: str) -> str:
    """The name of a map's entries: `a_map` has an `AMapEntry`."""
    camel = "".join(part[:1].upper() + part[1:].lower() for part in name.split("_")) if "_" in name else name
    return f"{camel}{ENTRY}"


def map_name(entry: str) -> str:
    """The name of a map by that of its entries: `AMapEntry` is one of `a_map`."""
    simple = entry.removesuffix(ENTRY)
    return re.sub(r"(?<!^)(?=[A-Z])", "_", simple).lower() if _is_simple(simple) else simple
