"""Avro schemas as Connect schemas, with everything that Confluent's converter keeps of them."""

from collections.abc import Mapping
from typing import Any, Final

from connect.api.data import STRING, Field, Schema, Type, array, mapping
from connect.api.errors import DataError
from connect.api.logical import logical_schema
from connect.converters.avro import config as names
from connect.converters.avro.config import AvroConfig
from connect.converters.avro.defaults import default_from_avro
from connect.converters.avro.values import read_plan
from schema_registry.formats.avro_types import Enum, Fixed, Record
from schema_registry.formats.avro_types import Field as AvroField
from schema_registry.formats.avro_types import Type as AvroType
from schema_registry.serdes import avro_plan as plans
from schema_registry.serdes.errors import UnusableSchema

_PRIMITIVES: Final = {
    "boolean": Type.BOOLEAN,
    "int": Type.INT32,
    "long": Type.INT64,
    "float": Type.FLOAT32,
    "double": Type.FLOAT64,
    "bytes": Type.BYTES,
    "fixed": Type.BYTES,
    "string": Type.STRING,
}


def to_connect_schema(root: AvroType, config: AvroConfig, *, version: int | None = None) -> Schema | None:
    """The Connect schema of an Avro schema; None for data that never had one. Raises DataError.

    `version` is that of the subject, for schemas that do not have one themselves.
    """
    if isinstance(root, Record) and root.name.full == names.ANYTHING:
        return None
    try:
        return _Schemas(config).of(read_plan(root, config), version=version)
    except UnusableSchema as error:
        raise DataError(str(error)) from error


class _Schemas:
    """Makes one schema; counts its unions."""

    def __init__(self, config: AvroConfig) -> None:
        self._config = config
        self._unions = 0
        self._keeps_types = config.connect_meta_data and not config.discard_type_doc_default

    def of(self, plan: plans.Plan, *, field: AvroField | None = None, version: int | None = None) -> Schema:
        if isinstance(plan, plans.ChoicePlan) and plan.is_flat:
            # `connect.default` in the type itself has the default of such a field; only the documentation is passed on.
            documented = None if field is None else AvroField(name=field.name, type=field.type, doc=field.doc)
            made = self.of(plan.branches[0].plan, field=documented)
            return made if plan.null is None else made.as_optional()
        assert plan.type is not None
        return self._describe(self._bare(plan), plan.type, field=field, version=version)

    def _bare(self, plan: plans.Plan) -> Schema:
        match plan:
            case plans.ChoicePlan():
                return self._union(plan)
            case plans.StructPlan():
                return self._record(plan)
            case plans.ListPlan():
                return array(self.of(plan.items))
            case plans.MapPlan():
                return mapping(STRING, self.of(plan.values))
            case plans.EntriesPlan():
                parts = {field.name: self.of(field.plan) for field in plan.entry.fields}
                return mapping(parts[names.KEY], parts[names.VALUE])
            case plans.Scalar(type=Enum() as enum):
                return self._enum(enum)
            case plans.Scalar():
                return _scalar(plan)

    def _union(self, plan: plans.ChoicePlan) -> Schema:
        is_general = self._config.generalized_sum_type_support
        name = f"{names.GENERAL_UNION_PREFIX}{self._unions}" if is_general else names.UNION
        self._unions += 1
        return Schema(
            Type.STRUCT,
            name=name,
            optional=plan.null is not None,
            fields=tuple(Field(branch.name, self.of(branch.plan).as_optional()) for branch in plan.branches),
            parameters={names.GENERAL_UNION: name} if is_general else {},
        )

    def _record(self, plan: plans.StructPlan) -> Schema:
        parameters = {}
        if self._keeps_types and plan.type is not None and plan.type.doc is not None:
            parameters[names.RECORD_DOC] = plan.type.doc
        fields = []
        for field in plan.fields:
            if self._keeps_types and field.wire is not None and field.wire.doc is not None:
                parameters[f"{names.FIELD_DOC}{field.name}"] = field.wire.doc
            fields.append(Field(field.name, self.of(field.plan, field=field.wire)))
        return Schema(Type.STRUCT, fields=tuple(fields), parameters=parameters)

    def _enum(self, enum: Enum) -> Schema:
        config = self._config
        parameters = {}
        if config.connect_meta_data and enum.doc is not None:
            key = f"{names.ENUM_DOC}{enum.name.simple}"
            parameters[names.CONNECT_ENUM_DOC if config.discard_type_doc_default else key] = enum.doc
        if self._keeps_types and enum.default is not None:
            parameters[f"{names.ENUM_DEFAULT}{enum.name.simple}"] = enum.default
        is_general = config.generalized_sum_type_support
        key = names.GENERAL_ENUM if is_general else names.ENUM
        parameters[key] = enum.name.full
        for index, symbol in enumerate(enum.symbols):
            parameters[f"{key}.{symbol}"] = str(index) if is_general else symbol
        return STRING.but(parameters=parameters)

    def _describe(self, made: Schema, type_: AvroType, *, field: AvroField | None, version: int | None) -> Schema:
        """Add everything that the properties of an Avro type say about it."""
        properties: Mapping[str, Any] = getattr(type_, "properties", {})
        is_avros_own = field is not None and field.has_default and names.CONNECT_DEFAULT not in properties
        parameters = {**made.parameters, **self._parameters(type_, properties)}
        if is_avros_own and self._keeps_types:
            parameters[names.FIELD_DEFAULT] = "true"
        own_version = made.version if made.version is not None else properties.get(names.CONNECT_VERSION)
        made = made.but(
            name=made.name or _name(type_, properties),
            version=own_version if own_version is not None else version,
            doc=self._doc(type_, properties, field),
            parameters=parameters,
        )
        default = field.default if field is not None and field.has_default else properties.get(names.CONNECT_DEFAULT)
        return made if default is None else made.but(default=default_from_avro(type_, made, default))

    def _parameters(self, type_: AvroType, properties: Mapping[str, Any]) -> dict[str, str]:
        parameters: dict[str, str] = {}
        if self._config.connect_meta_data:
            parameters.update(properties.get(names.CONNECT_PARAMETERS) or {})
            doc = _type_doc(type_)
            if self._config.discard_type_doc_default and doc is not None:
                parameters[names.CONNECT_RECORD_DOC] = doc
        parameters.update({key: str(value) for key, value in properties.items() if key.startswith("avro")})
        return parameters

    def _doc(self, type_: AvroType, properties: Mapping[str, Any], field: AvroField | None) -> str | None:
        doc = properties.get(names.CONNECT_DOC) if self._keeps_types or self._config.discard_type_doc_default else None
        if self._config.discard_type_doc_default:
            of_field = field.doc if field is not None else None
            doc = of_field if of_field is not None else _type_doc(type_) or doc
        return doc if isinstance(doc, str) else None


def _scalar(plan: plans.Scalar) -> Schema:
    # A logical type that has only Connect's name gets its parameters from Connect's properties.
    is_avros_own = plan.logical is not None and plan.type.properties.get("logicalType") is not None
    made = Schema(Type(plan.small or _PRIMITIVES[plan.type.kind]))
    if is_avros_own and plan.logical is not None:
        made = logical_schema(plan.logical)
    if isinstance(plan.type, Fixed):
        made = made.but(parameters={**made.parameters, names.FIXED_SIZE: str(plan.type.size)})
    return made


def _name(type_: AvroType, properties: Mapping[str, Any]) -> str | None:
    name = properties.get(names.CONNECT_NAME)
    if name is None and isinstance(type_, Record | Enum | Fixed):
        name = type_.name.full
    is_default = name is not None and name.startswith(f"{names.NAMESPACE}.{names.DEFAULT_NAME}")
    return None if is_default else name


def _type_doc(type_: AvroType) -> str | None:
    return type_.doc if isinstance(type_, Record | Enum | Fixed) else None
