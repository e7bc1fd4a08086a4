"""Functions of values as functions of Arrow columns, as Spark calls them: a batch at a time."""

from collections.abc import Callable

import pyarrow as pa

from streams.functions.values import FAILURES, PythonFunction
from streams.model.types import Array, Map, Name, Primitive, SqlType

_ARROW = {
    Name.BOOLEAN: pa.bool_(),
    Name.INTEGER: pa.int32(),
    Name.BIGINT: pa.int64(),
    Name.DOUBLE: pa.float64(),
    Name.STRING: pa.string(),
    Name.BYTES: pa.binary(),
}


def on_columns(function: PythonFunction) -> Callable[..., pa.Array]:
    """The function as one of columns; what it cannot compute is null."""
    kind = _arrow_type(function.result)

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


def _arrow_type(kind: SqlType) -> pa.DataType:
    match kind:
        case Primitive(name):
            return _ARROW[name]
        case Array(element):
            return pa.list_(_arrow_type(element))
        case Map(key, value):
            return pa.map_(_arrow_type(key), _arrow_type(value))
        case _:
            raise TypeError(f"no Python function returns {kind}")
