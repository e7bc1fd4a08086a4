"""Documents of a JSON Schema as Python values and back, by a plan: one function per schema, made once."""

import base64
import binascii
import math
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NoReturn

import msgspec

from schema_registry.formats.json_schema import JsonSchema
from schema_registry.serdes import checks
from schema_registry.serdes.checks import LIMITS
from schema_registry.serdes.errors import InvalidData
from schema_registry.serdes.json_plan import KEY, VALUE, Choices, Meaning, Plan, Shape
from schema_registry.serdes.logical import (
    DIGITS_MAX,
    LogicalName,
    decimal_of,
    from_stored,
    rescaled,
    to_stored,
    unscaled,
)

Json = Any
Convert = Callable[[Any], Any]
Read = Callable[[bytes, int], Any]
Write = Callable[[Any], bytes]

_FAULTS: Final = (msgspec.DecodeError, UnicodeDecodeError, InvalidOperation, RecursionError)
_JSON_NAMES: Final = {type(None): "NULL", bool: "BOOLEAN", str: "STRING", list: "ARRAY", dict: "OBJECT"}
encode_json: Final = msgspec.json.Encoder(decimal_format="number").encode
"""Bytes become base64, decimals numbers."""
_exact_decode: Final = msgspec.json.Decoder(float_hook=Decimal).decode
"""Keeps all digits of numbers."""


def plan_of(schema: JsonSchema, choices: Choices = Choices()) -> Plan:  # noqa: B008 - it cannot be changed
    """The plan of a schema; raises UnusableSchema."""

    def default_of(plan: Plan, default: Json) -> Any:
        try:
            return value_reader(plan)(default)
        except InvalidData:
            return None  # A default that does not fit is ignored.

    return Meaning(schema, default_of, choices).root()


def reader(plan: Plan) -> Read:
    """Reads documents as values; raises InvalidData."""
    convert = value_reader(plan)
    decode = _exact_decode if _has_decimals(plan) else msgspec.json.decode

    def read(data: bytes, start: int) -> Any:
        try:
            value = decode(memoryview(data)[start:])
        except _FAULTS as error:
            raise InvalidData(f"the data is not JSON: {error}") from error
        return convert(value)

    return read


def writer(plan: Plan, *, has_numeric_decimals: bool = False) -> Write:
    """Writes values as documents; raises InvalidData. Decimals are the base64 of their digits, or numbers."""
    make = _Makers(has_numeric_decimals).of(plan)
    return lambda value: encode_json(make(value))


def value_reader(plan: Plan) -> Convert:
    """Turns JSON, which may be null, into a value."""
    present = _present(plan)
    if plan.shape is Shape.TEXT:
        return present  # Null is a text like any other.
    default, is_optional = plan.default, plan.is_optional

    def convert(value: Json) -> Any:
        if value is not None:
            return present(value)
        if default is None and not is_optional:
            raise InvalidData(f"Invalid null value for required {plan.kind or plan.shape} field")
        return default

    return convert


def _has_decimals(plan: Plan) -> bool:
    parts = [plan.keys, plan.values, *(field.plan for field in plan.fields)]
    parts += [] if plan.others is None else [plan.others.plan]
    is_decimal = plan.logical is not None and plan.logical.name is LogicalName.DECIMAL
    return is_decimal or any(_has_decimals(part) for part in parts if part is not None)


# --- documents as values ---------------------------------------------------------------------------------------------


def _present(plan: Plan) -> Convert:
    """Turns JSON that is not null into a value."""
    match plan.shape:
        case Shape.PLAIN:
            return _plain_reader(plan)
        case Shape.SYMBOL:  # Symbols of an enum may be of any type; Connect has them as text.
            return lambda value: value if value.__class__ is str else _json_text(value)
        case Shape.TEXT:
            return _json_text
        case Shape.LIST:
            item, is_list = value_reader(plan.items), _only(list, "Arrays should be encoded as JSON arrays")
            return lambda value: [item(part) for part in is_list(value)]
        case Shape.MAP:
            is_object = _only(dict, "Maps with string fields should be encoded as JSON objects")
            item = value_reader(plan.items)
            return lambda value: {key: item(part) for key, part in is_object(value).items()}
        case Shape.ENTRIES:
            return _entries_reader(plan)
        case Shape.STRUCT:
            return _struct_reader(plan)
        case Shape.CHOICE:
            return _choice_reader(plan)


def _only(class_: type, problem: str) -> Convert:
    """Accepts values of one class."""

    def check(value: Json) -> Any:
        if value.__class__ is not class_:
            _refuse(problem, value)
        return value

    return check


def _plain_reader(plan: Plan) -> Convert:
    if plan.logical is None:
        return _integer_reader(plan.kind) if plan.kind in LIMITS else _PLAIN_READERS[plan.kind]
    if plan.logical.name is LogicalName.DECIMAL:
        return _decimal_reader(plan.logical.scale)
    convert, integer = from_stored(plan.logical), _integer_reader(plan.kind)
    return lambda value: convert(integer(value))


def _struct_reader(plan: Plan) -> Convert:
    fields = [(f.name, f.plan.default, f.plan.is_optional, _present(f.plan)) for f in plan.fields]
    others = plan.others
    known = frozenset(field.name for field in plan.fields) | ({others.name} if others else frozenset())
    read_other = None if others is None else value_reader(others.plan.items)

    def convert(value: Json) -> Any:
        if value.__class__ is not dict:
            _refuse("Structs should be encoded as JSON objects", value)
        get = value.get
        made = {}
        for name, default, is_optional, present in fields:
            part = get(name)
            if part is None:
                if default is None and not is_optional and name in value:
                    raise InvalidData(f"{name}: Invalid null value for required field")
                made[name] = default
            else:
                try:
                    made[name] = present(part)
                except InvalidData as error:
                    raise InvalidData(f"{name}: {error}") from error
        if read_other is not None and others is not None:
            found = {name: read_other(part) for name, part in value.items() if name not in known}
            made[others.name] = found or None
        return made

    return convert


def _choice_reader(plan: Plan) -> Convert:
    """The first schema that fits the type of the value; of several structs the one with most of its properties."""
    members = [(field.name, field.plan, _present(field.plan)) for field in plan.fields]

    def convert(value: Json) -> Any:
        best, most = None, -1
        for name, member, present in members:
            if _is_of_type(member, value):
                return {name: present(value)}
            common = _common_properties(member, value)
            if common > most:
                best, most = (name, present), common
        if best is None:
            raise InvalidData("Did not find matching oneof field for data")
        name, present = best
        return {name: present(value)}

    return convert


def _common_properties(plan: Plan, value: Json) -> int:
    """How many properties of an object, and of objects in it, are fields of a struct; -1 if either is not one."""
    if plan.shape not in (Shape.STRUCT, Shape.CHOICE) or not isinstance(value, dict):
        return -1
    common = [(field.plan, value[field.name]) for field in plan.fields if field.name in value]
    return len(common) + sum(max(_common_properties(part, found), 0) for part, found in common)


def _is_of_type(plan: Plan, value: Json) -> bool:
    kind = value.__class__
    if plan.shape in (Shape.STRUCT, Shape.CHOICE):
        return False
    if plan.shape is Shape.LIST:
        return kind is list
    if plan.shape in (Shape.MAP, Shape.ENTRIES):
        return kind in (dict, list)
    if plan.kind in LIMITS:
        return kind is int
    if plan.kind in ("float32", "float64") or plan.logical is not None:
        return kind in (int, float, Decimal)
    return kind is (bool if plan.kind == "boolean" else str)


def _entries_reader(plan: Plan) -> Convert:
    assert plan.keys is not None
    keys, values = value_reader(plan.keys), value_reader(plan.items)
    is_list = _only(list, "Maps with non-string fields should be encoded as JSON array of objects")
    is_entry = _only(dict, "Found invalid map entry instead of object")

    def convert(value: Json) -> Any:
        made = {}
        for entry in map(is_entry, is_list(value)):
            if len(entry) != 2:
                raise InvalidData(f"Found invalid map entry, expected length 2 but found: {len(entry)}")
            try:
                made[keys(entry.get(KEY))] = values(entry.get(VALUE))
            except TypeError as error:
                raise InvalidData("the keys of a map must not be structs, lists or maps themselves") from error
        return made

    return convert


def _decimal_reader(scale: int) -> Convert:
    def convert(value: Json) -> Any:
        if value.__class__ is str:
            return decimal_of(_bytes(value), scale)
        if value.__class__ is int or value.__class__ is float:
            value = Decimal(repr(value))
        if value.__class__ is not Decimal:
            _refuse("Invalid type for Decimal, underlying representation should be numeric or bytes", value)
        if abs(value.adjusted()) > DIGITS_MAX:
            raise InvalidData("the number has too many digits for a Decimal")
        made = rescaled(value, scale)
        unscaled(made, scale)  # Refuses a number with more digits.
        return made

    return convert


def _integer_reader(kind: str) -> Convert:
    limit = LIMITS[kind]

    def convert(value: Json) -> Any:
        if value.__class__ is not int:
            # The size is checked first: as a whole number, 1e999999999 has a billion digits.
            if value.__class__ not in (float, Decimal) or not -limit <= value < limit or value != int(value):
                _refuse(f"Invalid type for {kind}", value)
            value = int(value)
        if not -limit <= value < limit:
            raise InvalidData(f"{value} is out of the range of {kind}")
        return value

    return convert


def _floating(value: Json) -> Any:
    if value.__class__ is float:
        return value
    if value.__class__ not in (int, Decimal):
        _refuse("Invalid type for a number", value)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isinf(number):
        raise InvalidData("the number is too large for a double")
    return number


def _json_text(value: Json) -> str:
    return encode_json(value).decode()


def _bytes(value: Json) -> bytes:
    if value.__class__ is not str:
        _refuse("Invalid bytes field", value)
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidData(f"Invalid bytes field: {error}") from error


_PLAIN_READERS: Final[dict[str, Convert]] = {
    "float32": _floating,
    "float64": _floating,
    "boolean": _only(bool, "Invalid type for BOOLEAN"),
    "string": _only(str, "Invalid type for STRING"),
    "bytes": _bytes,
}


def _refuse(problem: str, value: Json) -> NoReturn:
    raise InvalidData(f"{problem}, but found {_JSON_NAMES.get(type(value), 'NUMBER')}")


# --- values as documents ---------------------------------------------------------------------------------------------


class _Makers:
    """Makes values into what msgspec writes as the right JSON."""

    def __init__(self, has_numeric_decimals: bool) -> None:
        self._has_numeric_decimals = has_numeric_decimals

    def of(self, plan: Plan) -> Convert:
        """The function for values that may be null; it returns null only if that is to be written."""
        present = self._present(plan)
        default, is_optional = plan.default, plan.is_optional

        def make(value: Any) -> Json:
            if value is None:
                value = default
                if value is None:
                    if is_optional:
                        return None
                    raise InvalidData(f"Found null value for non-optional schema of {plan.kind or plan.shape}")
            return present(value)

        return make

    def _present(self, plan: Plan) -> Convert:
        match plan.shape:
            case Shape.PLAIN:
                return self._plain(plan)
            case Shape.SYMBOL:
                return checks.text
            case Shape.TEXT:
                return _parse
            case Shape.LIST:
                item = self.of(plan.items)
                return lambda value: [item(part) for part in checks.sequence(value)]
            case Shape.MAP:
                values = self.of(plan.items)
                return lambda value: {checks.text(k): values(v) for k, v in checks.mapping(value).items()}
            case Shape.ENTRIES:
                assert plan.keys is not None
                key, value_ = self.of(plan.keys), self.of(plan.items)
                return lambda value: [{KEY: key(k), VALUE: value_(v)} for k, v in checks.mapping(value).items()]
            case Shape.STRUCT:
                return self._struct(plan)
            case Shape.CHOICE:
                return self._choice(plan)

    def _plain(self, plan: Plan) -> Convert:
        if plan.logical is None:
            return _finite if plan.kind in ("float32", "float64") else checks.CHECKS[plan.kind]
        if plan.logical.name is LogicalName.DECIMAL and self._has_numeric_decimals:
            scale = plan.logical.scale
            return lambda value: value if unscaled(value, scale) is not None else None
        return to_stored(plan.logical)

    def _struct(self, plan: Plan) -> Convert:
        fields = [(f.name, f.plan.is_optional, f.plan.default, self._present(f.plan)) for f in plan.fields]
        others = plan.others
        write_others = None if others is None else self._present(others.plan)

        def make(value: Any) -> Json:
            if not isinstance(value, dict):
                checks.refuse("a struct", value)
            get = value.get
            made = {}
            for name, is_optional, default, present in fields:
                part = get(name)
                if part is None:
                    part = default
                if part is not None:
                    try:
                        made[name] = present(part)
                    except InvalidData as error:
                        raise InvalidData(f"{name}: {error}") from error
                elif is_optional:
                    made[name] = None
                # A property that is neither optional nor present is left out: the schema does not require it.
            if write_others is not None and others is not None and get(others.name):
                made = {**write_others(get(others.name)), **made}
            return made

        return make

    def _choice(self, plan: Plan) -> Convert:
        members = [(field.name, self._present(field.plan)) for field in plan.fields]

        def make(value: Any) -> Json:
            for name, present in members:
                part = value.get(name)
                if part is not None:
                    return present(part)
            if plan.is_optional:
                return None
            raise InvalidData("Found null value for non-optional schema: no field of the union is set")

        return make


def _finite(value: Any) -> Json:
    if not math.isfinite(checks.number(value)):
        raise InvalidData(f"{value} cannot be written as JSON, which has numbers only")
    return value


def _parse(value: Any) -> Json:
    """Text that is JSON."""
    try:
        return msgspec.json.decode(checks.text(value), type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise InvalidData(f"the text is not JSON: {error}") from error
