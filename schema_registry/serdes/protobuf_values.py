"""Protobuf messages as Python values and back, by a plan: one function per message, made once."""

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from google.protobuf.descriptor import EnumDescriptor
from google.protobuf.message_factory import GetMessageClass

from schema_registry.serdes import protobuf_plan as plans
from schema_registry.serdes.checks import CHECKS, mapping, refuse, sequence
from schema_registry.serdes.errors import InvalidData
from schema_registry.serdes.logical import (
    SCALE_MAX,
    Logical,
    LogicalName,
    days_of,
    decimal_bytes,
    decimal_of,
    milliseconds_of,
    milliseconds_of_time,
    rescaled,
    timestamp_of,
)
from schema_registry.serdes.protobuf_plan import KEY, UNSIGNED, VALUE

Read = Callable[[Any], Any]
"""Makes a value of a message, or of what a message has for a field."""
Make = Callable[[Any], Any]
"""Makes a message, or what a message takes for a field, of a value."""

MILLISECOND_NS: Final = 1_000_000

_SIGN: Final = 1 << 63
_FAULTS: Final = (AttributeError, LookupError, OverflowError, TypeError, ValueError)


# --- messages as values ----------------------------------------------------------------------------------------------


def reader(plan: plans.Plan) -> Read:
    """Makes values of messages; raises InvalidData."""
    return _reading(plan) or _same


def _same(value: Any) -> Any:
    return value


def _reading(plan: plans.Plan) -> Read | None:
    """How a value of Protobuf is converted; None if it stays as it is."""
    match plan:
        case plans.MessagePlan():
            return _message_reading(plan)
        case plans.WrapperPlan():
            convert = _reading(plan.value)
            return (lambda message: message.value) if convert is None else (lambda message: convert(message.value))
        case plans.ListPlan():
            item = _reading(plan.items)
            return list if item is None else (lambda values: [item(value) for value in values])
        case plans.MapPlan():
            return _map_reading(plan)
        case plans.LogicalPlan():
            return logical_reading(plan.logical)
        case plans.EnumPlan():
            return None if plan.is_number else symbol_reading(plan.enum)
        case plans.Scalar() if plan.type in UNSIGNED:  # Java, and so Connect, has no unsigned numbers.
            return lambda number: number - 2 * _SIGN if number >= _SIGN else number
        case plans.Scalar():
            return None


def _message_reading(plan: plans.MessagePlan) -> Read:
    always: list[tuple[str, Read | None]] = []
    sometimes: list[tuple[str, Read | None]] = []
    oneofs: list[tuple[str, str, dict[str, Read | None]]] = []
    for part in plan.parts:
        if isinstance(part, plans.Member):
            (sometimes if part.is_nullable else always).append((part.name, _reading(part.plan)))
        elif part.oneof is not None:
            members = {member.name: _reading(member.plan) for member in part.members}
            oneofs.append((part.name, str(part.oneof.name), members))

    def read(message: Any) -> Any:
        made: dict[str, Any] = {}
        for name, oneof, members in oneofs:
            chosen = message.WhichOneof(oneof)
            if chosen is None:
                made[name] = None
            else:
                convert = members[chosen]
                part = getattr(message, chosen)
                made[name] = {chosen: part if convert is None else convert(part)}
        for name, convert in always:
            part = getattr(message, name)
            made[name] = part if convert is None else convert(part)
        for name, convert in sometimes:
            if message.HasField(name):
                part = getattr(message, name)
                made[name] = part if convert is None else convert(part)
            else:
                made[name] = None
        return made

    return read


def _map_reading(plan: plans.MapPlan) -> Read:
    key, value = reader(plan.keys), reader(plan.values)
    if plan.is_declared:
        return lambda entries: {key(k): value(v) for k, v in entries.items()}

    def read(entries: Any) -> Any:
        try:
            return {key(entry.key): value(entry.value) for entry in entries}
        except TypeError as error:
            raise InvalidData("the keys of a map must not be structs, lists or maps themselves") from error

    return read


def logical_reading(logical: Logical) -> Read:
    """Makes a date, a time of day, a timestamp or a decimal of its message."""
    match logical.name:
        case LogicalName.DATE:
            return _date_of
        case LogicalName.TIME:
            return _time_of
        case LogicalName.TIMESTAMP:
            return lambda message: timestamp_of(message.seconds * 1000 + message.nanos // MILLISECOND_NS)
        case LogicalName.DECIMAL:
            return lambda message: rescaled(_decimal_of(message), logical.scale)


def symbol_reading(enum: EnumDescriptor) -> Callable[[int], str]:
    """Makes symbols of numbers."""
    symbols = {value.number: str(value.name) for value in reversed(enum.values)}
    unknown = f"UNKNOWN_ENUM_VALUE_{enum.name}_"
    return lambda number: symbols.get(number) or f"{unknown}{number}"


def _decimal_of(message: Any) -> Any:
    if abs(message.scale) > SCALE_MAX:
        raise InvalidData(f"Decimal has a scale of {message.scale}, which is beyond {SCALE_MAX}")
    return decimal_of(message.value, message.scale)


def _date_of(message: Any) -> dt.date:
    try:
        return dt.date(message.year, message.month, message.day)
    except ValueError as error:
        shown = f"{message.year}-{message.month}-{message.day}"
        raise InvalidData(f"google.type.Date {shown} is not a date: {error}") from error


def _time_of(message: Any) -> dt.time:
    try:
        milliseconds = message.nanos // MILLISECOND_NS
        return dt.time(message.hours, message.minutes, message.seconds, milliseconds * 1000)
    except ValueError as error:
        shown = f"{message.hours}:{message.minutes}:{message.seconds}"
        raise InvalidData(f"google.type.TimeOfDay {shown} is not a time of day: {error}") from error


# --- values as messages ----------------------------------------------------------------------------------------------


def maker(plan: plans.Plan) -> Make:
    """Makes messages of values; raises InvalidData."""
    match plan:
        case plans.MessagePlan():
            return _message_making(plan)
        case plans.WrapperPlan():
            build: Any = GetMessageClass(plan.message)
            make = maker(plan.value)
            return lambda value: build(value=make(value))
        case plans.ListPlan():
            return _list_making(maker(plan.items))
        case plans.MapPlan():
            return _map_making(plan)
        case plans.LogicalPlan():
            return _logical_making(plan)
        case plans.EnumPlan():
            return _enum_making(plan.enum)
        case plans.Scalar() if plan.type in UNSIGNED:
            check = CHECKS[plan.kind]
            return lambda value: number if (number := check(value)) >= 0 else number + 2 * _SIGN
        case plans.Scalar():
            return CHECKS[plan.kind]


def _message_making(plan: plans.MessagePlan) -> Make:
    fields = [(p.name, str(p.field.name), p.default, maker(p.plan)) for p in plan.parts if isinstance(p, plans.Member)]
    oneofs = [
        (part.name, [(member.name, str(member.field.name), maker(member.plan)) for member in part.members])
        for part in plan.parts
        if isinstance(part, plans.OneofPlan)
    ]
    build: Any = GetMessageClass(plan.message)

    def make_message(value: Any) -> Any:
        if not isinstance(value, dict):
            refuse(f"a struct {plan.message.full_name}", value)
        parts: dict[str, Any] = {}
        for source, name, default, make in fields:
            part = value.get(source)
            if part is None:
                part = default
            if part is not None:
                parts[name] = _make_part(source, make, part)
        for source, members in oneofs:
            chosen = value.get(source)
            if chosen is not None:
                parts.update(_make_chosen(chosen, members))
        try:
            return build(**parts)
        except _FAULTS as error:
            raise InvalidData(f"the message {plan.message.full_name} cannot be made: {error}") from error

    return make_message


def _make_part(name: str, make: Make, value: Any) -> Any:
    try:
        return make(value)
    except InvalidData as error:
        raise InvalidData(f"{name}: {error}") from error
    except _FAULTS as error:
        raise InvalidData(f"{name}: a value of type {type(value).__name__} does not fit: {error}") from error


def _make_chosen(value: Mapping[str, Any], members: Sequence[tuple[str, str, Make]]) -> dict[str, Any]:
    for source, name, make in members:
        part = value.get(source)
        if part is not None:
            return {name: _make_part(source, make, part)}
    raise InvalidData("Cannot find non-null field: no field of the oneof is set")


def _map_making(plan: plans.MapPlan) -> Make:
    build: Any = GetMessageClass(plan.entry)
    key, value = maker(plan.keys), maker(plan.values)
    is_declared = plan.is_declared
    empty = build().value  # Null becomes the default.

    def make(given: Any) -> Any:
        items = mapping(given).items()
        if is_declared:
            return {key(k): empty if v is None else value(v) for k, v in items}
        pairs = ((None if k is None else key(k), None if v is None else value(v)) for k, v in items)
        return [build(**{n: p for n, p in ((KEY, k), (VALUE, v)) if p is not None}) for k, v in pairs]

    return make


def _list_making(item: Make) -> Make:
    def make(values: Any) -> Any:
        if any(value is None for value in sequence(values)):
            raise InvalidData("Protobuf has no nulls in arrays")
        return [item(value) for value in values]

    return make


def _logical_making(plan: plans.LogicalPlan) -> Make:
    build: Any = GetMessageClass(plan.message)
    scale = plan.logical.scale

    def make_decimal(value: Any) -> Any:
        return build(value=decimal_bytes(value, scale), scale=scale, precision=len(value.as_tuple().digits))

    def make_date(value: Any) -> Any:
        days_of(value)  # Refuses everything but dates.
        return build(year=value.year, month=value.month, day=value.day)

    def make_time(value: Any) -> Any:
        rest = milliseconds_of_time(value) % 1000 * MILLISECOND_NS
        return build(hours=value.hour, minutes=value.minute, seconds=value.second, nanos=rest)

    def make_timestamp(value: Any) -> Any:
        seconds, rest = divmod(milliseconds_of(value), 1000)
        return build(seconds=seconds, nanos=rest * MILLISECOND_NS)

    return {
        LogicalName.DECIMAL: make_decimal,
        LogicalName.DATE: make_date,
        LogicalName.TIME: make_time,
        LogicalName.TIMESTAMP: make_timestamp,
    }[plan.logical.name]


def _enum_making(enum: EnumDescriptor) -> Make:
    numbers = {str(value.name): int(value.number) for value in enum.values}

    def make(value: Any) -> Any:
        if value.__class__ is int:
            return value
        if value not in numbers:
            raise InvalidData(f"the enum {enum.full_name} has no value {value!r:.200}")
        return numbers[value]

    return make
