"""Connect schemas as .proto files."""

import re
from operator import attrgetter
from pathlib import Path
from typing import Final, NamedTuple

from connect.api.data import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME, Schema, Type
from connect.api.errors import DataError
from connect.api.logical import PRECISION
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
    **dict.fromkeys(("int32", "sint32", "sfixed32"), "google.protobuf.Int32Value"),
    **dict.fromkeys(("uint32", "fixed32"), "google.protobuf.UInt32Value"),
    **dict.fromkeys(("uint64", "fixed64"), "google.protobuf.UInt64Value"),
    **dict.fromkeys(("int64", "sint64", "sfixed64"), "google.protobuf.Int64Value"),
    **{kind: f"google.protobuf.{kind.capitalize()}Value" for kind in ("float", "double", "bool", "string", "bytes")},
}
_SMALL_INTEGERS: Final = {Type.INT8: "int8", Type.INT16: "int16"}


class Definition(NamedTuple):
    """A .proto file and the full name of the message in it."""

    text: str
    message: str


def from_connect_schema(schema: Schema, config: ProtobufConfig) -> Definition:
    """The file with the message for a Connect schema; raises DataError if there is none."""
    if schema.type in (Type.ARRAY, Type.MAP):
        raise DataError(f"Unsupported root schema of type {schema.type}: a Protobuf record is a message")
    if schema.type is not Type.STRUCT:
        folder, _, file_name = _WRAPPERS_FILE.rpartition("/")
        wrappers = Path(protobuf_builtin.folders()[folder], file_name).read_text("utf-8")
        return Definition(wrappers, _WRAPPERS[_PLAIN[schema.type]])
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


class _Message:
    """The content of a message."""

    def __init__(self, schema: Schema) -> None:
        self.lines: list[str] = []
        self.defined: dict[str, Schema] = {}
        parts = [field.schema for field in schema.fields]
        parts += [member.schema for part in parts if names.is_union(part) for member in part.fields]
        tags = [part.parameters.get(names.TAG, "") for part in parts]
        self._used = {int(tag) for tag in tags if tag.isdecimal()}
        self._next = 1

    def tag(self, schema: Schema) -> int:
        """The number of a field: its old one, or the next one."""
        given = schema.parameters.get(names.TAG)
        if given is not None and given.isdecimal():
            return int(given)
        while self._next in self._used:
            self._next += 1
        self._next += 1
        return self._next - 1


class _File:
    """Writes one file; remembers what it imports."""

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
        options = ""
        if parameters:
            self.imports.add(_META_FILE)
            entries = ", ".join(f'{{key: "{key}", value: "{value}"}}' for key, value in parameters.items())
            options = f" [(confluent.field_meta) = {{params: [{entries}]}}]"
        return f"{label}{kind} {_checked(name)} = {tag}{options};"

    def _type(self, message: _Message, name: str, schema: Schema) -> tuple[str, dict[str, str]]:
        if schema.name in _LOGICAL:
            kind, path = _LOGICAL[schema.name]
            self.imports.add(path)
            found = {"precision": schema.parameters.get(PRECISION), "scale": schema.parameters.get("scale")}
            is_decimal = schema.name == DECIMAL_NAME
            return kind, {k: _integer(v) for k, v in found.items() if is_decimal and v is not None}
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
            raise DataError("a schema of a map must have those of its keys and values")
        if Type.MAP in (schema.key_schema.type, schema.value_schema.type):
            raise DataError("Protobuf has no maps of maps")
        name = names.entry_name(self._config.split(schema.name or self.next_name())[1])
        if _is_new(message, name, schema):
            entry = _Message(schema)
            parts = {names.KEY: schema.key_schema, names.VALUE: schema.value_schema}
            fields = []
            for tag, (part_name, part) in enumerate(parts.items(), 1):
                numbered = part.but(parameters={**part.parameters, names.TAG: str(tag)})
                fields.append(self._field(entry, part_name, numbered))
            lines = [*entry.lines, *fields]
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
    parts = attrgetter("type", "fields", "key_schema", "value_schema")
    if parts(known) != parts(schema):
        raise DataError(f"the Connect schema has two types that are both called {name}, but differ")
    return False


def _items(schema: Schema) -> Schema:
    items = schema.value_schema
    if items is None or items.type in (Type.ARRAY, Type.MAP) or names.is_union(items):
        raise DataError(f"Array cannot be nested: Protobuf has no arrays of {items.type if items else 'nothing'}")
    return items.but(parameters={k: v for k, v in items.parameters.items() if k != names.TAG})


def _integer(text: str) -> str:
    try:
        return str(int(text))
    except ValueError:
        raise DataError(f"expected a number, not {text!r}") from None


def _checked(name: str) -> str:
    """A name, or several with dots between them; anything else could inject other statements."""
    if not all(_is_name(part) for part in name.split(".")):
        raise DataError(f"Protobuf does not allow the name {name!r}; scrub.invalid.names would replace it")
    return name
