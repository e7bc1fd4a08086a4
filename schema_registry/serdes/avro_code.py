"""Python functions that read and write data by a plan: straight-line code, made for each schema.

That takes a fraction of the time of a library that looks at the schema with every value. The code refuses what does not
fit as soon as it notices, in whichever way; what is wrong and where is then found out by `avro_mismatch`.
"""

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, NoReturn

from schema_registry.formats.avro_types import Enum, Fixed
from schema_registry.serdes import logical as convert
from schema_registry.serdes.avro_mismatch import NOT_NUMBERS, Form, Mismatch, find_mismatch
from schema_registry.serdes.avro_numbers import RANGES, SMALL, read_number, sized, varint
from schema_registry.serdes.avro_plan import (
    KEY,
    NO_DEFAULT,
    VALUE,
    ChoicePlan,
    EntriesPlan,
    FieldPlan,
    ListPlan,
    MapPlan,
    Plan,
    Scalar,
    StructPlan,
)
from schema_registry.serdes.errors import InvalidData
from schema_registry.serdes.logical import EPOCH, Logical, LogicalName

Read = Callable[[bytes, int], Any]
"""Reads the value that begins there in the data."""
Write = Callable[[Any], bytes]

_MAX_VALUES: Final = 200
"""Values that one function reads or writes; records with more are read by functions of their own."""
_MAX_DEPTH: Final = 6
"""Lists within each other in one function; Python allows 20 blocks."""
_FAULTS: Final = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, struct.error)
_FROM_STORED: Final = {
    LogicalName.DATE: "{0} = date_of({0})",
    LogicalName.TIME: "{0} = time_of({0})",
    LogicalName.TIMESTAMP: "{0} = EPOCH + timedelta(0, 0, 0, {0})",
}
_TO_STORED: Final = {
    LogicalName.DATE: "{0} = days_of({0})",
    LogicalName.TIME: "{0} = milliseconds_of_time({0})",
    LogicalName.TIMESTAMP: "{0} = milliseconds_of({0})",
}
_LENGTH: Final = (
    "e = data[p]",
    "if e & 0x81: e, p = number(data, p)",
    "else: e >>= 1; p += 1",
    "e += p",
    "if not p <= e <= n: raise too_short()",
)
"""Where a text or bytes end; within the data."""
_NAMES: Final[Mapping[str, Any]] = {
    "number": read_number,
    "float_at": struct.Struct("<f").unpack_from,
    "double_at": struct.Struct("<d").unpack_from,
    "pack_float": struct.Struct("<f").pack,
    "pack_double": struct.Struct("<d").pack,
    "EPOCH": EPOCH,
    "timedelta": timedelta,
    "date_of": convert.date_of,
    "time_of": convert.time_of,
    "decimal_of": convert.decimal_of,
    "days_of": convert.days_of,
    "milliseconds_of_time": convert.milliseconds_of_time,
    "milliseconds_of": convert.milliseconds_of,
    "decimal_bytes": convert.decimal_bytes,
    "SMALL": SMALL,
    "varint": varint,
    "sized": sized,
    "join": b"".join,
}


def reader(plan: Plan, form: Form) -> Read:
    """What reads data by a plan; raises InvalidData."""
    if isinstance(plan, Scalar) and plan.type.kind == "bytes":
        return _bare_bytes_reader(plan, form)
    code = _ReadCode(form)
    quick = code.function(plan)

    def read(data: bytes, start: int) -> Any:
        try:
            return quick(data, start, len(data))[0]
        except InvalidData as error:
            raise InvalidData(f"the data does not fit the Avro schema: {error}") from error
        except _FAULTS as error:
            raise InvalidData(f"the data does not fit the Avro schema: {_reason(error)}") from error

    return read


def writer(plan: Plan, form: Form) -> Write:
    """What writes values by a plan; raises Mismatch."""
    if isinstance(plan, Scalar) and plan.type.kind == "bytes":
        quick = _bare_bytes_writer(plan, form)
    else:
        quick = _WriteCode(form).function(plan)

    def write(value: Any) -> bytes:
        try:
            return quick(value)
        except (InvalidData, *_FAULTS) as error:
            found = find_mismatch(plan, value, form) or Mismatch(_reason(error))
            raise found from error

    return write


def _reason(error: Exception) -> str:
    if isinstance(error, IndexError | struct.error):
        return "the data ends too soon"
    if isinstance(error, OverflowError):
        return "a number is out of its range, or not a moment of the years 1 to 9999"
    if isinstance(error, RecursionError):
        return "it nests too deep"
    if isinstance(error, TypeError):
        return "the keys of a map must not be structs, lists or maps themselves"
    return str(error) or type(error).__name__


def _bare_bytes_reader(plan: Scalar, form: Form) -> Read:
    """Data of the schema `bytes` itself has no length before it, as Confluent's serializers have it."""
    if form is Form.JSON:
        return lambda data, start: data[start:].decode("latin-1")
    if plan.logical is None:
        return lambda data, start: data[start:]
    scale = plan.logical.scale
    return lambda data, start: convert.decimal_of(data[start:], scale)


def _bare_bytes_writer(plan: Scalar, form: Form) -> Write:
    if form is Form.JSON:
        return lambda value: value.encode("latin-1")
    if plan.logical is None:
        return _as_bytes
    scale = plan.logical.scale
    return lambda value: convert.decimal_bytes(value, scale)


class _Code:
    """Functions in the making, and what they refer to."""

    def __init__(self, form: Form) -> None:
        self._form = form
        self._names: dict[str, Any] = dict(_NAMES)
        self._functions: dict[int, str] = {}
        self._count = 0

    def _new(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def _constant(self, prefix: str, value: Any) -> str:
        name = self._new(prefix)
        self._names[name] = value
        return name

    def _define(self, name: str, parameters: str, lines: Sequence[str]) -> None:
        # Names of fields are quoted, and all else that is in the code was written here.
        body = "\n    ".join(lines)
        exec(f"def {name}({parameters}):\n    {body}\n", self._names)


class _ReadCode(_Code):
    """Makes statements that read one value after another: `data`, `n` is its length, and `p` the position."""

    def __init__(self, form: Form) -> None:
        super().__init__(form)
        self._values = 0
        self._names |= {
            "too_short": lambda: InvalidData("the data ends too soon"),
            "no_branch": lambda: InvalidData("a union has no such branch"),
            "no_symbol": lambda: InvalidData("an enum has no such symbol"),
            "out_of_range": lambda: InvalidData("a number is out of the range of int"),
            "not_a_boolean": lambda: InvalidData("a boolean is neither 0 nor 1"),
            "name_of_number": _name_of_number,
        }

    def function(self, plan: Plan) -> Callable[[bytes, int, int], tuple[Any, int]]:
        """The function that returns a value and where it ends."""
        made: Callable[[bytes, int, int], tuple[Any, int]] = self._names[self._function(plan)]
        return made

    def _function(self, plan: Plan) -> str:
        name = self._functions.get(id(plan))
        if name is None:
            name = self._functions[id(plan)] = self._new("read")
            before, self._values = self._values, 0
            self._define(name, "data, p, n", [*self._read(plan, "v", 0, is_root=True), "return v, p"])
            self._values = before
        return name

    def _read(self, plan: Plan, value: str, depth: int, *, is_root: bool = False) -> list[str]:
        """The statements that leave a value in a variable."""
        self._values += 1
        match plan:
            case Scalar():
                return self._scalar(plan, value)
            case ChoicePlan():
                return self._choice(plan, value, depth)
            case StructPlan() if not is_root and (self._values > _MAX_VALUES or plan.is_exact):
                return [f"{value}, p = {self._function(plan)}(data, p, n)"]
            case StructPlan():
                return self._struct(plan, value, depth)
            case _ if depth >= _MAX_DEPTH and not is_root:
                return [f"{value}, p = {self._function(plan)}(data, p, n)"]
            case ListPlan():
                item = self._new("v")
                lines = self._read(plan.items, item, depth + 1)
                return [f"{value} = []", *_blocks([*lines, f"{value}.append({item})"])]
            case MapPlan():
                key, item = self._new("k"), self._new("v")
                lines = [*_LENGTH, f"{key} = data[p:e].decode(); p = e", *self._read(plan.values, item, depth + 1)]
                return [f"{value} = {{}}", *_blocks([*lines, f"{value}[{key}] = {item}"])]
            case EntriesPlan():
                item = self._new("v")
                lines = self._read(plan.entry, item, depth + 1)
                lines.append(f"{value}[{item}[{KEY!r}]] = {item}[{VALUE!r}]")
                pairs = f"{value} = [{{{KEY!r}: k, {VALUE!r}: x}} for k, x in {value}.items()]"
                return [f"{value} = {{}}", *_blocks(lines), *([pairs] if plan.is_list else [])]

    def _struct(self, plan: StructPlan, value: str, depth: int) -> list[str]:
        lines: list[str] = []
        pairs = []
        for field in plan.fields:
            part = self._new("v")
            lines += self._read(field.plan, part, depth)
            pairs.append(f"{field.name!r}: {part}")
        return [*lines, f"{value} = {{{', '.join(pairs)}}}"]

    def _choice(self, plan: ChoicePlan, value: str, depth: int) -> list[str]:
        # A branch is one byte, except in unions of more than 64 types.
        is_long = plan.count > 64
        lines = ["b, p = number(data, p); b *= 2" if is_long else "b = data[p]; p += 1"]
        word = "if"
        if plan.null is not None:
            lines.append(f"if b == {2 * plan.null}: {value} = None")
            word = "elif"
        for branch in plan.branches:
            part = value if plan.is_flat else self._new("v")
            lines.append(f"{word} b == {2 * branch.index}:")
            lines += [f"    {line}" for line in self._read(branch.plan, part, depth + 1)]
            if not plan.is_flat:
                lines.append(f"    {value} = {{{branch.name!r}: {part}}}")
            word = "elif"
        return [*lines, "else: raise no_branch()"] if plan.branches or plan.null is not None else ["raise no_branch()"]

    def _scalar(self, plan: Scalar, value: str) -> list[str]:
        is_json = self._form is Form.JSON
        match plan.type.kind:
            case "string":
                return [*_LENGTH, f"{value} = data[p:e].decode(); p = e"]
            case "bytes":
                return [*_LENGTH, f"{value} = {self._bytes(plan.logical)}; p = e"]
            case "fixed":
                assert isinstance(plan.type, Fixed)
                size = plan.type.size
                return [
                    f"e = p + {size}",
                    "if e > n: raise too_short()",
                    f"{value} = {self._bytes(plan.logical)}; p = e",
                ]
            case "enum":
                assert isinstance(plan.type, Enum)
                symbols = self._constant("symbols", tuple(plan.type.symbols))
                count = len(plan.type.symbols)
                return [
                    "b, p = number(data, p)",
                    f"if not 0 <= b < {count}: raise no_symbol()",
                    f"{value} = {symbols}[b]",
                ]
            case "int" | "long" as kind:
                return self._number(value, kind, plan.logical)
            case "float" | "double" as kind:
                lines = [f"{value} = {kind}_at(data, p)[0]; p += {4 if kind == 'float' else 8}"]
                # Infinity minus itself is not zero, and neither is NaN.
                return [*lines, f"if {value} - {value}: {value} = name_of_number({value})"] if is_json else lines
            case "boolean":
                return ["b = data[p]; p += 1", "if b > 1: raise not_a_boolean()", f"{value} = b == 1"]
            case _:
                return [f"{value} = None"]

    def _bytes(self, logical: Logical | None) -> str:
        if self._form is Form.JSON:
            return "data[p:e].decode('latin-1')"
        return "data[p:e]" if logical is None else f"decimal_of(data[p:e], {logical.scale})"

    def _number(self, value: str, kind: str, logical: Logical | None) -> list[str]:
        lines = [
            "b = data[p]",
            f"if b < 0x80: {value} = (b >> 1) ^ -(b & 1); p += 1",
            f"else: {value}, p = number(data, p)",
        ]
        if kind == "int":
            lines.append(f"if not -0x80000000 <= {value} <= 0x7FFFFFFF: raise out_of_range()")
        return lines if logical is None else [*lines, _FROM_STORED[logical.name].format(value)]


def _blocks(lines: list[str]) -> list[str]:
    """Statements for each item of a list or map, which comes in blocks; a negative count is followed by their size."""
    return [
        "while True:",
        "    e = data[p]",
        "    if e & 0x81: e, p = number(data, p)",
        "    else: e >>= 1; p += 1",
        "    if e == 0: break",
        "    if e < 0: e = -e; _, p = number(data, p)",
        "    for _ in range(e):",
        *(f"        {line}" for line in lines),
    ]


def _name_of_number(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


class _WriteCode(_Code):
    """Makes statements that turn the value in a variable into bytes, and expressions for these."""

    def __init__(self, form: Form) -> None:
        super().__init__(form)
        self._names |= {
            "refuse": _refuse,
            "as_list": _as_list,
            "as_integer": _as_integer,
            "as_number": _as_number,
            "as_json_number": _as_json_number,
            "as_bytes": _as_bytes,
            "padded": _padded,
            "ABSENT": object(),
        }
        self._pending: list[tuple[_Branches, str, bytes, str]] = []

    def function(self, plan: Plan) -> Write:
        """The function that writes a value."""
        made: Write = self._names[self._function(plan)]
        for branches, name, prefix, function in self._pending:  # A branch may hold the union that it is a branch of.
            branches[name] = prefix, self._names[function]
        return made

    def _function(self, plan: Plan) -> str:
        name = self._functions.get(id(plan))
        if name is None:
            name = self._functions[id(plan)] = self._new("write")
            if isinstance(plan, StructPlan):
                self._define(name, "value", self._struct(plan))
            else:
                lines, part = self._write(plan, "value")
                self._define(name, "value", [*lines, f"return {part}"])
        return name

    def _struct(self, plan: StructPlan) -> list[str]:
        lines = ["if value.__class__ is not dict: refuse()", "get = value.get"]
        has_defaults = plan.is_exact and any(field.default is not NO_DEFAULT for field in plan.fields)
        lines += ["missing = 0"] if has_defaults else []
        parts = []
        for field in plan.fields:
            if field.constant is not None:
                parts.append(self._constant("constant", field.constant))
                continue
            value = self._new("v")
            lines += self._field(field, value, is_exact=plan.is_exact)
            more, part = self._write(field.plan, value)
            lines += more
            parts.append(part)
        if plan.is_exact:
            lines.append(f"if len(value) {'+ missing ' if has_defaults else ''}!= {len(plan.fields)}: refuse()")
        return [*lines, f"return join(({', '.join(parts)},))" if parts else "return b''"]

    def _field(self, field: FieldPlan, value: str, *, is_exact: bool) -> list[str]:
        if field.default is NO_DEFAULT:
            return [f"{value} = value[{field.source!r}]" if is_exact else f"{value} = get({field.source!r})"]
        default = self._constant("default", field.default)
        if is_exact:
            lines = f"if {value} is ABSENT: {value} = {default}; missing += 1"
            return [f"{value} = get({field.source!r}, ABSENT)", lines]
        return [f"{value} = get({field.source!r})", f"if {value} is None: {value} = {default}"]

    def _write(self, plan: Plan, value: str) -> tuple[list[str], str]:
        match plan:
            case Scalar():
                return self._scalar(plan, value)
            case StructPlan():
                return [], f"{self._function(plan)}({value})"
            case ChoicePlan():
                return self._choice(plan, value)
            case ListPlan():
                lines = [f"if {value}.__class__ is not list: {value} = as_list({value})"]
                return lines, _counted(value, f"[{self._function(plan.items)}(x) for x in {value}]")
            case MapPlan():
                item = self._function(plan.values)
                lines = [f"if {value}.__class__ is not dict: refuse()"]
                return lines, _counted(value, f"[sized(k.encode()) + {item}(x) for k, x in {value}.items()]")
            case EntriesPlan():
                item = self._function(plan.entry)
                lines = [f"if {value}.__class__ is not dict: refuse()"]
                entry = f"{{{KEY!r}: k, {VALUE!r}: x}}"
                return lines, _counted(value, f"[{item}({entry}) for k, x in {value}.items()]")

    def _choice(self, plan: ChoicePlan, value: str) -> tuple[list[str], str]:
        if not plan.is_flat:
            branches: _Branches = {}
            for branch in plan.branches:
                self._pending.append((branches, branch.name, varint(branch.index), self._function(branch.plan)))
            choose = _choose_only if plan.is_exact else _choose_first
            null = None if plan.null is None else varint(plan.null)
            return [], f"{self._constant('choose', choose(branches, null))}({value})"
        (branch,) = plan.branches
        lines, part = self._write(branch.plan, value)
        prefix = varint(branch.index)
        if plan.null is None:
            return lines, f"{prefix!r} + {part}"
        null_lines = [f"if {value} is None: {value} = {varint(plan.null)!r}", "else:"]
        return [*null_lines, *(f"    {line}" for line in [*lines, f"{value} = {prefix!r} + {part}"])], value

    def _scalar(self, plan: Scalar, value: str) -> tuple[list[str], str]:
        is_json = self._form is Form.JSON
        match plan.type.kind:
            case "string":
                return [f"{value} = {value}.encode()"], f"sized({value})"
            case "bytes":
                return [self._bytes(plan.logical, value)], f"sized({value})"
            case "fixed":
                assert isinstance(plan.type, Fixed)
                size = plan.type.size
                lines = [self._bytes(plan.logical, value)]
                lines += [f"{value} = padded({value}, {size})"] if plan.logical is not None else []
                return [*lines, f"if len({value}) != {size}: refuse()"], value
            case "enum":
                assert isinstance(plan.type, Enum)
                symbols = {symbol: varint(index) for index, symbol in enumerate(plan.type.symbols)}
                return [], f"{self._constant('symbols', symbols)}[{value}]"
            case "int" | "long" as kind:
                limit = RANGES[kind]
                stored = [] if plan.logical is None else [_TO_STORED[plan.logical.name].format(value)]
                other = f"{value} = as_integer({value})" if is_json else "refuse()"
                check = f"if not {-limit} <= {value} < {limit}: refuse()"
                part = f"(SMALL[{value}] if 0 <= {value} < 1024 else varint({value}))"
                return [*stored, f"if {value}.__class__ is not int: {other}", check], part
            case "float" | "double" as kind:
                change = "as_json_number" if is_json else "as_number"
                return [f"if {value}.__class__ is not float: {value} = {change}({value})"], f"pack_{kind}({value})"
            case "boolean":
                return [f"if {value}.__class__ is not bool: refuse()"], f"(b'\\x01' if {value} else b'\\x00')"
            case _:
                return [f"if {value} is not None: refuse()"], "b''"

    def _bytes(self, logical: Logical | None, value: str) -> str:
        if self._form is Form.JSON:
            return f"{value} = {value}.encode('latin-1')"
        if logical is not None:
            return f"{value} = decimal_bytes({value}, {logical.scale})"
        return f"if {value}.__class__ is not bytes: {value} = as_bytes({value})"


_Branches = dict[str, tuple[bytes, Write]]


def _counted(value: str, parts: str) -> str:
    """An expression for the items of a list or map, in one block."""
    count = f"(SMALL[len({value})] if len({value}) < 1024 else varint(len({value})))"
    return f"({count} + join({parts}) + b'\\x00' if {value} else b'\\x00')"


def _choose_only(branches: _Branches, null: bytes | None) -> Write:
    """Writes `{branch: value}`."""

    def choose(value: Any) -> bytes:
        if value is None and null is not None:
            return null
        ((name, part),) = value.items()
        prefix, write = branches[name]
        return prefix + write(part)

    return choose


def _choose_first(branches: _Branches, null: bytes | None) -> Write:
    """Writes the first member of a dict that is not null."""

    def choose(value: Any) -> bytes:
        if value is not None:
            get = value.get
            for name, (prefix, write) in branches.items():
                part = get(name)
                if part is not None:
                    return prefix + write(part)
        return _refuse() if null is None else null

    return choose


def _refuse() -> NoReturn:
    raise ValueError("the value does not fit")


def _as_list(value: Any) -> Any:
    return value if isinstance(value, tuple) else _refuse()


def _as_integer(value: Any) -> int:
    """JSON may write a whole number with a point."""
    return int(value) if value.__class__ is float and value.is_integer() else _refuse()


def _as_number(value: Any) -> Any:
    return value if value.__class__ is int else _refuse()


def _as_json_number(value: Any) -> Any:
    return value if value.__class__ is int else NOT_NUMBERS[value]


def _as_bytes(value: Any) -> bytes:
    return bytes(value) if isinstance(value, bytes | bytearray | memoryview) else _refuse()


def _padded(data: bytes, size: int) -> bytes:
    """A number in more bytes."""
    return (b"\xff" if data[0] & 0x80 else b"\x00") * (size - len(data)) + data
