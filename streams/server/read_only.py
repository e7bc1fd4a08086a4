"""Statements that change nothing in the catalog: they are answered here, or passed on to Connect or to Spark."""

from collections.abc import Mapping
from typing import Final

from streams.formats.registry import Schemas
from streams.model.pull import PullPlan
from streams.model.sources import Source
from streams.server.asserting import assert_schema, assert_topic
from streams.server.catalog import Catalog
from streams.server.connectors import Connectors
from streams.server.describing import Describer
from streams.server.engine import EngineDoor
from streams.server.entities import JSON, entity, fields_of
from streams.server.errors import BadStatement
from streams.server.preparing import Surroundings
from streams.server.script import Written
from streams.server.showing import Shower, described_function
from streams.server.transient import OpenQueries
from streams.sql.language.tree.node import Identifier
from streams.sql.language.tree.queries import Query
from streams.sql.language.tree.statements import (
    AssertSchema,
    AssertTopic,
    CreateAsSelect,
    CreateConnector,
    Describe,
    Described,
    Drop,
    Explain,
    Show,
    Shown,
    SparkStatement,
)
from streams.sql.planning.queries import plan_create, plan_pull, plan_push, sources_of

_CONNECTORS: Final = (Shown.CONNECTORS, Shown.SOURCE_CONNECTORS, Shown.SINK_CONNECTORS)
_ROWS_MAX: Final = 10_000
_ELSEWHERE: Final = {
    "RunScript": "RUN SCRIPT is carried out by clients: send the statements of the file.",
    "AlterSystem": "ALTER SYSTEM is not supported: change the properties of the server, and start it again.",
    "AssertValues": "ASSERT VALUES is for tests: use it in a file for caudal sql test.",
    "AssertTombstone": "ASSERT NULL VALUES is for tests: use it in a file for caudal sql test.",
    "AssertSource": "ASSERT STREAM and ASSERT TABLE are for tests: use them in a file for caudal sql test.",
}


class ReadOnlyStatements:
    """Answers such statements."""

    def __init__(
        self,
        *,
        catalog: Catalog,
        schemas: Schemas,
        engine: EngineDoor,
        connectors: Connectors,
        open_queries: OpenQueries,
        describer: Describer,
        shower: Shower,
    ) -> None:
        self._catalog = catalog
        self._schemas = schemas
        self._engine = engine
        self._connectors = connectors
        self._open_queries = open_queries
        self._describer = describer
        self._shower = shower

    def source_named(self, name: str) -> Source:
        """A stream or table; BadStatement if there is none."""
        return self._describer.source_named(name)

    def terminated(self, query_id: str, text: str) -> JSON:
        """TERMINATE of the query of a client."""
        return entity("terminate_query", text, queryId=query_id, wasTerminated=self._open_queries.close(query_id))

    def tell(self, written: Written, around: Surroundings, variables: Mapping[str, str]) -> JSON:
        """The answer."""
        text = written.text
        match written.statement:
            case Show() as statement:
                return self._show(statement, text, around, variables)
            case Describe() as statement:
                return self._describe(statement, text)
            case Explain(subject):
                return self._explain(subject, text, around)
            case AssertTopic() as statement:
                return assert_topic(statement, around.topics, text)
            case AssertSchema() as statement:
                return assert_schema(statement, self._schemas, text)
            case CreateConnector() as statement:
                return self._connectors.create(statement, text)
            case Drop() as statement:
                return self._connectors.drop(statement.name.name, text, if_exists=statement.if_exists)
            case SparkStatement(own):
                return self._spark(own, text)
            case other:
                name = type(other).__name__
                raise BadStatement(_ELSEWHERE.get(name, f"{name} is not supported"))

    def _show(self, statement: Show, text: str, around: Surroundings, variables: Mapping[str, str]) -> JSON:
        if statement.what in _CONNECTORS:
            return self._connectors.list(statement.what, text)
        if statement.what is Shown.CONNECTOR_PLUGINS:
            return self._connectors.plugins(text)
        return self._shower.show(statement, text, overridden=around.overridden, variables=variables)

    def _describe(self, statement: Describe, text: str) -> JSON:
        is_extended = statement.is_extended
        name = "" if statement.name is None else statement.name.name
        match statement.what:
            case Described.SOURCE:
                found = self._describer.source_description(self.source_named(name), is_extended=is_extended)
                return entity("sourceDescription", text, sourceDescription=found)
            case Described.STREAMS | Described.TABLES:
                kind = "STREAM" if statement.what is Described.STREAMS else "TABLE"
                described = [
                    self._describer.source_description(source, is_extended=is_extended)
                    for source in self._catalog.sources()
                    if source.kind == kind
                ]
                return entity("source_descriptions", text, sourceDescriptions=described)
            case Described.FUNCTION:
                function = described_function(name, self._catalog)
                if function is None:
                    raise BadStatement(f"Can't find any functions with the name '{name}'. SHOW FUNCTIONS lists them.")
                return entity("describe_function", text, **function)
            case Described.CONNECTOR:
                sources = list(self._catalog.sources())
                shown = {
                    source.name: self._describer.source_description(source, is_extended=False) for source in sources
                }
                return self._connectors.describe(name, text, sources, shown)

    # --- EXPLAIN ---

    def _explain(self, subject: object, text: str, around: Surroundings) -> JSON:
        match subject:
            case Identifier(name):
                description = self._describer.query_description(self._describer.query_named(name))
            case SparkStatement(own):
                return self._spark(f"EXPLAIN {own}", text)
            case CreateAsSelect() as statement:
                planned = plan_create(statement, around.state, around.facts(), around.options("EXPLAINED"))
                description = self._describer.plan_description(
                    text, planned.query.plans, sources=planned.query.reads, sink=planned.sink
                )
            case Query(emit=None) as query:
                description = self._explain_pull(query, text, around)
            case Query() as query:
                plans = plan_push(query, around.state, around.facts(), around.options("transient_EXPLAINED"))
                description = self._describer.plan_description(text, plans, sources=sources_of(query), sink=None)
            case _:
                raise BadStatement("Only queries can be explained.")
        return entity("queryDescription", text, queryDescription=description)

    def _explain_pull(self, query: Query, text: str, around: Surroundings) -> JSON:
        plan: PullPlan = plan_pull(query, around.state, around.facts(), around.options())
        description = self._describer.plan_description(text, (), sources=sources_of(query), sink=None)
        if plan.lookup is not None:
            keys = "all rows" if plan.lookup.keys is None else f"{len(plan.lookup.keys)} keys"
            steps = f" > [ LOOKUP ] | {plan.lookup.source}: {keys}"
        else:
            steps = f" > [ SPARK ] | {', '.join(plan.tables)}"
        return {
            **description,
            "fields": fields_of(plan.columns, key_columns=plan.key_columns),
            "executionPlan": steps,
            "topology": plan.sql or "",
            "queryType": "PULL",
        }

    # --- Spark ---

    def _spark(self, statement: str, text: str) -> JSON:
        """A statement of Spark's own SQL, unchanged; at most so many rows are returned."""
        found = self._engine.sql(statement, limit=_ROWS_MAX)
        return entity(
            "spark_rows", text, columns=found["columns"], rows=found["rows"], truncated=found.get("truncated", False)
        )
