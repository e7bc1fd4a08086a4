"""The plans by which Protobuf messages are read as Connect values, and values written as messages."""

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from connect.api.data import Schema, Type
from connect.api.errors import DataError
from connect.api.logical import logical_of
from connect.converters.protobuf import config as names
from connect.converters.protobuf.config import ProtobufConfig
from schema_registry.serdes import protobuf_plan as plans


def read_plan(message: Descriptor, config: ProtobufConfig) -> plans.MessagePlan | plans.WrapperPlan:
    """How messages are read, by the options of the converter; raises UnusableSchema."""
    choices = plans.Choices(
        flattens_oneofs=config.flatten_unions,
        numbers_oneofs=config.generate_index_for_unions,
        has_enums_as_numbers=config.int_for_enums,
        has_proto2_nulls=config.optional_for_proto2,
        has_empty_messages=config.generate_struct_for_nulls,
        unwraps_fields=config.wrapper_for_nullables,
        unwraps_root=config.wrapper_for_raw_primitives,
    )
    return plans.Meaning(choices).of(message)


def write_plan(message: Descriptor, schema: Schema, config: ProtobufConfig) -> plans.MessagePlan | plans.WrapperPlan:
    """How values of a Connect schema are written as a message; raises DataError if it has no field for one."""
    plans = _WritePlans(config)
    return plans.struct(message, schema) if schema.type is Type.STRUCT else plans.wrapper(message, schema)


class _WritePlans:
    def __init__(self, config: ProtobufConfig) -> None:
        self._config = config

    def struct(self, message: Descriptor, schema: Schema) -> plans.MessagePlan:
        """The plan of a struct."""
        parts: list[plans.Member | plans.OneofPlan] = []
        for field in schema.fields:
            if names.is_union(field.schema):
                members = [self._member(message, member.name, member.schema) for member in field.schema.fields]
                parts.append(plans.OneofPlan(field.name, None, members))
            else:
                parts.append(self._member(message, field.name, field.schema))
        return plans.MessagePlan(message, parts)

    def wrapper(self, message: Descriptor, schema: Schema) -> plans.WrapperPlan:
        """The plan of a plain value in a message."""
        return plans.WrapperPlan(message, self._single(message.fields_by_name[names.VALUE], schema))

    def _member(self, message: Descriptor, name: str, schema: Schema) -> plans.Member:
        field = message.fields_by_name.get(self._config.scrub(name))
        if field is None:
            raise DataError(f"Cannot find field with name {name} in the message {message.full_name}")
        is_ignored = schema.optional and self._config.ignore_default_for_nullables
        default = None if is_ignored else schema.default
        return plans.Member(name, field, self._field(field, schema), is_nullable=True, default=default)

    def _field(self, field: FieldDescriptor, schema: Schema) -> plans.Plan:
        entry = field.message_type
        if entry is not None and schema.type is Type.MAP and schema.key_schema and schema.value_schema:
            keys = self._field(entry.fields_by_name[names.KEY], schema.key_schema)
            return plans.MapPlan(entry, keys, self._field(entry.fields_by_name[names.VALUE], schema.value_schema))
        if field.is_repeated:
            if schema.type is not Type.ARRAY or schema.value_schema is None:
                raise DataError(f"the field {field.full_name} is repeated, but its Connect schema is of {schema.type}")
            return plans.ListPlan(self._single(field, schema.value_schema))
        return self._single(field, schema)

    def _single(self, field: FieldDescriptor, schema: Schema) -> plans.Plan:
        if field.enum_type is not None:
            return plans.EnumPlan(field.enum_type, is_number=False)
        if field.message_type is None:
            return plans.Scalar(field.type, schema.type.value if schema.type.is_primitive else "bytes")
        logical = logical_of(schema)
        if logical is not None:
            return plans.LogicalPlan(field.message_type, logical)
        if schema.type is Type.STRUCT:
            return self.struct(field.message_type, schema)
        return self.wrapper(field.message_type, schema)
