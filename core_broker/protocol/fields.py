"""The codec: a message is a class whose annotations define the encoding and the versions of each field.

A definition is compiled once for each (message, version) into two straight-line Python functions, at first use, so that
a broker starts quickly and pays only for the versions its clients use. The functions guard against lengths that run
past the end, arrays longer than the remaining bytes allow, and more elements in one message than `ELEMENTS_MAX`, so
that a small hostile frame cannot allocate a large heap.
"""

import struct
import types
import typing
from collections.abc import Callable
from functools import cache
from itertools import groupby
from typing import Annotated, Any, ClassVar, Final, TypeVar, Union

import msgspec

from core_broker.protocol.primitives import (
    ZERO_UUID,
    DecodeError,
    read_uvarint,
    skip_tagged_fields,
    type_of_buffer,
    uvarint,
)

ELEMENTS_MAX: Final = 1_000_000
"""Limit of the array elements in one message."""


class Message(msgspec.Struct):
    """Base of everything that the codec can decode and encode; a nested structure has no versions of its own."""

    API_KEY: ClassVar[int | None] = None
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_SINCE: ClassVar[int] = 32767


def message(
    key: int | None = None, *, versions: tuple[int, int], flexible_since: int = 32767
) -> Callable[[type["M"]], type["M"]]:
    """Give a message the number of its API or record, its versions, and the first that is flexible (KIP-482)."""

    def define(definition: type["M"]) -> type["M"]:
        definition.API_KEY, definition.VERSIONS, definition.FLEXIBLE_SINCE = key, versions, flexible_since
        return definition

    return define


class Wire(msgspec.Struct, frozen=True):
    """The wire type of a field, if it does not follow from the Python type."""

    kind: str


class Since(msgspec.Struct, frozen=True):
    """The versions that have the field; all versions without it."""

    first: int
    last: int = 32767


class NullableSince(msgspec.Struct, frozen=True):
    """The versions in which a field may be null."""

    first: int = 0
    last: int = 32767


class Tag(msgspec.Struct, frozen=True):
    """The field is optional and has this tag (KIP-482), from version `first`."""

    number: int
    first: int = 0
    last: int = 32767


Int8 = Annotated[int, Wire("int8")]
Int16 = Annotated[int, Wire("int16")]
UInt16 = Annotated[int, Wire("uint16")]
Int32 = Annotated[int, Wire("int32")]
UInt32 = Annotated[int, Wire("uint32")]
Int64 = Annotated[int, Wire("int64")]
Uuid = Annotated[bytes, Wire("uuid")]
Records = Annotated[bytes | bytearray | memoryview, Wire("records")]
"""Record batches: decoded as a slice of the input, never copied."""

M = TypeVar("M", bound=Message)
Decoder = Callable[[type_of_buffer, int, int, list[int]], tuple[M, int]]
Encoder = Callable[[M, bytearray], None]


def decode(message: type[M], version: int, buffer: type_of_buffer, position: int = 0) -> M:
    """Decode the message at `position`; raises DecodeError if it is invalid."""
    try:
        value: M = decoder(message, version)(buffer, position, len(buffer), [ELEMENTS_MAX])[0]
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise DecodeError(f"{message.__name__} v{version}: {error}") from error
    return value


def encode(message: Message, version: int) -> bytearray:
    """Encode one message."""
    out = bytearray()
    encoder(type(message), version)(message, out)
    return out


@cache
def decoder(message: type[M], version: int) -> Decoder[M]:
    """The compiled function `(buffer, position, end, [elements left]) -> (message, position)`."""
    return typing.cast(Decoder[M], _compile_decoder(message, version, version >= message.FLEXIBLE_SINCE))


@cache
def encoder(message: type[M], version: int) -> Encoder[M]:
    """The compiled function `(message, out) -> None` that appends to `out`."""
    return typing.cast(Encoder[M], _compile_encoder(message, version, version >= message.FLEXIBLE_SINCE))


# --- from annotations to field descriptions -------------------------------------------------------------------------

_FIXED: Final = {
    "bool": ("?", 1),
    "int8": ("b", 1),
    "int16": ("h", 2),
    "uint16": ("H", 2),
    "int32": ("i", 4),
    "uint32": ("I", 4),
    "int64": ("q", 8),
    "float64": ("d", 8),
    "uuid": ("16s", 16),
}
_PLAIN_KINDS: Final = {bool: "bool", str: "string", bytes: "bytes", float: "float64"}


class _Field(msgspec.Struct, frozen=True):
    name: str
    kind: str
    """A fixed kind, string, bytes, records, struct or array."""
    element: Any
    """Message class of a struct; for an array the element's `_Field`."""
    nullable: bool
    tag: int | None
    default: Any


@cache
def _fields_of(message: type[Message], version: int) -> tuple[_Field, ...]:
    hints = typing.get_type_hints(message, include_extras=True)
    fields = (_field(field, hints[field.name], version) for field in msgspec.structs.fields(message))
    return tuple(field for field in fields if field is not None)


def _field(info: msgspec.structs.FieldInfo, hint: Any, version: int) -> _Field | None:
    plain, marks = _unwrap(hint)
    versions = next((mark for mark in marks if isinstance(mark, Since)), Since(0))
    if not versions.first <= version <= versions.last:
        return None
    tag = next((m for m in marks if isinstance(m, Tag) and m.first <= version <= m.last), None)
    nullable = any(isinstance(m, NullableSince) and m.first <= version <= m.last for m in marks)
    kind, element = _kind(plain, marks)
    return _Field(info.name, kind, element, nullable, None if tag is None else tag.number, _default(info))


def _default(info: msgspec.structs.FieldInfo) -> Any:
    if info.default is not msgspec.NODEFAULT:
        return info.default
    return info.default_factory() if info.default_factory is not msgspec.NODEFAULT else None


def _unwrap(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """Strip `Annotated` and `| None` from a hint; returns the plain type and all marks."""
    marks: tuple[Any, ...] = ()
    while True:
        if typing.get_origin(hint) is Annotated:
            marks += hint.__metadata__
            hint = hint.__origin__
        elif typing.get_origin(hint) in (Union, types.UnionType):
            hint = next(option for option in typing.get_args(hint) if option is not types.NoneType)
        else:
            return hint, marks


def _kind(plain: Any, marks: tuple[Any, ...]) -> tuple[str, Any]:
    wire = next((mark for mark in marks if isinstance(mark, Wire)), None)
    if wire is not None:
        return wire.kind, None
    if typing.get_origin(plain) is list:
        inner, inner_marks = _unwrap(typing.get_args(plain)[0])
        kind, element = _kind(inner, inner_marks)
        return "array", _Field("element", kind, element, False, None, None)
    if isinstance(plain, type) and issubclass(plain, Message):
        return "struct", plain
    return _PLAIN_KINDS[plain], None


def _size_min(field: _Field, version: int, flexible: bool) -> int:
    """The minimum encoded size of this field."""
    if field.kind in _FIXED:
        return _FIXED[field.kind][1]
    if field.kind == "struct":
        return 1 if field.nullable else _struct_size_min(field.element, version, flexible)
    if flexible:
        return 1
    return 2 if field.kind == "string" else 4


def _struct_size_min(message: type[Message], version: int, flexible: bool) -> int:
    plain = (f for f in _fields_of(message, version) if f.tag is None)
    return max(1, sum(_size_min(f, version, flexible) for f in plain) + flexible)


# --- the decoder ------------------------------------------------------------------------------------------------------


class _Source:
    """Python source under construction, and the objects it refers to."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, Any] = {
            "DecodeError": DecodeError,
            "read_uvarint": read_uvarint,
            "skip_tagged_fields": skip_tagged_fields,
            "uvarint": uvarint,
            "unpack_from": struct.unpack_from,
            "pack": struct.pack,
        }

    def add(self, indent: int, *lines: str) -> None:
        self.lines.extend("    " * indent + line for line in lines)

    def refer(self, value: object) -> str:
        name = f"_{len(self.names)}"
        self.names[name] = value
        return name

    def build(self, name: str) -> Callable[..., Any]:
        code = compile("\n".join(self.lines), f"<codec {name}>", "exec")
        exec(code, self.names)
        return typing.cast(Callable[..., Any], self.names[name])


@cache
def _compile_decoder(message: type[Message], version: int, flexible: bool) -> Callable[..., Any]:
    source = _Source()
    source.add(0, "def decode(buffer, position, end, budget):")
    fields = _fields_of(message, version)
    plain = [field for field in fields if field.tag is None]
    for is_fixed, run in groupby(plain, _has_fixed_size):
        if is_fixed:
            _decode_fixed(source, list(run))
        else:
            for field in run:
                _decode_value(source, 1, field, f"f_{field.name}", version, flexible)
    if flexible:
        _decode_tagged(source, [f for f in fields if f.tag is not None], version)
    arguments = ", ".join(f"{field.name}=f_{field.name}" for field in fields)
    source.add(1, f"return {source.refer(message)}({arguments}), position")
    return source.build("decode")


def _has_fixed_size(field: _Field) -> bool:
    """Whether a field can be packed in one call together with its neighbours."""
    return field.kind in _FIXED


def _layout(run: list[_Field]) -> struct.Struct:
    return struct.Struct(">" + "".join(_FIXED[field.kind][0] for field in run))


def _decode_fixed(source: _Source, run: list[_Field]) -> None:
    layout = _layout(run)
    targets = ", ".join(f"f_{field.name}" for field in run)
    source.add(1, f"{targets}, = {source.refer(layout.unpack_from)}(buffer, position)", f"position += {layout.size}")


def _decode_tagged(source: _Source, fields: list[_Field], version: int) -> None:
    if not fields:
        source.add(
            1,
            "if buffer[position]:",
            "    position = skip_tagged_fields(buffer, position, end)",
            "else:",
            "    position += 1",
        )
        return
    for field in fields:
        source.add(1, f"f_{field.name} = {source.refer(_copier(field.default))}()")
    source.add(
        1,
        "count, position = read_uvarint(buffer, position)",
        "if count > end - position:",
        "    raise DecodeError(f'{count} tagged fields cannot fit into {end - position} bytes')",
        "for _ in range(count):",
        "    tag, position = read_uvarint(buffer, position)",
        "    size, position = read_uvarint(buffer, position)",
        "    stop_of_tag = position + size",
        "    if stop_of_tag > end:",
        "        raise DecodeError(f'tagged field {tag} of {size} bytes runs past the end of the message')",
    )
    for field in fields:
        source.add(2, f"{'if' if field is fields[0] else 'elif'} tag == {field.tag}:")
        _decode_value(source, 3, field, f"f_{field.name}", version, flexible=True)
    # A value must not extend beyond its tag: otherwise many tags of size zero could decode the same long text again and
    # again.
    source.add(
        2,
        "else:",
        "    position = stop_of_tag",
        "if position != stop_of_tag:",
        "    raise DecodeError(f'tagged field {tag} does not fill its {size} bytes')",
    )


def _copier(default: Any) -> Callable[[], Any]:
    """A function that creates a new default, since lists and structures are mutable."""
    if isinstance(default, list):
        return list
    if isinstance(default, Message):
        return lambda: msgspec.structs.replace(default)
    return lambda: default


def _decode_value(source: _Source, indent: int, field: _Field, target: str, version: int, flexible: bool) -> None:
    match field.kind:
        case "string" | "bytes" | "records":
            _decode_sized(source, indent, field, target, flexible)
        case "array":
            _decode_array(source, indent, field, target, version, flexible)
        case "struct":
            _decode_struct(source, indent, field, target, version, flexible)
        case kind:
            code, size = _FIXED[kind]
            unpack = source.refer(struct.Struct(">" + code).unpack_from)
            source.add(indent, f"{target}, = {unpack}(buffer, position)", f"position += {size}")


def _decode_length(source: _Source, indent: int, kind: str, flexible: bool) -> None:
    """Generate code that sets `n` to the length, -1 for null."""
    if flexible:
        source.add(
            indent,
            "n = buffer[position] - 1",
            "position += 1",
            "if n > 126:",
            "    n, position = read_uvarint(buffer, position - 1)",
            "    n -= 1",
        )
        return
    code, size = ("h", 2) if kind == "string" else ("i", 4)
    unpack = source.refer(struct.Struct(">" + code).unpack_from)
    source.add(indent, f"n, = {unpack}(buffer, position)", f"position += {size}")
    source.add(indent, "if n < -1:", f"    raise DecodeError(f'negative length {{n}} of a {kind}')")


def _decode_null(source: _Source, indent: int, field: _Field, target: str) -> None:
    source.add(indent, "if n < 0:")
    if field.nullable:
        source.add(indent + 1, f"{target} = None")
    else:
        source.add(indent + 1, f"raise DecodeError('{field.name} must not be null')")


def _decode_sized(source: _Source, indent: int, field: _Field, target: str, flexible: bool) -> None:
    _decode_length(source, indent, field.kind, flexible)
    _decode_null(source, indent, field, target)
    convert = {"string": "str({}, 'utf-8')", "bytes": "bytes({})", "records": "{}"}[field.kind]
    source.add(
        indent,
        "else:",
        "    stop = position + n",
        "    if stop > end:",
        f"        raise DecodeError(f'{field.name} of {{n}} bytes runs past the end of the message')",
        f"    {target} = {convert.format('buffer[position:stop]')}",
        "    position = stop",
    )


def _decode_array(source: _Source, indent: int, field: _Field, target: str, version: int, flexible: bool) -> None:
    element: _Field = field.element
    _decode_length(source, indent, "array", flexible)
    _decode_null(source, indent, field, target)
    smallest = _size_min(element, version, flexible)
    source.add(
        indent,
        "else:",
        f"    if n * {smallest} > end - position:",
        f"        raise DecodeError(f'{field.name} of {{n}} elements cannot fit into {{end - position}} bytes')",
        "    budget[0] -= n",
        "    if budget[0] < 0:",
        "        raise DecodeError('too many elements in one message')",
    )
    if element.kind in _FIXED:
        code, size = _FIXED[element.kind]
        source.add(indent + 1, f"{target} = list(unpack_from(f'>{_repeat(code)}', buffer, position))")
        source.add(indent + 1, f"position += n * {size}")
        return
    items, item = f"items_{field.name}", f"item_{field.name}"
    count = f"count_{field.name}"
    source.add(indent + 1, f"{items} = []", f"{count} = n", f"for _ in range({count}):")
    _decode_value(source, indent + 2, element, item, version, flexible)
    source.add(indent + 2, f"{items}.append({item})")
    source.add(indent + 1, f"{target} = {items}")


def _repeat(code: str) -> str:
    """A format for n values; struct cannot repeat 16-byte strings by a count."""
    return '{"16s" * n}' if code == "16s" else "{n}" + code


def _decode_struct(source: _Source, indent: int, field: _Field, target: str, version: int, flexible: bool) -> None:
    call = f"{target}, position = {source.refer(_compile_decoder(field.element, version, flexible))}"
    call += "(buffer, position, end, budget)"
    if not field.nullable:
        source.add(indent, call)
        return
    source.add(
        indent,
        f"if buffer[position] == {_null_marker(field)}:",
        f"    {target}, position = None, position + 1",
        "else:",
        "    position += 1",
        f"    {call}",
    )


# --- the encoder ------------------------------------------------------------------------------------------------------


@cache
def _compile_encoder(message: type[Message], version: int, flexible: bool) -> Callable[..., Any]:
    source = _Source()
    source.add(0, "def encode(m, out):")
    fields = _fields_of(message, version)
    plain = [field for field in fields if field.tag is None]
    for is_fixed, run in groupby(plain, _has_fixed_size):
        if is_fixed:
            _encode_fixed(source, list(run))
        else:
            for field in run:
                _encode_value(source, 1, field, f"m.{field.name}", version, flexible)
    if flexible:
        _encode_tagged(source, [f for f in fields if f.tag is not None], version)
    source.add(1, "return None")
    return source.build("encode")


def _encode_fixed(source: _Source, run: list[_Field]) -> None:
    values = ", ".join(f"m.{field.name}" for field in run)
    source.add(1, f"out += {source.refer(_layout(run).pack)}({values})")


def _encode_tagged(source: _Source, fields: list[_Field], version: int) -> None:
    """Generate code that writes the tagged fields that differ from their default, ordered by tag."""
    if not fields:
        source.add(1, "out.append(0)")
        return
    source.add(1, "tagged = []")
    for field in sorted(fields, key=lambda field: field.tag or 0):
        source.add(1, f"if m.{field.name} != {source.refer(field.default)}:", "    outer, out = out, bytearray()")
        _encode_value(source, 2, field, f"m.{field.name}", version, flexible=True)
        source.add(2, f"tagged.append(({field.tag}, out))", "out = outer")
    source.add(
        1,
        "out += uvarint(len(tagged))",
        "for tag, body in tagged:",
        "    out += uvarint(tag)",
        "    out += uvarint(len(body))",
        "    out += body",
    )


def _encode_value(source: _Source, indent: int, field: _Field, value: str, version: int, flexible: bool) -> None:
    match field.kind:
        case "string" | "bytes" | "records":
            _encode_sized(source, indent, field, value, flexible)
        case "array":
            _encode_array(source, indent, field, value, version, flexible)
        case "struct":
            _encode_struct(source, indent, field, value, version, flexible)
        case kind:
            source.add(indent, f"out += {source.refer(struct.Struct('>' + _FIXED[kind][0]).pack)}({value})")


def _encode_length(source: _Source, kind: str, length: str, flexible: bool) -> str:
    if flexible:
        return f"out += uvarint({length} + 1)"
    code = "h" if kind == "string" else "i"
    return f"out += {source.refer(struct.Struct('>' + code).pack)}({length})"


def _encode_null(source: _Source, indent: int, field: _Field, value: str, flexible: bool) -> int:
    """Generate the branch for null if it is allowed; returns the indent of the other branch."""
    if not field.nullable:
        return indent
    source.add(indent, f"if {value} is None:")
    source.add(indent + 1, _encode_length(source, field.kind, "-1", flexible))
    source.add(indent, "else:")
    return indent + 1


def _encode_sized(source: _Source, indent: int, field: _Field, value: str, flexible: bool) -> None:
    indent = _encode_null(source, indent, field, value, flexible)
    source.add(indent, f"data = {value}.encode()" if field.kind == "string" else f"data = {value}")
    source.add(indent, _encode_length(source, field.kind, "len(data)", flexible), "out += data")


def _encode_array(source: _Source, indent: int, field: _Field, value: str, version: int, flexible: bool) -> None:
    element: _Field = field.element
    indent = _encode_null(source, indent, field, value, flexible)
    source.add(indent, f"n = len({value})", _encode_length(source, "array", "n", flexible))
    if element.kind in _FIXED:
        source.add(indent, f"out += pack(f'>{_repeat(_FIXED[element.kind][0])}', *{value})")
        return
    item = f"item_{field.name}"
    source.add(indent, f"for {item} in {value}:")
    _encode_value(source, indent + 1, element, item, version, flexible)


def _encode_struct(source: _Source, indent: int, field: _Field, value: str, version: int, flexible: bool) -> None:
    call = f"{source.refer(_compile_encoder(field.element, version, flexible))}({value}, out)"
    if not field.nullable:
        source.add(indent, call)
        return
    null = f"    out.append({_null_marker(field)})"
    source.add(indent, f"if {value} is None:", null, "else:", "    out.append(1)", f"    {call}")


def _null_marker(field: _Field) -> int:
    """The byte in place of a struct that is null; any other struct begins with 1. Kafka has two ways (KIP-893)."""
    return 255 if field.tag is None else 0


__all__ = [
    "ZERO_UUID",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "Message",
    "NullableSince",
    "Records",
    "Since",
    "Tag",
    "UInt16",
    "UInt32",
    "Uuid",
    "Wire",
    "decode",
    "decoder",
    "encode",
    "encoder",
]
