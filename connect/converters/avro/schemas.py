"""Schemas of Avro as schemas of Connect."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from connect.api.data import (
    BOOLEAN,
    BYTES,
    DATE,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    TIME,
    TIMESTAMP,
    Field,
    Schema,
    Type,
    array,
    decimal,
    mapping,
)
from connect.api.errors import DataError
from connect.converters.avro import config as names
from connect.converters.avro.config import AvroConfig
from connect.converters.avro.defaults import default_from_avro
from schema_registry.formats.avro_types import Array, Enum, Fixed, Map, Primitive, Record, Union
from schema_registry.formats.avro_types import Field as AvroField
from schema_registry.formats.avro_types import Type as AvroType
from schema_registry.serdes.avro_plan import is_map_entry

_PRIMITIVES: Final = {
    "boolean": BOOLEAN,
    "int": INT32,
    "long": INT64,
    "float": FLOAT32,
    "double": FLOAT64,
    "bytes": BYTES,
    "string": STRING,
}
_LOGICAL: Final = {
    ("int", "date"): DATE,
    ("int", "time-millis"): TIME,
    ("long", "timestamp-millis"): TIMESTAMP,
}
_SMALL_INTEGERS: Final = {"int8": INT8, "int16": INT16}


def to_connect_schema(root: AvroType, config: AvroConfig, *, version: int | None = None) -> Schema | None:
    """The Connect schema of an Avro schema; None for data that never had one. Raises DataError.

    `version` is that of the subject, for schemas that say none themselves.
    """
    if isinstance(root, Record) and root.name.full == names.ANYTHING:
        return None
    return _Reader(config).schema(root, version=version)


class _Reader:
    """Reads one schema."""

    def __init__(self, config: AvroConfig) -> None:
        self._config = config
        self._open: set[str] = set()
        self._unions = 0

    def schema(
        self,
        type_: AvroType,
        *,
        optional: bool = False,
        field: AvroField | None = None,
        version: int | None = None,
    ) -> Schema:
        match type_:
            case Union():
                found = self._plain_union(type_, field)
                if found is not None:
                    return found
                made = self._union(type_)
            case Record():
                with self._opened(type_):
                    made = self._record(type_)
            case Array():
                made = self._array(type_)
            case Map():
                made = mapping(STRING, self.schema(type_.values))
            case Enum():
                made = self._enum(type_)
            case Primitive() | Fixed():
                made = _plain(type_)
        made = self._described(made, type_, field=field, version=version)
        return made.as_optional() if optional else made

    @contextmanager
    def _opened(self, record: Record) -> Iterator[None]:
        if record.name.full in self._open:
            raise DataError(
                f"the Avro schema is recursive: the record {record.name.full} holds itself, which no Connect schema can"
            )
        self._open.add(record.name.full)
        yield
        self._open.remove(record.name.full)

    def _plain_union(self, union: Union, field: AvroField | None) -> Schema | None:
        """A union that is a choice between null and one type is that type, optional."""
        others = [branch for branch in union.branches if branch.kind != "null"]
        if len(others) != 1 or (len(union.branches) == 1 and not self._config.flatten_singleton_unions):
            return None
        # The default of such a field is told by the type itself (`connect.default`), only its documentation is passed.
        documented = None if field is None else AvroField(name=field.name, type=field.type, doc=field.doc)
        return self.schema(others[0], optional=len(union.branches) == 2, field=documented)

    def _union(self, union: Union) -> Schema:
        is_general = self._config.generalized_sum_type_support
        name = f"{names.GENERAL_UNION_PREFIX}{self._unions}" if is_general else names.UNION
        self._unions += 1
        fields: dict[str, Schema] = {}
        for index, branch in enumerate(union.branches):
            if branch.kind != "null":
                label = self._config.branch_name(branch, index)
                if label in fields:
                    raise DataError(f"Multiple union schemas map to the Connect union field name {label}")
                fields[label] = self.schema(branch, optional=True)
        return Schema(
            Type.STRUCT,
            name=name,
            optional=len(fields) < len(union.branches),
            fields=tuple(Field(*item) for item in fields.items()),
            parameters={names.GENERAL_UNION: name} if is_general else {},
        )

    def _array(self, type_: Array) -> Schema:
        if not isinstance(type_.items, Record) or not is_map_entry(type_.items):
            return array(self.schema(type_.items))
        parts = {field.name: field.type for field in type_.items.fields}
        if parts.keys() != {names.KEY, names.VALUE}:
            raise DataError(
                "Found map encoded as array of key-value pairs, but array elements do not match the expected format."
            )
        return mapping(self.schema(parts[names.KEY]), self.schema(parts[names.VALUE]))

    def _record(self, record: Record) -> Schema:
        parameters = {}
        keeps_docs = self._config.connect_meta_data and not self._config.discard_type_doc_default
        if keeps_docs and record.doc is not None:
            parameters[names.RECORD_DOC] = record.doc
        fields = []
        for field in record.fields:
            if keeps_docs and field.doc is not None:
                parameters[f"{names.FIELD_DOC}{field.name}"] = field.doc
            fields.append(Field(field.name, self.schema(field.type, field=field)))
        return Schema(Type.STRUCT, fields=tuple(fields), parameters=parameters)

    def _enum(self, enum: Enum) -> Schema:
        config = self._config
        parameters = {}
        if config.connect_meta_data:
            if enum.doc is not None:
                key = f"{names.ENUM_DOC}{enum.name.simple}"
                parameters[names.CONNECT_ENUM_DOC if config.discard_type_doc_default else key] = enum.doc
            if enum.default is not None and not config.discard_type_doc_default:
                parameters[f"{names.ENUM_DEFAULT}{enum.name.simple}"] = enum.default
        is_general = config.generalized_sum_type_support
        key = names.GENERAL_ENUM if is_general else names.ENUM
        parameters[key] = enum.name.full
        for index, symbol in enumerate(enum.symbols):
            parameters[f"{key}.{symbol}"] = str(index) if is_general else symbol
        return STRING.but(parameters=parameters)

    def _described(self, made: Schema, type_: AvroType, *, field: AvroField | None, version: int | None) -> Schema:
        """The schema with all that its Avro properties tell about it."""
        properties: Mapping[str, Any] = {} if isinstance(type_, Union) else type_.properties
        is_avros_own = field is not None and field.has_default and names.CONNECT_DEFAULT not in properties
        parameters = {**made.parameters, **self._parameters(type_, properties)}
        if is_avros_own and self._config.connect_meta_data and not self._config.discard_type_doc_default:
            parameters[names.FIELD_DEFAULT] = "true"
        made = made.but(
            name=made.name or _name(type_, properties),
            version=made.version if made.version is not None else _version(properties, version),
            doc=self._doc(type_, properties, field),
            parameters=parameters,
        )
        default = field.default if field is not None and field.has_default else properties.get(names.CONNECT_DEFAULT)
        return made if default is None else made.but(default=default_from_avro(type_, made, default))

    def _parameters(self, type_: AvroType, properties: Mapping[str, Any]) -> dict[str, str]:
        given = properties.get(names.CONNECT_PARAMETERS) if self._config.connect_meta_data else None
        if given is not None and not isinstance(given, dict):
            raise DataError(f"Expected JSON object for schema parameters but found: {given}")
        parameters = dict(given or {})
        for value in parameters.values():
            if not isinstance(value, str):
                raise DataError(f"Expected schema parameter values to be strings but found: {value}")
        if self._config.discard_type_doc_default and self._config.connect_meta_data:
            doc = _type_doc(type_)
            if doc is not None:
                parameters[names.CONNECT_RECORD_DOC] = doc
        parameters.update({key: str(value) for key, value in properties.items() if key.startswith("avro")})
        return parameters

    def _doc(self, type_: AvroType, properties: Mapping[str, Any], field: AvroField | None) -> str | None:
        own = properties.get(names.CONNECT_DOC)
        if self._config.discard_type_doc_default:
            of_field = field.doc if field is not None else None
            own = of_field if of_field is not None else _type_doc(type_) or own
            return own if isinstance(own, str) else None
        return own if self._config.connect_meta_data and isinstance(own, str) else None


def _plain(type_: Primitive | Fixed) -> Schema:
    """A type without parts, or a logical type on it."""
    logical = type_.properties.get("logicalType")
    if type_.kind in ("bytes", "fixed"):
        made = _decimal(type_.properties) if logical == "decimal" else BYTES
        if isinstance(type_, Fixed):
            made = made.but(parameters={**made.parameters, names.FIXED_SIZE: str(type_.size)})
        return made
    if type_.kind == "null":
        raise DataError("Standalone null schemas are not supported by this converter")
    small = type_.properties.get(names.CONNECT_TYPE)
    if type_.kind == "int" and small is not None and logical is None:
        if small not in _SMALL_INTEGERS:
            raise DataError(f"Connect type annotation for Avro int field is {small!r}, not int8 or int16")
        return _SMALL_INTEGERS[small]
    return _LOGICAL.get((type_.kind, str(logical))) or _PRIMITIVES[type_.kind]


def _decimal(properties: Mapping[str, Any]) -> Schema:
    scale = properties.get("scale")
    precision = properties.get("precision")
    if precision is not None and not isinstance(precision, int):
        raise DataError("precision property must be a JSON Integer.")
    made = decimal(scale if isinstance(scale, int) else 0)
    if precision is None or precision == names.DEFAULT_PRECISION:
        return made
    return made.but(parameters={**made.parameters, names.PRECISION: str(precision)})


def _name(type_: AvroType, properties: Mapping[str, Any]) -> str | None:
    name = properties.get(names.CONNECT_NAME)
    if name is None and isinstance(type_, Record | Enum | Fixed):
        name = type_.name.full
    if name is not None and not isinstance(name, str):
        raise DataError(f"Invalid schema name: {name}")
    is_default = name is not None and name.startswith(f"{names.NAMESPACE}.{names.DEFAULT_NAME}")
    return None if is_default else name


def _version(properties: Mapping[str, Any], version: int | None) -> int | None:
    given = properties.get(names.CONNECT_VERSION)
    if given is None:
        return version
    if not isinstance(given, int):
        raise DataError(f"Invalid Connect version found: {given}")
    return given


def _type_doc(type_: AvroType) -> str | None:
    return type_.doc if isinstance(type_, Record | Enum | Fixed) else None
