"""JSON Schemas as Connect schemas, with everything that Confluent's converter keeps of them."""

from typing import Any

from connect.api.data import STRING, Field, Schema, Type, array, mapping
from connect.converters.json_schema import config as names
from connect.converters.json_schema.config import JsonSchemaConfig
from schema_registry.serdes.json_plan import FieldPlan, Plan, Shape


def to_connect_schema(plan: Plan, config: JsonSchemaConfig, *, version: int | None = None) -> Schema:
    """The Connect schema of a JSON Schema; `version` is that of the subject, for schemas without one."""
    return _Schemas(config).of(plan, version)


class _Schemas:
    def __init__(self, config: JsonSchemaConfig) -> None:
        self._config = config
        self._unions = 0

    def of(self, plan: Plan | None, version: int | None = None) -> Schema:
        assert plan is not None
        made = self._bare(plan)
        node = plan.node or {}
        own_version = node.get(names.CONNECT_VERSION)
        made = made.but(
            name=made.name or _text(node.get("title")),
            doc=_text(node.get("description")),
            version=own_version if isinstance(own_version, int) else version,
            parameters={**made.parameters, **(node.get(names.CONNECT_PARAMETERS) or {})},
        )
        made = made if plan.default is None else made.but(default=plan.default)
        return made.as_optional() if plan.is_optional else made

    def _bare(self, plan: Plan) -> Schema:
        match plan.shape:
            case Shape.PLAIN:
                return Schema(Type(plan.kind))
            case Shape.SYMBOL:
                return self._enum(plan.node["enum"])
            case Shape.TEXT:
                return STRING.but(parameters={names.JSON_TEXT: "true"})
            case Shape.LIST:
                return array(self.of(plan.values))
            case Shape.MAP:
                return mapping(STRING, self.of(plan.values))
            case Shape.ENTRIES:
                return mapping(self.of(plan.keys), self.of(plan.values))
            case Shape.STRUCT:
                fields = [*plan.fields, *([] if plan.others is None else [plan.others])]
                return Schema(Type.STRUCT, fields=tuple(map(self._field, fields)))
            case Shape.CHOICE:
                return self._union(plan)

    def _field(self, field: FieldPlan) -> Field:
        return Field(field.name, self.of(field.plan))

    def _union(self, plan: Plan) -> Schema:
        is_general = self._config.generalized_sum_type_support
        name = f"{names.GENERAL_UNION_PREFIX}{self._unions}" if is_general else names.ONE_OF
        self._unions += 1
        parameters = {names.GENERAL_UNION: name} if is_general else {}
        return Schema(Type.STRUCT, name=name, fields=tuple(map(self._field, plan.fields)), parameters=parameters)

    def _enum(self, symbols: list[Any]) -> Schema:
        key = self._config.enum_key
        parameters = {key: ""}  # Enums of JSON have no name.
        for index, symbol in enumerate(symbols):
            text = names.NULL_SYMBOL if symbol is None else str(symbol)
            parameters[f"{key}.{text}"] = str(index) if self._config.generalized_sum_type_support else text
        return STRING.but(parameters=parameters)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
