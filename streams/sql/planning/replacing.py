"""CREATE OR REPLACE: whether a query may go on with the state of the one that it replaces."""

from collections.abc import Iterator, Sequence

import msgspec

from streams.model.plan import LookupStep, ProcessStep, Query, QueryPlan, SqlStep
from streams.model.sources import Column, Source


class Replacement(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the new query fits, and if not, why."""

    fits: bool
    reasons: tuple[str, ...] = ()


def source_changes(old: Source, new: Source) -> list[str]:
    """What of a stream or table cannot be changed, but would be."""
    pairs = (
        ("name", old.name, new.name),
        ("kind", old.kind, new.kind),
        ("topic", old.topic, new.topic),
        ("key format", old.key_format, new.key_format),
        ("value format", old.value_format, new.value_format),
        ("window", old.window, new.window),
        ("timestamp column", old.timestamp, new.timestamp),
    )
    found = [
        f"DataSource '{old.name}' has {what} = {_shown(has)} which is not upgradeable to {_shown(wanted)}"
        for what, has, wanted in pairs
        if has != wanted
    ]
    return [*found, *_schema_changes(old, new)]


def _shown(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, msgspec.Struct):
        parts = msgspec.structs.asdict(value)
        return " ".join(f"{name}={part}" for name, part in parts.items() if part is not None)
    return str(value)


def _schema_changes(old: Source, new: Source) -> list[str]:
    problems = []
    if old.key != new.key:
        problems.append(f"key columns are {_columns(old.key)}, not {_columns(new.key)}")
    kept = {column.name: column.type for column in new.value}
    missing = [column for column in old.value if column.name not in kept]
    changed = [column for column in old.value if kept.get(column.name, column.type) != column.type]
    if missing:
        problems.append(f"the following columns are missing: {_columns(missing)}")
    if changed:
        problems.append(f"the following columns are changed: {_columns(changed)}")
    in_place = [column.name for column in new.value[: len(old.value)]]
    if not missing and not changed and in_place != [column.name for column in old.value]:
        problems.append(f"the following columns are reordered: {_columns(old.value)}")
    shown = "; ".join(problems)
    return [f"DataSource '{old.name}' has schema which is not upgradeable: {shown}"] if problems else []


def _columns(columns: Sequence[Column]) -> str:
    return ", ".join(f"`{column.name}` {column.type}" for column in columns) or "none"


def check_replacement(old: Query, new: Query, old_sink: Source, new_sink: Source) -> Replacement:
    """Compare two queries and what they fill: filters and projections may change, and nothing that has state."""
    reasons = [*source_changes(old_sink, new_sink), *_plan_changes(old.plans, new.plans)]
    return Replacement(fits=not reasons, reasons=tuple(reasons))


def _plan_changes(old: Sequence[QueryPlan], new: Sequence[QueryPlan]) -> Iterator[str]:
    prefix = "Query is not upgradeable. "
    if len(old) != len(new):
        yield f"{prefix}It has {len(old)} steps with state, and {len(new)} now."
        return
    for one, other in zip(old, new, strict=True):
        if _sources(one) != _sources(other):
            values = f"{_sources(one)} vs. {_sources(other)}"
            yield f"{prefix}Plan step of type Source must have matching sources. Values differ: {values}."
        elif one.has_state != other.has_state or _has_unsupported(one) or _has_unsupported(other):
            yield from _unsupported(one, other, prefix)
        elif one.has_state and _state_steps(one) != _state_steps(other):
            yield f"{prefix}Plan step of type Aggregate must have matching GROUP BY and aggregates."


def _unsupported(one: QueryPlan, other: QueryPlan, prefix: str) -> Iterator[str]:
    """Steps with state of which nothing may change, not even a filter."""
    if one.steps != other.steps:
        yield f"{prefix}Upgrades not yet supported for windows, joins, table functions and aggregates of tables."


def _has_unsupported(plan: QueryPlan) -> bool:
    return (
        len(plan.inputs) > 1
        or any(one.watermark_ms is not None or one.is_internal for one in plan.inputs)
        or any(isinstance(step, LookupStep | ProcessStep) or step.view.startswith("exploded") for step in plan.steps)
    )


def _sources(plan: QueryPlan) -> list[str]:
    return [f"{one.source.name} ({one.source.topic})" for one in plan.inputs]


def _state_steps(plan: QueryPlan) -> list[str]:
    """What decides about the state: groups and aggregates, whichever rows they are of."""
    return [
        step.text.replace(" FROM filtered)", " FROM input)")
        for step in plan.steps
        if isinstance(step, SqlStep) and step.view in {"prepared", "aggregated"}
    ]
