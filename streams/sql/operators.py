"""Operators: from typed pieces of Spark's SQL to a typed piece, with ksqlDB's rules for NULL.

Comparisons are two-valued: with a NULL on either side they are false. Whatever else cannot be computed is NULL.
"""

from collections.abc import Sequence
from typing import Final

from streams.model.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    NULL,
    STRING,
    TIME,
    TIMESTAMP,
    Array,
    Decimal,
    Field,
    Map,
    SqlType,
    Struct,
    contains,
    quoted,
    spark_type,
)
from streams.sql.casts import cast
from streams.sql.conversion import as_decimal, common_type, decimal_result, is_number
from streams.sql.errors import TypeProblem
from streams.sql.expressions import Expression, functions_of, sql_text

COMPARISONS: Final = {
    "=": "EQUAL",
    "<>": "NOT_EQUAL",
    "!=": "NOT_EQUAL",
    "<": "LESS_THAN",
    "<=": "LESS_THAN_OR_EQUAL",
    ">": "GREATER_THAN",
    ">=": "GREATER_THAN_OR_EQUAL",
    "IS DISTINCT FROM": "IS_DISTINCT_FROM",
    "IS NOT DISTINCT FROM": "IS_NOT_DISTINCT_FROM",
}
"""The comparisons, and how errors name them."""
_EQUALITY: Final = {"=", "<>", "!=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"}
_TIMES: Final = (TIME, DATE, TIMESTAMP)


def compare(operator: str, left: Expression, right: Expression) -> Expression:
    """One of COMPARISONS: true or false, never NULL."""
    first, second = _alike(operator, left, right)
    functions = functions_of(first, second)
    match operator:
        case "IS DISTINCT FROM":
            text = f"(NOT ({first.text} <=> {second.text}))"
        case "IS NOT DISTINCT FROM":
            text = f"({first.text} <=> {second.text})"
        case _:
            text = f"coalesce({first.text} {operator} {second.text}, false)"
    return Expression(text, BOOLEAN, functions=functions)


def _alike(operator: str, left: Expression, right: Expression) -> tuple[Expression, Expression]:
    if NULL in {left.type, right.type}:
        raise TypeProblem("Comparison with NULL not supported: use IS NULL or IS NOT NULL instead")
    kind = _compared_type(left.type, right.type)
    if kind is None or (operator not in _EQUALITY and _unordered(kind)) or contains(kind, Map):
        shown = COMPARISONS[operator]
        raise TypeProblem(f"Cannot compare {left.type} to {right.type} with {shown}")
    return cast(left, kind), cast(right, kind)


def _unordered(kind: SqlType) -> bool:
    return kind == BOOLEAN or isinstance(kind, Array | Map | Struct)


def _compared_type(left: SqlType, right: SqlType) -> SqlType | None:
    both = {left, right}
    if both == {DATE, TIMESTAMP}:
        return TIMESTAMP
    if STRING in both:
        times = [kind for kind in (left, right) if kind in _TIMES]
        if times:
            return times[0]
    return common_type([left, right])


def arithmetic(operator: str, left: Expression, right: Expression) -> Expression:
    """`+ - * / %` of numbers, and `+` of texts; integers wrap around, and what is divided by zero is NULL."""
    if operator == "+" and (left.type, right.type) == (STRING, STRING):
        # As Java does: a NULL becomes the word.
        text = f"concat(coalesce({left.text}, 'null'), coalesce({right.text}, 'null'))"
        return Expression(text, STRING, functions=functions_of(left, right))
    if not (is_number(left.type) and is_number(right.type)):
        raise TypeProblem(f"Unsupported arithmetic types: {left.type} {operator} {right.type}")
    functions = functions_of(left, right)
    if DOUBLE in {left.type, right.type}:
        return Expression(
            _of_doubles(operator, cast(left, DOUBLE).text, cast(right, DOUBLE).text), DOUBLE, None, functions
        )
    if isinstance(left.type, Decimal) or isinstance(right.type, Decimal):
        return _of_decimals(operator, left, right)
    kind = BIGINT if BIGINT in {left.type, right.type} else INTEGER
    first, second = cast(left, kind).text, cast(right, kind).text
    text = f"cast({first} div {second} as {spark_type(kind)})" if operator == "/" else f"({first} {operator} {second})"
    return Expression(text, kind, functions=functions)


def _of_doubles(operator: str, left: str, right: str) -> str:
    """Spark has NULL for what is divided by zero, Java has infinities."""
    match operator:
        case "/":
            return f"coalesce({left} / {right}, if({right} = 0, {left} * double('Infinity'), null))"
        case "%":
            return f"coalesce({left} % {right}, if({right} = 0, {left} * double('NaN'), null))"
        case _:
            return f"({left} {operator} {right})"


def _of_decimals(operator: str, left: Expression, right: Expression) -> Expression:
    first, second = as_decimal(left.type), as_decimal(right.type)
    if first is None or second is None:  # it is a number, and no DOUBLE
        raise TypeProblem(f"Unsupported arithmetic types: {left.type} {operator} {right.type}")
    kind = decimal_result(operator, first, second)
    one, other = cast(left, first).text, cast(right, second).text
    text = f"try_cast({one} {operator} {other} as {spark_type(kind)})"
    if operator == "/":
        # A quotient that would have to be rounded is an error.
        text = f"if({text} * {other} = {one}, {text}, null)"
    return Expression(text, kind, functions=functions_of(left, right))


def negate(value: Expression) -> Expression:
    """The number with the other sign."""
    if not is_number(value.type):
        raise TypeProblem(f"A minus sign needs a number, not {value.type}")
    return Expression(f"(- {value.text})", value.type, functions=value.functions)


def concatenate(left: Expression, right: Expression) -> Expression:
    """`||`: NULL adds nothing."""
    functions = functions_of(left, right)
    if {left.type, right.type} <= {STRING, NULL}:
        first, second = cast(left, STRING).text, cast(right, STRING).text
        return Expression(f"concat_ws('', {first}, {second})", STRING, functions=functions)
    if {left.type, right.type} <= {BYTES, NULL}:
        first, second = cast(left, BYTES).text, cast(right, BYTES).text
        return Expression(f"concat(coalesce({first}, X''), coalesce({second}, X''))", BYTES, functions=functions)
    raise TypeProblem(f"|| needs STRINGs or BYTES, not {left.type} and {right.type}")


def logical(operator: str, left: Expression, right: Expression) -> Expression:
    """AND, OR."""
    for side in (left, right):
        _need_boolean(operator, side)
    return Expression(f"({left.text} {operator} {right.text})", BOOLEAN, functions=functions_of(left, right))


def negation(value: Expression) -> Expression:
    """NOT."""
    _need_boolean("NOT", value)
    return Expression(f"(NOT {value.text})", BOOLEAN, functions=value.functions)


def _need_boolean(operator: str, value: Expression) -> None:
    if value.type != BOOLEAN:
        raise TypeProblem(f"{operator} needs BOOLEAN, not {value.type}")


def is_null(value: Expression) -> Expression:
    """IS NULL."""
    return Expression(f"({value.text} IS NULL)", BOOLEAN, functions=value.functions)


def between(value: Expression, low: Expression, high: Expression) -> Expression:
    """BETWEEN, with both bounds."""
    return logical("AND", compare(">=", value, low), compare("<=", value, high))


def contained(value: Expression, items: Sequence[Expression]) -> Expression:
    """IN: false for NULL, and NULLs among the items are ignored."""
    known = [item for item in items if item.type != NULL]
    if value.type == NULL or not known:
        return Expression("false", BOOLEAN)
    kind = value.type
    if not all(item.type == STRING for item in known) or value.type == STRING:
        widened = common_type([value.type, *(item.type for item in known)])
        if widened is None:
            raise TypeProblem(f"IN needs items of type {value.type}, not {', '.join(str(item.type) for item in known)}")
        kind = widened
    texts = ", ".join(cast(item, kind).text for item in known)
    text = f"coalesce({cast(value, kind).text} IN ({texts}), false)"
    return Expression(text, BOOLEAN, functions=functions_of(value, *known))


def like(value: Expression, pattern: Expression, escape: str | None = None, *, negated: bool = False) -> Expression:
    """LIKE, NOT LIKE: the whole text has to match, `%` and `_` match no line break, nothing escapes them by default."""
    if (value.type, pattern.type) != (STRING, STRING):
        raise TypeProblem(f"LIKE needs STRINGs, not {value.type} and {pattern.type}")
    if escape is not None and len(escape) != 1:
        raise TypeProblem(f"ESCAPE needs a single character, not {escape!r}")
    matches = f"{value.text} RLIKE {_like_pattern(pattern, escape)}"
    text = f"coalesce({f'NOT ({matches})' if negated else matches}, false)"
    return Expression(text, BOOLEAN, functions=functions_of(value, pattern))


def _like_pattern(pattern: Expression, escape: str | None) -> str:
    if isinstance(pattern.literal, str):
        return sql_text(f"\\A{_like_regex(pattern.literal, escape)}\\z")
    special, escaped = sql_text(r"[^\p{L}\p{N}%_]"), sql_text(r"\\$0")
    quoted_text = f"regexp_replace({pattern.text}, {special}, {escaped})"
    if escape is not None:
        raise TypeProblem("ESCAPE needs a pattern that is a literal")
    return f"concat('\\\\A', replace(replace({quoted_text}, '%', '.*'), '_', '.'), '\\\\z')"


def _like_regex(pattern: str, escape: str | None) -> str:
    """A pattern of LIKE as one of Java's regular expressions."""
    parts, escaped = [], False
    for character in pattern:
        if character == escape and not escaped:
            escaped = True
            continue
        wild = {"%": ".*", "_": "."}.get(character)
        parts.append(wild if wild is not None and not escaped else _java_quoted(character))
        escaped = False
    if escaped:
        raise TypeProblem("The pattern of LIKE ends with the character that escapes the next one")
    return "".join(parts)


def _java_quoted(character: str) -> str:
    return character if character.isalnum() else f"\\{character}"


def subscript(value: Expression, index: Expression) -> Expression:
    """`array[i]`, from 1 or from the end, and `map[key]`: NULL if there is no such item."""
    functions = functions_of(value, index)
    match value.type:
        case Array(element) if index.type in {INTEGER, BIGINT}:
            position = cast(index, INTEGER).text
            text = f"try_element_at({value.text}, nullif({position}, 0))"
            return Expression(text, element, functions=functions)
        case Map(key, element) if index.type == key:
            return Expression(f"try_element_at({value.text}, {index.text})", element, functions=functions)
        case _:
            raise TypeProblem(f"{value.type} has no items by {index.type}")


def field(value: Expression, name: str) -> Expression:
    """`struct->field`."""
    kind = value.type.field(name) if isinstance(value.type, Struct) else None
    if kind is None:
        raise TypeProblem(f"{value.type} has no field {quoted(name)}")
    return Expression(f"{value.text}.{quoted(name)}", kind, functions=value.functions)


def case(branches: Sequence[tuple[Expression, Expression]], otherwise: Expression | None) -> Expression:
    """CASE WHEN: all results have the same type; a condition that is NULL does not hold."""
    results = [result for _, result in branches] + ([] if otherwise is None else [otherwise])
    kinds = {result.type for result in results} - {NULL}
    if len(kinds) != 1:
        shown = ", ".join(sorted(map(str, kinds))) or "NULL"
        raise TypeProblem(f"All results of CASE have to have the same type, not {shown}")
    (kind,) = kinds
    parts = []
    for predicate, result in branches:
        _need_boolean("WHEN", predicate)
        parts.append(f"WHEN {predicate.text} THEN {cast(result, kind).text}")
    last = "" if otherwise is None else f" ELSE {cast(otherwise, kind).text}"
    functions = functions_of(*results, *(predicate for predicate, _ in branches))
    return Expression(f"CASE {' '.join(parts)}{last} END", kind, functions=functions)


def array(items: Sequence[Expression]) -> Expression:
    """`ARRAY[...]`."""
    kind = _item_type("ARRAY", items)
    texts = ", ".join(cast(item, kind).text for item in items)
    return Expression(f"array({texts})", Array(kind), functions=functions_of(*items))


def map_of(pairs: Sequence[tuple[Expression, Expression]]) -> Expression:
    """`MAP(key := value, ...)`; NULL is no key, and the entry is left out."""
    keys, values = [key for key, _ in pairs], [value for _, value in pairs]
    key_kind, kind = _item_type("MAP", keys), _item_type("MAP", values)
    entries = ", ".join(
        f"named_struct('key', {cast(key, key_kind).text}, 'value', {cast(value, kind).text})" for key, value in pairs
    )
    text = f"map_from_entries(filter(array({entries}), item -> item.key is not null))"
    return Expression(text, Map(key_kind, kind), functions=functions_of(*keys, *values))


def _item_type(what: str, items: Sequence[Expression]) -> SqlType:
    kind = common_type([item.type for item in items])
    if kind == NULL:
        raise TypeProblem(f"{what} needs an item that is not NULL: its type is not known otherwise")
    if kind is None:
        raise TypeProblem(f"{what} needs items of one type, not {', '.join(str(item.type) for item in items)}")
    return kind


def struct(fields: Sequence[tuple[str, Expression]]) -> Expression:
    """`STRUCT(name := value, ...)`."""
    parts = ", ".join(f"{sql_text(name)}, {value.text}" for name, value in fields)
    kind = Struct(tuple(Field(name, value.type) for name, value in fields))
    return Expression(f"named_struct({parts})", kind, functions=functions_of(*(value for _, value in fields)))
