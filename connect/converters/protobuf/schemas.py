"""Protobuf messages as Connect schemas."""

from typing import Final

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from connect.api.data import INT32, STRING, Field, Schema, Type, array, mapping
from connect.api.logical import logical_schema
from connect.converters.protobuf import config as names
from connect.converters.protobuf.config import ProtobufConfig
from schema_registry.serdes import protobuf_plan as plans

_OTHER_INTEGERS: Final = {
    FieldDescriptor.TYPE_SINT32: "sint32",
    FieldDescriptor.TYPE_SFIXED32: "sfixed32",
    FieldDescriptor.TYPE_UINT32: "uint32",
    FieldDescriptor.TYPE_FIXED32: "fixed32",
    FieldDescriptor.TYPE_UINT64: "uint64",
    FieldDescriptor.TYPE_SINT64: "sint64",
    FieldDescriptor.TYPE_FIXED64: "fixed64",
    FieldDescriptor.TYPE_SFIXED64: "sfixed64",
}
_SMALL: Final = ("int8", "int16")


def to_connect_schema(
    plan: plans.MessagePlan | plans.WrapperPlan, config: ProtobufConfig, *, version: int | None = None
) -> Schema:
    """The Connect schema of a message; `version` is that of the subject."""
    made = _Schemas(config).of(plan)
    return made if version is None else made.but(version=version)


class _Schemas:
    def __init__(self, config: ProtobufConfig) -> None:
        self._config = config

    def of(self, plan: plans.Plan) -> Schema:
        match plan:
            case plans.MessagePlan():
                return self._struct(plan)
            case plans.WrapperPlan():
                return self.of(plan.value).but(parameters={})
            case plans.ListPlan():
                return array(self._item(plan.items).as_optional(), optional=True)
            case plans.MapPlan():
                return self._map(plan)
            case plans.LogicalPlan():
                return logical_schema(plan.logical)
            case plans.EnumPlan():
                return self._enum(plan.enum)
            case plans.Scalar():
                made = Schema(Type(plan.kind))
                other = _OTHER_INTEGERS.get(plan.type) if plan.kind not in _SMALL else None
                return made if other is None else made.but(parameters={names.TYPE: other})

    def _item(self, plan: plans.Plan) -> Schema:
        made = self.of(plan)
        return (
            made.as_optional() if isinstance(plan, plans.MessagePlan | plans.WrapperPlan | plans.LogicalPlan) else made
        )

    def _struct(self, plan: plans.MessagePlan) -> Schema:
        fields = [
            Field(
                p.name, self._oneof(p, plan.message) if isinstance(p, plans.OneofPlan) else self._field(p.field, p.plan)
            )
            for p in plan.parts
        ]
        return Schema(Type.STRUCT, name=self._name(plan.message.full_name), fields=tuple(fields))

    def _oneof(self, plan: plans.OneofPlan, message: Descriptor) -> Schema:
        fields = tuple(Field(member.name, self._field(member.field, member.plan)) for member in plan.members)
        simple = "" if plan.oneof is None else str(plan.oneof.name)
        if self._config.generalized_sum_type_support:
            parameters = {names.GENERAL_UNION: simple}
            return Schema(Type.STRUCT, name=simple, fields=fields, optional=True, parameters=parameters)
        name = f"{names.UNION}.{self._name(f'{message.full_name}.{simple}')}"
        return Schema(Type.STRUCT, name=name, fields=fields, optional=True)

    def _field(self, field: FieldDescriptor, plan: plans.Plan) -> Schema:
        made = self._item(plan)
        config = self._config
        is_keyword = config.optional_for_nullables and plans.has_optional_keyword(field)
        if is_keyword or not (config.optional_for_nullables or config.wrapper_for_nullables):
            made = made.as_optional()
        return made.but(parameters={**made.parameters, names.TAG: str(field.number)})

    def _map(self, plan: plans.MapPlan) -> Schema:
        fields = plan.entry.fields_by_name
        key, value = self._field(fields[names.KEY], plan.keys), self._field(fields[names.VALUE], plan.values)
        name = plan.entry.full_name if self._config.enhanced_protobuf_schema_support else plan.entry.name
        package, _, simple = str(name).rpartition(".")
        simple = names.map_name(simple)
        return mapping(key, value, optional=True).but(name=f"{package}.{simple}" if package else simple)

    def _enum(self, enum: EnumDescriptor) -> Schema:
        key = self._config.enum_key
        parameters = {key: str(enum.name)}
        parameters.update({f"{key}.{value.name}": str(value.number) for value in enum.values})
        made = INT32 if self._config.int_for_enums else STRING
        return made.but(name=self._name(enum.full_name), parameters=parameters, optional=True)

    def _name(self, full_name: str) -> str:
        return full_name if self._config.enhanced_protobuf_schema_support else full_name.rpartition(".")[2]
