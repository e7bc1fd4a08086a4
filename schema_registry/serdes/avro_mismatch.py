"""Why a value cannot be written by a plan, and where in it the reason is: asked only when writing has failed."""

import math
import struct
from enum import Enum as PythonEnum
from enum import auto
from typing import Any, Final, NoReturn

from schema_registry.formats.avro_types import Enum, Fixed
from schema_registry.serdes.avro_numbers import RANGES
from schema_registry.serdes.avro_plan import (
    KEY,
    NO_DEFAULT,
    VALUE,
    ChoicePlan,
    EntriesPlan,
    ListPlan,
    MapPlan,
    Plan,
    Scalar,
    StructPlan,
)
from schema_registry.serdes.errors import InvalidData
from schema_registry.serdes.logical import to_stored

NOT_NUMBERS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

_JSON_NAMES: Final = {type(None): "null", bool: "a boolean", str: "text", list: "an array", dict: "an object"}
_SHOWN_MAX: Final = 200


class Form(PythonEnum):
    """What values are made of."""

    JSON = auto()
    """What JSON has: bytes are text with one character per byte, logical types are what is stored for them."""
    TYPED = auto()
    """Python's own types: bytes, and dates, times, datetimes in UTC and decimals for logical types."""


class Mismatch(InvalidData):
    """A value does not fit the schema; `path` leads to the part that is wrong."""

    def __init__(self, problem: str, path: tuple[str, ...] = ()) -> None:
        super().__init__(": ".join([*path, problem]))
        self.problem = problem
        self.path = path


def find_mismatch(plan: Plan, value: Any, form: Form) -> Mismatch | None:
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

    def look_at(self, plan: Plan, value: Any, path: tuple[str, ...]) -> None:
        match plan:
            case Scalar():
                self._scalar(plan, value, path)
            case StructPlan():
                self._struct(plan, value, path)
            case ChoicePlan():
                self._choice(plan, value, path)
            case ListPlan():
                self._list(plan, value, path)
            case MapPlan() | EntriesPlan():
                self._map(plan, value, path)

    def _list(self, plan: ListPlan, value: Any, path: tuple[str, ...]) -> None:
        if not isinstance(value, list) and (self._is_json or not isinstance(value, tuple)):
            self._refuse("an array", value, path)
        for index, item in enumerate(value):
            self.look_at(plan.items, item, (*path, str(index)))

    def _map(self, plan: MapPlan | EntriesPlan, value: Any, path: tuple[str, ...]) -> None:
        if not isinstance(value, dict):
            self._refuse("a map", value, path)
        for key, item in value.items():
            if isinstance(plan, MapPlan):
                self._text(key, (*path, str(key)))
                self.look_at(plan.values, item, (*path, str(key)))
            else:
                self.look_at(plan.entry, {KEY: key, VALUE: item}, path)

    def _struct(self, plan: StructPlan, value: Any, path: tuple[str, ...]) -> None:
        if not isinstance(value, dict):
            self._refuse(f"a {'record' if plan.is_exact else 'struct'} {plan.name}", value, path)
        if plan.is_exact:
            names = {field.name for field in plan.fields}
            for name in value:
                if name not in names:
                    raise Mismatch(f"the record has no field {name[:_SHOWN_MAX]!r}", path)
        for field in plan.fields:
            if field.constant is not None:
                continue
            if plan.is_exact and field.source not in value and field.default is NO_DEFAULT:
                raise Mismatch(f"the field {field.source!r} is missing", path)
            part = value.get(field.source)
            has_default = field.default is not NO_DEFAULT
            if has_default and (field.source not in value if plan.is_exact else part is None):
                part = field.default
            self.look_at(field.plan, part, (*path, field.source))

    def _choice(self, plan: ChoicePlan, value: Any, path: tuple[str, ...]) -> None:
        if value is None and plan.null is not None:
            return
        if plan.is_flat:
            self.look_at(plan.branches[0].plan, value, path)
            return
        by_name = {branch.name: branch.plan for branch in plan.branches}
        choice = ", ".join([*(["null"] if plan.null is not None else []), *by_name])
        if not isinstance(value, dict) or (plan.is_exact and len(value) != 1):
            rule = f'a value of a union is written as {{"type": value}}, the type being one of {choice}'
            raise Mismatch(rule, path)
        if plan.is_exact:
            ((name, part),) = value.items()
            if name not in by_name:
                raise Mismatch(f"the union has no type {name[:_SHOWN_MAX]!r}, but {choice}", path)
            self.look_at(by_name[name], part, (*path, name))
            return
        for name, branch in by_name.items():
            if value.get(name) is not None:
                self.look_at(branch, value[name], (*path, name))
                return
        if plan.null is None:
            raise Mismatch("Found null value for non-optional schema: no branch of the union is set", path)

    def _scalar(self, plan: Scalar, value: Any, path: tuple[str, ...]) -> None:
        if not self._is_json and plan.logical is not None and value is not None:
            try:
                value = to_stored(plan.logical)(value)
            except InvalidData as error:
                raise Mismatch(str(error), path) from error
        match plan.type.kind:
            case "string":
                self._text(value, path)
            case "bytes" | "fixed":
                self._bytes(plan, value, path)
            case "enum":
                self._symbol(plan, value, path)
            case "int" | "long" as kind:
                self._integer(kind, value, path)
            case "float" | "double" as kind:
                self._number(kind, value, path)
            case "boolean" if value.__class__ is not bool:
                self._refuse("a boolean", value, path)
            case "null" if value is not None:
                self._refuse("null", value, path)

    def _symbol(self, plan: Scalar, value: Any, path: tuple[str, ...]) -> None:
        assert isinstance(plan.type, Enum)
        if not isinstance(value, str):
            self._refuse("text", value, path)
        if value not in plan.type.symbols:
            raise Mismatch(f"{plan.type.name.full} has no symbol {value[:_SHOWN_MAX]!r}", path)

    def _text(self, value: Any, path: tuple[str, ...]) -> None:
        if not isinstance(value, str):
            self._refuse("text", value, path)
        try:
            value.encode()
        except UnicodeEncodeError:
            raise Mismatch("the text has half a surrogate pair", path) from None

    def _bytes(self, plan: Scalar, value: Any, path: tuple[str, ...]) -> None:
        if self._is_json:
            if not isinstance(value, str):
                self._refuse("text", value, path)
            if not value.isascii() and max(value) > "\u00ff":
                raise Mismatch("bytes are text with one character up to U+00FF per byte", path)
        elif not isinstance(value, bytes | bytearray | memoryview):
            self._refuse("bytes", value, path)
        if isinstance(plan.type, Fixed):
            is_wrong = len(value) > plan.type.size if plan.logical is not None else len(value) != plan.type.size
            if is_wrong:
                raise Mismatch(f"{plan.type.name.full} takes {plan.type.size} bytes, not {len(value)}", path)

    def _integer(self, kind: str, value: Any, path: tuple[str, ...]) -> None:
        is_whole = self._is_json and value.__class__ is float and value.is_integer()
        if value.__class__ is not int and not is_whole:
            self._refuse(f"{'an' if kind == 'int' else 'a'} {kind}", value, path)
        if not -RANGES[kind] <= value < RANGES[kind]:
            raise Mismatch(f"{value} is out of the range of {kind}", path)

    def _number(self, kind: str, value: Any, path: tuple[str, ...]) -> None:
        if self._is_json and value.__class__ is str and value in NOT_NUMBERS:
            return
        if value.__class__ is not float and value.__class__ is not int:
            self._refuse("a number", value, path)
        try:
            struct.pack("<f" if kind == "float" else "<d", value)
        except (OverflowError, struct.error):
            raise Mismatch("the number is too large", path) from None

    def _refuse(self, wanted: str, value: Any, path: tuple[str, ...]) -> NoReturn:
        if self._is_json:
            raise Mismatch(f"expected {wanted}, not {_JSON_NAMES.get(type(value), 'a number')}", path)
        if value is None:
            raise Mismatch(f"Found null value for non-optional schema: expected {wanted}", path)
        raise Mismatch(f"expected {wanted}, not a value of type {type(value).__name__}", path)
