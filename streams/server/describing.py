"""DESCRIBE and EXPLAIN."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from core_broker.service.clock import Clock, SystemClock
from streams.errors import StreamsError
from streams.model.plan import Query, QueryPlan
from streams.model.sources import Source
from streams.server.catalog import Catalog
from streams.server.engine import EngineDoor
from streams.server.entities import fields, fields_of, offset_summaries, running_query
from streams.server.errors import BadStatement
from streams.server.plan_text import execution_plan, sql_texts
from streams.server.progress import QueryProgress, groups_of, lag_of, progress_of
from streams.server.runner import Run
from streams.server.topics import Topics
from streams.sql.language.words import closest

JSON: TypeAlias = Any
_TIME_NOT_SET: Final = ""


class Describer:
    """Makes descriptions; `host` is this server, as states of queries name it."""

    def __init__(
        self,
        *,
        catalog: Catalog,
        topics: Topics,
        engine: EngineDoor,
        host: str,
        run_of: Callable[[str], Run | None],
        reported: Callable[[], Mapping[str, JSON]],
        clock: Clock | None = None,
    ) -> None:
        self._catalog = catalog
        self._topics = topics
        self._engine = engine
        self._host = host
        self._run_of = run_of
        self._reported = reported
        self._clock = clock or SystemClock()

    # --- streams and tables ---

    def source_named(self, name: str) -> Source:
        """A stream or table; BadStatement if there is none."""
        source = self._catalog.source(name)
        if source is None:
            similar = closest(name, [one.name for one in self._catalog.sources()])
            hint = f" Did you mean {similar}?" if similar else ""
            raise BadStatement(f"Could not find STREAM/TABLE '{name}' in the Metastore.{hint}")
        return source

    def source_description(self, source: Source, *, is_extended: bool) -> JSON:
        """A stream or table, with the queries that read and fill it."""
        readers, writers = self._catalog.readers(source.name), self._catalog.writers(source.name)
        found = self._topics.describe(source.topic) if is_extended else None
        partitions = () if found is None else found.partitions
        return {
            "name": source.name,
            "windowType": None if source.window is None else source.window.kind,
            "readQueries": [self._listed(query) for query in readers],
            "writeQueries": [self._listed(query) for query in writers],
            "fields": fields(source),
            "type": source.kind,
            "timestamp": _TIME_NOT_SET if source.timestamp is None else source.timestamp.column,
            "statistics": "",
            "errorStats": "",
            "statisticsMap": {},
            "errorStatsMap": {},
            "extended": is_extended,
            "keyFormat": source.key_format.name,
            "valueFormat": source.value_format.name,
            "topic": source.topic,
            "partitions": len(partitions),
            "replication": len(partitions[0].replicas) if partitions else 0,
            "statement": source.statement,
            "queryOffsetSummaries": [],
            "sourceConstraints": sorted({query.writes for query in readers} - {source.name}),
            "clusterStatistics": [],
            "clusterErrorStats": [],
            **(self._statistics(readers, writers) if is_extended else {}),
        }

    def _statistics(self, readers: Iterable[Query], writers: Iterable[Query]) -> dict[str, JSON]:
        """What is known of the queries at run time."""
        filling = [self.progress(query) for query in writers]
        reading = [self.progress(query) for query in readers]
        values: dict[str, float] = {}
        if filling:
            values |= {
                "messages-per-sec": sum(one.rows_per_second for one in filling),
                "total-messages": sum(one.output_rows for one in filling),
                "state-rows": sum(one.state_rows for one in filling),
                "state-bytes": sum(one.state_bytes for one in filling),
                "lag": sum(one.lag or 0 for one in filling),
                "watermark-ms": min((one.watermark_ms for one in filling if one.watermark_ms is not None), default=0),
            }
        if reading:
            values |= {
                "consumer-messages-per-sec": sum(one.rows_per_second for one in reading),
                "consumer-total-messages": sum(one.input_rows for one in reading),
            }
        wrong = {
            "undecodable-messages": sum(one.undecodable for one in filling),
            "late-messages": sum(one.late for one in filling),
            "restarts": sum(one.restarts for one in filling),
        }
        errors = {name: value for name, value in wrong.items() if value}
        summaries: list[JSON] = []
        for query in writers:
            summaries += offset_summaries(*groups_of(query, self._topics))
        return {
            "statistics": _text(values),
            "errorStats": _text(errors),
            "clusterStatistics": self._listed_values(values),
            "clusterErrorStats": self._listed_values(errors),
            "queryOffsetSummaries": summaries,
        }

    def _listed_values(self, values: Mapping[str, float]) -> list[JSON]:
        now = self._clock.now_ms()
        return [
            {"host": self._host, "name": name, "value": float(value), "timestamp": now}
            for name, value in values.items()
        ]

    # --- queries ---

    def progress(self, query: Query) -> QueryProgress:
        """How a query is doing, and how much it has still to read."""
        lag = lag_of(*groups_of(query, self._topics))
        return progress_of(query, self._run_of(query.id), self._reported(), lag=lag)

    def _listed(self, query: Query) -> dict[str, JSON]:
        progress = progress_of(query, self._run_of(query.id), self._reported())
        return running_query(query, progress.status, self._catalog.source(query.writes))

    def query_named(self, query_id: str) -> Query:
        """A persistent query; BadStatement if there is none."""
        query = self._catalog.query(query_id)
        if query is None:
            similar = closest(query_id, [one.id for one in self._catalog.queries()])
            hint = f" Did you mean {similar}?" if similar else ""
            raise BadStatement(f"Query with id:{query_id} does not exist, use SHOW QUERIES to view the full set.{hint}")
        return query

    def query_description(self, query: Query) -> JSON:
        """A persistent query: its steps, its state and its progress."""
        sink = self._catalog.source(query.writes)
        progress = self.progress(query)
        return {
            "id": query.id,
            "statementText": query.statement,
            "windowType": None if sink is None or sink.window is None else sink.window.kind,
            "fields": [] if sink is None else fields(sink),
            "sources": sorted(query.reads),
            "sinks": [query.writes],
            "topology": self._topology(query.plans),
            "executionPlan": execution_plan(query.plans),
            "overriddenProperties": dict(query.properties),
            "ksqlHostQueryStatus": {self._host: progress.status},
            "queryType": "PERSISTENT",
            "queryErrors": self._errors(progress),
            "tasksMetadata": [],
            "state": progress.status,
            "consumerGroupId": next((plan.group for plan in query.plans if plan.group is not None), None),
            "progress": msgspec.to_builtins(progress),
        }

    def _errors(self, progress: QueryProgress) -> list[JSON]:
        if progress.error is None:
            return []
        return [{"timestamp": self._clock.now_ms(), "errorMessage": progress.error, "type": "UNKNOWN"}]

    def plan_description(
        self, text: str, plans: tuple[QueryPlan, ...], *, sources: Iterable[str], sink: Source | None
    ) -> JSON:
        """What a statement would run."""
        columns = plans[-1].columns if plans else ()
        return {
            "id": "",
            "statementText": text,
            "windowType": None if sink is None or sink.window is None else sink.window.kind,
            "fields": fields(sink) if sink is not None else fields_of(columns),
            "sources": sorted(sources),
            "sinks": [] if sink is None else [sink.name],
            "topology": self._topology(plans),
            "executionPlan": execution_plan(plans),
            "overriddenProperties": {},
            "ksqlHostQueryStatus": {},
            "queryType": "PUSH" if sink is None else "PERSISTENT",
            "queryErrors": [],
            "tasksMetadata": [],
            "state": None,
            "consumerGroupId": None,
        }

    def _topology(self, plans: Iterable[QueryPlan]) -> str:
        """The SELECTs of the steps, and Spark's plans of them as long as it runs: it is not started for this."""
        found = list(plans)
        lines = [sql_texts(found)]
        if self._engine.is_connected:
            for plan in found:
                try:
                    lines.append(self._engine.explain(plan))
                except StreamsError as error:
                    lines.append(f"Spark does not explain {plan.name}: {error}")
        return "\n\n".join(line for line in lines if line)


def _text(values: Mapping[str, float]) -> str:
    """Statistics as one line, which older clients show."""
    return " ".join(
        f"{name}: {value:10.2f}" if value % 1 else f"{name}: {value:10.0f}" for name, value in values.items()
    )
