"""Avro data as Python values, by a plan: a function made for each schema."""

import math
import struct
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from schema_registry.formats.avro_types import Enum, Fixed, Primitive
from schema_registry.serdes import avro_plan as plans
from schema_registry.serdes import logical as convert
from schema_registry.serdes.avro_code import FAULTS, Code, reason_of
from schema_registry.serdes.avro_mismatch import Form
from schema_registry.serdes.avro_numbers import read_number
from schema_registry.serdes.errors import InvalidData
from schema_registry.serdes.logical import Logical, LogicalName

Read = Callable[[bytes, int], Any]
"""Reads the value that begins there in the data."""

_MAX_VALUES: Final = 200
"""Values that one function reads; later records are read by functions of their own."""
_MAX_DEPTH: Final = 6
"""Lists within each other in one function; Python allows 20 blocks."""
_FROM_STORED: Final = {
    LogicalName.DATE: "{0} = date_of({0})",
    LogicalName.TIME: "{0} = time_of({0})",
    LogicalName.TIMESTAMP: "{0} = EPOCH + timedelta(0, 0, 0, {0})",
}
_LENGTH: Final = (
    "e = data[p]",
    "if e & 0x81: e, p = number(data, p)",
    "else: e >>= 1; p += 1",
    "e += p",
    "if not p <= e <= n: raise too_short()",
)
"""Finds out where a text or bytes end, within the data."""


def reader(plan: plans.Plan, form: Form) -> Read:
    """Reads data by a plan; raises InvalidData."""
    quick = _ReadCode(form).root(plan)

    def read(data: bytes, start: int) -> Any:
        try:
            return quick(data, start)
        except InvalidData as error:
            raise InvalidData(f"the data does not fit the Avro schema: {error}") from error
        except FAULTS as error:
            raise InvalidData(f"the data does not fit the Avro schema: {reason_of(error)}") from error

    return read


class _ReadCode(Code):
    """Makes statements that read one value after another from `data`; `n` is its length, `p` the position."""

    def __init__(self, form: Form) -> None:
        names: dict[str, Any] = {
            "number": read_number,
            "float_at": struct.Struct("<f").unpack_from,
            "double_at": struct.Struct("<d").unpack_from,
            "EPOCH": convert.EPOCH,
            "timedelta": timedelta,
            "date_of": convert.date_of,
            "time_of": convert.time_of,
            "decimal_of": convert.decimal_of,
            "too_short": lambda: InvalidData("the data ends too soon"),
            "no_branch": lambda: InvalidData("a union has no such branch"),
            "no_symbol": lambda: InvalidData("an enum has no such symbol"),
            "out_of_range": lambda: InvalidData("a number is out of the range of int"),
            "not_a_boolean": lambda: InvalidData("a boolean is neither 0 nor 1"),
            "name_of_number": lambda v: "NaN" if math.isnan(v) else "Infinity" if v > 0 else "-Infinity",
        }
        super().__init__(form, names)
        self._values = 0

    def root(self, plan: plans.Plan) -> Read:
        """The function that returns the value at a position."""
        if isinstance(plan, plans.Scalar) and plan.type.kind == "bytes":
            # Data of the schema `bytes` itself has no length before it, as in Confluent's serializers.
            self.define("root", "data, p", ["e = len(data)", f"return {self._bytes(plan.logical)}"])
        else:
            self.define("root", "data, p", ["n = len(data)", *self._read(plan, "v", 0, is_root=True), "return v"])
        made: Read = self.names["root"]
        return made

    def _function(self, plan: plans.Plan) -> str:
        name = self.functions.get(id(plan))
        if name is None:
            name = self.functions[id(plan)] = self.new("read")
            before, self._values = self._values, 0
            self.define(name, "data, p, n", [*self._read(plan, "v", 0, is_root=True), "return v, p"])
            self._values = before
        return name

    def _read(self, plan: plans.Plan, value: str, depth: int, *, is_root: bool = False) -> list[str]:
        """The statements that leave a value in a variable."""
        self._values += 1
        match plan:
            case plans.Scalar():
                return self._scalar(plan, value)
            case plans.ChoicePlan():
                return self._choice(plan, value, depth)
            case plans.StructPlan() if not is_root and (self._values > _MAX_VALUES or plan.is_exact):
                return [f"{value}, p = {self._function(plan)}(data, p, n)"]
            case plans.StructPlan():
                parts = [(field.name, self.new("v"), field.plan) for field in plan.fields]
                lines = [line for _, part, inner in parts for line in self._read(inner, part, depth)]
                pairs = ", ".join(f"{name!r}: {part}" for name, part, _ in parts)
                return [*lines, f"{value} = {{{pairs}}}"]
            case _ if depth >= _MAX_DEPTH and not is_root:
                return [f"{value}, p = {self._function(plan)}(data, p, n)"]
            case plans.ListPlan():
                item = self.new("v")
                lines = self._read(plan.items, item, depth + 1)
                return [f"{value} = []", *_blocks([*lines, f"{value}.append({item})"])]
            case plans.MapPlan():
                key, item = self.new("k"), self.new("v")
                lines = [*_LENGTH, f"{key} = data[p:e].decode(); p = e", *self._read(plan.values, item, depth + 1)]
                return [f"{value} = {{}}", *_blocks([*lines, f"{value}[{key}] = {item}"])]
            case plans.EntriesPlan():
                item = self.new("v")
                lines = self._read(plan.entry, item, depth + 1)
                lines.append(f"{value}[{item}[{plans.KEY!r}]] = {item}[{plans.VALUE!r}]")
                entries = f"{value} = [{{{plans.KEY!r}: k, {plans.VALUE!r}: x}} for k, x in {value}.items()]"
                return [f"{value} = {{}}", *_blocks(lines), *([entries] if plan.is_list else [])]

    def _choice(self, plan: plans.ChoicePlan, value: str, depth: int) -> list[str]:
        # A branch is one byte, except in unions of more than 64 types; zigzag doubles its number.
        is_long = plan.count > 64
        lines = ["b, p = number(data, p); b *= 2" if is_long else "b = data[p]; p += 1"]
        word = "if"
        if plan.null is not None:
            lines.append(f"if b == {2 * plan.null}: {value} = None")
            word = "elif"
        for branch in plan.branches:
            part = value if plan.is_flat else self.new("v")
            lines.append(f"{word} b == {2 * branch.index}:")
            lines += [f"    {line}" for line in self._read(branch.plan, part, depth + 1)]
            if not plan.is_flat:
                lines.append(f"    {value} = {{{branch.name!r}: {part}}}")
            word = "elif"
        return [*lines, "else: raise no_branch()"] if plan.branches or plan.null is not None else ["raise no_branch()"]

    def _scalar(self, plan: plans.Scalar, value: str) -> list[str]:
        is_json = self.form is Form.JSON
        match plan.type:
            case Primitive("string"):
                return [*_LENGTH, f"{value} = data[p:e].decode(); p = e"]
            case Primitive("bytes"):
                return [*_LENGTH, f"{value} = {self._bytes(plan.logical)}; p = e"]
            case Fixed(size=size):
                return [
                    f"e = p + {size}",
                    "if e > n: raise too_short()",
                    f"{value} = {self._bytes(plan.logical)}; p = e",
                ]
            case Enum(symbols=symbols):
                check = f"if not 0 <= b < {len(symbols)}: raise no_symbol()"
                return ["b, p = number(data, p)", check, f"{value} = {self.constant('symbols', tuple(symbols))}[b]"]
            case Primitive("int" | "long" as kind):
                return self._number(value, kind, plan.logical)
            case Primitive("float" | "double" as kind):
                lines = [f"{value} = {kind}_at(data, p)[0]; p += {4 if kind == 'float' else 8}"]
                # Infinity minus itself is not zero, and neither is NaN.
                return [*lines, f"if {value} - {value}: {value} = name_of_number({value})"] if is_json else lines
            case Primitive("boolean"):
                return ["b = data[p]; p += 1", "if b > 1: raise not_a_boolean()", f"{value} = b == 1"]
            case _:
                return [f"{value} = None"]

    def _bytes(self, logical: Logical | None) -> str:
        if self.form is Form.JSON:
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
