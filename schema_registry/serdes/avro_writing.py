"""Python values as Avro data, by a plan: a function made for each schema."""

import struct
from collections.abc import Callable
from typing import Any, Final, NoReturn

from schema_registry.formats.avro_types import Enum, Fixed, Primitive
from schema_registry.serdes import avro_plan as plans
from schema_registry.serdes import logical as convert
from schema_registry.serdes.avro_code import FAULTS, Code, reason_of
from schema_registry.serdes.avro_mismatch import NOT_NUMBERS, Form, Mismatch, find_mismatch
from schema_registry.serdes.avro_numbers import RANGES, SMALL, sized, varint
from schema_registry.serdes.errors import InvalidData
from schema_registry.serdes.logical import Logical, LogicalName

Write = Callable[[Any], bytes]

_TO_STORED: Final = {
    LogicalName.DATE: "{0} = days_of({0})",
    LogicalName.TIME: "{0} = milliseconds_of_time({0})",
    LogicalName.TIMESTAMP: "{0} = milliseconds_of({0})",
}


def writer(plan: plans.Plan, form: Form) -> Write:
    """Writes values by a plan; raises Mismatch."""
    quick = _WriteCode(form).root(plan)

    def write(value: Any) -> bytes:
        try:
            return quick(value)
        except (InvalidData, *FAULTS) as error:
            found = find_mismatch(plan, value, form) or Mismatch(reason_of(error))
            raise found from error

    return write


class _WriteCode(Code):
    """Makes statements that turn the value in a variable into bytes, and expressions for these."""

    def __init__(self, form: Form) -> None:
        names: dict[str, Any] = {
            "pack_float": struct.Struct("<f").pack,
            "pack_double": struct.Struct("<d").pack,
            "days_of": convert.days_of,
            "milliseconds_of_time": convert.milliseconds_of_time,
            "milliseconds_of": convert.milliseconds_of,
            "decimal_bytes": convert.decimal_bytes,
            "SMALL": SMALL,
            "varint": varint,
            "sized": sized,
            "join": b"".join,
            "refuse": _refuse,
            "as_list": lambda value: value if isinstance(value, tuple) else _refuse(),
            # JSON may write a whole number with a point.
            "as_integer": lambda v: int(v) if v.__class__ is float and v.is_integer() else _refuse(),
            "as_number": lambda value: value if value.__class__ is int else _refuse(),
            "as_json_number": lambda value: value if value.__class__ is int else NOT_NUMBERS[value],
            "as_bytes": _as_bytes,
            "padded": _padded,
            "ABSENT": object(),
        }
        super().__init__(form, names)
        self._pending: list[tuple[_Branches, str, bytes, str]] = []

    def root(self, plan: plans.Plan) -> Write:
        """The function that writes a value."""
        if isinstance(plan, plans.Scalar) and plan.type.kind == "bytes":  # By themselves they have no length.
            self.define("root", "value", [self._bytes(plan.logical, "value"), "return value"])
            made: Write = self.names["root"]
            return made
        made = self.names[self._function(plan)]
        for branches, name, prefix, function in self._pending:  # A branch may hold the union that it is a branch of.
            branches[name] = prefix, self.names[function]
        return made

    def _function(self, plan: plans.Plan) -> str:
        name = self.functions.get(id(plan))
        if name is None:
            name = self.functions[id(plan)] = self.new("write")
            if isinstance(plan, plans.StructPlan):
                self.define(name, "value", self._struct(plan))
            else:
                lines, part = self._write(plan, "value")
                self.define(name, "value", [*lines, f"return {part}"])
        return name

    def _struct(self, plan: plans.StructPlan) -> list[str]:
        lines = ["if value.__class__ is not dict: refuse()", "get = value.get"]
        has_defaults = plan.is_exact and any(field.default is not plans.NO_DEFAULT for field in plan.fields)
        lines += ["missing = 0"] if has_defaults else []
        parts = []
        for field in plan.fields:
            if field.constant is not None:
                parts.append(self.constant("constant", field.constant))
                continue
            value = self.new("v")
            lines += self._field(field, value, is_exact=plan.is_exact)
            more, part = self._write(field.plan, value)
            lines += more
            parts.append(part)
        if plan.is_exact:
            lines.append(f"if len(value) {'+ missing ' if has_defaults else ''}!= {len(plan.fields)}: refuse()")
        return [*lines, f"return join(({', '.join(parts)},))" if parts else "return b''"]

    def _field(self, field: plans.FieldPlan, value: str, *, is_exact: bool) -> list[str]:
        if field.default is plans.NO_DEFAULT:
            return [f"{value} = value[{field.source!r}]" if is_exact else f"{value} = get({field.source!r})"]
        default = self.constant("default", field.default)
        if is_exact:
            lines = f"if {value} is ABSENT: {value} = {default}; missing += 1"
            return [f"{value} = get({field.source!r}, ABSENT)", lines]
        return [f"{value} = get({field.source!r})", f"if {value} is None: {value} = {default}"]

    def _write(self, plan: plans.Plan, value: str) -> tuple[list[str], str]:
        match plan:
            case plans.Scalar():
                return self._scalar(plan, value)
            case plans.StructPlan():
                return [], f"{self._function(plan)}({value})"
            case plans.ChoicePlan():
                return self._choice(plan, value)
            case plans.ListPlan():
                lines = [f"if {value}.__class__ is not list: {value} = as_list({value})"]
                return lines, _counted(value, f"[{self._function(plan.items)}(x) for x in {value}]")
            case plans.MapPlan():
                item = self._function(plan.values)
                lines = [f"if {value}.__class__ is not dict: refuse()"]
                return lines, _counted(value, f"[sized(k.encode()) + {item}(x) for k, x in {value}.items()]")
            case plans.EntriesPlan():
                item = self._function(plan.entry)
                lines = [f"if {value}.__class__ is not dict: refuse()"]
                entry = f"{{{plans.KEY!r}: k, {plans.VALUE!r}: x}}"
                return lines, _counted(value, f"[{item}({entry}) for k, x in {value}.items()]")

    def _choice(self, plan: plans.ChoicePlan, value: str) -> tuple[list[str], str]:
        if not plan.is_flat:
            branches: _Branches = {}
            for branch in plan.branches:
                self._pending.append((branches, branch.name, varint(branch.index), self._function(branch.plan)))
            choose = _choose_only if plan.is_exact else _choose_first
            null = None if plan.null is None else varint(plan.null)
            return [], f"{self.constant('choose', choose(branches, null))}({value})"
        (branch,) = plan.branches
        lines, part = self._write(branch.plan, value)
        prefix = varint(branch.index)
        if plan.null is None:
            return lines, f"{prefix!r} + {part}"
        null_lines = [f"if {value} is None: {value} = {varint(plan.null)!r}", "else:"]
        return [*null_lines, *(f"    {line}" for line in [*lines, f"{value} = {prefix!r} + {part}"])], value

    def _scalar(self, plan: plans.Scalar, value: str) -> tuple[list[str], str]:
        is_json = self.form is Form.JSON
        match plan.type:
            case Primitive("string"):
                return [f"{value} = {value}.encode()"], f"sized({value})"
            case Primitive("bytes"):
                return [self._bytes(plan.logical, value)], f"sized({value})"
            case Fixed(size=size):
                lines = [self._bytes(plan.logical, value)]
                lines += [f"{value} = padded({value}, {size})"] if plan.logical is not None else []
                return [*lines, f"if len({value}) != {size}: refuse()"], value
            case Enum(symbols=symbols):
                places = {symbol: varint(index) for index, symbol in enumerate(symbols)}
                return [], f"{self.constant('symbols', places)}[{value}]"
            case Primitive("int" | "long" as kind):
                limit = RANGES[kind]
                stored = [] if plan.logical is None else [_TO_STORED[plan.logical.name].format(value)]
                other = f"{value} = as_integer({value})" if is_json else "refuse()"
                check = f"if not {-limit} <= {value} < {limit}: refuse()"
                part = f"(SMALL[{value}] if 0 <= {value} < 1024 else varint({value}))"
                return [*stored, f"if {value}.__class__ is not int: {other}", check], part
            case Primitive("float" | "double" as kind):
                change = "as_json_number" if is_json else "as_number"
                return [f"if {value}.__class__ is not float: {value} = {change}({value})"], f"pack_{kind}({value})"
            case Primitive("boolean"):
                return [f"if {value}.__class__ is not bool: refuse()"], f"(b'\\x01' if {value} else b'\\x00')"
            case _:
                return [f"if {value} is not None: refuse()"], "b''"

    def _bytes(self, logical: Logical | None, value: str) -> str:
        if self.form is Form.JSON:
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


def _as_bytes(value: Any) -> bytes:
    return bytes(value) if isinstance(value, bytes | bytearray | memoryview) else _refuse()


def _padded(data: bytes, size: int) -> bytes:
    """A number in more bytes."""
    return (b"\xff" if data[0] & 0x80 else b"\x00") * (size - len(data)) + data
