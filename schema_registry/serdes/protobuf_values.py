"""Messages of Protobuf as Python values and back, by a plan: one function per message, made once."""

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from google.protobuf.descriptor import EnumDescriptor
from google.protobuf.message_factory import GetMessageClass

from schema_registry.serdes.checks import CHECKS, refuse
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
from schema_registry.serdes.protobuf_plan import (
    KEY,
    UNSIGNED,
    VALUE,
    EnumPlan,
    ListPlan,
    LogicalPlan,
    MapPlan,
    Member,
    MessagePlan,
    OneofPlan,
    Plan,
    Scalar,
    WrapperPlan,
)

Read = Callable[[Any], Any]
"""Makes a value of a message, or of what a message has for a field."""
Make = Callable[[Any], Any]
"""Makes a message, or what a message takes for a field, of a value."""

MILLISECOND_NS: Final = 1_000_000

_SIGN: Final = 1 << 63
_FAULTS: Final = (AttributeError, LookupError, OverflowError, TypeError, ValueError)


def reader(plan: Plan) -> Read:
    """What makes values of messages; raises InvalidData."""
    return _reading(plan) or _same


def maker(plan: Plan) -> Make:
    """What makes messages of values; raises InvalidData."""
    match plan:
        case MessagePlan():
            return _message_making(plan)
        case WrapperPlan():
            build: Any = GetMessageClass(plan.message)
            make = maker(plan.value)
            return lambda value: build(value=make(value))
        case ListPlan():
            return _list_making(maker(plan.items))
        case MapPlan():
            return _map_making(plan)
        case LogicalPlan():
            return _logical_making(plan)
        case EnumPlan():
            return _enum_making(plan.enum)
        case Scalar():
            return _scalar_making(plan)


# --- messages as values ----------------------------------------------------------------------------------------------


def _reading(plan: Plan) -> Read | None:
    """What is to be done with a value of Protobuf's; None for nothing."""
    match plan:
        case MessagePlan():
            return _message_reading(plan)
        case WrapperPlan():
            change = _reading(plan.value)
            return (lambda message: message.value) if change is None else (lambda message: change(message.value))
        case ListPlan():
            item = _reading(plan.items)
            return list if item is None else (lambda values: [item(value) for value in values])
        case MapPlan():
            return _map_reading(plan)
        case LogicalPlan():
            return logical_reading(plan.logical)
        case EnumPlan():
            return None if plan.is_number else symbol_reading(plan.enum)
        case Scalar():
            return _signed if plan.type in UNSIGNED else None


def _message_reading(plan: MessagePlan) -> Read:
    always: list[tuple[str, Read | None]] = []
    sometimes: list[tuple[str, Read | None]] = []
    oneofs: list[tuple[str, str, dict[str, Read | None]]] = []
    for part in plan.parts:
        if isinstance(part, Member):
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
                change = members[chosen]
                part = getattr(message, chosen)
                made[name] = {chosen: part if change is None else change(part)}
        for name, change in always:
            part = getattr(message, name)
            made[name] = part if change is None else change(part)
        for name, change in sometimes:
            if message.HasField(name):
                part = getattr(message, name)
                made[name] = part if change is None else change(part)
            else:
                made[name] = None
        return made

    return read


def _map_reading(plan: MapPlan) -> Read:
    key, value = _reading(plan.keys) or _same, _reading(plan.values) or _same
    if plan.is_declared:
        return lambda entries: {key(k): value(v) for k, v in entries.items()}

    def read(entries: Any) -> Any:
        try:
            return {key(entry.key): value(entry.value) for entry in entries}
        except TypeError as error:
            raise InvalidData("the keys of a map must not be structs, lists or maps themselves") from error

    return read


def logical_reading(logical: Logical) -> Read:
    """What makes a date, a time of day, a timestamp or a decimal of its message."""
    if logical.name is LogicalName.DECIMAL:
        scale = logical.scale
        return lambda message: rescaled(_decimal_of(message), scale)
    return _LOGICAL_READINGS[logical.name]


def symbol_reading(enum: EnumDescriptor) -> Callable[[int], str]:
    """What makes symbols of numbers."""
    symbols = {value.number: str(value.name) for value in reversed(enum.values)}
    unknown = f"UNKNOWN_ENUM_VALUE_{enum.name}_"
    return lambda number: symbols.get(number) or f"{unknown}{number}"


def _signed(number: int) -> int:
    """As Java has it, which knows no unsigned numbers."""
    return number - 2 * _SIGN if number >= _SIGN else number


def _decimal_of(message: Any) -> Any:
    if abs(message.scale) > SCALE_MAX:
        raise InvalidData(f"Decimal has a scale of {message.scale}, which is beyond {SCALE_MAX}")
    return decimal_of(message.value, message.scale)


def _date_of(message: Any) -> dt.date:
    try:
        return dt.date(message.year, message.month, message.day)
    except ValueError as error:
        shown = f"{message.year}-{message.month}-{message.day}"
        raise InvalidData(f"google.type.Date {shown} is no date: {error}") from error


def _time_of(message: Any) -> dt.time:
    try:
        milliseconds = message.nanos // MILLISECOND_NS
        return dt.time(message.hours, message.minutes, message.seconds, milliseconds * 1000)
    except ValueError as error:
        shown = f"{message.hours}:{message.minutes}:{message.seconds}"
        raise InvalidData(f"google.type.TimeOfDay {shown} is no time of a day: {error}") from error


def _timestamp_of(message: Any) -> dt.datetime:
    return timestamp_of(message.seconds * 1000 + message.nanos // MILLISECOND_NS)


_LOGICAL_READINGS: Final[dict[LogicalName, Read]] = {
    LogicalName.DATE: _date_of,
    LogicalName.TIME: _time_of,
    LogicalName.TIMESTAMP: _timestamp_of,
}


def _same(value: Any) -> Any:
    return value


# --- values as messages ----------------------------------------------------------------------------------------------


def _message_making(plan: MessagePlan) -> Make:
    fields = [(p.name, str(p.field.name), p.default, maker(p.plan)) for p in plan.parts if isinstance(p, Member)]
    oneofs = [(p.name, _members(p.members)) for p in plan.parts if isinstance(p, OneofPlan)]
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
                parts[name] = _made(source, make, part)
        for source, members in oneofs:
            chosen = value.get(source)
            if chosen is not None:
                parts.update(_chosen(chosen, members))
        try:
            return build(**parts)
        except _FAULTS as error:
            raise InvalidData(f"the message {plan.message.full_name} cannot be made: {error}") from error

    return make_message


def _members(members: Sequence[Member]) -> list[tuple[str, str, Make]]:
    return [(member.name, str(member.field.name), maker(member.plan)) for member in members]


def _made(name: str, make: Make, value: Any) -> Any:
    try:
        return make(value)
    except InvalidData as error:
        raise InvalidData(f"{name}: {error}") from error
    except _FAULTS as error:
        raise InvalidData(f"{name}: a value of type {type(value).__name__} does not fit: {error}") from error


def _chosen(value: Mapping[str, Any], members: list[tuple[str, str, Make]]) -> dict[str, Any]:
    for source, name, make in members:
        part = value.get(source)
        if part is not None:
            return {name: _made(source, make, part)}
    raise InvalidData("Cannot find non-null field: no field of the oneof is set")


def _map_making(plan: MapPlan) -> Make:
    build: Any = GetMessageClass(plan.entry)
    key, value = maker(plan.keys), maker(plan.values)
    is_declared = plan.is_declared
    empty = build().value  # which is what null becomes

    def make(mapping: Any) -> Any:
        if not isinstance(mapping, dict):
            refuse("a map", mapping)
        if is_declared:
            return {key(k): empty if v is None else value(v) for k, v in mapping.items()}
        pairs = ((None if k is None else key(k), None if v is None else value(v)) for k, v in mapping.items())
        return [build(**{n: p for n, p in ((KEY, k), (VALUE, v)) if p is not None}) for k, v in pairs]

    return make


def _list_making(item: Make) -> Make:
    def make(values: Any) -> Any:
        if not isinstance(values, list | tuple):
            refuse("an array", values)
        if any(value is None for value in values):
            raise InvalidData("Protobuf has no nulls in arrays")
        return [item(value) for value in values]

    return make


def _logical_making(plan: LogicalPlan) -> Make:
    build: Any = GetMessageClass(plan.message)
    scale = plan.logical.scale
    match plan.logical.name:
        case LogicalName.DECIMAL:
            return lambda value: build(
                value=decimal_bytes(value, scale), scale=scale, precision=len(value.as_tuple().digits)
            )
        case LogicalName.DATE:
            return lambda value: _date_message(build, value)
        case LogicalName.TIME:
            return lambda value: _time_message(build, value)
        case LogicalName.TIMESTAMP:
            return lambda value: _timestamp_message(build, value)


def _date_message(build: Any, value: Any) -> Any:
    days_of(value)  # which refuses what is no date
    return build(year=value.year, month=value.month, day=value.day)


def _time_message(build: Any, value: Any) -> Any:
    rest = milliseconds_of_time(value) % 1000 * MILLISECOND_NS
    return build(hours=value.hour, minutes=value.minute, seconds=value.second, nanos=rest)


def _timestamp_message(build: Any, value: Any) -> Any:
    seconds, rest = divmod(milliseconds_of(value), 1000)
    return build(seconds=seconds, nanos=rest * MILLISECOND_NS)


def _enum_making(enum: EnumDescriptor) -> Make:
    numbers = {str(value.name): int(value.number) for value in enum.values}

    def make(value: Any) -> Any:
        if value.__class__ is int:
            return value
        if value not in numbers:
            raise InvalidData(f"the enum {enum.full_name} has no value {value!r:.200}")
        return numbers[value]

    return make


def _scalar_making(plan: Scalar) -> Make:
    check = CHECKS[plan.kind]
    if plan.type not in UNSIGNED:
        return check
    return lambda value: number if (number := check(value)) >= 0 else number + 2 * _SIGN
