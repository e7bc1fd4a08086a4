"""Connect schemas as Avro schemas, property by property in the order in which Confluent's converter writes them: the
registry then gives both the same id."""

import json
from typing import Any, Final

from connect.api.data import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME, Schema, Type, Value
from connect.api.errors import DataError
from connect.api.logical import scale_of
from connect.converters.avro import config as names
from connect.converters.avro.config import AvroConfig
from connect.converters.avro.defaults import default_to_avro
from schema_registry.formats import avro
from schema_registry.formats.schema import InvalidSchema

Definition = Any
"""A schema in JSON."""

_KINDS: Final = {
    Type.INT8: "int",
    Type.INT16: "int",
    Type.INT32: "int",
    Type.INT64: "long",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "boolean",
    Type.STRING: "string",
    Type.BYTES: "bytes",
}
_LOGICAL: Final = {DATE_NAME: "date", TIME_NAME: "time-millis", TIMESTAMP_NAME: "timestamp-millis"}
_SMALL_INTEGERS: Final = {Type.INT8: "int8", Type.INT16: "int16"}

_NULLABLE: Final = ["boolean", "bytes", "double", "float", "int", "long", "string"]
ANYTHING: Final[Definition] = {
    "type": "record",
    "name": "Anything",
    "namespace": names.NAMESPACE,
    "fields": [
        *({"name": kind, "type": ["null", kind], "default": None} for kind in _NULLABLE),
        {"name": "array", "type": ["null", {"type": "array", "items": "Anything"}], "default": None},
        {
            "name": "map",
            "type": [
                "null",
                {
                    "type": "array",
                    "items": {
                        "type": "record",
                        "name": names.MAP_ENTRY,
                        "fields": [{"name": names.KEY, "type": "Anything"}, {"name": names.VALUE, "type": "Anything"}],
                    },
                },
            ],
            "default": None,
        },
    ],
}
"""The schema of data without one: one of the fields is set, none for null."""


def from_connect_schema(schema: Schema | None, config: AvroConfig) -> str:
    """The text of the Avro schema; raises DataError if there is none."""
    definition = ANYTHING if schema is None else _Definitions(config).of(schema)
    text = json.dumps(definition, ensure_ascii=False, separators=(",", ":"))
    try:
        avro.parse(text)
    except InvalidSchema as error:
        raise DataError(f"the Connect schema cannot be written as an Avro schema: {error}") from error
    return text


class _Definitions:
    """Writes one schema; remembers the named types that it has written."""

    def __init__(self, config: AvroConfig) -> None:
        self._config = config
        self._defined: dict[str, Schema] = {}
        self._unnamed: dict[Schema, str] = {}

    def of(self, schema: Schema, *, namespace: str | None = None, ignores_optional: bool = False) -> Definition:
        """The definition of a type in a namespace, or its name if it was defined before."""
        if names.is_union(schema):
            branches = [self.of(field.schema, namespace=namespace, ignores_optional=True) for field in schema.fields]
            return ["null", *branches] if schema.optional else branches
        plain = schema.but(optional=False) if schema.optional else schema
        made = self._named_or_plain(plain, namespace)
        if ignores_optional or not schema.optional:
            return made
        return ["null", made] if _is_null_first(schema) else [made, "null"]

    def _named_or_plain(self, schema: Schema, namespace: str | None) -> Definition:
        match schema.type:
            case Type.STRUCT:
                return self._named(schema, namespace)
            case Type.STRING if self._enum_key(schema) is not None:
                return self._named(schema, namespace)
            case Type.BYTES if schema.name is not None and names.FIXED_SIZE in schema.parameters:
                return self._named(schema, namespace)
            case Type.ARRAY:
                return self._describe({"type": "array", "items": self._items(schema, namespace)}, schema)
            case Type.MAP:
                return self._map(schema, namespace)
            case _:
                made = self._describe({"type": _KINDS[schema.type]}, schema)
                return made["type"] if len(made) == 1 else made

    def _items(self, schema: Schema, namespace: str | None) -> Definition:
        if schema.value_schema is None:
            raise DataError(f"a schema of {schema.type} must have one of its values")
        return self.of(schema.value_schema, namespace=namespace)

    def _map(self, schema: Schema, namespace: str | None) -> Definition:
        if schema.key_schema is None or schema.value_schema is None:
            raise DataError("a schema of a map must have those of its keys and values")
        if self._config.has_text_keys(schema):
            return self._describe({"type": "map", "values": self._items(schema, namespace)}, schema)
        space, name = (names.NAMESPACE, names.MAP_ENTRY) if schema.name is None else self._config.split(schema.name)
        entry: dict[str, Definition] = {
            "type": "record",
            **_name_in(space, name, namespace),
            "fields": [
                self._field(names.KEY, schema.key_schema, namespace=space),
                self._field(names.VALUE, schema.value_schema, namespace=space),
            ],
        }
        if schema.name is not None:
            entry[names.CONNECT_INTERNAL_TYPE] = names.MAP_ENTRY
        full_name = _full(space, name)
        items: Definition = entry
        if self._is_defined(full_name, schema):
            items = full_name
        return self._describe({"type": "array", "items": items}, schema)

    def _named(self, schema: Schema, namespace: str | None) -> Definition:
        space, name = self._name_of(schema)
        full_name = _full(space, name)
        if self._is_defined(full_name, schema):
            return full_name
        match schema.type:
            case Type.STRUCT:
                made = self._record(schema, space, _name_in(space, name, namespace))
            case Type.STRING:
                made = self._enum(schema, name, _name_in(space, name, namespace))
            case _:
                made = {
                    "type": "fixed",
                    **_name_in(space, name, namespace),
                    "size": _integer(schema, names.FIXED_SIZE),
                }
        return self._describe(made, schema)

    def _name_of(self, schema: Schema) -> tuple[str | None, str]:
        key = self._enum_key(schema)
        if key is not None:
            return self._config.split(schema.parameters[key])
        if schema.name is not None:
            return self._config.split(schema.name)
        if schema not in self._unnamed:
            count = len(self._unnamed) + 1
            self._unnamed[schema] = f"{names.DEFAULT_NAME}{count if count > 1 else ''}"
        return names.NAMESPACE, self._unnamed[schema]

    def _is_defined(self, full_name: str, schema: Schema) -> bool:
        known = self._defined.get(full_name)
        if known is None:
            self._defined[full_name] = schema
            return False
        if (known.type, known.fields, known.parameters) != (schema.type, schema.fields, schema.parameters):
            raise DataError(f"the Connect schema has two types that are both called {full_name}, but differ")
        return True

    def _record(self, schema: Schema, space: str | None, name: dict[str, str]) -> dict[str, Definition]:
        is_discarding = self._config.discard_type_doc_default
        doc = schema.parameters.get(names.CONNECT_RECORD_DOC if is_discarding else names.RECORD_DOC)
        fields = []
        for field in schema.fields:
            of_parent = schema.parameters.get(f"{names.FIELD_DOC}{field.name}")
            field_doc = field.schema.doc if is_discarding else of_parent
            scrubbed = self._config.scrub(field.name)
            fields.append(self._field(scrubbed, field.schema, namespace=space, doc=field_doc))
        return {"type": "record", **name, **_not_none(doc=doc), "fields": fields}

    def _field(
        self, name: str, schema: Schema, *, namespace: str | None, doc: str | None = None
    ) -> dict[str, Definition]:
        made = {"name": name, "type": self.of(schema, namespace=namespace), **_not_none(doc=doc)}
        if schema.default is not None:
            if _is_avro_default(schema, schema.default, self._config):  # Otherwise only `connect.default` has it.
                made["default"] = default_to_avro(schema, schema.default, self._config)
        elif schema.optional:
            made["default"] = None
        return made

    def _enum_key(self, schema: Schema) -> str | None:
        """The parameter that marks text as an enum, if enums are to be written as such."""
        config = self._config
        if config.generalized_sum_type_support and names.GENERAL_ENUM in schema.parameters:
            return names.GENERAL_ENUM
        is_kept = config.generalized_sum_type_support or config.enhanced_avro_schema_support
        return names.ENUM if is_kept and names.ENUM in schema.parameters else None

    def _enum(self, schema: Schema, simple_name: str, name: dict[str, str]) -> dict[str, Definition]:
        prefix = f"{self._enum_key(schema)}."
        parameters = schema.parameters
        symbols = [key.removeprefix(prefix) for key in parameters if key.startswith(prefix)]
        if self._config.discard_type_doc_default:
            described = _not_none(doc=parameters.get(names.CONNECT_ENUM_DOC))
            return {"type": "enum", **name, **described, "symbols": symbols}
        doc = _not_none(doc=parameters.get(f"{names.ENUM_DOC}{simple_name}"))
        default = _not_none(default=parameters.get(f"{names.ENUM_DEFAULT}{simple_name}"))
        return {"type": "enum", **name, **doc, "symbols": symbols, **default}

    def _describe(self, made: dict[str, Definition], schema: Schema) -> dict[str, Definition]:
        """Add what Connect has about the type, and its logical type."""
        if schema.name == DECIMAL_NAME:
            is_known = names.PRECISION in schema.parameters
            precision = _integer(schema, names.PRECISION) if is_known else names.DEFAULT_PRECISION
            made["scale"], made["precision"] = scale_of(schema), precision
        if self._config.connect_meta_data:
            made.update(self._metadata(schema))
        if schema.name == DECIMAL_NAME:
            made["logicalType"] = "decimal"
        elif schema.name in _LOGICAL:
            made["logicalType"] = _LOGICAL[schema.name]
        made.update({key: value for key, value in schema.parameters.items() if key.startswith("avro")})
        return made

    def _metadata(self, schema: Schema) -> dict[str, Definition]:
        is_discarding = self._config.discard_type_doc_default
        parameters = {k: v for k, v in schema.parameters.items() if is_discarding or k != names.FIELD_DEFAULT}
        default = None
        if schema.default is not None and (is_discarding or names.FIELD_DEFAULT not in schema.parameters):
            default = default_to_avro(schema, schema.default, self._config)
        properties = {
            names.CONNECT_DOC: schema.doc,
            names.CONNECT_VERSION: schema.version,
            names.CONNECT_PARAMETERS: parameters or None,
            names.CONNECT_DEFAULT: default,
            names.CONNECT_NAME: schema.name,
            names.CONNECT_TYPE: _SMALL_INTEGERS.get(schema.type),
        }
        return {key: value for key, value in properties.items() if value is not None}


def _is_avro_default(schema: Schema, value: Value, config: AvroConfig) -> bool:
    """Whether Avro can express a default: a union's is of its first branch, and the entries of maps are records."""
    if schema.optional and (value is None) is not _is_null_first(schema):
        return False
    match schema.type:
        case Type.ARRAY if schema.value_schema is not None:
            items = schema.value_schema
            return all(_is_avro_default(items, item, config) for item in value)
        case Type.MAP if schema.value_schema is not None:
            items = schema.value_schema
            return config.has_text_keys(schema) and all(_is_avro_default(items, i, config) for i in value.values())
        case Type.STRUCT if value is not None:
            members = schema.fields[:1] if names.is_union(schema) else schema.fields
            return all(_is_avro_default(member.schema, value.get(member.name), config) for member in members)
        case _:
            return value is not None or schema.optional


def _is_null_first(schema: Schema) -> bool:
    """Whether null is the first branch of the union that an optional schema becomes."""
    return schema.default is None or schema.type is Type.STRUCT


def _not_none(**values: str | None) -> dict[str, Definition]:
    return {name: value for name, value in values.items() if value is not None}


def _full(space: str | None, name: str) -> str:
    return f"{space}.{name}" if space else name


def _name_in(space: str | None, name: str, around: str | None) -> dict[str, str]:
    """The name of a type within a namespace."""
    if space:
        return {"name": name, "namespace": space}
    return {"name": name, "namespace": ""} if around else {"name": name}


def _integer(schema: Schema, parameter: str) -> int:
    try:
        return int(schema.parameters[parameter])
    except ValueError:
        raise DataError(f"{parameter} must be a number, not {schema.parameters[parameter]!r}") from None
