"""Functions of arrays and maps, and those that take lambda functions."""

from collections.abc import Sequence
from typing import Final

from streams.model.types import STRING, Array, Map, SqlType, quoted, spark_type
from streams.sql.casts import cast_text
from streams.sql.expressions import Expression, Lambda
from streams.sql.functions.model import Call, Function, Overload, lambda_text, overload
from streams.sql.functions.signatures import entry_struct

_ASCENDING: Final = "in ('ASC', 'ASCENDING')"
_DESCENDING: Final = "in ('DESC', 'DESCENDING')"


def _array(name: str, description: str, *overloads: Overload) -> Function:
    return Function(name, "ARRAY", description, overloads)


def _map(name: str, description: str, *overloads: Overload) -> Function:
    return Function(name, "MAP", description, overloads)


def _joined(call: Call) -> str:
    text = cast_text("item", call.types["P"], STRING)
    delimiter = call.text("delimiter") if "delimiter" in call.arguments else "','"
    items = f"transform({call.text('list')}, item -> coalesce({text}, 'null'))"
    return f"array_join({items}, coalesce({delimiter}, ''))"


def _entries(types: Sequence[SqlType]) -> SqlType:
    kind = types[0]
    return Array(entry_struct(kind.value if isinstance(kind, Map) else kind))


def _reduced(call: Call) -> str:
    function, body = call.lambdas["reduce"]
    start = call.text("start")
    merged = lambda_text(function, body, call.types["S"])
    return f"if({start} is null, null, aggregate(coalesce({call.text('list')}, array()), {start}, {merged}))"


def _reduced_map(call: Call) -> str:
    function, _ = call.lambdas["reduce"]
    start, state = call.text("start"), call.types["S"]
    item = _entry_name(function)
    merged = function.body([Expression(quoted(function.parameters[0]), state), *_entry(item, call)])
    text = cast_text(merged.text, merged.type, state)
    entries = f"coalesce(map_entries({call.text('map')}), array())"
    merge = f"({quoted(function.parameters[0])}, {item}) -> {text}"
    return f"if({start} is null, null, aggregate({entries}, {start}, {merge}))"


def _transformed_map(call: Call) -> str:
    keys, _ = call.lambdas["key"]
    values, _ = call.lambdas["value"]
    item = _entry_name(keys)
    key, value = (function.body(_entry(item, call)).text for function in (keys, values))
    entries = f"transform(map_entries({call.text('map')}), {item} -> named_struct('key', {key}, 'value', {value}))"
    return f"map_from_entries(filter({entries}, item -> item.key is not null))"


def _entry_name(function: Lambda) -> str:
    """A name that no other lambda function around or in this one has, as theirs differ, too."""
    return quoted("entry of " + " and ".join(function.parameters))


def _entry(item: str, call: Call) -> list[Expression]:
    return [Expression(f"{item}.key", call.types["K"]), Expression(f"{item}.value", call.types["V"])]


def _united(call: Call) -> str:
    first, second = call.text("a"), call.text("b")
    empty = f"cast(map() as {spark_type(call.result)})"
    both = f"map_concat(coalesce({first}, {empty}), coalesce({second}, {empty}))"
    return f"if({first} is null and {second} is null, null, {both})"


_ENTRIES: Final = "transform(map_entries({map}), item -> named_struct('K', item.key, 'V', item.value))"
_NULL_KEYS: Final = "entries whose key is NULL are left out"
_PYTHON: Final = "no Python function inside"

FUNCTIONS: Final = (
    _array(
        "ARRAY_CONCAT",
        "The items of both arrays.",
        overload(
            "a ARRAY<T>, b ARRAY<T>",
            "ARRAY<T>",
            "if({a} is null and {b} is null, null, concat(coalesce({a}, array()), coalesce({b}, array())))",
        ),
    ),
    _array(
        "ARRAY_CONTAINS",
        "Whether an item of the array is equal to a value.",
        overload("list ARRAY<T>, value T", "BOOLEAN", "coalesce(exists({list}, item -> item <=> {value}), false)"),
    ),
    _array(
        "ARRAY_DISTINCT",
        "The different items of an array.",
        overload("list ARRAY<T>", "ARRAY<T>", "array_distinct({list})"),
    ),
    *(
        _array(name, description, overload("a ARRAY<T>, b ARRAY<T>", "ARRAY<T>", f"{name.lower()}({{a}}, {{b}})"))
        for name, description in {
            "ARRAY_EXCEPT": "The different items of the first array that are not in the second.",
            "ARRAY_INTERSECT": "The different items that are in both arrays.",
            "ARRAY_UNION": "The different items of both arrays.",
        }.items()
    ),
    _array(
        "ARRAY_JOIN",
        "The items of an array as one text.",
        overload("list ARRAY<P>", "STRING", _joined),
        overload("list ARRAY<P>, delimiter STRING", "STRING", _joined),
    ),
    _array("ARRAY_LENGTH", "The number of items.", overload("list ARRAY<T>", "INT", "array_size({list})")),
    _array("ARRAY_MAX", "The largest item.", overload("list ARRAY<O>", "O", "array_max({list})")),
    _array("ARRAY_MIN", "The smallest item.", overload("list ARRAY<O>", "O", "array_min({list})")),
    _array(
        "ARRAY_REMOVE",
        "The array without the items that are equal to a value.",
        overload("list ARRAY<T>, value T", "ARRAY<T>", "filter({list}, item -> not (item <=> {value}))"),
    ),
    _array(
        "ARRAY_SORT",
        "The array in order, NULLs at the end.",
        overload("list ARRAY<T>", "ARRAY<T>", "array_sort({list})"),
        overload(
            "list ARRAY<T>, direction STRING",
            "ARRAY<T>",
            f"case when upper({{direction}}) {_ASCENDING} then array_sort({{list}})"
            f" when upper({{direction}}) {_DESCENDING} then sort_array({{list}}, false) end",
        ),
    ),
    _array(
        "SLICE",
        "The items from one position to another, both included.",
        overload(
            "list ARRAY<T>, first INT, last INT",
            "ARRAY<T>",
            "case when coalesce({first}, 1) >= 1 and coalesce({last}, size({list})) <= size({list})"
            " and coalesce({first}, 1) - 1 <= coalesce({last}, size({list}))"
            " then slice({list}, coalesce({first}, 1), coalesce({last}, size({list})) - coalesce({first}, 1) + 1) end",
        ),
    ),
    _map(
        "ENTRIES",
        "The entries of a map as an array, in the order of the keys if that is wanted.",
        overload(
            "map MAP<STRING, J>, sorted BOOLEAN",
            _entries,
            f"if({{sorted}}, sort_array({_ENTRIES}), {_ENTRIES})",
        ),
    ),
    _map(
        "AS_MAP",
        "A map of the keys in one array and the values in another.",
        overload(
            "keys ARRAY<STRING>, values ARRAY<T>",
            "MAP<STRING, T>",
            "if({values} is null, null, map_from_entries(filter(transform({keys},"
            " (item, at) -> named_struct('key', item, 'value', get({values}, at))), item -> item.key is not null)))",
            difference=_NULL_KEYS,
        ),
    ),
    _map("MAP_KEYS", "The keys of a map.", overload("map MAP<K, V>", "ARRAY<K>", "map_keys({map})")),
    _map("MAP_VALUES", "The values of a map.", overload("map MAP<K, V>", "ARRAY<V>", "map_values({map})")),
    _map(
        "MAP_UNION",
        "The entries of both maps, with the second map's values.",
        overload("a MAP<K, V>, b MAP<K, V>", "MAP<K, V>", _united),
    ),
    Function(
        "FILTER",
        "LAMBDA",
        "The items, or entries, for which a function is true.",
        (
            overload("list ARRAY<T>, keep (T) => BOOLEAN", "ARRAY<T>", "filter({list}, {keep})", difference=_PYTHON),
            overload(
                "map MAP<K, V>, keep (K, V) => BOOLEAN", "MAP<K, V>", "map_filter({map}, {keep})", difference=_PYTHON
            ),
        ),
    ),
    Function(
        "TRANSFORM",
        "LAMBDA",
        "What a function makes of each item, or two functions of each key and value.",
        (
            overload("list ARRAY<T>, of (T) => U", "ARRAY<U>", "transform({list}, {of})", difference=_PYTHON),
            overload(
                "map MAP<K, V>, key (K, V) => L, value (K, V) => W",
                "MAP<L, W>",
                _transformed_map,
                difference=f"{_NULL_KEYS}, of equal keys the last one is kept; {_PYTHON}",
            ),
        ),
    ),
    Function(
        "REDUCE",
        "LAMBDA",
        "What a function makes of a first value and of one item, or entry, after the other.",
        (
            overload("list ARRAY<T>, start S, reduce (S, T) => S", "S", _reduced, difference=_PYTHON),
            overload("map MAP<K, V>, start S, reduce (S, K, V) => S", "S", _reduced_map, difference=_PYTHON),
        ),
    ),
)
