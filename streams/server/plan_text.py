"""Plans as EXPLAIN shows them: a line for each step, from what is written back to what is read."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from streams.model.plan import Changes, Input, LookupStep, NewestRows, ProcessStep, QueryPlan, SqlStep, Step
from streams.model.sources import Column
from streams.model.types import quoted

_WORDS: Final = (
    (re.compile(r"\bGROUP\s+BY\b", re.IGNORECASE), "AGGREGATE"),
    (re.compile(r"\bJOIN\b", re.IGNORECASE), "JOIN"),
    (re.compile(r"\bLATERAL\s+VIEW\b|\bexplode\w*\(", re.IGNORECASE), "FLATMAP"),
    (re.compile(r"\bWHERE\b", re.IGNORECASE), "FILTER"),
)


def schema_text(key: Iterable[Column], value: Iterable[Column]) -> str:
    """Columns as ksqlDB prints a schema."""
    parts = [f"{quoted(column.name)} {column.type} KEY" for column in key]
    return ", ".join([*parts, *(f"{quoted(column.name)} {column.type}" for column in value)])


def execution_plan(plans: Sequence[QueryPlan]) -> str:
    """The steps of a query; those of its parts follow each other, the one that writes its result first."""
    return "\n".join(line for plan in reversed(plans) for line in _lines(plan))


def _lines(plan: QueryPlan) -> Iterator[str]:
    if plan.sink is not None:
        schema = schema_text(plan.sink.key, plan.sink.value)
        name = f"{plan.name}.{plan.sink.name}"
    else:
        schema, name = schema_text((), plan.columns), plan.name
    yield f" > [ SINK ] | Schema: {schema} | Logger: {name}"
    depth = 1
    for step in reversed(plan.steps):
        parts = [f"{_indent(depth)} > [ {_tag(step)} ]", _about(step), f"Logger: {plan.name}.{step.view}"]
        yield " | ".join(part for part in parts if part)
        depth += 1
    for one in plan.inputs:
        yield f"{_indent(depth)} > [ SOURCE ] | {_of_input(one)} | Logger: {plan.name}.{one.view}"


def _indent(depth: int) -> str:
    return "\t" * (2 * depth)


def _tag(step: Step) -> str:
    match step:
        case LookupStep():
            return "JOIN"
        case ProcessStep(processor=Changes()):
            return "CHANGES"
        case ProcessStep(processor=NewestRows()):
            return "FILTER"
        case ProcessStep():
            return "AGGREGATE" if hasattr(step.processor, "aggregates") else "JOIN"
        case SqlStep(text=text):
            return next((tag for pattern, tag in _WORDS if pattern.search(text)), "PROJECT")


def _about(step: Step) -> str:
    match step:
        case LookupStep(table=table, key=key):
            return f"{table.name} by {quoted(key)}"
        case ProcessStep(output=output):
            return f"Schema: {schema_text((), output)}"
        case SqlStep():
            return ""


def _of_input(one: Input) -> str:
    source = one.source
    return f"Schema: {schema_text(source.key, source.value)} | Topic: {source.topic}"


def sql_texts(plans: Sequence[QueryPlan]) -> str:
    """The SELECTs of Spark that the steps of a query are."""
    lines: list[str] = []
    for plan in plans:
        for step in plan.steps:
            if isinstance(step, SqlStep):
                lines += [f"-- {plan.name}.{step.view}", step.text, ""]
    return "\n".join(lines).rstrip()
