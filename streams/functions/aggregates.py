"""ksqlDB's aggregates in Python, for processors: these take rows back, merge sessions, and go by the order of rows."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from streams.functions.lists import Attribute, ByOffset, CollectList, CollectSet, Histogram, Top
from streams.functions.moments import Correlation, Variance
from streams.functions.signature import PREFIX
from streams.functions.sketch import DistinctSketch
from streams.functions.states import Aggregator
from streams.functions.sums import Average, Count, Extreme, Sum
from streams.functions.user import load_aggregate
from streams.model.plan import Aggregate
from streams.model.types import DOUBLE, Array, SqlType, parse_type


def aggregator(aggregate: Aggregate, *, extensions: str = "") -> Aggregator[Any]:
    """What computes an aggregate; `extensions` is the folder of users' own. ValueError if there is none like it."""
    if aggregate.function.startswith(PREFIX):
        return load_aggregate(extensions, aggregate.function.removeprefix(PREFIX), aggregate.argument_types)
    create = _AGGREGATORS.get(aggregate.function)
    if create is None:
        raise ValueError(f"there is no aggregate {aggregate.function}")
    return create(aggregate)


def _argument_type(aggregate: Aggregate) -> SqlType:
    return parse_type(aggregate.argument_types[0]) if aggregate.argument_types else parse_type(aggregate.type)


def _sum_list(aggregate: Aggregate) -> Aggregator[Any]:
    kind = _argument_type(aggregate)
    return Sum(kind.element if isinstance(kind, Array) else DOUBLE, of_lists=True)


def _top(aggregate: Aggregate) -> Aggregator[Any]:
    (count,) = _literals(aggregate)
    return Top(_positive(count), len(aggregate.arguments), is_distinct=aggregate.function == "TOPKDISTINCT")


def _by_offset(aggregate: Aggregate) -> Aggregator[Any]:
    """The literals are how many values, and whether NULL is ignored; either of them or both."""
    count, ignores_nulls = None, True
    for literal in _literals(aggregate):
        if isinstance(literal, bool):
            ignores_nulls = literal
        else:
            count = _positive(literal)
    latest = aggregate.function == "LATEST_BY_OFFSET"
    return ByOffset(is_latest=latest, count=count, ignores_nulls=ignores_nulls)


def _literals(aggregate: Aggregate) -> list[object]:
    return [msgspec.json.decode(literal) for literal in aggregate.literals]


def _positive(count: object) -> int:
    if not isinstance(count, int) or count < 1:
        raise ValueError(f"the number of values has to be at least 1, not {count}")
    return count


_AGGREGATORS: Final[dict[str, Callable[[Aggregate], Aggregator[Any]]]] = {
    "COUNT": lambda _: Count(),
    "SUM": lambda aggregate: Sum(_argument_type(aggregate)),
    "SUM_LIST": _sum_list,
    "AVG": lambda _: Average(),
    "MIN": lambda _: Extreme(min),
    "MAX": lambda _: Extreme(max),
    "COLLECT_LIST": lambda _: CollectList(),
    "COLLECT_SET": lambda _: CollectSet(),
    "COUNT_DISTINCT": lambda _: DistinctSketch(),
    "HISTOGRAM": lambda _: Histogram(),
    "TOPK": _top,
    "TOPKDISTINCT": _top,
    "EARLIEST_BY_OFFSET": _by_offset,
    "LATEST_BY_OFFSET": _by_offset,
    "STDDEV_SAMP": lambda _: Variance(is_root=False),
    "STDDEV_SAMPLE": lambda _: Variance(is_root=True),
    "CORRELATION": lambda _: Correlation(),
    "ATTR": lambda _: Attribute(),
}
