"""Casts: written so that the result is ksqlDB's, and NULL where ksqlDB would log an error."""

from collections.abc import Callable
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
    Map,
    SqlType,
    Struct,
    quoted,
    spark_type,
)
from streams.sql.errors import TypeProblem
from streams.sql.expressions import Expression, sql_text

_INFINITE: Final = "double('Infinity')"
_TIMESTAMP_TEXT: Final = r"'^\\s*[0-9]{4}(-[0-9]{2}(-[0-9]{2}(T.*)?)?)?\\s*$'"
_DATE_TEXT: Final = r"'^[0-9]{4}-[0-9]{2}-[0-9]{2}$'"
_TIME_TEXT: Final = r"'^[0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?$'"
_INTEGERS: Final = (INTEGER, BIGINT)

_FROM_TEXT: Final = {
    # Prefixes of both words, in any case; no space is trimmed.
    BOOLEAN: "({0} <> '' and (startswith('true', lower({0})) or startswith('yes', lower({0}))))",
    INTEGER: "try_cast({0} as int)",
    BIGINT: "try_cast({0} as bigint)",
    DOUBLE: f"nullif(nullif(nullif(try_cast({{0}} as double), {_INFINITE}), -{_INFINITE}), double('NaN'))",
    BYTES: "try_to_binary({0}, 'base64')",
    TIME: f"if({{0}} rlike {_TIME_TEXT}, try_cast({{0}} as time(3)), null)",
    DATE: f"if({{0}} rlike {_DATE_TEXT}, try_cast({{0}} as date), null)",
    TIMESTAMP: f"if({{0}} rlike {_TIMESTAMP_TEXT}, date_trunc('MILLISECOND', try_cast({{0}} as timestamp)), null)",
}
_TO_TEXT: Final = {
    BOOLEAN: "cast({0} as string)",
    INTEGER: "cast({0} as string)",
    BIGINT: "cast({0} as string)",
    DOUBLE: "cast({0} as string)",
    DATE: "cast({0} as string)",
    TIMESTAMP: """date_format({0}, "yyyy-MM-dd'T'HH:mm:ss.SSS")""",
}


def cast(value: Expression, to: SqlType) -> Expression:
    """A value as a value of another type; TypeProblem if there is no such cast."""
    if value.type == to:
        return value
    if value.type == NULL:
        return Expression(f"cast(null as {spark_type(to)})", to)
    return Expression(cast_text(value.text, value.type, to), to, literal=value.literal, functions=value.functions)


def cast_text(text: str, given: SqlType, to: SqlType, depth: int = 0) -> str:
    """The cast of a text of Spark's SQL; `depth` keeps the parameters of nested lambda functions apart."""
    if given == to:
        return text
    if given == NULL:
        return f"cast({text} as {spark_type(to)})"
    written = (
        _from_text(text, given, to)
        or _to_text(text, given, to, depth)
        or _number(text, given, to)
        or _nested(text, given, to, depth)
        or _time(text, given, to)
    )
    if written is None:
        raise TypeProblem(f"Cast of {given} to {to} is not supported")
    return written


def _from_text(text: str, given: SqlType, to: SqlType) -> str | None:
    if given != STRING:
        return None
    if isinstance(to, Decimal):
        return f"try_cast({text} as {spark_type(to)})"
    known = _FROM_TEXT.get(to) if not isinstance(to, Array | Map | Struct) else None
    return None if known is None else known.replace("{0}", text)


def _to_text(text: str, given: SqlType, to: SqlType, depth: int) -> str | None:
    if to != STRING:
        return None
    match given:
        case Decimal():
            # Spark's own cast writes exponents; this one does not.
            return f"try_cast({text} as string)"
        case Array(element):
            return f"concat('[', array_join({_each(text, depth, _shown(element, depth))}, ', '), ']')"
        case Map(key, value):
            key_text, value_text = _shown(key, depth), _shown(value, depth)
            pairs = _each(
                f"map_entries({text})",
                depth,
                lambda item: f"concat({key_text(f'{item}.key')}, '=', {value_text(f'{item}.value')})",
            )
            return f"concat('{{', array_join({pairs}, ', '), '}}')"
        case Struct():
            return _struct_text(text, given, depth)
        case _ if given == TIME:
            return time_text(text)
        case _ if given in _TO_TEXT:
            return _TO_TEXT[given].replace("{0}", text)
        case _:
            return None


def time_text(text: str) -> str:
    """A time of day as Java writes it: seconds and milliseconds are left out where they are nothing."""
    seconds = f"time_to_millis({text}) % 60000"
    return (
        f"date_format({text}, case when {seconds} = 0 then 'HH:mm' "
        f"when {seconds} % 1000 = 0 then 'HH:mm:ss' else 'HH:mm:ss.SSS' end)"
    )


def _shown(kind: SqlType, depth: int) -> Callable[[str], str]:
    return lambda item: f"coalesce({cast_text(item, kind, STRING, depth + 1)}, 'null')"


def _struct_text(text: str, kind: Struct, depth: int) -> str:
    parts = [
        f"concat({sql_text(field.name)}, '=', {cast_text(f'{text}.{quoted(field.name)}', field.type, STRING, depth)})"
        for field in kind.fields
    ]
    return f"if({text} is null, null, concat('Struct{{', concat_ws(',', {', '.join(parts) or repr('')}), '}}'))"


def _number(text: str, given: SqlType, to: SqlType) -> str | None:
    if given in _INTEGERS and to in {*_INTEGERS, DOUBLE}:
        return f"cast({text} as {spark_type(to)})"
    if (isinstance(given, Decimal) or given == DOUBLE) and (to in {*_INTEGERS, DOUBLE}):
        return f"cast({text} as {spark_type(to)})"
    if isinstance(to, Decimal) and (isinstance(given, Decimal) or given in {*_INTEGERS, DOUBLE}):
        return f"try_cast({text} as {spark_type(to)})"
    return None


def _time(text: str, given: SqlType, to: SqlType) -> str | None:
    if (given, to) == (DATE, TIMESTAMP):
        return midnight(text)
    if (given, to) in {(TIMESTAMP, DATE), (TIMESTAMP, TIME)}:
        return f"cast({text} as {spark_type(to)})"
    return None


def midnight(text: str) -> str:
    """A date as a timestamp; NULL for one so far away that Spark's own cast would end the query."""
    return f"timestamp_micros(try_multiply(cast(unix_date({text}) as bigint), 86400000000L))"


def _nested(text: str, given: SqlType, to: SqlType, depth: int) -> str | None:
    match given, to:
        case Array(has), Array(element):
            return _each(text, depth, lambda item: cast_text(item, has, element, depth + 1))
        case Map(key, value), Map(to_key, to_value):
            entries = _each(
                f"map_entries({text})", depth, lambda item: _entry(item, (key, value), (to_key, to_value), depth)
            )
            return f"map_from_entries(filter({entries}, item{depth} -> item{depth}.key is not null))"
        case Struct(), Struct():
            return _struct(text, given, to, depth)
        case _:
            return None


def _entry(item: str, given: tuple[SqlType, SqlType], to: tuple[SqlType, SqlType], depth: int) -> str:
    key = cast_text(f"{item}.key", given[0], to[0], depth + 1)
    value = cast_text(f"{item}.value", given[1], to[1], depth + 1)
    return f"named_struct('key', {key}, 'value', {value})"


def _struct(text: str, given: Struct, to: Struct, depth: int) -> str:
    parts = []
    for field in to.fields:
        has = given.field(field.name)
        path = "null" if has is None else f"{text}.{quoted(field.name)}"
        parts.append(f"{sql_text(field.name)}, {cast_text(path, has or NULL, field.type, depth)}")
    return f"if({text} is null, null, named_struct({', '.join(parts)}))"


def _each(text: str, depth: int, of: Callable[[str], str]) -> str:
    item = f"item{depth}"
    return f"transform({text}, {item} -> {of(item)})"
