"""Aggregates, and functions that make several rows of one.

An aggregate that goes by the order of records uses the order that the query names, see `table.call`. The expression of
a table function is an array: the query makes a row of each item.
"""

from collections.abc import Sequence
from typing import Final

from streams.model.types import Array, Field, SqlType, Struct
from streams.sql.errors import TypeProblem
from streams.sql.functions.model import Call, Function, Kind, Overload, overload

_STATE: Final = "all values are kept in the state"
_CUBE: Final = (
    "if(size({list}) > 14, null, aggregate({list}, array(cast(array() as array<{T}>)), (rows, item) -> flatten("
    "transform(rows, row -> if(item is null, array(array_append(row, item)),"
    " array(array_append(row, cast(null as {T})), array_append(row, item)))))))"
)


def _aggregate(name: str, description: str, *overloads: Overload) -> Function:
    return Function(name, "AGGREGATE", description, overloads, Kind.AGGREGATE)


def _count(call: Call) -> int:
    count = call.literal("count")
    if not isinstance(count, int) or count < 1:
        raise TypeProblem(f"The number of values has to be at least 1, not {count}")
    return count


def _top(call: Call) -> str:
    return f"slice(sort_array(collect_list({call.text('value')}), false), 1, {_count(call)})"


def _top_distinct(call: Call) -> str:
    return f"slice(sort_array(collect_set({call.text('value')}), false), 1, {_count(call)})"


def _top_rows(call: Call) -> str:
    parts = [f"'sort_col', {call.text('value')}"]
    parts += [f"'col{number}', {one.text}" for number, one in enumerate(call.repeated)]
    rows = f"collect_list(named_struct({', '.join(parts)})) filter (where {call.text('value')} is not null)"
    return f"slice(sort_array({rows}, false), 1, {_count(call)})"


def _top_struct(types: Sequence[SqlType]) -> SqlType:
    names = ["sort_col", *(f"col{number}" for number in range(len(types) - 2))]
    return Array(Struct(tuple(Field(name, kind) for name, kind in zip(names, types[:-1], strict=True))))


def _by_offset(name: str) -> Function:
    latest = name == "LATEST_BY_OFFSET"
    pick = "max_by" if latest else "min_by"

    def kept(call: Call) -> str:
        ignore = call.literal("ignore_nulls") if "ignore_nulls" in call.arguments else True
        return f" filter (where {call.text('value')} is not null)" if ignore else ""

    def one(call: Call) -> str:
        return f"{pick}({call.text('value')}, {call.order}){kept(call)}"

    def several(call: Call) -> str:
        rows = f"collect_list(named_struct('at', {call.order}, 'value', {call.text('value')})){kept(call)}"
        first = f"slice(sort_array({rows}, {'false' if latest else 'true'}), 1, {_count(call)}).value"
        return f"reverse({first})" if latest else first

    return _aggregate(
        name,
        f"The {'last' if latest else 'first'} value, or so many of them, in the order of the records.",
        overload("value T", "T", one),
        overload("value T, ignore_nulls BOOLEAN", "T", one),
        overload("value T, count INT", "ARRAY<T>", several, difference=_STATE),
        overload("value T, count INT, ignore_nulls BOOLEAN", "ARRAY<T>", several, difference=_STATE),
    )


_LIST: Final = "collect_list(named_struct('item', {value})).item"

AGGREGATES: Final = (
    _aggregate(
        "COUNT",
        "The number of rows, or of values that are not NULL.",
        overload("", "BIGINT", "count(1)", undo=True),
        overload("value T", "BIGINT", "count({value})", undo=True),
    ),
    _aggregate(
        "SUM",
        "The sum of the values; 0 if there are none.",
        overload(
            "value N",
            "N",
            "if(count({value}) = 0, cast(0 as {N}), cast(sum({value}) as {N}))",
            difference="a DECIMAL that overflows is NULL, where ksqlDB ignores the record",
            undo=True,
        ),
    ),
    _aggregate(
        "SUM_LIST",
        "The sum of the items of arrays.",
        overload(
            "list ARRAY<D>",
            "D",
            "coalesce(cast(sum(aggregate(filter({list}, item -> item is not null), cast(0 as {D}),"
            " (all, item) -> cast(all + item as {D}))) as {D}), cast(0 as {D}))",
            undo=True,
        ),
    ),
    _aggregate(
        "AVG",
        "The average of the values; 0 if there are none.",
        overload(
            "value D",
            "DOUBLE",
            "coalesce(avg({value}), 0D)",
            difference="sums of integers do not wrap around",
            undo=True,
        ),
        overload("value X", "DOUBLE", "coalesce(avg(cast({value} as double)), 0D)", undo=True),
    ),
    _aggregate("MIN", "The smallest value.", overload("value O", "O", "min({value})")),
    _aggregate("MAX", "The largest value.", overload("value O", "O", "max({value})")),
    _aggregate("COLLECT_LIST", "All values.", overload("value T", "ARRAY<T>", _LIST, undo=True)),
    _aggregate(
        "COLLECT_SET",
        "The different values.",
        overload("value T", "ARRAY<T>", f"array_distinct({_LIST})", difference=_STATE),
    ),
    _aggregate(
        "COUNT_DISTINCT",
        "About how many different values there are.",
        overload(
            "value T", "BIGINT", "approx_count_distinct({value}, 0.0081D)", difference="another estimate, as exact"
        ),
    ),
    _aggregate(
        "HISTOGRAM",
        "How often each text occurs, for at most 1000 texts.",
        overload(
            "value STRING",
            "MAP<STRING, BIGINT>",
            "caudal_histogram(collect_list({value}))",
            difference=_STATE,
            undo=True,
        ),
    ),
    _aggregate(
        "TOPK",
        "The largest values, with other columns of their rows if these are given.",
        overload("value O, count INT", "ARRAY<O>", _top, difference=_STATE),
        overload("value O, columns P..., count INT", _top_struct, _top_rows, difference=_STATE),
    ),
    _aggregate(
        "TOPKDISTINCT",
        "The largest different values.",
        overload("value O, count INT", "ARRAY<O>", _top_distinct, difference=_STATE),
    ),
    _by_offset("EARLIEST_BY_OFFSET"),
    _by_offset("LATEST_BY_OFFSET"),
    _aggregate(
        "STDDEV_SAMP",
        "The variance of a sample, in spite of the name.",
        overload("value D", "DOUBLE", "coalesce(var_samp({value}), 0D)", undo=True),
    ),
    _aggregate(
        "STDDEV_SAMPLE",
        "The standard deviation of a sample.",
        overload("value D", "DOUBLE", "coalesce(stddev_samp({value}), 0D)", undo=True),
    ),
    _aggregate(
        "CORRELATION",
        "Pearson's coefficient of two columns.",
        overload("x DOUBLE, y DOUBLE", "DOUBLE", "coalesce(corr({x}, {y}), double('NaN'))", undo=True),
    ),
    _aggregate(
        "ATTR",
        "The value if it is the same in all rows, NULL otherwise.",
        overload(
            "value O",
            "O",
            "if(min(struct({value})) <=> max(struct({value})), min({value}), null)",
            undo=True,
            difference="not of BOOLEAN, ARRAY, MAP, STRUCT",
        ),
    ),
)

TABLE_FUNCTIONS: Final = (
    Function(
        "EXPLODE",
        "TABLE",
        "A row for each item of an array.",
        (overload("list ARRAY<T>", "T", "{list}"),),
        Kind.TABLE,
    ),
    Function(
        "CUBE_EXPLODE",
        "TABLE",
        "A row for each combination of the items of an array and NULL in their places.",
        (
            overload(
                "list ARRAY<T>", "ARRAY<T>", _CUBE, difference="more than 14 items make no row, in ksqlDB more than 20"
            ),
        ),
        Kind.TABLE,
    ),
)
