"""Schemas of Connect as .proto files."""

import re
from pathlib import Path
from typing import Final, NamedTuple

from connect.api.data import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME, Schema, Type
from connect.api.errors import DataError
from connect.converters.protobuf import config as names
from connect.converters.protobuf.config import ProtobufConfig
from schema_registry.formats import protobuf, protobuf_builtin
from schema_registry.formats.schema import InvalidSchema

_is_name: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*").fullmatch
_WRAPPERS_FILE: Final = "google/protobuf/wrappers.proto"
_META_FILE: Final = "confluent/meta.proto"
_LOGICAL: Final = {
    DECIMAL_NAME: (names.DECIMAL_MESSAGE, "confluent/type/decimal.proto"),
    DATE_NAME: (names.DATE_MESSAGE, "google/type/date.proto"),
    TIME_NAME: (names.TIME_MESSAGE, "google/type/timeofday.proto"),
    TIMESTAMP_NAME: (names.TIMESTAMP_MESSAGE, "google/protobuf/timestamp.proto"),
}
_PLAIN: Final = {
    Type.INT8: "int32",
    Type.INT16: "int32",
    Type.INT32: "int32",
    Type.INT64: "int64",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "bool",
    Type.STRING: "string",
    Type.BYTES: "bytes",
}
_WRAPPERS: Final = {
    "int32": "google.protobuf.Int32Value",
    "sint32": "google.protobuf.Int32Value",
    "sfixed32": "google.protobuf.Int32Value",
    "uint32": "google.protobuf.UInt32Value",
    "fixed32": "google.protobuf.UInt32Value",
    "uint64": "google.protobuf.UInt64Value",
    "fixed64": "google.protobuf.UInt64Value",
    "int64": "google.protobuf.Int64Value",
    "sint64": "google.protobuf.Int64Value",
    "sfixed64": "google.protobuf.Int64Value",
    "float": "google.protobuf.FloatValue",
    "double": "google.protobuf.DoubleValue",
    "bool": "google.protobuf.BoolValue",
    "string": "google.protobuf.StringValue",
    "bytes": "google.protobuf.BytesValue",
}
_SMALL_INTEGERS: Final = {Type.INT8: "int8", Type.INT16: "int16"}


class Definition(NamedTuple):
    """A .proto file and the full name of the message in it."""

    text: str
    message: str


def from_connect_schema(schema: Schema, config: ProtobufConfig) -> Definition:
    """The file with the message for a Connect schema; raises DataError where there is none."""
    if schema.type in (Type.ARRAY, Type.MAP):
        raise DataError(f"Unsupported root schema of type {schema.type}: a Protobuf record is a message")
    if schema.type is not Type.STRUCT:
        return Definition(_wrappers(), _WRAPPERS[_PLAIN[schema.type]])
    file = _File(config)
    package, name = config.split(schema.name or file.next_name())
    body = file.message(name, schema)
    header = ['syntax = "proto3";', *([f"package {_checked(package)};"] if package else [])]
    text = "\n".join([*header, *(f'import "{path}";' for path in sorted(file.imports)), *body])
    try:
        compiled = protobuf.parse(text)
    except InvalidSchema as error:
        raise DataError(f"the Connect schema cannot be written as a Protobuf schema: {error}") from error
    return Definition(compiled.canonical, f"{package}.{name}" if package else name)


def _wrappers() -> str:
    """The file with the messages that hold one plain value, as the record itself."""
    folder, _, name = _WRAPPERS_FILE.rpartition("/")
    return Path(protobuf_builtin.folders()[folder], name).read_text("utf-8")


class _Message:
    """What a message has in it."""

    def __init__(self, schema: Schema) -> None:
        self.lines: list[str] = []
        self.defined: dict[str, Schema] = {}
        self._used = {int(tag) for tag in _tags(schema)}
        self._next = 1

    def tag(self, schema: Schema) -> int:
        """The number of a field: the one that it had, or the next one."""
        given = schema.parameters.get(names.TAG)
        if given is not None and given.isdecimal():
            return int(given)
        while self._next in self._used:
            self._next += 1
        self._next += 1
        return self._next - 1


def _tags(schema: Schema) -> list[str]:
    parts = [field.schema for field in schema.fields]
    parts += [member.schema for part in parts if names.is_union(part) for member in part.fields]
    return [tag for part in parts if (tag := part.parameters.get(names.TAG, "")).isdecimal()]


class _File:
    """Writes one file; knows what it imports."""

    def __init__(self, config: ProtobufConfig) -> None:
        self._config = config
        self._unnamed = 0
        self.imports: set[str] = set()

    def next_name(self) -> str:
        """A name for a struct or map that has none."""
        self._unnamed += 1
        return f"{names.DEFAULT_NAME}{self._unnamed}"

    def message(self, name: str, schema: Schema) -> list[str]:
        """The lines of a message."""
        message = _Message(schema)
        for field in schema.fields:
            if names.is_union(field.schema):
                self._oneof(message, field.schema)
            else:
                message.lines.append(self._field(message, self._config.scrub(field.name), field.schema))
        return [f"message {_checked(name)} {{", *(f"  {line}" for line in message.lines), "}"]

    def _oneof(self, message: _Message, schema: Schema) -> None:
        general = schema.parameters.get(names.GENERAL_UNION)
        own = (schema.name or "").removeprefix(names.UNION).removeprefix(".")
        name = self._config.split(general or own or self.next_name())[1]
        members = [
            self._field(message, self._config.scrub(member.name), member.schema, is_member=True)
            for member in schema.fields
        ]
        message.lines += [f"oneof {_checked(name)} {{", *(f"  {line}" for line in members), "}"]

    def _field(self, message: _Message, name: str, schema: Schema, *, is_member: bool = False) -> str:
        """The line of a field; types that it needs become part of the message."""
        tag = message.tag(schema)
        label = ""
        single = schema
        if schema.type is Type.ARRAY:
            single = _items(schema)
            label = "repeated "
        elif schema.type is Type.MAP:
            label = "repeated "
        elif self._config.optional_for_nullables and schema.optional and not is_member:
            label = "optional "
        kind, parameters = self._type(message, name, single)
        if parameters:
            self.imports.add(_META_FILE)
        return f"{label}{kind} {_checked(name)} = {tag}{_options(parameters)};"

    def _type(self, message: _Message, name: str, schema: Schema) -> tuple[str, dict[str, str]]:
        if schema.name in _LOGICAL:
            kind, path = _LOGICAL[schema.name]
            self.imports.add(path)
            return kind, _decimal_parameters(schema) if schema.name == DECIMAL_NAME else {}
        match schema.type:
            case Type.STRUCT:
                return self._struct(message, name, schema), {}
            case Type.MAP:
                return self._map(message, schema), {}
            case Type.ARRAY:
                raise DataError("Array cannot be nested")
            case Type.INT32 | Type.STRING if names.enum_key_of(schema) is not None:
                return _enum(message, schema), {}
            case _:
                return self._plain(schema)

    def _plain(self, schema: Schema) -> tuple[str, dict[str, str]]:
        kind = schema.parameters.get(names.TYPE, _PLAIN[schema.type])
        if kind not in _WRAPPERS:
            raise DataError(f"Protobuf has no type {kind}")
        small = _SMALL_INTEGERS.get(schema.type)
        parameters = {names.CONNECT_TYPE: small} if small else {}
        if not (self._config.wrapper_for_nullables and schema.optional):
            return kind, parameters
        self.imports.add(_WRAPPERS_FILE)
        return _WRAPPERS[kind], parameters

    def _struct(self, message: _Message, field: str, schema: Schema) -> str:
        name = self._config.split(schema.name or self.next_name())[1]
        if name == field:
            name = f"{name}Message"  # A type and a field of one message cannot have the same name.
        if _is_new(message, name, schema):
            message.lines += self.message(name, schema)
        return name

    def _map(self, message: _Message, schema: Schema) -> str:
        if schema.key_schema is None or schema.value_schema is None:
            raise DataError("a schema of a map must tell those of its keys and values")
        if Type.MAP in (schema.key_schema.type, schema.value_schema.type):
            raise DataError("Protobuf has no maps of maps")
        name = names.entry_name(self._config.split(schema.name or self.next_name())[1])
        if _is_new(message, name, schema):
            entry = _Message(schema)
            key = self._field(entry, names.KEY, _numbered(schema.key_schema, 1))
            value = self._field(entry, names.VALUE, _numbered(schema.value_schema, 2))
            lines = [*entry.lines, key, value]
            message.lines += [f"message {_checked(name)} {{", *(f"  {line}" for line in lines), "}"]
        return name


def _enum(message: _Message, schema: Schema) -> str:
    key = names.enum_key_of(schema)
    name = schema.parameters[str(key)].rpartition(".")[2]
    prefix = f"{key}."
    numbers = {k.removeprefix(prefix): v for k, v in schema.parameters.items() if k.startswith(prefix)}
    if _is_new(message, name, schema.but(optional=False, parameters=numbers)):
        ordered = sorted(numbers.items(), key=lambda item: item[1] != "0")  # The first one must be 0.
        lines = [f"  {_checked(symbol)} = {_integer(number)};" for symbol, number in ordered]
        message.lines += [f"enum {_checked(name)} {{", *lines, "}"]
    return _checked(name)


def _is_new(message: _Message, name: str, schema: Schema) -> bool:
    """Whether a type must be defined; it is an error if another one has its name."""
    known = message.defined.get(name)
    if known is None:
        message.defined[name] = schema
        return True
    if (known.type, known.fields, known.key_schema, known.value_schema) != (
        schema.type,
        schema.fields,
        schema.key_schema,
        schema.value_schema,
    ):
        raise DataError(f"the Connect schema has two types that are both called {name}, but differ")
    return False


def _items(schema: Schema) -> Schema:
    items = schema.value_schema
    if items is None or items.type in (Type.ARRAY, Type.MAP) or names.is_union(items):
        raise DataError(f"Array cannot be nested: Protobuf has no arrays of {items.type if items else 'nothing'}")
    return items.but(parameters={k: v for k, v in items.parameters.items() if k != names.TAG})


def _numbered(schema: Schema, tag: int) -> Schema:
    return schema.but(parameters={**schema.parameters, names.TAG: str(tag)})


def _decimal_parameters(schema: Schema) -> dict[str, str]:
    found = {"precision": schema.parameters.get(names.CONNECT_PRECISION), "scale": schema.parameters.get("scale")}
    return {key: _integer(value) for key, value in found.items() if value is not None}


def _options(parameters: dict[str, str]) -> str:
    if not parameters:
        return ""
    entries = ", ".join(f'{{key: "{key}", value: "{value}"}}' for key, value in parameters.items())
    return f" [(confluent.field_meta) = {{params: [{entries}]}}]"


def _integer(text: str) -> str:
    try:
        return str(int(text))
    except ValueError:
        raise DataError(f"expected a number, not {text!r}") from None


def _checked(name: str) -> str:
    """A name, or several with dots between them; anything else could be read as something else."""
    if not all(_is_name(part) for part in name.split(".")):
        raise DataError(f"Protobuf allows no name {name!r}; scrub.invalid.names would replace it")
    return name
