"""The plans of one statement while they are put together: each of them reads what the one before wrote."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from streams.model.plan import (
    Input,
    Lateness,
    LookupStep,
    ProcessStep,
    QueryPlan,
    SqlStep,
    Step,
    TopicRequest,
)
from streams.model.sources import Column, Format, Kind, OnError, Source, WindowInfo
from streams.model.types import quoted
from streams.sql.expressions import Expression

Starting = Literal["earliest", "latest"]
_INTERNAL_FORMAT = Format(name="JSON")
_SEGMENT_BYTES: Final = 50 << 20
"""Of internal topics, as Kafka Streams has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What holds for all plans of a statement."""

    service_id: str
    query_id: str
    starting: Starting
    on_error: OnError = "dlq"
    dead_letter_topic: str | None = None
    partitions: int = 1
    """Of internal topics."""


@dataclass(slots=True)
class _Part:
    """A plan that is not finished."""

    inputs: list[Input] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    mode: Literal["append", "update"] = "append"
    has_state: bool = False
    views: dict[str, int] = field(default_factory=dict)


class Builder:
    """Collects inputs and steps, and cuts them into plans where a second step with state begins."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.topics: list[TopicRequest] = []
        self._plans: list[QueryPlan] = []
        self._part = _Part()

    @property
    def has_state(self) -> bool:
        """Whether the present plan has a step with state already."""
        return self._part.has_state

    @property
    def steps(self) -> Sequence[Step]:
        """The steps of the present plan."""
        return self._part.steps

    def input(
        self,
        source: Source,
        *,
        starting: Starting | None = None,
        lateness: Lateness | None = None,
        is_internal: bool = False,
    ) -> str:
        """Read a topic; the name of its view."""
        view = self._view("input")
        self._part.inputs.append(
            Input(
                view=view,
                source=source,
                starting=starting or ("earliest" if source.kind == "TABLE" else self.settings.starting),
                watermark_ms=None if lateness is None else lateness.grace_ms,
                lateness=lateness,
                is_internal=is_internal,
            )
        )
        return view

    def sql(self, what: str, text: str, functions: frozenset[str] = frozenset()) -> str:
        """Add a SELECT; the name of its view."""
        view = self._view(what)
        self._part.steps.append(SqlStep(view=view, text=text, functions=tuple(sorted(functions))))
        return view

    def lookup(
        self,
        view: str,
        table: Source,
        key: str,
        columns: Sequence[tuple[str, str]],
        kind: Literal["INNER", "LEFT"],
    ) -> str:
        """Join the rows of a view with those of a table."""
        name = self._view("found")
        self._part.steps.append(
            LookupStep(view=name, input=view, table=table, key=key, columns=tuple(columns), kind=kind)
        )
        return name

    def process(self, step: ProcessStep) -> str:
        """Add a processor."""
        self._part.steps.append(step)
        return step.view

    def view_for(self, what: str) -> str:
        """A name for the view of a step."""
        return self._view(what)

    def keeps_state(self, mode: Literal["append", "update"]) -> None:
        """The present plan has a step with state."""
        self._part.has_state = True
        self._part.mode = mode

    def cut(
        self,
        selected: str,
        key: Sequence[Column],
        value: Sequence[Column],
        *,
        kind: Kind,
        window: WindowInfo | None = None,
        functions: frozenset[str] = frozenset(),
        lateness: Lateness | None = None,
    ) -> str:
        """Write the rows of a SELECT into an internal topic, and read that in the next plan; the name of the view."""
        number = len(self._plans) + 1
        purpose = "repartition" if kind == "STREAM" else "changelog"
        topic = f"_streams-{self.settings.service_id}{self.settings.query_id}-{number}-{purpose}"
        source = Source(
            name=f"{self.settings.query_id}-{number}",
            kind=kind,
            topic=topic,
            key_format=_INTERNAL_FORMAT if key else Format(name="NONE"),
            value_format=_INTERNAL_FORMAT,
            key=tuple(key),
            value=tuple(value),
            window=window,
            partitions=self.settings.partitions,
        )
        self.topics.append(internal_topic(source))
        self.sql("written", selected, functions)
        self._close(source, is_internal=True)
        return self.input(source, starting="earliest", lateness=lateness, is_internal=True)

    def finish(
        self, sink: Source | None, *, columns: Sequence[Column] = (), limit: int | None = None
    ) -> tuple[QueryPlan, ...]:
        """All plans; the last one writes the sink, or gives its rows to a client."""
        self._close(sink, is_internal=False, columns=tuple(columns), limit=limit)
        return tuple(self._plans)

    def _close(
        self, sink: Source | None, *, is_internal: bool, columns: tuple[Column, ...] = (), limit: int | None = None
    ) -> None:
        number = len(self._plans) + 1
        settings = self.settings
        name = settings.query_id if number == 1 else f"{settings.query_id}-{number}"
        self._plans.append(
            QueryPlan(
                name=name,
                inputs=tuple(self._part.inputs),
                steps=tuple(self._part.steps),
                mode=self._part.mode,
                sink=sink,
                is_sink_internal=is_internal,
                columns=columns,
                limit=limit,
                has_state=self._part.has_state,
                on_error=settings.on_error,
                dead_letter_topic=settings.dead_letter_topic,
                # Not one for all: two parts that read the same topic would overwrite each other's offsets.
                group=f"_streams-{settings.service_id}{name}",
            )
        )
        self._part = _Part()

    def _view(self, what: str) -> str:
        count = self._part.views.get(what, 0) + 1
        self._part.views[what] = count
        return what if count == 1 else f"{what}_{count}"


def internal_topic(source: Source) -> TopicRequest:
    """The topic between two plans, whose records are kept however old their times are.

    Those of a repartition topic are deleted by the query when it has read them, in small segments; of a changelog, the
    last record of each key stays.
    """
    cleanup = {"cleanup.policy": "compact"}
    if source.kind == "STREAM":
        cleanup = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
    configs = {**cleanup, "message.timestamp.type": "CreateTime", "segment.bytes": str(_SEGMENT_BYTES)}
    return TopicRequest(name=source.topic, partitions=source.partitions, configs=configs, must_match=True)


def select(columns: Sequence[tuple[str, str]], view: str, *, where: str | None = None, rest: str = "") -> str:
    """A SELECT of texts under names."""
    shown = ", ".join(f"{text} AS {quoted(name)}" for name, text in columns)
    return f"SELECT {shown} FROM {view}" + (f" WHERE {where}" if where else "") + rest


def named(column: Column) -> Expression:
    """A column of a view as an expression."""
    return Expression(quoted(column.name), column.sql_type)
