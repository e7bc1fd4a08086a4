"""Expressions without columns, computed in Python: the values of INSERT INTO ... VALUES, as far as that is simple."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from streams.model import types
from streams.sql.analysis.catalog import Catalog
from streams.sql.analysis.coercion import Map, at_ms, coerced, type_name
from streams.sql.analysis.mistakes import mistake
from streams.sql.analysis.types import resolved_type
from streams.sql.errors import TypeProblem
from streams.sql.language.tree import expressions as tree
from streams.sql.language.tree.node import Node

Values = Mapping[str, object]


class EngineNeeded(Exception):
    """An expression that only the engine computes, or finds a mistake in."""


def computed(node: Node, catalog: Catalog, parameters: Values | None = None) -> object:
    """The value of an expression; raises EngineNeeded."""
    compute = _COMPUTED.get(type(node))
    if compute is None:
        raise EngineNeeded
    return compute(node, catalog, parameters or {})


def _sign(node: tree.Sign, catalog: Catalog, parameters: Values) -> object:
    value = computed(node.operand, catalog, parameters)
    if value is None or node.operator == "+":
        return value
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise TypeProblem(f"A minus sign needs a number, not {type_name(value)}")
    return -value


def _arithmetic(node: tree.Arithmetic, catalog: Catalog, parameters: Values) -> object:
    found = computed(node.first, catalog, parameters)
    for step in node.rest:
        found = _calculated(step.operator, found, computed(step.operand, catalog, parameters))
    return found


def _calculated(operator: str, left: object, right: object) -> object:
    if left is None or right is None:
        return None
    if isinstance(left, str) and isinstance(right, str) and operator == "+":
        return left + right
    numbers = (int, float, Decimal)
    if any(isinstance(one, bool) or not isinstance(one, numbers) for one in (left, right)):
        raise TypeProblem(f"Unsupported arithmetic types: {type_name(left)} {operator} {type_name(right)}")
    one, other = _alike(left, right)
    try:
        return _wrapped(_OPERATIONS[operator](one, other))
    except ArithmeticError:
        return None


def _alike(left: Any, right: Any) -> tuple[Any, Any]:
    if isinstance(left, float) or isinstance(right, float):
        return float(left), float(right)
    if isinstance(left, Decimal) or isinstance(right, Decimal):
        return Decimal(left), Decimal(right)
    return left, right


def _quotient(left: Any, right: Any) -> Any:
    if isinstance(left, int):
        return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
    return left / right


def _remainder(left: Any, right: Any) -> Any:
    return left - right * _quotient(left, right) if isinstance(left, int) else left % right


_OPERATIONS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": _quotient,
    "%": _remainder,
}


def _wrapped(value: object) -> object:
    """Integers have 64 bits."""
    if isinstance(value, int):
        return (value + 2**63) % 2**64 - 2**63
    return value


def _concatenation(node: tree.Concatenation, catalog: Catalog, parameters: Values) -> object:
    return _joined([computed(part, catalog, parameters) for part in node.parts])


def _joined(values: Sequence[object]) -> object:
    known = [value for value in values if value is not None]
    if known and all(isinstance(value, bytes) for value in known):
        return b"".join(value for value in known if isinstance(value, bytes))
    if not all(isinstance(value, str) for value in known):
        raise TypeProblem("|| needs STRINGs or BYTES")
    return "".join(str(value) for value in known)


def _cast(node: tree.Cast, catalog: Catalog, parameters: Values) -> object:
    value, kind = computed(node.value, catalog, parameters), resolved_type(node.type, catalog)
    if kind in {types.INTEGER, types.BIGINT} and isinstance(value, float | Decimal):
        try:
            value = int(value)
        except (ValueError, OverflowError):
            return None
    try:
        return coerced(value, kind)
    except TypeProblem:
        if isinstance(value, str):
            raise
        raise EngineNeeded from None


def _array(node: tree.ArrayConstructor, catalog: Catalog, parameters: Values) -> object:
    return [computed(item, catalog, parameters) for item in node.items]


def _map(node: tree.MapConstructor, catalog: Catalog, parameters: Values) -> object:
    pairs = [(computed(one.key, catalog, parameters), computed(one.value, catalog, parameters)) for one in node.entries]
    for key, _ in pairs:
        if isinstance(key, list | dict | Map):
            raise TypeProblem(f"A key of a MAP is a single value, not {type_name(key)}")
    return Map({key: value for key, value in pairs if key is not None})


def _struct(node: tree.StructConstructor, catalog: Catalog, parameters: Values) -> object:
    return {one.name.name: computed(one.value, catalog, parameters) for one in node.entries}


def _reference(node: tree.ColumnReference, _: Catalog, parameters: Values) -> object:
    if node.source is None and node.name.name in parameters:
        return parameters[node.name.name]
    raise mistake(node, f"{node.name.name} is a name, not a value. Put text in single quotes: '...'.")


def _call(node: tree.FunctionCall, catalog: Catalog, parameters: Values) -> object:
    name = node.name.name.upper()
    function = _FUNCTIONS.get(name)
    try:
        if name in _LAMBDAS:
            return _with_lambda(node, catalog, parameters)
        if function is not None:
            return function(*(computed(one, catalog, parameters) for one in node.arguments))
    except ValueError as error:
        raise mistake(node, f"{name} cannot be computed of these arguments.") from error
    except (TypeError, AttributeError):
        pass
    raise EngineNeeded


def _with_lambda(node: tree.FunctionCall, catalog: Catalog, parameters: Values) -> object:
    *plain, last = node.arguments
    if not isinstance(last, tree.Lambda):
        raise EngineNeeded
    names, body = [one.name for one in last.parameters], last.body

    def apply(*given: object) -> object:
        return computed(body, catalog, {**parameters, **dict(zip(names, given, strict=True))})

    return _LAMBDAS[node.name.name.upper()](apply, *(computed(one, catalog, parameters) for one in plain))


def _filtered(apply: Callable[..., object], values: Any) -> object:
    if isinstance(values, Map):
        return Map({key: value for key, value in values.entries.items() if apply(key, value)})
    return None if values is None else [value for value in values if apply(value)]


def _reduced(apply: Callable[..., object], values: Any, start: object) -> object:
    found = start
    pairs = values.entries.items() if isinstance(values, Map) else [(value,) for value in values or []]
    for given in pairs:
        found = apply(found, *given)
    return found


def _transformed(apply: Callable[..., object], values: Any) -> object:
    return None if values is None else [apply(value) for value in values]


_LAMBDAS: Final[Mapping[str, Callable[..., object]]] = {
    "FILTER": _filtered,
    "REDUCE": _reduced,
    "TRANSFORM": _transformed,
}


def _of_text(function: Callable[[str], object]) -> Callable[[Any], object]:
    return lambda value: None if value is None else function(_text(value))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(type_name(value))
    return value


def _now_ms() -> int:
    return int(datetime.now(UTC).timestamp() * 1000)  # noqa: TID251 - the time at which the statement is run


def _to_bytes(value: Any, encoding: str) -> object:
    match encoding.lower():
        case "hex":
            return bytes.fromhex(value)
        case "utf8":
            return str(value).encode()
        case "ascii":
            return str(value).encode("ascii")
        case "base64":
            return coerced(value, types.BYTES)
        case _:
            raise ValueError(encoding)


_FUNCTIONS: Final[Mapping[str, Callable[..., object]]] = {
    "ABS": lambda value: None if value is None else abs(value),
    "AS_VALUE": lambda value: value,
    "COALESCE": lambda *values: next((value for value in values if value is not None), None),
    "CONCAT": lambda *values: _joined(values),
    "FROM_UNIXTIME": lambda value: None if value is None else at_ms(value),
    "INITCAP": _of_text(lambda text: " ".join(word.capitalize() for word in text.split(" "))),
    "LCASE": _of_text(str.lower),
    "LEN": _of_text(len),
    "REVERSE": _of_text(lambda text: text[::-1]),
    "TO_BYTES": _to_bytes,
    "TRIM": _of_text(lambda text: text.strip(" ")),
    "UCASE": _of_text(str.upper),
    "UNIX_DATE": lambda: _now_ms() // 86_400_000,
    "UNIX_TIMESTAMP": _now_ms,
    "UUID": lambda: str(uuid.uuid4()),
}


_COMPUTED: Final[Mapping[type[Node], Callable[[Any, Catalog, Values], object]]] = {
    **dict.fromkeys(
        (
            tree.StringLiteral,
            tree.IntegerLiteral,
            tree.DecimalLiteral,
            tree.DoubleLiteral,
            tree.BooleanLiteral,
        ),
        lambda node, *_: node.value,
    ),
    tree.NullLiteral: lambda *_: None,
    tree.Sign: _sign,
    tree.Arithmetic: _arithmetic,
    tree.Concatenation: _concatenation,
    tree.Cast: _cast,
    tree.ArrayConstructor: _array,
    tree.MapConstructor: _map,
    tree.StructConstructor: _struct,
    tree.ColumnReference: _reference,
    tree.FunctionCall: _call,
}
"""How each kind of node is computed."""
