"""Python functions in a session of Spark: those of `streams.functions`, and users' own."""

from collections.abc import Callable, Iterable
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]  # its stub has none

from streams.errors import StreamsError
from streams.functions.columns import BATCH_SECONDS_MAX, on_columns, spark_result, user_function_on_columns
from streams.functions.signature import PREFIX
from streams.functions.user import describe
from streams.functions.values import PYTHON_FUNCTIONS
from streams.model.types import SqlType
from streams.spark.queries.processors.rows import type_from_arrow


class FunctionMissing(StreamsError):
    """A query calls a function that is not there: its file was removed, or cannot be read any more."""


def register(
    session: SparkSession, names: Iterable[str], extensions: str = "", *, batch_seconds: float = BATCH_SECONDS_MAX
) -> None:
    """Make functions known to a session by the names in expressions; `extensions` is the folder of users' files."""
    wanted = set(names)
    users = {name.removeprefix(PREFIX) for name in wanted if name.startswith(PREFIX)}
    for name in wanted - {PREFIX + name for name in users}:
        function = PYTHON_FUNCTIONS.get(name)
        if function is None:
            raise FunctionMissing(f"there is no Python function {name}")
        _register(session, name, on_columns(function), function.result)
    found = [one for one in (describe(extensions) if users else []) if one.name in users]
    missing = users - {one.name for one in found}
    if missing:
        raise FunctionMissing(
            f"the folder of ksql.extension.dir, {extensions or 'which is not set'}, has no function"
            f" {', '.join(sorted(missing))} that can be used; see the log for files that cannot be read"
        )
    for one in found:
        compute = user_function_on_columns(one, extensions, batch_seconds=batch_seconds)
        _register(session, one.spark_name, compute, spark_result(one))


def _register(session: SparkSession, name: str, compute: Callable[..., Any], result: SqlType) -> None:
    session.udf.register(name, arrow_udf(compute, type_from_arrow(result)))
