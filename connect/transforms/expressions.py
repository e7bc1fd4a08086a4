"""A small expression language for records, based on simpleeval: no loops, no access to anything but the record.

    value.amount > 100 and matches(topic, 'orders-.*')
    coalesce(value.name, 'unknown')
    {'id': key, 'total': value.price * value.count}

Missing fields are null, and so is everything within null. `&&`, `||`, `!`, `null`, `true` and `false` work as well.
"""

import ast
import re
import warnings
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from simpleeval import (  # type: ignore[import-untyped]  # the library has no types
    DEFAULT_OPERATORS,
    EvalWithCompoundTypes,
    InvalidExpression,
)
from typing_extensions import override

from connect.api.data import Value
from connect.api.errors import ConfigError, DataError
from connect.api.record import Record
from connect.api.values import text_of
from connect.transforms.java.regex import compile_pattern

_NAMES: Final[dict[str, Callable[[Record], Value]]] = {
    "key": lambda record: record.key,
    "value": lambda record: record.value,
    "topic": lambda record: record.topic,
    "partition": lambda record: record.partition,
    "timestamp": lambda record: record.timestamp_ms,
    "headers": lambda record: {header.key: header.value for header in record.headers},
    "offset": lambda record: getattr(record, "offset", None),
}
_CONSTANTS: Final = {"null": None, "true": True, "false": False}
_NODES: Final = (
    *(ast.Expr, ast.Name, ast.Load, ast.Constant, ast.Attribute, ast.Subscript, ast.Slice, ast.Call),
    *(ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Dict, ast.List, ast.Tuple),
    *(ast.And, ast.Or, ast.Not, ast.USub, ast.UAdd, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod),
    *(ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn, ast.Is, ast.IsNot),
)
_TOKEN: Final = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|&&|\|\||!(?!=)""", re.DOTALL)
_WORDS: Final = {"&&": " and ", "||": " or ", "!": " not "}
_MOST_TEXT: Final = 10_000
_MOST_RESULT: Final = 1_000_000
_MOST_NODES: Final = 1_000
_FAULTS: Final = (
    *(InvalidExpression, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError),
)


class Expression:
    """A parsed expression; ConfigError, with the name of the option, when it is invalid."""

    def __init__(self, text: str, *, key: str) -> None:
        self._key = key
        self._text = text
        try:
            self._node = _parse(text)
        except (InvalidExpression, SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ConfigError(f"Invalid value {text[:500]} for configuration {key}: {error}") from None
        used = {node.id for node in ast.walk(self._node) if isinstance(node, ast.Name)}
        self._names = tuple((name, read) for name, read in _NAMES.items() if name in used)
        self._evaluator = _Evaluator()

    def evaluate(self, record: Record) -> Value:
        """The result for a record; DataError when the expression fails."""
        names: dict[str, Value] = {name: read(record) for name, read in self._names}
        try:
            return self._evaluator.result(self._node, names)
        except _FAULTS as error:
            raise DataError(f"the expression {self._key} = {self._text[:500]} failed: {error}") from error

    def holds(self, record: Record) -> bool:
        """Whether a condition is true; null counts as false, any other result raises DataError."""
        result = self.evaluate(record)
        if result is None or isinstance(result, bool):
            return bool(result)
        shown = f"{self._key} = {self._text[:500]}"
        raise DataError(f"the expression {shown} must be true or false, but is {text_of(None, result)}")


class _Evaluator(EvalWithCompoundTypes):  # type: ignore[misc]  # the library has no types
    """simpleeval without methods and comprehensions; missing fields are null."""

    def __init__(self) -> None:
        super().__init__(operators=_OPERATORS, functions=dict(_FUNCTIONS), names={})

    def result(self, node: ast.stmt, names: Mapping[str, Value]) -> Value:
        self.names = {**_CONSTANTS, **names}
        return self._eval(node)

    @override
    def _eval(self, node: ast.AST) -> Value:
        # Only what `_parse` has let through comes here, and values of records are data: nothing else to check.
        return self.nodes[type(node)](node)

    @override
    def _eval_attribute(self, node: ast.Attribute) -> Value:
        return _field(self._eval(node.value), node.attr)

    @override
    def _eval_subscript(self, node: ast.Subscript) -> Value:
        container, key = self._eval(node.value), self._eval(node.slice)
        if isinstance(container, (list, tuple, str, bytes)) and isinstance(key, int | slice):
            return container[key] if isinstance(key, slice) or -len(container) <= key < len(container) else None
        return _field(container, key)


def _parse(text: str) -> ast.stmt:
    if len(text) > _MOST_TEXT:
        raise ValueError(f"an expression may have at most {_MOST_TEXT} characters")
    translated = _TOKEN.sub(lambda found: _WORDS.get(found[0], found[0]), text).strip()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # patterns in text, such as '\d', are intended
        body = ast.parse(translated).body
    if len(body) != 1 or not isinstance(body[0], ast.Expr):
        raise ValueError("must be a single expression")
    nodes = list(ast.walk(body[0]))
    if len(nodes) > _MOST_NODES:
        raise ValueError(f"an expression may have at most {_MOST_NODES} parts")
    functions = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    for node in nodes:
        _check(node, is_function=id(node) in functions)
    return body[0]


def _check(node: ast.AST, *, is_function: bool) -> None:
    if is_function:
        if not isinstance(node, ast.Name) or node.id not in _FUNCTIONS:
            raise ValueError(f"only these functions can be called: {', '.join(sorted(_FUNCTIONS))}")
    elif not isinstance(node, _NODES):
        raise ValueError(f"{type(node).__name__} is not available in expressions")
    elif isinstance(node, ast.Name) and node.id not in _NAMES and node.id not in _CONSTANTS:
        raise ValueError(f"unknown name {node.id}; known names are {', '.join(_NAMES)}")
    elif isinstance(node, ast.Call) and node.keywords:
        raise ValueError("functions take no keyword arguments")


def _remainder(left: Value, right: Value) -> Value:
    if not isinstance(left, int | float | Decimal):
        raise TypeError("% works on numbers only")  # text would be formatted, without any bound
    return left % right


_OPERATORS: Final = {
    **{node: run for node, run in DEFAULT_OPERATORS.items() if node in _NODES},
    ast.Mod: _remainder,
}


def _field(container: Value, key: Value) -> Value:
    if container is None:
        return None
    if not isinstance(container, dict):
        raise TypeError(f"there is no field {text_of(None, key)} in a value without fields")
    return container.get(key)


def _replace(text: str | None, old: str, new: str) -> str | None:
    if text is None:
        return None
    if text.count(old) * len(new) + len(text) > _MOST_RESULT:
        raise ValueError(f"a text may have at most {_MOST_RESULT} characters")
    return text.replace(old, new)


@lru_cache(maxsize=256)
def _compile(pattern: str) -> re.Pattern[str]:
    try:
        return compile_pattern(pattern)
    except ConfigError as error:
        raise ValueError(str(error)) from None


def _null_safe(function: Callable[[Any], Value]) -> Callable[[Any], Value]:
    return lambda value: None if value is None else function(value)


_FUNCTIONS: Final[dict[str, Callable[..., Value]]] = {
    "lower": _null_safe(lambda text: text.lower()),
    "upper": _null_safe(lambda text: text.upper()),
    "trim": _null_safe(lambda text: text.strip()),
    "len": _null_safe(len),
    "int": _null_safe(lambda v: int.from_bytes(v, "big", signed=True) if isinstance(v, bytes) else int(v)),
    "float": _null_safe(float),
    "str": _null_safe(lambda value: text_of(None, value)),
    "bool": bool,
    "abs": _null_safe(abs),
    "round": lambda value, digits=0: None if value is None else round(value, digits),
    "min": min,
    "max": max,
    "coalesce": lambda *values: next((value for value in values if value is not None), None),
    "matches": lambda text, pattern: text is not None and _compile(pattern).fullmatch(text) is not None,
    "startswith": lambda text, start: text is not None and text.startswith(start),
    "endswith": lambda text, end: text is not None and text.endswith(end),
    "contains": lambda whole, part: whole is not None and part in whole,
    "replace": _replace,
    "split": lambda text, by: None if text is None else text.split(by),
}
