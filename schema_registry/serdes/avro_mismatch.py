"""Why a value cannot be written by a plan, and where in it the reason is: searched only after writing has failed."""

import math
import struct
from enum import Enum as PythonEnum
from enum import auto
from typing import Any, Final, NoReturn

from schema_registry.formats.avro_types import Enum, Fixed, Primitive
from schema_registry.serdes import avro_plan as plans
from schema_registry.serdes.avro_numbers import RANGES
from schema_registry.serdes.errors import InvalidData
from schema_registry.serdes.logical import to_stored

NOT_NUMBERS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

_JSON_NAMES: Final = {type(None): "null", bool: "a boolean", str: "text", list: "an array", dict: "an object"}
_SHOWN_MAX: Final = 200

Path = tuple[str, ...]


class Form(PythonEnum):
    """The Python types of values."""

    JSON = auto()
    """JSON's types: bytes are text with one character per byte, logical types are what is stored for them."""
    TYPED = auto()
    """Python's own types: bytes, and dates, times, datetimes in UTC and decimals for logical types."""


class Mismatch(InvalidData):
    """A value does not fit the schema; `path` leads to the part that is wrong."""

    def __init__(self, problem: str, path: Path = ()) -> None:
        super().__init__(": ".join([*path, problem]))
        self.problem = problem
        self.path = path


def find_mismatch(plan: plans.Plan, value: Any, form: Form) -> Mismatch | None:
    """The first thing that is wrong with a value; None if nothing is found."""
    try:
        _Search(form).look_at(plan, value, ())
    except Mismatch as found:
        return found
    except RecursionError:
        return Mismatch("the value nests too deep")
    return None


class _Search:
    def __init__(self, form: Form) -> None:
        self._is_json = form is Form.JSON

    def look_at(self, plan: plans.Plan, value: Any, path: Path) -> None:
        match plan:
            case plans.Scalar():
                self._scalar(plan, value, path)
            case plans.StructPlan():
                self._struct(plan, value, path)
            case plans.ChoicePlan():
                self._choice(plan, value, path)
            case plans.ListPlan():
                self._check(value, "an array", path, list if self._is_json else list | tuple)
                for index, item in enumerate(value):
                    self.look_at(plan.items, item, (*path, str(index)))
            case plans.MapPlan():
                self._check(value, "a map", path, dict)
                for key, item in value.items():
                    self._text(key, (*path, str(key)))
                    self.look_at(plan.values, item, (*path, str(key)))
            case plans.EntriesPlan():
                self._check(value, "a map", path, dict)
                for key, item in value.items():
                    self.look_at(plan.entry, {plans.KEY: key, plans.VALUE: item}, path)

    def _struct(self, plan: plans.StructPlan, value: Any, path: Path) -> None:
        self._check(value, f"a {'record' if plan.is_exact else 'struct'} {plan.name}", path, dict)
        if plan.is_exact:
            names = {field.name for field in plan.fields}
            for name in value:
                if name not in names:
                    raise Mismatch(f"the record has no field {name[:_SHOWN_MAX]!r}", path)
        for field in plan.fields:
            if field.constant is not None:
                continue
            part = value.get(field.source)
            if field.source not in value if plan.is_exact else part is None:
                if field.default is not plans.NO_DEFAULT:
                    part = field.default
                elif plan.is_exact:
                    raise Mismatch(f"the field {field.source!r} is missing", path)
            self.look_at(field.plan, part, (*path, field.source))

    def _choice(self, plan: plans.ChoicePlan, value: Any, path: Path) -> None:
        if value is None and plan.null is not None:
            return
        if plan.is_flat:
            self.look_at(plan.branches[0].plan, value, path)
            return
        by_name = {branch.name: branch.plan for branch in plan.branches}
        types = ", ".join([*(["null"] if plan.null is not None else []), *by_name])
        if not isinstance(value, dict) or (plan.is_exact and len(value) != 1):
            raise Mismatch(f'a value of a union is written as {{"type": value}}, the type being one of {types}', path)
        name = next(iter(value)) if plan.is_exact else next((n for n in by_name if value.get(n) is not None), None)
        if name in by_name:
            self.look_at(by_name[name], value[name], (*path, name))
        elif name is not None:
            raise Mismatch(f"the union has no type {name[:_SHOWN_MAX]!r}, but {types}", path)
        elif plan.null is None:
            raise Mismatch("Found null value for non-optional schema: no branch of the union is set", path)

    def _scalar(self, plan: plans.Scalar, value: Any, path: Path) -> None:
        if not self._is_json and plan.logical is not None and value is not None:
            try:
                value = to_stored(plan.logical)(value)
            except InvalidData as error:
                raise Mismatch(str(error), path) from error
        match plan.type:
            case Primitive("string"):
                self._text(value, path)
            case Primitive("int" | "long" as kind):
                self._integer(kind, value, path)
            case Primitive("float" | "double" as kind):
                self._number(kind, value, path)
            case Primitive("boolean"):
                self._check(value, "a boolean", path, bool)
            case Primitive("null"):
                self._check(value, "null", path, type(None))
            case Enum(name=name, symbols=symbols):
                self._check(value, "text", path, str)
                if value not in symbols:
                    raise Mismatch(f"{name.full} has no symbol {value[:_SHOWN_MAX]!r}", path)
            case _:
                self._bytes(plan, value, path)

    def _text(self, value: Any, path: Path) -> None:
        self._check(value, "text", path, str)
        try:
            value.encode()
        except UnicodeEncodeError:
            raise Mismatch("the text has half a surrogate pair", path) from None

    def _bytes(self, plan: plans.Scalar, value: Any, path: Path) -> None:
        if self._is_json:
            self._check(value, "text", path, str)
            if not value.isascii() and max(value) > "\u00ff":
                raise Mismatch("bytes are text with one character up to U+00FF per byte", path)
        else:
            self._check(value, "bytes", path, bytes | bytearray | memoryview)
        if isinstance(plan.type, Fixed):
            is_wrong = len(value) > plan.type.size if plan.logical is not None else len(value) != plan.type.size
            if is_wrong:
                raise Mismatch(f"{plan.type.name.full} takes {plan.type.size} bytes, not {len(value)}", path)

    def _integer(self, kind: str, value: Any, path: Path) -> None:
        is_whole = self._is_json and value.__class__ is float and value.is_integer()
        if value.__class__ is not int and not is_whole:
            self._refuse(f"{'an' if kind == 'int' else 'a'} {kind}", value, path)
        if not -RANGES[kind] <= value < RANGES[kind]:
            raise Mismatch(f"{value} is out of the range of {kind}", path)

    def _number(self, kind: str, value: Any, path: Path) -> None:
        if self._is_json and value.__class__ is str and value in NOT_NUMBERS:
            return
        if value.__class__ is not float and value.__class__ is not int:
            self._refuse("a number", value, path)
        try:
            struct.pack("<f" if kind == "float" else "<d", value)
        except (OverflowError, struct.error):
            raise Mismatch("the number is too large", path) from None

    def _check(self, value: Any, wanted: str, path: Path, types: Any) -> None:
        if not isinstance(value, types):
            self._refuse(wanted, value, path)

    def _refuse(self, wanted: str, value: Any, path: Path) -> NoReturn:
        if self._is_json:
            raise Mismatch(f"expected {wanted}, not {_JSON_NAMES.get(type(value), 'a number')}", path)
        if value is None:
            raise Mismatch(f"Found null value for non-optional schema: expected {wanted}", path)
        raise Mismatch(f"expected {wanted}, not a value of type {type(value).__name__}", path)
