"""What has to hold before a step runs: Spark would only say that its worker has ended."""

from streams.functions.aggregates import aggregator
from streams.functions.signature import PREFIX
from streams.functions.user import describe, nearest
from streams.model.plan import Aggregate, ProcessStep, SessionAggregates, UndoAggregates


def check_aggregates(step: ProcessStep, extensions: str) -> None:
    """Raise ValueError for an aggregate that is not there, or that lacks a method which the step needs."""
    match step.processor:
        case SessionAggregates(aggregates=aggregates):
            method, use = "merge", "in session windows"
        case UndoAggregates(aggregates=aggregates):
            method, use = "undo", "on tables"
        case _:
            return
    users = [one for one in aggregates if one.function.startswith(PREFIX)]
    for one in aggregates:
        if one not in users and method == "undo" and not aggregator(one).has_undo:
            raise ValueError(f"{one.function} cannot be used on tables")
    signatures = describe(extensions) if users else []
    for one in users:
        name = one.function.removeprefix(PREFIX)
        overloads = [each for each in signatures if (each.name, each.kind) == (name, "aggregate")]
        found = nearest(overloads, one.argument_types)
        if found is None:
            raise ValueError(f"{extensions or 'ksql.extension.dir'} has no aggregate {_shown(one, name)} (any more)")
        if not (found.has_merge if method == "merge" else found.has_undo):
            raise ValueError(f"{name} cannot be used {use}: add a method `{method}` to it in {found.file}")


def _shown(aggregate: Aggregate, name: str) -> str:
    return f"{name}({', '.join(aggregate.argument_types)})"
