"""Functions of values as functions of Arrow columns, as Spark calls them: a batch at a time."""

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import pyarrow as pa

from streams.functions.conversion import checked, from_arrow
from streams.functions.deadline import deadline
from streams.functions.signature import Loaded, Signature
from streams.functions.user import UserAggregate, load_overload
from streams.functions.values import FAILURES, PythonFunction
from streams.model.types import Array, Decimal, Map, Name, Primitive, SqlType, Struct, bounded, parse_type

BATCH_SECONDS_MAX: Final = 60.0
"""How long a user's function may take for a batch of rows."""
_ARROW: Final = {
    Name.BOOLEAN: pa.bool_(),
    Name.INTEGER: pa.int32(),
    Name.BIGINT: pa.int64(),
    Name.DOUBLE: pa.float64(),
    Name.STRING: pa.string(),
    Name.BYTES: pa.binary(),
    Name.TIME: pa.time64("ns"),
    Name.DATE: pa.date32(),
    Name.TIMESTAMP: pa.timestamp("us", "UTC"),
}


def on_columns(function: PythonFunction) -> Callable[..., pa.Array]:
    """The function as one of columns; what it cannot compute is null."""
    kind = arrow_type(function.result)

    def compute(*columns: pa.Array) -> pa.Array:
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        return pa.array([_computed(function, row) for row in rows], kind)

    return compute


def _computed(function: PythonFunction, row: tuple[object, ...]) -> object:
    if None in row:
        return None
    try:
        return function.compute(*row)
    except FAILURES:
        return None


def user_function_on_columns(
    signature: Signature, folder: str, *, batch_seconds: float = BATCH_SECONDS_MAX
) -> Callable[..., pa.Array]:
    """A user's function as one of columns. The process that calls it reads the file; taking too long is an error.

    An aggregate is a function of lists of its rows: structs of `at`, the order, and the arguments.
    """
    name, types, is_aggregate = signature.name, signature.types, signature.kind == "aggregate"

    def compute(*columns: pa.Array) -> pa.Array:
        loaded = load_overload(folder, name, types)
        with deadline(batch_seconds, f"function {name} for {len(columns[0])} rows"):
            results = _aggregated(loaded, columns[0]) if is_aggregate else _called(loaded, columns)
        return pa.array(results, arrow_type(spark_result(loaded.signature)))

    return compute


def spark_result(signature: Signature) -> SqlType:
    """The type of a call in Spark's SQL: of a table function, the array of its rows."""
    kind = parse_type(signature.result)
    return Array(kind) if signature.kind == "table" else kind


def _called(loaded: Loaded, columns: Sequence[pa.Array]) -> list[object]:
    signature = loaded.signature
    check = checked(spark_result(signature))
    return [_result(loaded, row, check) for row in _rows(signature, columns)]


def _rows(signature: Signature, columns: Sequence[pa.Array]) -> Iterable[tuple[object, ...]]:
    if not signature.arguments:
        # The column only shows how many rows there are.
        return itertools.repeat((), len(columns[0]))
    kinds = [parse_type(one) for one in signature.types]
    # The last argument may be repeated.
    kinds += kinds[-1:] * (len(columns) - len(kinds))
    return zip(*(_values(column, kind) for column, kind in zip(columns, kinds, strict=True)), strict=True)


def _values(column: pa.Array, kind: SqlType) -> list[object]:
    convert = from_arrow(kind)
    return [convert(value) for value in column.to_pylist()]


def _result(loaded: Loaded, row: tuple[object, ...], check: Callable[[object], object]) -> object:
    try:
        return check(loaded.target(*row))
    except (Exception, SystemExit):  # noqa: BLE001  # whatever a user's function raises makes NULL
        return None


def _aggregated(loaded: Loaded, column: pa.Array) -> list[object]:
    converts = [from_arrow(parse_type(one)) for one in loaded.signature.types]
    found = []
    for rows in column.to_pylist():
        aggregate = UserAggregate(loaded)
        state = aggregate.start()
        for number, row in enumerate(sorted(rows or (), key=_order)):
            values = [convert(row[f"v{argument}"]) for argument, convert in enumerate(converts)]
            state = aggregate.add(state, values, number)
        found.append(aggregate.result(state))
    return found


def _order(row: dict[str, Any]) -> Any:
    at = row["at"]
    return tuple(at.values()) if isinstance(at, dict) else at


def arrow_type(kind: SqlType) -> pa.DataType:
    """The type of columns of values."""
    match kind:
        case Primitive(name):
            return _ARROW[name]
        case Decimal(precision, scale):
            fitting = bounded(precision, scale)
            return pa.decimal128(fitting.precision, fitting.scale)
        case Array(element):
            return pa.list_(arrow_type(element))
        case Map(key, value):
            return pa.map_(arrow_type(key), arrow_type(value))
        case Struct(fields):
            return pa.struct([(field.name, arrow_type(field.type)) for field in fields])
